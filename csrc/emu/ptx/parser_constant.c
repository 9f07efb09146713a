/* Numbers and constant expressions, parsed by precedence climbing.
 *
 * PTX evaluates integers in 64 bits by C's rules: signed unless an operand is unsigned (a U suffix,
 * or a number beyond INT64_MAX). Floats support only + - * / and the sign.
 */
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "parser.h"

/* ---- numbers ---- */

static bool digits_in_base(const char *text, size_t length, unsigned base, uint64_t *out) {
    uint64_t value = 0;
    if (length == 0) return false;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        unsigned digit = c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 32) - 'a' + 10);
        if (digit >= base) return false;
        if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
            __builtin_add_overflow(value, (uint64_t)digit, &value))
            return false;
    }
    *out = value;
    return true;
}

static void set_double(constant *out, double value) {
    float single = (float)value;
    *out = (constant){.is_float = true, .value = value};
    memcpy(&out->bits, &value, sizeof value);
    memcpy(&out->float_bits, &single, sizeof single);
}

/* "1.5e3". Uses the C locale regardless of the process's: strtod depends on the decimal point. */
static bool decimal_float(const char *text, size_t length, constant *out) {
    char copy[64], *end;
    if (length >= sizeof copy) return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    locale_t c_locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (c_locale == (locale_t)0) return false;
    locale_t before = uselocale(c_locale);
    set_double(out, strtod(copy, &end));
    uselocale(before);
    freelocale(c_locale);
    return *end == 0;
}

static bool number(const token *t, constant *out) {
    const char *text = t->text;
    size_t length = t->length;
    char base = length > 1 && text[0] == '0' ? (char)(text[1] | 32) : 0;
    uint64_t bits;

    if (base == 'f' || base == 'd') {
        if (length != (base == 'f' ? 10 : 18) || !digits_in_base(text + 2, length - 2, 16, &bits))
            return false;
        if (base == 'f') {
            uint32_t single_bits = (uint32_t)bits;
            float single;
            memcpy(&single, &single_bits, sizeof single);
            set_double(out, (double)single);
            /* Kept separately: conversion to double would quiet a signalling NaN. */
            out->float_bits = single_bits;
        } else {
            double value;
            memcpy(&value, &bits, sizeof value);
            set_double(out, value);
        }
        return true;
    }
    if (base != 'x' && memchr(text, '.', length)) return decimal_float(text, length, out);
    if (base != 'x' && base != 'b' && (memchr(text, 'e', length) || memchr(text, 'E', length)))
        return decimal_float(text, length, out);

    bool is_unsigned = text[length - 1] == 'U';
    length -= is_unsigned;
    bool read = base == 'x'   ? digits_in_base(text + 2, length - 2, 16, &bits)
                : base == 'b' ? digits_in_base(text + 2, length - 2, 2, &bits)
                              : digits_in_base(text, length, text[0] == '0' ? 8 : 10, &bits);
    if (!read) return false;
    *out = (constant){.bits = bits, .is_unsigned = is_unsigned || bits > INT64_MAX};
    return true;
}

/* ---- expressions ---- */

static bool expression(parser *p, int min_precedence, constant *out);

static bool nested(parser *p, bool (*parse)(parser *, constant *), constant *out) {
    if (p->nesting >= MAX_DEPTH)
        return parser_fail(p, p->token.line, "an expression is nested deeper than %d", MAX_DEPTH);
    p->nesting++;
    bool done = parse(p, out);
    p->nesting--;
    return done;
}

static bool unary(parser *p, constant *out) {
    token t = p->token;
    if (t.kind == TOKEN_NUMBER) {
        if (!number(&t, out))
            return parser_fail(p, t.line, "'%.*s' is not a number in PTX, or does not fit 64 bits",
                               (int)(t.length < 40 ? t.length : 40), t.text);
        parser_advance(p);
        return true;
    }
    if (t.kind == TOKEN_NAME && t.length == 7 && memcmp(t.text, "WARP_SZ", 7) == 0) {
        *out = (constant){.bits = 32};
        parser_advance(p);
        return true;
    }
    if (parser_accept(p, '(')) {
        if (parser_at_dot(p, "s64") || parser_at_dot(p, "u64")) {
            bool is_unsigned = parser_at_dot(p, "u64");
            parser_advance(p);
            if (!parser_expect(p, ')') || !nested(p, unary, out)) return false;
            if (out->is_float)
                return parser_fail(p, t.line, "a float cannot be cast to an integer");
            out->is_unsigned = is_unsigned;
            return true;
        }
        return nested(p, parser_constant, out) && parser_expect(p, ')');
    }
    if (t.kind != TOKEN_PUNCTUATOR || !strchr("+-~!", t.punctuator))
        return parser_unexpected(p, "a constant");
    parser_advance(p);
    if (!nested(p, unary, out)) return false;
    if (out->is_float && t.punctuator == '-') {
        uint32_t float_bits = out->float_bits ^ 0x80000000u;
        set_double(out, -out->value);
        out->float_bits = float_bits;
    } else if (out->is_float && t.punctuator != '+') {
        return parser_fail(p, t.line, "'%c' does not apply to a float", t.punctuator);
    }
    if (out->is_float) return true;
    if (t.punctuator == '-') out->bits = -out->bits;
    if (t.punctuator == '~') out->bits = ~out->bits;
    if (t.punctuator == '!') *out = (constant){.bits = !out->bits};
    return true;
}

/* The precedence of the operator at the lookahead; 0: none. op: its one or two characters. */
static int operator_at(const parser *p, char op[2]) {
    static const struct {
        char text[3];
        int precedence;
    } operators[] = {{"||", 1}, {"&&", 2}, {"==", 6}, {"!=", 6}, {"<=", 7}, {">=", 7},
                     {"<<", 8}, {">>", 8}, {"|", 3},  {"^", 4},  {"&", 5},  {"<", 7},
                     {">", 7},  {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10}};
    if (p->token.kind != TOKEN_PUNCTUATOR) return 0;
    char second = p->token.start + 1 < p->lexer.end ? p->token.start[1] : 0;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        const char *o = operators[i].text;
        if (p->token.punctuator != o[0] || (o[1] && second != o[1])) continue;
        op[0] = o[0];
        op[1] = o[1];
        return operators[i].precedence;
    }
    return 0;
}

static bool apply_float(parser *p, uint32_t line, char op, constant *left, double right) {
    switch (op) {
    case '+': set_double(left, left->value + right); return true;
    case '-': set_double(left, left->value - right); return true;
    case '*': set_double(left, left->value * right); return true;
    case '/': set_double(left, left->value / right); return true;
    default: return parser_fail(p, line, "'%c' does not apply to floats", op);
    }
}

static bool apply(parser *p, uint32_t line, const char op[2], constant *left,
                  const constant *right) {
    if (left->is_float || right->is_float) {
        if (!left->is_float || !right->is_float || op[1])
            return parser_fail(p, line, "an expression mixes floats and integers");
        return apply_float(p, line, op[0], left, right->value);
    }
    bool is_unsigned = left->is_unsigned || right->is_unsigned;
    uint64_t a = left->bits, b = right->bits, result = 0;
    int64_t sa = (int64_t)a, sb = (int64_t)b;
    bool less = is_unsigned ? a < b : sa < sb;
    switch (op[0] | op[1] << 8) {
    case '+': result = a + b; break;
    case '-': result = a - b; break;
    case '*': result = a * b; break;
    case '/':
    case '%':
        if (b == 0) return parser_fail(p, line, "an expression divides by zero");
        if (is_unsigned)
            result = op[0] == '/' ? a / b : a % b;
        else if (sb == -1)
            result = op[0] == '/' ? -a : 0; /* INT64_MIN / -1 traps on x86 */
        else
            result = (uint64_t)(op[0] == '/' ? sa / sb : sa % sb);
        break;
    case '|': result = a | b; break;
    case '^': result = a ^ b; break;
    case '&': result = a & b; break;
    case '<': result = less; break;
    case '>': result = !less && a != b; break;
    case '<' | '=' << 8: result = less || a == b; break;
    case '>' | '=' << 8: result = !less; break;
    case '=' | '=' << 8: result = a == b; break;
    case '!' | '=' << 8: result = a != b; break;
    case '|' | '|' << 8: result = a || b; break;
    case '&' | '&' << 8: result = a && b; break;
    case '<' | '<' << 8: result = b < 64 ? a << b : 0; break;
    case '>' | '>' << 8:
        if (left->is_unsigned)
            result = b < 64 ? a >> b : 0;
        else
            result = (uint64_t)(sa >> (b < 63 ? b : 63));
        break;
    }
    *left = (constant){.bits = result, .is_unsigned = is_unsigned};
    return true;
}

/* An expression whose binary operators all have at least this precedence. */
static bool expression(parser *p, int min_precedence, constant *out) {
    char op[2];
    int precedence;
    if (!unary(p, out)) return false;
    while ((precedence = operator_at(p, op)) >= min_precedence && precedence) {
        uint32_t line = p->token.line;
        constant right;
        parser_advance(p);
        if (op[1]) parser_advance(p);
        if (!expression(p, precedence + 1, &right) || !apply(p, line, op, out, &right))
            return false;
    }
    return true;
}

bool parser_constant(parser *p, constant *out) {
    if (!expression(p, 1, out)) return false;
    if (!parser_accept(p, '?')) return true;
    constant yes, no;
    if (!nested(p, parser_constant, &yes) || !parser_expect(p, ':') ||
        !nested(p, parser_constant, &no))
        return false;
    *out = (out->is_float ? out->value != 0 : out->bits != 0) ? yes : no;
    return true;
}

/* Excludes comparisons, since the > of %r<100> ends the number. */
bool parser_integer(parser *p, uint64_t max, const char *what, uint64_t *out) {
    constant c;
    uint32_t line = p->token.line;
    if (!expression(p, 8, &c)) return false;
    if (c.is_float) return parser_fail(p, line, "%s must be an integer", what);
    if (c.bits > max)
        return parser_fail(p, line, "%s is %lld; at most %llu", what, (long long)c.bits,
                           (unsigned long long)max);
    *out = c.bits;
    return true;
}

bool parser_offset(parser *p, int64_t *offset) {
    uint64_t sum = (uint64_t)*offset;
    while (parser_at(p, '+') || parser_at(p, '-')) {
        bool minus = p->token.punctuator == '-';
        uint32_t line = p->token.line;
        constant c;
        parser_advance(p);
        if (!expression(p, 10, &c)) return false;
        if (c.is_float) return parser_fail(p, line, "an address offset must be an integer");
        sum = minus ? sum - c.bits : sum + c.bits;
    }
    *offset = (int64_t)sum;
    return true;
}

void constant_to_immediate(const constant *c, ptx_operand *out) {
    *out = (ptx_operand){.kind = PTX_IMMEDIATE,
                         .is_float = c->is_float,
                         .bits = c->bits,
                         .value = c->value,
                         .float_bits = c->float_bits};
}
