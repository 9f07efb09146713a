/* The lexer: one pass, no allocation; tokens point into the text.
 *
 * A dotted opcode becomes a NAME and DOTs ("ld" ".global" ".v4" ".f32"). Directives, types and
 * vector components start with a dot too, and only the parser can distinguish them.
 */
#include "lexer.h"

#include <string.h>

enum { WORD = 1, DIGIT = 2, NAME_START = 4, SPACE = 8, PUNCTUATOR = 16 };

/* A name starts with a letter, _ $ or %, and goes on with letters, digits, _ and $. */
static const unsigned char char_class[256] = {
    ['0' ... '9'] = WORD | DIGIT,
    ['a' ... 'z'] = WORD | NAME_START,
    ['A' ... 'Z'] = WORD | NAME_START,
    ['_'] = WORD | NAME_START,
    ['$'] = WORD | NAME_START,
    ['%'] = NAME_START | PUNCTUATOR,
    [' '] = SPACE,
    ['\t'] = SPACE,
    ['\r'] = SPACE,
    ['\n'] = SPACE,
    ['\v'] = SPACE,
    ['\f'] = SPACE,
    ['{'] = PUNCTUATOR,
    ['}'] = PUNCTUATOR,
    ['['] = PUNCTUATOR,
    [']'] = PUNCTUATOR,
    ['('] = PUNCTUATOR,
    [')'] = PUNCTUATOR,
    ['<'] = PUNCTUATOR,
    ['>'] = PUNCTUATOR,
    [','] = PUNCTUATOR,
    [';'] = PUNCTUATOR,
    [':'] = PUNCTUATOR,
    ['|'] = PUNCTUATOR,
    ['@'] = PUNCTUATOR,
    ['!'] = PUNCTUATOR,
    ['+'] = PUNCTUATOR,
    ['-'] = PUNCTUATOR,
    ['*'] = PUNCTUATOR,
    ['/'] = PUNCTUATOR,
    ['&'] = PUNCTUATOR,
    ['^'] = PUNCTUATOR,
    ['~'] = PUNCTUATOR,
    ['?'] = PUNCTUATOR,
    ['='] = PUNCTUATOR,
};

static bool is(char c, unsigned char what) {
    return char_class[(unsigned char)c] & what;
}

void lexer_start(lexer *l, const char *text, size_t size) {
    *l = (lexer){.begin = text, .at = text, .end = text + size, .line = 1};
}

/* Skips white space and comments; false if a comment is not terminated. */
static bool skip_space(lexer *l) {
    const char *at = l->at, *end = l->end;
    while (at < end) {
        if (is(*at, SPACE)) {
            if (*at == '\n') l->line++;
            at++;
        } else if (*at == '/' && end - at > 1 && at[1] == '/') {
            at = memchr(at, '\n', (size_t)(end - at));
            if (!at) at = end;
        } else if (*at == '/' && end - at > 1 && at[1] == '*') {
            const char *body = at + 2;
            uint32_t line = l->line;
            while (end - body > 1 && !(body[0] == '*' && body[1] == '/')) {
                if (*body == '\n') line++;
                body++;
            }
            if (end - body < 2) return false;
            l->line = line;
            at = body + 2;
        } else {
            break;
        }
    }
    l->at = at;
    return true;
}

static const char *words(const char *at, const char *end) {
    while (at < end && is(*at, WORD))
        at++;
    return at;
}

/* The end of a modifier such as "2d", "shared::cta" or "mbarrier::complete_tx::bytes". */
static const char *modifier(const char *at, const char *end) {
    at = words(at, end);
    while (end - at > 2 && at[0] == ':' && at[1] == ':' && is(at[2], WORD))
        at = words(at + 2, end);
    return at;
}

static const char *digits(const char *at, const char *end) {
    while (at < end && is(*at, DIGIT))
        at++;
    return at;
}

static const char *number(const char *at, const char *end) {
    if (*at == '0' && end - at > 1 && strchr("xXfFdDbB", at[1])) return words(at, end);
    at = digits(at, end);
    if (at < end && *at == '.') at = digits(at + 1, end);
    if (end - at > 1 && (*at == 'e' || *at == 'E')) {
        bool sign = at[1] == '+' || at[1] == '-';
        if (end - at > 1 + sign && is(at[1 + sign], DIGIT)) at = digits(at + 1 + sign, end);
    }
    return words(at, end); /* a suffix, checked when the number is parsed */
}

static token bad(token t, const char *why) {
    t.kind = TOKEN_BAD;
    t.text = why;
    t.length = strlen(why);
    return t;
}

/* The dot of "tensor.2d" starts a modifier; that of ", .5" a number. */
static bool follows_word(const lexer *l) {
    return l->at > l->begin && is(l->at[-1], WORD);
}

token lexer_next(lexer *l) {
    bool ended = skip_space(l);
    token t = {.kind = TOKEN_END, .line = l->line};
    if (!ended) return bad(t, "unterminated /* comment");
    const char *at = l->at, *end = l->end;
    t.text = t.start = at;
    if (at == end) return t;

    char next = end - at > 1 ? at[1] : 0;
    if (is(*at, NAME_START) && (*at != '%' || is(next, WORD))) {
        t.kind = TOKEN_NAME;
        l->at = words(at + 1, end);
    } else if (is(*at, DIGIT) || (*at == '.' && is(next, DIGIT) && !follows_word(l))) {
        t.kind = TOKEN_NUMBER;
        l->at = number(at, end);
    } else if (*at == '.' && is(next, WORD)) {
        t.kind = TOKEN_DOT;
        t.text++;
        l->at = modifier(at + 1, end);
    } else if (*at == '"') {
        const char *close = at + 1;
        while (close < end && *close != '"' && *close != '\n')
            close += *close == '\\' && end - close > 1 ? 2 : 1;
        if (close >= end || *close != '"') return bad(t, "unterminated string");
        t.kind = TOKEN_STRING;
        t.text++;
        t.length = (size_t)(close - t.text);
        l->at = close + 1;
        return t;
    } else if (is(*at, PUNCTUATOR)) {
        t.kind = TOKEN_PUNCTUATOR;
        t.punctuator = *at;
        l->at = at + 1;
    } else {
        return bad(t, *at == '.' ? "expected a word after '.'"
                                 : "a character that is not allowed in PTX");
    }
    t.length = (size_t)(l->at - t.text);
    return t;
}

size_t lexer_fold(const char *start, const char *end, char *out) {
    size_t n = 0;
    lexer l;
    lexer_start(&l, start, (size_t)(end - start));
    while (l.at < end) {
        if (is(*l.at, SPACE) || *l.at == '/') {
            const char *before = l.at;
            skip_space(&l);
            if (l.at != before) {
                if (n && l.at < end) out[n++] = ' ';
                continue;
            }
        }
        out[n++] = *l.at++;
    }
    return n;
}
