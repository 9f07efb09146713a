/* The lexer: one look at each byte, no memory of its own, tokens point into the text.
 *
 * A dotted opcode is a NAME and its DOTs ("ld" ".global" ".v4" ".f32"), because the same dots also
 * introduce directives, types and vector components, and only the parser can tell.
 */
#include "lexer.h"

#include <string.h>

enum { WORD = 1, DIGIT = 2, START = 4, BLANK = 8, MARK = 16 };

/* A name starts with a letter, _ $ or %, and goes on with letters, digits, _ and $. */
static const unsigned char char_class[256] = {
    ['0' ... '9'] = WORD | DIGIT,
    ['a' ... 'z'] = WORD | START,
    ['A' ... 'Z'] = WORD | START,
    ['_'] = WORD | START,
    ['$'] = WORD | START,
    ['%'] = START | MARK,
    [' '] = BLANK,
    ['\t'] = BLANK,
    ['\r'] = BLANK,
    ['\n'] = BLANK,
    ['\v'] = BLANK,
    ['\f'] = BLANK,
    ['{'] = MARK,
    ['}'] = MARK,
    ['['] = MARK,
    [']'] = MARK,
    ['('] = MARK,
    [')'] = MARK,
    ['<'] = MARK,
    ['>'] = MARK,
    [','] = MARK,
    [';'] = MARK,
    [':'] = MARK,
    ['|'] = MARK,
    ['@'] = MARK,
    ['!'] = MARK,
    ['+'] = MARK,
    ['-'] = MARK,
    ['*'] = MARK,
    ['/'] = MARK,
    ['&'] = MARK,
    ['^'] = MARK,
    ['~'] = MARK,
    ['?'] = MARK,
    ['='] = MARK,
};

static bool is(char c, unsigned char what) {
    return char_class[(unsigned char)c] & what;
}

void lexer_start(lexer *l, const char *text, size_t size) {
    *l = (lexer){.begin = text, .at = text, .end = text + size, .line = 1};
}

/* Past blanks and comments; false if a comment has no end. */
static bool skip_blanks(lexer *l) {
    const char *at = l->at, *end = l->end;
    while (at < end) {
        if (is(*at, BLANK)) {
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

/* What stands after the dot: "global", "2d", "shared::cta", "mbarrier::complete_tx::bytes". */
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
    return words(at, end); /* a suffix; what it may be is checked where the number is read */
}

static token bad(token t, const char *why) {
    t.kind = TOKEN_BAD;
    t.text = why;
    t.length = strlen(why);
    return t;
}

/* In "tensor.2d" the dot belongs to a modifier, in ", .5" to a number. */
static bool follows_word(const lexer *l) {
    return l->at > l->begin && is(l->at[-1], WORD);
}

token lexer_next(lexer *l) {
    bool ended = skip_blanks(l);
    token t = {.kind = TOKEN_END, .line = l->line};
    if (!ended) return bad(t, "a /* comment has no end");
    const char *at = l->at, *end = l->end;
    t.text = t.start = at;
    if (at == end) return t;

    char next = end - at > 1 ? at[1] : 0;
    if (is(*at, START) && (*at != '%' || is(next, WORD))) {
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
        if (close >= end || *close != '"') return bad(t, "a string has no closing quote");
        t.kind = TOKEN_STRING;
        t.text++;
        t.length = (size_t)(close - t.text);
        l->at = close + 1;
        return t;
    } else if (is(*at, MARK)) {
        t.kind = TOKEN_MARK;
        t.mark = *at;
        l->at = at + 1;
    } else {
        return bad(t, *at == '.' ? "a dot without a word" : "a character that PTX does not have");
    }
    t.length = (size_t)(l->at - t.text);
    return t;
}

size_t lexer_fold(const char *start, const char *end, char *out) {
    size_t n = 0;
    lexer l;
    lexer_start(&l, start, (size_t)(end - start));
    while (l.at < end) {
        if (is(*l.at, BLANK) || *l.at == '/') {
            const char *before = l.at;
            skip_blanks(&l);
            if (l.at != before) {
                if (n && l.at < end) out[n++] = ' ';
                continue;
            }
        }
        out[n++] = *l.at++;
    }
    return n;
}
