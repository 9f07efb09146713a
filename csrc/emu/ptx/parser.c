/* The module: version, target, linkage, top-level declarations. The parser's memory and errors. */
#include "parser.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keeps line numbers and register indices within 32 bits; no real kernel is this large. */
static const size_t max_text = 256u << 20;
enum { MAX_FILES = 1 << 16 };

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

static void *from_arena(parser *p, ptx_arena *arena, size_t count, size_t size) {
    void *place = arena_alloc(arena, count, size);
    if (!place) parser_no_memory(p, count * size);
    return place;
}

void *parser_alloc(parser *p, size_t count, size_t size) {
    return from_arena(p, p->arena, count, size);
}

void *parser_scratch(parser *p, size_t count, size_t size) {
    return from_arena(p, p->scratch, count, size);
}

bool list_extend(parser *p, list *l, size_t more, size_t size) {
    size_t count = l->count + more; /* cannot overflow: the text's size bounds both */
    if (count > l->capacity) {
        size_t capacity = count < 16 ? 16 : count + count / 2;
        void *items = realloc(l->items, capacity * size);
        if (!items) return parser_no_memory(p, capacity * size);
        l->items = items;
        l->capacity = capacity;
    }
    memset((char *)l->items + l->count * size, 0, more * size);
    l->count = count;
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

/* ---- directives of the module ---- */

static bool version(parser *p) {
    const token *t = &p->token;
    uint32_t number[2] = {0, 0};
    unsigned part = 0;
    bool good = t->kind == TOKEN_NUMBER && t->length < 8;
    for (size_t i = 0; good && i < t->length; i++) {
        if (t->text[i] == '.')
            good = ++part < 2 && i > 0 && i + 1 < t->length;
        else if (t->text[i] < '0' || t->text[i] > '9')
            good = false;
        else
            number[part] = number[part] * 10 + (uint32_t)(t->text[i] - '0');
    }
    if (!good || part != 1) return parser_unexpected(p, "a version such as 8.0");
    p->module->version = number[0] * 10 + number[1];
    parser_advance(p);
    return true;
}

static bool target(parser *p) {
    name *n = parser_expect_name(p, "a target such as sm_80");
    if (!n) return false;
    p->module->target = n->text;
    while (parser_accept(p, ',')) /* debug, texmode_independent, ... */
        if (!parser_expect_name(p, "a target option")) return false;
    return true;
}

static bool address_size(parser *p) {
    uint64_t bits;
    uint32_t line = p->token.line;
    if (!parser_integer(p, 64, ".address_size", &bits)) return false;
    return bits == 64 || parser_fail(p, line, "only .address_size 64 is supported, found %llu",
                                     (unsigned long long)bits);
}

/* Replaces control characters (C0, DEL, and C1 encoded as UTF-8) in a file name. File names are
 * printed to terminals, tables, pages and messages, where a control character could take effect. */
static void make_printable(char *text) {
    unsigned char before = 0;
    for (unsigned char *c = (unsigned char *)text; *c; before = *c++) {
        const bool c1 = before == 0xc2 && *c >= 0x80 && *c < 0xa0;
        if (*c < ' ' || *c == 0x7f || c1) *c = '?';
        if (c1) c[-1] = '?';
    }
}

/* .file 1 "name.cu" [, time, size] */
static bool file(parser *p) {
    uint64_t number, ignored;
    if (!parser_integer(p, MAX_FILES, "a file number", &number)) return false;
    if (p->token.kind != TOKEN_STRING) return parser_unexpected(p, "a file name in quotes");
    char *text = arena_string(p->arena, p->token.text, p->token.length);
    if (!text) return parser_no_memory(p, p->token.length);
    make_printable(text);
    parser_advance(p);
    while (parser_accept(p, ','))
        if (!parser_integer(p, UINT64_MAX, "a number", &ignored)) return false;
    if (number >= p->files.count &&
        !list_extend(p, &p->files, number + 1 - p->files.count, sizeof(char *)))
        return false;
    ((const char **)p->files.items)[number] = text;
    return true;
}

static bool section(parser *p) {
    while (p->token.kind == TOKEN_DOT || p->token.kind == TOKEN_NAME)
        parser_advance(p);
    return parser_at(p, '{') ? parser_skip_braces(p) : parser_unexpected(p, "'{'");
}

static bool pragma(parser *p) {
    do {
        if (p->token.kind != TOKEN_STRING) return parser_unexpected(p, "a pragma in quotes");
        parser_advance(p);
    } while (parser_accept(p, ','));
    return parser_expect(p, ';');
}

/* .alias a, b; makes a another name for b, which may be defined later. */
static bool alias(parser *p) {
    uint32_t line = p->token.line;
    name *from = parser_expect_name(p, "a function");
    if (!from || !parser_expect(p, ',')) return false;
    name *to = parser_expect_name(p, "a function");
    if (!to) return false;
    function_info *a = parser_function_named(p, from, line), *b = NULL;
    if (a) b = parser_function_named(p, to, line);
    if (!b) return false;
    a->alias_of = b->alias_of ? b->alias_of : b;
    return parser_expect(p, ';');
}

bool parser_common_directive(parser *p, bool *known) {
    static const struct {
        const char *word;
        bool (*read)(parser *);
    } directives[] = {{"file", file}, {"section", section}, {"pragma", pragma}};
    for (size_t i = 0; i < sizeof directives / sizeof *directives; i++)
        if ((*known = parser_accept_dot(p, directives[i].word))) return directives[i].read(p);
    return true;
}

bool parser_accept_space(parser *p, ptx_space *space) {
    static const struct {
        const char *word;
        ptx_space space;
    } spaces[] = {{"global", PTX_GLOBAL},
                  {"shared", PTX_SHARED},
                  {"const", PTX_CONST},
                  {"local", PTX_LOCAL},
                  {"param", PTX_PARAM}};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        if (!parser_accept_dot(p, spaces[i].word)) continue;
        *space = spaces[i].space;
        return true;
    }
    return false;
}

static bool module_item(parser *p) {
    bool known, external = false;
    ptx_space space;
    if (!parser_common_directive(p, &known) || known) return !p->failed;
    if (parser_accept_dot(p, "version")) return version(p);
    if (parser_accept_dot(p, "target")) return target(p);
    if (parser_accept_dot(p, "address_size")) return address_size(p);
    if (parser_accept_dot(p, "alias")) return alias(p);
    for (;;) {
        if (parser_accept_dot(p, "extern"))
            external = true;
        else if (!parser_accept_dot(p, "visible") && !parser_accept_dot(p, "weak") &&
                 !parser_accept_dot(p, "common"))
            break;
    }
    if (parser_accept_dot(p, "entry")) return parser_function(p, true, external);
    if (parser_accept_dot(p, "func")) return parser_function(p, false, external);
    if (parser_accept_space(p, &space)) return parser_variables(p, space, external);
    return parser_unexpected(p, "a module directive (.entry, .func, .global, ...)");
}

/* ---- the whole text ---- */

/* Checks and results that need the whole text. */
static bool finish(parser *p) {
    function_info **functions = p->functions.items;
    variable_info **variables = p->variables.items;
    ptx_module *m = p->module;

    for (size_t i = 0; i < p->variables.count; i++) {
        const ptx_variable *v = variables[i]->variable;
        if (v->external && v->space != PTX_SHARED && variables[i]->used_line)
            return parser_fail(p, variables[i]->used_line,
                               "'%.200s' is used but only declared .extern: this text has no "
                               "definition of it",
                               v->name);
    }
    if (!layout_shared(p)) return false;
    m->functions = parser_alloc(p, p->functions.count, sizeof *m->functions);
    m->variables = parser_alloc(p, p->variables.count, sizeof *m->variables);
    if (!m->functions || !m->variables) return false;
    for (size_t i = 0; i < p->functions.count; i++) {
        ptx_function *f = functions[i]->function;
        if (functions[i]->alias_of) {
            const char *own_name = f->name;
            *f = *functions[i]->alias_of->function;
            f->name = own_name;
        }
        m->functions[m->n_functions++] = f;
        f->number = m->n_functions;
        if (!parser_poll(p, f->n_instructions)) return false;
        for (uint32_t k = 0; k < f->n_instructions; k++) {
            ptx_instruction *in = &f->instructions[k];
            if (in->line && in->file_number < p->files.count)
                in->file = ((const char **)p->files.items)[in->file_number];
        }
    }
    for (size_t i = 0; i < p->positions.count; i++) {
        ptx_position *at = ((ptx_position **)p->positions.items)[i];
        if (at->file_number < p->files.count)
            at->file = ((const char **)p->files.items)[at->file_number];
    }
    for (size_t i = 0; i < p->variables.count; i++)
        if (variables[i]->module_level) m->variables[m->n_variables++] = variables[i]->variable;
    return true;
}

static bool parse(parser *p, const char *text, size_t size) {
    const char *nul = memchr(text, 0, size);
    lexer_start(&p->lexer, text, size);
    if (nul) {
        uint32_t line = 1;
        for (const char *c = text; c < nul; c++)
            line += *c == '\n';
        return parser_fail(p, line, "the text contains a NUL byte");
    }
    parser_advance(p);
    if (!parser_at_dot(p, "version"))
        return parser_unexpected(p, "'.version' at the start of the text");
    while (p->token.kind != TOKEN_END)
        if (!module_item(p)) return false;
    if (p->failed) return false;
    if (!p->module->target) return parser_unexpected(p, "'.target'");
    return finish(p);
}

smk_code ptx_parse(const char *text, size_t size, interrupt_poller *poller, ptx_module **out,
                   smk_status *status) {
    *out = NULL;
    while (size > 0 && text[size - 1] == 0)
        size--; /* NVRTC's size includes the terminator */
    if (size > max_text)
        return smk_fail(status, SMK_KERNEL_IMAGE,
                        "the PTX text has %zu bytes; at most %zu are supported", size, max_text);

    parser *p = calloc(1, sizeof *p);
    if (!p) return smk_fail_memory(status, sizeof *p, "the PTX parser");
    p->status = status;
    p->poller = poller;
    p->text_bytes = size;
    p->arena = arena_new();
    p->scratch = arena_new();
    if (p->arena) p->module = arena_alloc(p->arena, 1, sizeof *p->module);
    if (!p->module || !p->scratch || !names_start(&p->names, p->scratch, p->arena)) {
        parser_no_memory(p, sizeof *p->module);
    } else {
        p->module->arena = p->arena;
        parse(p, text, size);
    }
    smk_code code = p->failed ? status->code : SMK_OK;
    if (code == SMK_OK)
        *out = p->module;
    else
        arena_free(p->arena);

    list *lists[] = {&p->variables, &p->functions,          &p->files,
                     &p->positions, &p->registers,          &p->instructions,
                     &p->locals,    &p->forward_references, &p->drafts};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        list_free(lists[i]);
    names_free(&p->names);
    arena_free(p->scratch);
    free(p);
    return code;
}
