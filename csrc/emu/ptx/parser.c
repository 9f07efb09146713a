/* The module: version, target, linkage, top-level declarations. */
#include "parser.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keeps line numbers and register indices within 32 bits; no real kernel is this large. */
static const size_t max_text = 256u << 20;
/* ---- directives of the module ---- */

static bool version(parser *p) {
    const token *t = &p->token;
    uint32_t number[2] = {0, 0};
    unsigned part = 0;
    bool good = t->kind == TOKEN_NUMBER && t->length < 8;
    for (size_t i = 0; good && i < t->length; i++)
        if (t->text[i] == '.')
            good = ++part < 2 && i > 0 && i + 1 < t->length;
        else if (t->text[i] < '0' || t->text[i] > '9')
            good = false;
        else
            number[part] = number[part] * 10 + (uint32_t)(t->text[i] - '0');
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

/* .reg or .local outside a function, as in PTX before 3.0: each kernel has its own, so the
 * declaration is kept, and read again in each. */
static bool per_thread(parser *p) {
    enum { MAX_DECLARATIONS = 64 };
    const lexer from = p->lexer;
    const token first = p->token;
    if (p->module_declarations.count == MAX_DECLARATIONS)
        return parser_fail(p, first.line,
                           "more than %d .reg and .local declarations outside of functions",
                           MAX_DECLARATIONS);
    while (p->token.kind != TOKEN_END && !parser_at(p, ';'))
        parser_advance(p);
    declaration *d = list_push(p, &p->module_declarations, sizeof *d);
    if (!d || !parser_expect(p, ';')) return false;
    *d = (declaration){.lexer = from, .first = first};
    return true;
}

static bool module_item(parser *p) {
    bool known, external = false, weak = false;
    ptx_space space;
    if (!parser_common_directive(p, &known) || known) return !p->failed;
    if (parser_accept_dot(p, "version")) return version(p);
    if (parser_accept_dot(p, "target")) return target(p);
    if (parser_accept_dot(p, "address_size")) return address_size(p);
    if (parser_accept_dot(p, "alias")) return alias(p);
    for (;;)
        if (parser_accept_dot(p, "extern"))
            external = true;
        else if (parser_accept_dot(p, "weak") || parser_accept_dot(p, "common"))
            weak = true; /* several texts that are linked may define it */
        else if (!parser_accept_dot(p, "visible"))
            break;
    if (parser_accept_dot(p, "entry")) return parser_function(p, true, external, weak);
    if (parser_accept_dot(p, "func")) return parser_function(p, false, external, weak);
    if (p->module->version < 30 && (parser_at_dot(p, "reg") || parser_at_dot(p, "local")))
        return per_thread(p);
    if (parser_accept_dot(p, "tex")) return parser_textures(p, external);
    if (parser_accept_space(p, &space)) return parser_variables(p, space, external, weak);
    return parser_unexpected(p, "a module directive (.entry, .func, .global, ...)");
}

/* ---- the whole text ---- */

/* Whether users have not written it, nor can see it: headers of the compiler whose functions are
 * single instructions, such as tex2D. */
static bool is_builtin_header(const char *file) {
    static const char *const names[] = {"__nv_nvrtc_builtin_header.h", "texture_fetch_functions.h",
                                        "texture_indirect_functions.h",
                                        "surface_indirect_functions.h", "surface_functions.h"};
    const char *slash = file ? strrchr(file, '/') : NULL, *name = slash ? slash + 1 : file;
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static void name_files(parser *p) {
    for (size_t i = 0; i < p->positions.count; i++) {
        ptx_position *at = ((ptx_position **)p->positions.items)[i];
        if (at->file_number < p->files.count)
            at->file = ((const char **)p->files.items)[at->file_number];
    }
}

/* Code inlined from a builtin header gets the position of the call. */
static void name_source(parser *p, ptx_instruction *in) {
    int depth = 64; /* more than there are: the text is untrusted */
    if (in->line && in->file_number < p->files.count)
        in->file = ((const char **)p->files.items)[in->file_number];
    const ptx_position *at = in->position;
    while (at && is_builtin_header(at->file) && at->caller && at->caller->file && depth--)
        at = at->caller;
    if (!in->file || at == in->position) return;
    in->position = at;
    in->file = at->file;
    in->line = at->line;
    in->file_number = at->file_number;
}

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
    name_files(p);
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
        for (uint32_t k = 0; k < f->n_instructions; k++)
            name_source(p, &f->instructions[k]);
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
    if (size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
        return parser_fail(p, 1, "the text begins with a byte order mark; PTX is ASCII");
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

    list *lists[] = {&p->variables, &p->functions,          &p->files,  &p->positions,
                     &p->registers, &p->instructions,       &p->locals, &p->forward_references,
                     &p->drafts,    &p->module_declarations};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        list_free(lists[i]);
    names_free(&p->names);
    arena_free(p->scratch);
    free(p);
    return code;
}
