/* Variables: types, sizes and offsets.
 *
 * The text is untrusted, so every size has a limit: the hardware's where one exists, otherwise a
 * number well above any real kernel.
 */
#include <string.h>

#include "parser_variable.h"

enum {
    MAX_CONST = 64 << 10,  /* per module: the size of the constant bank */
    MAX_LOCAL = 512 << 10, /* per thread: the limit of all compute capabilities */
    MAX_SHARED = 16 << 20, /* per variable; the limit per block is checked at launch */
    MAX_PARAMETERS = 64 << 10,
    MAX_ALIGNMENT = 1 << 16,
};
static const uint64_t max_global = 1ull << 32;

/* The number after .align. */
static bool read_alignment(parser *p, uint32_t *align) {
    uint64_t value;
    uint32_t line = p->token.line;
    if (!parser_integer(p, MAX_ALIGNMENT, "an alignment", &value)) return false;
    if (value == 0 || (value & (value - 1)))
        return parser_fail(p, line, "an alignment must be a power of two, not %llu",
                           (unsigned long long)value);
    *align = (uint32_t)value;
    return true;
}

ptx_type parser_accept_type(parser *p) {
    const token *t = &p->token;
    if (t->kind != TOKEN_DOT) return PTX_NO_TYPE;
    for (unsigned type = 0; type < PTX_N_TYPES; type++) {
        const char *spelling = ptx_type_spelling[type];
        if (strlen(spelling) != t->length || memcmp(spelling, t->text, t->length)) continue;
        parser_advance(p);
        return (ptx_type)type;
    }
    if (parser_accept_dot(p, "samplerref") || parser_accept_dot(p, "surfref")) return PTX_TEXREF;
    return PTX_NO_TYPE;
}

uint32_t parser_accept_vector(parser *p) {
    if (parser_accept_dot(p, "v2")) return 2;
    if (parser_accept_dot(p, "v4")) return 4;
    return parser_accept_dot(p, "v8") ? 8 : 0;
}

static bool skip_attribute(parser *p) {
    unsigned depth = 0;
    do {
        if (p->token.kind == TOKEN_END) return parser_unexpected(p, "')' to close .attribute(...)");
        depth += parser_at(p, '(');
        depth -= parser_at(p, ')') && depth;
        parser_advance(p);
    } while (depth);
    return true;
}

/* .ptr .global .align 16: what a pointer parameter points to. Ignored. */
static bool skip_pointee(parser *p) {
    static const char *const spaces[] = {"global", "shared", "const", "local", "param", "generic"};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (parser_accept_dot(p, spaces[i])) break;
    uint32_t align;
    return !parser_accept_dot(p, "align") || read_alignment(p, &align);
}

/* Everything between the state space and the name. */
static bool shape_read(parser *p, shape *s) {
    *s = (shape){.type = PTX_NO_TYPE};
    while (p->token.kind == TOKEN_DOT) {
        uint32_t vector;
        ptx_type type;
        if (parser_accept_dot(p, "align")) {
            if (!read_alignment(p, &s->align)) return false;
        } else if (parser_accept_dot(p, "attribute")) {
            if (!skip_attribute(p)) return false;
        } else if (parser_accept_dot(p, "ptr")) {
            if (!skip_pointee(p)) return false;
        } else if ((vector = parser_accept_vector(p))) {
            s->vector = vector;
        } else if ((type = parser_accept_type(p)) != PTX_NO_TYPE && s->type == PTX_NO_TYPE) {
            s->type = type;
        } else {
            return parser_unexpected(p, "a type such as .b32, or a name");
        }
    }
    if (s->type == PTX_NO_TYPE) return parser_unexpected(p, "a type such as .b32");
    if (s->type == PTX_PRED)
        return parser_fail(p, p->token.line, "a variable in memory cannot be .pred");
    if (!s->align) s->align = ptx_type_size[s->type] * (s->vector ? s->vector : 1);
    return true;
}

/* [4][8]. Sets counts, strides and bytes. */
static bool dimensions_read(parser *p, shape *s, const char *what) {
    s->n_dimensions = 0;
    s->unsized = false;
    while (parser_accept(p, '[')) {
        if (s->n_dimensions == MAX_DIMENSIONS)
            return parser_fail(p, p->token.line, "'%.200s' has more than %d dimensions", what,
                               MAX_DIMENSIONS);
        uint64_t count = 0;
        if (parser_at(p, ']') && s->n_dimensions == 0)
            s->unsized = true;
        else if (!parser_integer(p, max_global, "an array size", &count))
            return false;
        s->counts[s->n_dimensions++] = count;
        if (!parser_expect(p, ']')) return false;
    }
    uint64_t bytes = ptx_type_size[s->type];
    if (s->vector) bytes *= s->vector;
    for (uint32_t i = s->n_dimensions; i-- > 0;) {
        s->strides[i] = bytes;
        if (__builtin_mul_overflow(bytes, s->counts[i], &bytes) || bytes > max_global)
            return parser_fail(p, p->token.line,
                               "'%.200s' takes more than %llu bytes, the limit for a variable",
                               what, (unsigned long long)max_global);
    }
    s->bytes = bytes;
    return bytes || s->unsized ||
           parser_fail(p, p->token.line, "'%.200s' is an array of 0 elements", what);
}

/* Appends the variable to a block of `*block` bytes. */
static bool place(parser *p, uint64_t *block, ptx_variable *v, uint64_t max, const char *of) {
    uint64_t at = (*block + v->align - 1) & ~(uint64_t)(v->align - 1);
    if (v->size > max || at + v->size > max)
        return parser_fail(p, p->token.line,
                           "'%.200s' (%llu bytes) brings the %s to more than %llu bytes", v->name,
                           (unsigned long long)v->size, of, (unsigned long long)max);
    v->offset = at;
    *block = at + v->size;
    return true;
}

static ptx_variable *new_variable(parser *p, const char *name, ptx_space space, const shape *s) {
    ptx_variable *v = parser_alloc(p, 1, sizeof *v);
    if (v)
        *v = (ptx_variable){
            .name = name, .space = space, .type = s->type, .align = s->align, .size = s->bytes};
    return v;
}

ptx_variable *parser_parameter(parser *p, uint64_t *block_bytes) {
    shape s;
    if (!shape_read(p, &s)) return NULL;
    name *n = parser_expect_name(p, "a parameter's name");
    if (!n || !dimensions_read(p, &s, n->text)) return NULL;
    if (s.unsized) {
        parser_fail(p, p->token.line, "the parameter '%.200s' needs a size", n->text);
        return NULL;
    }
    ptx_variable *v = new_variable(p, n->text, PTX_PARAM, &s);
    if (v) v->vector = s.vector;
    return v && place(p, block_bytes, v, MAX_PARAMETERS, "parameters") ? v : NULL;
}

void parser_record_use(parser *p, const binding *b, uint32_t line, reference **references,
                       const void *user) {
    const void **last;
    if (b->kind == BOUND_VARIABLE) {
        if (!b->variable->used_line) b->variable->used_line = line;
        last = &b->variable->last_user;
    } else {
        last = &b->function->last_user;
    }
    if (*last == user) return;
    reference *r = parser_scratch(p, 1, sizeof *r);
    if (!r) return;
    *r = (reference){.variable = b->kind == BOUND_VARIABLE ? b->variable : NULL,
                     .function = b->kind == BOUND_FUNCTION ? b->function : NULL,
                     .next = *references};
    *references = r;
    *last = user;
}

/* The variable that this declaration defines: a new one, or one declared .extern before. */
static variable_info *declare(parser *p, name *n, ptx_space space, const shape *s, uint32_t line) {
    binding *b = n->bound[NAME_SPACE_VALUE];
    if (p->depth == 0 && b && b->kind == BOUND_VARIABLE && b->variable->variable->space == space &&
        b->variable->variable->external)
        return b->variable;
    if (!(b = scope_declare(p, n, BOUND_VARIABLE, p->depth, line))) return NULL;
    variable_info *info = parser_scratch(p, 1, sizeof *info);
    if (!info || !(info->variable = new_variable(p, n->text, space, s))) return NULL;
    b->variable = info;
    info->module_level = p->depth == 0 || space != PTX_SHARED;
    if (space == PTX_LOCAL || space == PTX_PARAM) {
        ptx_variable **local = list_push(p, &p->locals, sizeof *local);
        if (!local) return NULL;
        *local = info->variable;
        return info;
    }
    variable_info **stored = list_push(p, &p->variables, sizeof *stored);
    if (!stored) return NULL;
    *stored = info;
    if (p->depth > 0 && space == PTX_SHARED) {
        ptx_variable **own = list_push(p, &p->locals, sizeof *own);
        if (!own) return NULL;
        *own = info->variable;
    }
    return info;
}

static bool place_variable(parser *p, ptx_variable *v) {
    switch (v->space) {
    case PTX_GLOBAL:
        return place(p, &p->module->global_bytes, v, max_global, "module's .global variables");
    case PTX_CONST:
        return place(p, &p->module->const_bytes, v, MAX_CONST, "module's .const variables");
    case PTX_SHARED: { /* checks the size only; layout.c sets the offset */
        uint64_t unused_block = 0;
        return place(p, &unused_block, v, MAX_SHARED, ".shared variables");
    }
    default:
        v->call_site = v->space == PTX_PARAM;
        if (!place(p, &p->local_bytes, v, MAX_LOCAL, "thread's .local and .param variables"))
            return false;
        if (p->function_local_bytes < p->local_bytes) p->function_local_bytes = p->local_bytes;
        return true;
    }
}

static bool skip_initialiser(parser *p) {
    if (!parser_accept(p, '=') || (parser_at(p, '{') && parser_skip_braces(p))) return !p->failed;
    while (p->token.kind != TOKEN_END && !parser_at(p, ',') && !parser_at(p, ';'))
        parser_advance(p);
    return !p->failed;
}

static bool one_variable(parser *p, ptx_space space, bool external, bool weak, shape *s) {
    uint32_t line = p->token.line;
    name *n = parser_expect_name(p, "a variable's name");
    if (!n || !dimensions_read(p, s, n->text)) return false;
    /* An .extern after the definition, or after another .extern, is ignored. */
    binding *b = n->bound[NAME_SPACE_VALUE];
    if (external && b && b->depth == p->depth && b->kind == BOUND_VARIABLE &&
        b->variable->variable->space == space)
        return true;
    /* A .weak one after the definition, of another text that is linked, too. */
    if (weak && b && b->depth == p->depth && b->kind == BOUND_VARIABLE &&
        b->variable->variable->space == space && !b->variable->variable->external)
        return skip_initialiser(p);
    variable_info *info = declare(p, n, space, s, line);
    if (!info) return false;
    ptx_variable *v = info->variable;
    *v = (ptx_variable){.name = n->text,
                        .space = space,
                        .type = s->type,
                        .align = s->align,
                        .size = s->bytes,
                        .columns = s->n_dimensions > 1 ? s->counts[s->n_dimensions - 1] : 0,
                        .rows = s->n_dimensions > 2 ? s->counts[s->n_dimensions - 2] : 0,
                        .external = external};
    if (external) return true;
    if (parser_accept(p, '=')) {
        if (space != PTX_GLOBAL && space != PTX_CONST)
            return parser_fail(p, line, "'%.200s': only .global and .const can be initialised",
                               n->text);
        if (!parser_initialiser(p, info, s)) return false;
        v->size = s->bytes;
    } else if (s->unsized) {
        return parser_fail(p, line, "'%.200s' needs a size (only .extern arrays may have none)",
                           n->text);
    }
    return place_variable(p, v);
}

/* .tex .u32 name; what .global .texref name; was until PTX 1.5 */
bool parser_textures(parser *p, bool external) {
    shape s = {.type = PTX_TEXREF, .align = ptx_type_size[PTX_TEXREF]};
    if (parser_accept_type(p) == PTX_NO_TYPE) return parser_unexpected(p, "a type such as .u64");
    do {
        if (!one_variable(p, PTX_GLOBAL, external, false, &s)) return false;
    } while (parser_accept(p, ','));
    return parser_expect(p, ';');
}

bool parser_variables(parser *p, ptx_space space, bool external, bool weak) {
    shape s;
    if (p->depth == 0 && (space == PTX_LOCAL || space == PTX_PARAM))
        return parser_fail(p, p->token.line, "a .local or .param variable belongs in a function");
    if (!shape_read(p, &s)) return false;
    do {
        if (!one_variable(p, space, external, weak, &s)) return false;
    } while (parser_accept(p, ','));
    return parser_expect(p, ';');
}
