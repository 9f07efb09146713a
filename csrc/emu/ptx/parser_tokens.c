/* What every file of the parser uses: errors, memory, tokens. */
#include "parser.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/size.h"

enum { STEPS_PER_TOKEN = 16 }; /* for interrupt_due */

/* ---- failures ---- */

/* Makes the rest of the text empty, so that every loop over tokens ends. */
static bool stop(parser *p, uint32_t line) {
    p->failed = true;
    p->lexer.at = p->lexer.end;
    p->token = (token){.kind = TOKEN_END, .line = line};
    return false;
}

bool parser_fail(parser *p, uint32_t line, const char *format, ...) {
    if (!p->failed) {
        char why[1024];
        va_list args;
        va_start(args, format);
        vsnprintf(why, sizeof why, format, args);
        va_end(args);
        for (char *c = why; *c; c++)
            if (*c < ' ' || *c > '~') *c = '?'; /* a quoted token may hold any bytes */
        smk_fail(p->status, SMK_KERNEL_IMAGE, "PTX line %u: %s", line, why);
    }
    return stop(p, line);
}

bool parser_poll(parser *p, uint64_t work) {
    if (!interrupt_due(p->poller, work < UINT32_MAX ? (uint32_t)work : UINT32_MAX))
        return !p->failed;
    smk_fail(p->status, SMK_INTERRUPTED, "interrupted");
    return stop(p, p->token.line);
}

bool parser_no_memory(parser *p, size_t bytes) {
    smk_fail_memory(p->status, bytes, "the PTX parser");
    return parser_fail(p, p->token.line, "out of memory");
}

bool parser_unexpected(parser *p, const char *expected) {
    return parser_unexpected_token(p, &p->token, expected);
}

bool parser_unexpected_token(parser *p, const token *found, const char *expected) {
    enum { MAX_QUOTED = 60 };
    if (found->kind == TOKEN_END)
        return parser_fail(p, found->line, "expected %s, found the end of the text", expected);
    /* From the start, which includes a dot or quote, to the end, which includes a closing quote. */
    size_t length = (size_t)(found->text - found->start) + found->length;
    length += found->kind == TOKEN_STRING;
    return parser_fail(p, found->line, "expected %s, found '%.*s'%s", expected,
                       (int)(length < MAX_QUOTED ? length : MAX_QUOTED), found->start,
                       length < MAX_QUOTED ? "" : "...");
}

/* ---- memory ---- */

static void *from_arena(parser *p, ptx_arena *arena, uint64_t count, size_t size) {
    void *place = arena_alloc(arena, count, size);
    if (!place) parser_no_memory(p, size_from(count * size));
    return place;
}

void *parser_alloc(parser *p, uint64_t count, size_t size) {
    return from_arena(p, p->arena, count, size);
}

void *parser_scratch(parser *p, size_t count, size_t size) {
    return from_arena(p, p->scratch, count, size);
}

bool list_extend(parser *p, list *l, uint64_t more, size_t size) {
    const uint64_t count = l->count + more; /* cannot overflow: the text's size bounds both */
    if (count > l->capacity) {
        const uint64_t capacity = count < 16 ? 16 : count + count / 2;
        void *items = realloc(l->items, size_from(capacity * size));
        if (!items) return parser_no_memory(p, size_from(capacity * size));
        l->items = items;
        l->capacity = (size_t)capacity;
    }
    memset((char *)l->items + l->count * size, 0, (size_t)more * size);
    l->count = (size_t)count;
    return true;
}

void *list_push(parser *p, list *l, size_t size) {
    return list_extend(p, l, 1, size) ? (char *)l->items + (l->count - 1) * size : NULL;
}

void *list_to_arena(parser *p, const list *l, size_t size) {
    void *copy = parser_alloc(p, l->count, size);
    if (copy && l->count) memcpy(copy, l->items, l->count * size);
    return copy;
}

void list_free(list *l) {
    free(l->items);
    *l = (list){0};
}

/* ---- tokens ---- */

void parser_advance(parser *p) {
    p->token = lexer_next(&p->lexer);
    if (p->token.kind == TOKEN_BAD) parser_fail(p, p->token.line, "%s", p->token.text);
    parser_poll(p, STEPS_PER_TOKEN);
}

bool parser_at(const parser *p, char punctuator) {
    return p->token.punctuator == punctuator;
}

bool parser_at_dot(const parser *p, const char *word) {
    const token *t = &p->token;
    return t->kind == TOKEN_DOT && strlen(word) == t->length &&
           memcmp(t->text, word, t->length) == 0;
}

bool parser_accept(parser *p, char punctuator) {
    if (!parser_at(p, punctuator)) return false;
    parser_advance(p);
    return true;
}

bool parser_accept_dot(parser *p, const char *word) {
    if (!parser_at_dot(p, word)) return false;
    parser_advance(p);
    return true;
}

bool parser_expect(parser *p, char punctuator) {
    char expected[4] = {'\'', punctuator, '\'', 0};
    return parser_accept(p, punctuator) || parser_unexpected(p, expected);
}

name *parser_expect_name(parser *p, const char *what) {
    if (p->token.kind != TOKEN_NAME) {
        parser_unexpected(p, what);
        return NULL;
    }
    name *n = names_get(&p->names, p->token.text, p->token.length);
    if (!n)
        parser_no_memory(p, p->token.length);
    else
        parser_advance(p);
    return p->failed ? NULL : n;
}

bool parser_skip_braces(parser *p) {
    uint32_t line = p->token.line;
    uint64_t depth = 0;
    do {
        if (p->token.kind == TOKEN_END)
            return !p->failed &&
                   parser_fail(p, line,
                               "expected '}' to close this line's '{', found the end of the text");
        depth += parser_at(p, '{');
        depth -= parser_at(p, '}');
        parser_advance(p);
    } while (depth);
    return !p->failed;
}
