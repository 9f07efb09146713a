/* Splits a text into tokens. Comments and spliced lines are white space. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "token.h"

typedef struct lexer {
    lab *l;
    const char *at, *end, *line_start;
    uint32_t line;
    bool starts_line, after_space;
} lexer;

void lab_add_keywords(lab *l) {
    static const char *const texts[] = {
#define K(id, text) text,
#include "keywords.def"
#undef K
    };
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++)
        lab_intern(l, texts[i], strlen(texts[i]), (lab_position){1, 1})->keyword = i + 1;
}

static lab_position position(const lexer *x) {
    return (lab_position){x->line, (uint32_t)(x->at - x->line_start) + 1};
}

static char peek(const lexer *x, size_t ahead) {
    return (size_t)(x->end - x->at) > ahead ? x->at[ahead] : '\0';
}

static void newline(lexer *x) {
    x->at++;
    x->line++;
    x->line_start = x->at;
}

static void block_comment(lexer *x) {
    const lab_position begin = position(x);
    for (x->at += 2; x->at < x->end; x->at++) {
        if (peek(x, 0) == '*' && peek(x, 1) == '/') {
            x->at += 2;
            return;
        }
        if (*x->at == '\n') {
            x->line++;
            x->line_start = x->at + 1;
        }
    }
    lab_fail(x->l, begin, "expected '*/', found the end of the text");
}

/* A backslash at the end of a line joins it with the next one. */
static bool splice(lexer *x) {
    size_t skip = 1;
    if (peek(x, 1) == '\r') skip++;
    if (peek(x, skip) != '\n') return false;
    x->at += skip;
    newline(x);
    return true;
}

static void skip_space(lexer *x) {
    while (x->at < x->end) {
        const char c = *x->at;
        if (c == '\n') {
            newline(x);
            x->starts_line = true;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
            x->at++;
        } else if (c == '/' && peek(x, 1) == '/') {
            while (x->at < x->end && *x->at != '\n')
                x->at++;
        } else if (c == '/' && peek(x, 1) == '*') {
            block_comment(x);
        } else if (c != '\\' || !splice(x)) {
            return;
        }
        x->after_space = true;
    }
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static void name(lexer *x, lab_token *t) {
    const char *begin = x->at;
    while (is_letter(peek(x, 0)) || is_digit(peek(x, 0)))
        x->at++;
    t->kind = LAB_NAME;
    t->name = lab_intern(x->l, begin, (size_t)(x->at - begin), t->at);
}

/* u, l, ll in any order and case. */
static void integer_suffix(lab *l, lab_token *t, const char *text) {
    int longs = 0, unsigneds = 0;
    for (; *text == 'u' || *text == 'U' || *text == 'l' || *text == 'L'; text++)
        *text == 'u' || *text == 'U' ? unsigneds++ : longs++;
    if (*text || longs > 2 || unsigneds > 1)
        lab_fail(l, t->at, "expected a number, found '%.*s'", (int)t->length, t->text);
    t->suffix |= (unsigneds ? LAB_UNSIGNED : 0) | (longs ? LAB_LONG : 0);
}

static void integer(lab *l, lab_token *t, const char *text) {
    int base = 10;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) base = 16;
    if (text[0] == '0' && (text[1] == 'b' || text[1] == 'B')) base = 2;
    if (base == 10 && text[0] == '0' && is_digit(text[1])) base = 8;
    if (base == 16 || base == 2) text += 2;
    const char *digits = text;
    uint64_t value = 0;
    bool overflow = false;
    for (;; text++) {
        if (*text == '\'' && text > digits) continue;
        const int digit = is_digit(*text)                ? *text - '0'
                          : *text >= 'a' && *text <= 'f' ? *text - 'a' + 10
                          : *text >= 'A' && *text <= 'F' ? *text - 'A' + 10
                                                         : 99;
        if (digit >= base) break;
        overflow |= __builtin_mul_overflow(value, (uint64_t)base, &value);
        overflow |= __builtin_add_overflow(value, (uint64_t)digit, &value);
    }
    if (overflow) lab_fail(l, t->at, "expected an integer below 2^64, found a larger one");
    if (text == digits) lab_fail(l, t->at, "expected digits after '%.2s'", t->text);
    t->kind = LAB_INTEGER;
    t->suffix = base == 10 ? LAB_DECIMAL : 0;
    t->integer = value;
    integer_suffix(l, t, text);
}

static void real(lab *l, lab_token *t, const char *text) {
    char *end;
    t->kind = LAB_REAL;
    t->real = strtod(text, &end);
    if (*end == 'f' || *end == 'F') {
        t->real = strtof(text, &end); /* rounded once */
        t->suffix = LAB_FLOAT;
        end++;
    }
    if (*end) lab_fail(l, t->at, "expected a number, found '%.*s'", (int)t->length, t->text);
}

/* The characters of a number: a preprocessing number, as the standard calls it. */
static void number(lexer *x, lab_token *t) {
    char text[80];
    bool is_real = false;
    const bool hex = peek(x, 0) == '0' && (peek(x, 1) == 'x' || peek(x, 1) == 'X');
    size_t n = 0;
    for (char last = 0; x->at < x->end; last = *x->at++) {
        const char c = *x->at;
        const bool sign = !hex && (c == '+' || c == '-') && (last == 'e' || last == 'E');
        const bool separator = c == '\'' && is_digit(peek(x, 1));
        if (!is_letter(c) && !is_digit(c) && c != '.' && !sign && !separator) break;
        is_real |= c == '.' || (!hex && (c == 'e' || c == 'E'));
        if (n + 1 < sizeof text) text[n] = c;
        n++;
    }
    t->length = (uint32_t)n;
    if (n >= sizeof text) {
        lab_fail(x->l, t->at, "expected a number of fewer than %zu characters", sizeof text);
        return;
    }
    text[n] = '\0';
    is_real ? real(x->l, t, text) : integer(x->l, t, text);
}

static void string(lexer *x, lab_token *t) {
    t->kind = LAB_STRING;
    t->text = ++x->at;
    while (x->at < x->end && *x->at != '"' && *x->at != '\n')
        x->at += *x->at == '\\' && x->end - x->at > 1 && x->at[1] != '\n' ? 2 : 1;
    t->length = (uint32_t)(x->at - t->text);
    if (peek(x, 0) != '"') lab_fail(x->l, t->at, "expected '\"' at the end of the string");
    x->at++;
}

static void character(lexer *x, lab_token *t) {
    static const char codes[] = "n\nt\tr\r0\0\\\\'\'\"\"";
    char c = peek(x, 1);
    size_t n = 2;
    if (c == '\\') {
        const char code = peek(x, 2);
        size_t i = 0;
        while (i < sizeof codes - 1 && codes[i] != code)
            i += 2;
        if (i >= sizeof codes - 1) lab_fail(x->l, t->at, "unknown escape in a character");
        c = i < sizeof codes - 1 ? codes[i + 1] : 0;
        n = 3;
    }
    if (peek(x, n) != '\'') lab_fail(x->l, t->at, "expected a character as 'a'");
    if (x->l->failed) return;
    x->at += n + 1;
    t->kind = LAB_INTEGER;
    t->suffix = LAB_CHARACTER;
    t->integer = (uint64_t)(int64_t)(signed char)c;
}

static void punctuator(lexer *x, lab_token *t) {
    static const char *const longer[] = {
        "<<=", ">>=", "...", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "++",
        "--",  "+=",  "-=",  "*=", "/=", "%=", "&=", "|=", "^=", "->", "##", "::"};
    size_t n = 1;
    for (size_t i = 0; i < sizeof longer / sizeof *longer; i++) {
        n = strlen(longer[i]);
        if ((size_t)(x->end - x->at) >= n && memcmp(x->at, longer[i], n) == 0) break;
        n = 1;
    }
    const unsigned char c = (unsigned char)*x->at;
    if (n == 1 && (!strchr("+-*/%&|^~!<>=?:;,.()[]{}#", c) || c == 0)) {
        if (c > 32 && c < 127)
            lab_fail(x->l, t->at, "unexpected character '%c'", c);
        else
            lab_fail(x->l, t->at, "unexpected byte 0x%02x", c);
        return;
    }
    t->kind = LAB_PUNCTUATOR;
    for (size_t i = 0; i < n; i++)
        t->punctuator = t->punctuator << 8 | (unsigned char)x->at[i];
    x->at += n;
}

static void next(lexer *x, lab_token *t) {
    t->at = position(x);
    t->text = x->at;
    t->starts_line = x->starts_line;
    t->after_space = x->after_space;
    x->starts_line = x->after_space = false;
    const char c = peek(x, 0);
    if (x->at >= x->end) return;
    if (is_letter(c))
        name(x, t);
    else if (is_digit(c) || (c == '.' && is_digit(peek(x, 1))))
        number(x, t);
    else if (c == '"')
        string(x, t);
    else if (c == '\'')
        character(x, t);
    else
        punctuator(x, t);
    if (t->kind != LAB_STRING) t->length = (uint32_t)(x->at - t->text);
}

void lab_split(lab *l, const char *source, size_t size, lab_vector *tokens) {
    lexer x = {.l = l, .at = source, .end = source + size, .line_start = source, .line = 1};
    x.starts_line = true;
    for (;;) {
        skip_space(&x);
        lab_token *t = lab_push(l, tokens, sizeof *t);
        if (!l->failed) next(&x, t);
        if (l->failed) t->kind = LAB_END;
        if (t->kind == LAB_END) {
            t->starts_line = true;
            return;
        }
    }
}

const char *lab_describe(const lab_token *t, char *room) {
    if (t->kind == LAB_END) return "the end of the text";
    if (t->kind == LAB_STRING) return "a string";
    snprintf(room, 64, "'%.*s'", t->length > 40 ? 40 : (int)t->length, t->text);
    return room;
}
