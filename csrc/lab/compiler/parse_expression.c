/* Expressions, by precedence climbing. */
#include <string.h>

#include "parse.h"

static lab_expression *parse_unary(parser *p);

/* ---- primary expressions ---- */

static lab_expression *number(parser *p) {
    const lab_token *t = parse_look(p, 0);
    const lab_position at = t->at;
    parse_skip(p);
    if (t->kind == LAB_REAL) {
        const bool single = t->suffix & LAB_FLOAT;
        return lab_float_node(p->l, lab_scalar(single ? LAB_F32 : LAB_F64), at, t->real);
    }
    /* the first type that holds the value: decimal numbers without u are signed */
    lab_type_kind kind = LAB_I32;
    const uint64_t value = t->integer;
    const bool may_be_unsigned = !(t->suffix & LAB_DECIMAL) || t->suffix & LAB_UNSIGNED;
    if (t->suffix & LAB_CHARACTER)
        kind = LAB_I8;
    else if (t->suffix & LAB_LONG || value > (may_be_unsigned ? UINT32_MAX : INT32_MAX))
        kind =
            may_be_unsigned && (value > INT64_MAX || t->suffix & LAB_UNSIGNED) ? LAB_U64 : LAB_I64;
    else if (t->suffix & LAB_UNSIGNED || value > INT32_MAX)
        kind = LAB_U32;
    return lab_int_node(p->l, lab_scalar(kind), at, lab_wrapped(lab_scalar(kind), (int64_t)value));
}

/* threadIdx.x and the others; `op` is 3 * the row + the axis. */
static lab_expression *special(parser *p, const lab_name *name, lab_position at) {
    static const char *const names[] = {"threadIdx", "blockIdx", "blockDim", "gridDim"};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name->text, names[i]) != 0) continue;
        parse_expect(p, '.');
        const lab_token *t = parse_look(p, 0);
        const bool good =
            t->kind == LAB_NAME && t->name->length == 1 && t->text[0] >= 'x' && t->text[0] <= 'z';
        if (!good) {
            parse_unexpected(p, "x, y or z");
            return lab_error_node(p->l, at);
        }
        parse_skip(p);
        lab_expression *e = lab_node(p->l, LAB_SPECIAL, lab_scalar(LAB_U32), at, NULL, NULL);
        e->op = 3 * i + (uint32_t)(t->name->text[0] - 'x');
        return e;
    }
    if (strcmp(name->text, "warpSize") == 0) return lab_int_node(p->l, lab_scalar(LAB_I32), at, 32);
    return NULL;
}

static lab_expression *variable(parser *p, const lab_name *name, lab_position at) {
    lab_symbol *s = name->symbol;
    if (!s) {
        lab_expression *e = special(p, name, at);
        if (!e) lab_fail(p->l, at, "'%s' is not declared", name->text);
        return e ? e : lab_error_node(p->l, at);
    }
    if (s->function) {
        lab_fail(p->l, at, "expected '(' after the function '%s'", name->text);
        return lab_error_node(p->l, at);
    }
    if (s->constant) {
        lab_expression *copy = lab_node(p->l, s->constant->kind, s->constant->type, at, NULL, NULL);
        copy->integer = s->constant->integer;
        copy->real = s->constant->real;
        return copy;
    }
    lab_expression *e = lab_node(p->l, LAB_VARIABLE, s->type, at, NULL, NULL);
    e->symbol = s;
    return e;
}

/* After '(': values until `end`. */
static uint32_t list(parser *p, uint32_t end, lab_expression **values) {
    uint32_t n = 0;
    if (parse_accept(p, end)) return 0;
    do {
        if (n == LAB_MAX_ARGUMENTS) {
            lab_fail(p->l, parse_look(p, 0)->at, "more than %d values", LAB_MAX_ARGUMENTS);
            return 0;
        }
        values[n++] = parse_assignment(p);
    } while (parse_accept(p, ','));
    parse_expect(p, end);
    return n;
}

static lab_expression *name_or_call(parser *p) {
    const lab_token *t = parse_look(p, 0);
    lab_expression *values[LAB_MAX_ARGUMENTS];
    parse_skip(p);
    const bool member = parse_is(p, LAB_2(':', ':'));
    if (member) lab_fail(p->l, t->at, "'::' is not supported; CUDA's functions need no std::");
    if (!parse_accept(p, '(')) return variable(p, t->name, t->at);
    const uint32_t n = list(p, ')', values);
    return lab_call(p->l, t->name, values, n, t->at);
}

static const lab_type *type_name(parser *p) {
    const specifiers s = parse_specifiers(p);
    if (!s.type) lab_fail(p->l, s.at, "expected a type, found 'auto'");
    return parse_declarator(p, s.type ? s.type : lab_scalar(LAB_I32), NULL);
}

/* reinterpret_cast<T>(e) and its kin. */
static lab_expression *named_cast(parser *p) {
    const lab_position at = parse_look(p, 0)->at;
    parse_skip(p);
    parse_expect(p, '<');
    const lab_type *type = type_name(p);
    parse_expect(p, '>');
    parse_expect(p, '(');
    lab_expression *e = parse_expression(p);
    parse_expect(p, ')');
    return lab_cast(p->l, e, type, at);
}

/* float(x), and float4{...}, float4(...) is not C++. */
static lab_expression *functional_cast(parser *p) {
    const lab_position at = parse_look(p, 0)->at;
    const specifiers s = parse_specifiers(p);
    lab_expression *values[LAB_MAX_ARGUMENTS];
    const lab_type *type = s.type ? s.type : lab_scalar(LAB_I32);
    const uint32_t end = parse_is(p, '{') ? '}' : ')';
    if (end == ')')
        parse_expect(p, '(');
    else
        parse_skip(p);
    const uint32_t n = list(p, end, values);
    if (type->kind == LAB_VECTOR) return lab_make(p->l, type, values, n, at);
    if (n > 1) lab_fail(p->l, at, "expected one value, found %u", n);
    return n ? lab_cast(p->l, values[0], type, at) : lab_int_node(p->l, type, at, 0);
}

static lab_expression *size_of(parser *p) {
    const lab_position at = parse_look(p, 0)->at;
    parse_skip(p);
    const lab_type *type;
    if (parse_is(p, '(') && parse_look(p, 1)->kind == LAB_NAME) {
        parse_skip(p);
        if (parse_starts_type(p))
            type = type_name(p);
        else
            type = parse_expression(p)->type;
        parse_expect(p, ')');
    } else {
        type = parse_unary(p)->type;
    }
    return lab_int_node(p->l, lab_scalar(LAB_U64), at, type->size);
}

static lab_expression *keyword(parser *p) {
    const lab_token *t = parse_look(p, 0);
    switch (t->name->keyword) {
    case LAB_KEY_TRUE:
    case LAB_KEY_FALSE:
        parse_skip(p);
        return lab_int_node(p->l, lab_scalar(LAB_BOOL), t->at, t->name->keyword == LAB_KEY_TRUE);
    case LAB_KEY_NULLPTR: parse_skip(p); return lab_int_node(p->l, lab_scalar(LAB_I32), t->at, 0);
    case LAB_KEY_SIZEOF: return size_of(p);
    case LAB_KEY_REINTERPRET_CAST:
    case LAB_KEY_STATIC_CAST:
    case LAB_KEY_CONST_CAST: return named_cast(p);
    default: break;
    }
    if (parse_starts_type(p)) return functional_cast(p);
    parse_unexpected(p, "an expression");
    return lab_error_node(p->l, t->at);
}

static lab_expression *primary(parser *p) {
    const lab_token *t = parse_look(p, 0);
    if (t->kind == LAB_INTEGER || t->kind == LAB_REAL) return number(p);
    if (t->kind == LAB_NAME) {
        const bool is_type = t->name->keyword || (!t->name->symbol && parse_starts_type(p));
        return is_type ? keyword(p) : name_or_call(p);
    }
    if (parse_accept(p, '(')) {
        lab_expression *e = parse_expression(p);
        parse_expect(p, ')');
        return e;
    }
    if (parse_is(p, '[')) {
        lab_fail(p->l, t->at, "lambdas are not supported; write a __device__ function");
        return lab_error_node(p->l, t->at);
    }
    if (t->kind == LAB_STRING)
        lab_fail(p->l, t->at,
                 "strings are not supported; kernels here cannot print: write to an "
                 "array, or step through the kernel");
    parse_unexpected(p, "an expression");
    return lab_error_node(p->l, t->at);
}

/* ---- operators ---- */

static lab_expression *member(parser *p, lab_expression *e, lab_position at) {
    const lab_token *t = parse_look(p, 0);
    if (t->kind != LAB_NAME) {
        parse_unexpected(p, "x, y, z or w");
        return e;
    }
    parse_skip(p);
    return lab_lane(p->l, e, t->name, at);
}

static lab_expression *postfix(parser *p) {
    lab_expression *e = primary(p);
    for (;;) {
        const lab_position at = parse_look(p, 0)->at;
        if (parse_accept(p, '[')) {
            lab_expression *index = parse_expression(p);
            parse_expect(p, ']');
            e = lab_subscript(p->l, e, index, at);
        } else if (parse_accept(p, '.')) {
            e = member(p, e, at);
        } else if (parse_accept(p, LAB_2('-', '>'))) {
            e = member(p, lab_dereference(p->l, e, at), at);
        } else if (parse_accept(p, LAB_2('+', '+'))) {
            e = lab_increment(p->l, LAB_2('+', '+'), true, e, at);
        } else if (parse_accept(p, LAB_2('-', '-'))) {
            e = lab_increment(p->l, LAB_2('-', '-'), true, e, at);
        } else {
            return e;
        }
    }
}

/* (type)operand, after '('. */
static lab_expression *c_cast(parser *p, lab_position at) {
    const lab_type *type = type_name(p);
    parse_expect(p, ')');
    return lab_cast(p->l, parse_unary(p), type, at);
}

static lab_expression *prefix(parser *p) {
    const lab_token *t = parse_look(p, 0);
    if (t->kind != LAB_PUNCTUATOR) return postfix(p);
    const lab_position at = t->at;
    const uint32_t op = t->punctuator;
    switch (op) {
    case '+':
    case '-':
    case '!':
    case '~': parse_skip(p); return lab_unary(p->l, op, parse_unary(p), at);
    case '*': parse_skip(p); return lab_dereference(p->l, parse_unary(p), at);
    case '&': parse_skip(p); return lab_address(p->l, parse_unary(p), at);
    case LAB_2('+', '+'):
    case LAB_2('-', '-'): parse_skip(p); return lab_increment(p->l, op, false, parse_unary(p), at);
    default: break;
    }
    if (op != '(') return postfix(p);
    parse_skip(p);
    if (parse_starts_type(p)) return c_cast(p, at);
    p->at--;
    return postfix(p);
}

static lab_expression *parse_unary(parser *p) {
    if (!parse_enter(p)) return lab_error_node(p->l, parse_look(p, 0)->at);
    lab_expression *e = prefix(p);
    parse_leave(p);
    return e;
}

/* 0: no binary operator. */
static int precedence(const lab_token *t) {
    if (t->kind != LAB_PUNCTUATOR) return 0;
    switch (t->punctuator) {
    case '*':
    case '/':
    case '%': return 10;
    case '+':
    case '-': return 9;
    case LAB_2('<', '<'):
    case LAB_2('>', '>'): return 8;
    case '<':
    case '>':
    case LAB_2('<', '='):
    case LAB_2('>', '='): return 7;
    case LAB_2('=', '='):
    case LAB_2('!', '='): return 6;
    case '&': return 5;
    case '^': return 4;
    case '|': return 3;
    case LAB_2('&', '&'): return 2;
    case LAB_2('|', '|'): return 1;
    default: return 0;
    }
}

static lab_expression *binary(parser *p, int lowest) {
    lab_expression *a = parse_unary(p);
    for (;;) {
        const lab_token *t = parse_look(p, 0);
        const int own = precedence(t);
        if (own == 0 || own < lowest) return a;
        parse_skip(p);
        a = lab_binary(p->l, t->punctuator, a, binary(p, own + 1), t->at);
    }
}

static bool is_assignment(const lab_token *t) {
    static const uint32_t all[] = {'=',
                                   LAB_2('+', '='),
                                   LAB_2('-', '='),
                                   LAB_2('*', '='),
                                   LAB_2('/', '='),
                                   LAB_2('%', '='),
                                   LAB_2('&', '='),
                                   LAB_2('|', '='),
                                   LAB_2('^', '='),
                                   LAB_3('<', '<', '='),
                                   LAB_3('>', '>', '=')};
    for (size_t i = 0; t->kind == LAB_PUNCTUATOR && i < sizeof all / sizeof *all; i++)
        if (t->punctuator == all[i]) return true;
    return false;
}

static lab_expression *assignment(parser *p) {
    lab_expression *a = binary(p, 1);
    const lab_token *t = parse_look(p, 0);
    if (parse_accept(p, '?')) {
        lab_expression *b = parse_expression(p);
        parse_expect(p, ':');
        return lab_conditional(p->l, a, b, parse_assignment(p), t->at);
    }
    if (!is_assignment(t)) return a;
    parse_skip(p);
    return lab_assign(p->l, t->punctuator, a, parse_assignment(p), t->at);
}

lab_expression *parse_assignment(parser *p) {
    if (!parse_enter(p)) return lab_error_node(p->l, parse_look(p, 0)->at);
    lab_expression *e = assignment(p);
    parse_leave(p);
    return e;
}

lab_expression *parse_expression(parser *p) {
    lab_expression *a = parse_assignment(p);
    for (;;) {
        const lab_position at = parse_look(p, 0)->at;
        if (!parse_accept(p, ',')) return a;
        a = lab_binary(p->l, ',', a, parse_assignment(p), at);
    }
}

int64_t parse_constant(parser *p, const char *of) {
    lab_expression *e = parse_assignment(p);
    if (p->l->failed) return 1;
    if (e->kind == LAB_INT_CONSTANT) return e->integer;
    lab_fail(p->l, e->at,
             "expected a constant as %s; for a size known only at the launch use "
             "extern __shared__",
             of);
    return 1;
}
