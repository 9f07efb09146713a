/* Variables: their types, sizes and places.
 *
 * The text is untrusted, so what it may ask for is bounded: by what a machine could hold where
 * there is such a number, and well above any real kernel elsewhere.
 */
#include <string.h>

#include "parser_variable.h"

enum {
    MOST_CONST = 64 << 10,  /* of a module: the size of the constant bank */
    MOST_LOCAL = 512 << 10, /* a thread: the limit of all compute capabilities */
    MOST_SHARED = 16 << 20, /* a variable; what a block may have is checked at launch */
    MOST_PARAMETERS = 64 << 10,
    MOST_ALIGNMENT = 1 << 16,
};
static const uint64_t most_global = 1ull << 32;

bool parser_alignment(parser *p, uint32_t *align) {
    uint64_t value;
    uint32_t line = p->token.line;
    if (!parser_integer(p, MOST_ALIGNMENT, "an alignment", &value)) return false;
    if (value == 0 || (value & (value - 1)))
        return parser_fail(p, line, "an alignment must be a power of two, not %llu",
                           (unsigned long long)value);
    *align = (uint32_t)value;
    return true;
}

ptx_type parser_take_type(parser *p) {
    const token *t = &p->token;
    if (t->kind != TOKEN_DOT) return PTX_NO_TYPE;
    for (unsigned type = 0; type < PTX_N_TYPES; type++) {
        const char *spelling = ptx_type_spelling[type];
        if (strlen(spelling) != t->length || memcmp(spelling, t->text, t->length)) continue;
        parser_advance(p);
        return (ptx_type)type;
    }
    if (parser_take_dot(p, "samplerref") || parser_take_dot(p, "surfref")) return PTX_TEXREF;
    return PTX_NO_TYPE;
}

uint32_t parser_take_vector(parser *p) {
    if (parser_take_dot(p, "v2")) return 2;
    if (parser_take_dot(p, "v4")) return 4;
    return parser_take_dot(p, "v8") ? 8 : 0;
}

static bool skip_attribute(parser *p) {
    unsigned depth = 0;
    do {
        if (p->token.kind == TOKEN_END) return parser_unexpected(p, "the end of .attribute(...)");
        depth += parser_at(p, '(');
        depth -= parser_at(p, ')') && depth;
        parser_advance(p);
    } while (depth);
    return true;
}

/* .ptr .global .align 16: what a pointer parameter points to; of no use here. */
static bool skip_pointee(parser *p) {
    static const char *const spaces[] = {"global", "shared", "const", "local", "param", "generic"};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (parser_take_dot(p, spaces[i])) break;
    uint32_t align;
    return !parser_take_dot(p, "align") || parser_alignment(p, &align);
}

/* All between the space and the name. */
static bool shape_read(parser *p, shape *s) {
    *s = (shape){.type = PTX_NO_TYPE};
    while (p->token.kind == TOKEN_DOT) {
        uint32_t vector;
        ptx_type type;
        if (parser_take_dot(p, "align")) {
            if (!parser_alignment(p, &s->align)) return false;
        } else if (parser_take_dot(p, "attribute")) {
            if (!skip_attribute(p)) return false;
        } else if (parser_take_dot(p, "ptr")) {
            if (!skip_pointee(p)) return false;
        } else if ((vector = parser_take_vector(p))) {
            s->vector = vector;
        } else if ((type = parser_take_type(p)) != PTX_NO_TYPE && s->type == PTX_NO_TYPE) {
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

/* [4][8], with the element and vector size behind them in s->stride. */
static bool dimensions_read(parser *p, shape *s, const char *what) {
    s->n_dimensions = 0;
    s->unsized = false;
    while (parser_take(p, '[')) {
        if (s->n_dimensions == MAX_DIMENSIONS)
            return parser_fail(p, p->token.line, "'%.200s' has more than %d dimensions", what,
                               MAX_DIMENSIONS);
        uint64_t count = 0;
        if (parser_at(p, ']') && s->n_dimensions == 0)
            s->unsized = true;
        else if (!parser_integer(p, most_global, "an array size", &count))
            return false;
        s->counts[s->n_dimensions++] = count;
        if (!parser_expect(p, ']')) return false;
    }
    uint64_t bytes = ptx_type_size[s->type];
    if (s->vector) bytes *= s->vector;
    for (uint32_t i = s->n_dimensions; i-- > 0;) {
        s->strides[i] = bytes;
        if (__builtin_mul_overflow(bytes, s->counts[i], &bytes) || bytes > most_global)
            return parser_fail(p, p->token.line,
                               "'%.200s' takes more than %llu bytes, more than any memory", what,
                               (unsigned long long)most_global);
    }
    s->bytes = bytes;
    return bytes || s->unsized ||
           parser_fail(p, p->token.line, "'%.200s' is an array of 0 elements", what);
}

/* Puts size bytes at the end of a block. */
static bool place(parser *p, uint64_t *block, ptx_variable *v, uint64_t most, const char *of) {
    uint64_t at = (*block + v->align - 1) & ~(uint64_t)(v->align - 1);
    if (v->size > most || at + v->size > most)
        return parser_fail(p, p->token.line,
                           "'%.200s' (%llu bytes) brings the %s to more than %llu bytes", v->name,
                           (unsigned long long)v->size, of, (unsigned long long)most);
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
    return v && place(p, block_bytes, v, MOST_PARAMETERS, "parameters") ? v : NULL;
}

void parser_note_use(parser *p, const binding *b, uint32_t line, reference **of, const void *user) {
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
                     .next = *of};
    *of = r;
    *last = user;
}

/* The note of a variable that this declaration is about: a new one, or that of an earlier .extern.
 */
static variable_note *declare(parser *p, name *n, ptx_space space, const shape *s, uint32_t line) {
    binding *b = n->bound[AS_VALUE];
    if (p->depth == 0 && b && b->kind == BOUND_VARIABLE && b->variable->variable->space == space &&
        b->variable->variable->external)
        return b->variable;
    if (!(b = scope_declare(p, n, BOUND_VARIABLE, p->depth, line))) return NULL;
    variable_note *note = parser_scratch(p, 1, sizeof *note);
    if (!note || !(note->variable = new_variable(p, n->text, space, s))) return NULL;
    b->variable = note;
    note->of_module = p->depth == 0 || space != PTX_SHARED;
    if (space == PTX_LOCAL || space == PTX_PARAM) {
        ptx_variable **local = list_push(p, &p->locals, sizeof *local);
        if (!local) return NULL;
        *local = note->variable;
        return note;
    }
    variable_note **kept = list_push(p, &p->variables, sizeof *kept);
    if (!kept) return NULL;
    *kept = note;
    if (p->depth > 0 && space == PTX_SHARED) {
        ptx_variable **own = list_push(p, &p->locals, sizeof *own);
        if (!own) return NULL;
        *own = note->variable;
    }
    return note;
}

static bool place_variable(parser *p, ptx_variable *v) {
    switch (v->space) {
    case PTX_GLOBAL:
        return place(p, &p->module->global_bytes, v, most_global, "module's .global variables");
    case PTX_CONST:
        return place(p, &p->module->const_bytes, v, MOST_CONST, "module's .const variables");
    case PTX_SHARED: { /* layout.c places it when all functions are known */
        uint64_t alone = 0;
        return place(p, &alone, v, MOST_SHARED, ".shared variables");
    }
    default:
        v->call_site = v->space == PTX_PARAM;
        if (!place(p, &p->local_bytes, v, MOST_LOCAL, "thread's .local and .param variables"))
            return false;
        if (p->function_local_bytes < p->local_bytes) p->function_local_bytes = p->local_bytes;
        return true;
    }
}

static bool one_variable(parser *p, ptx_space space, bool external, shape *s) {
    uint32_t line = p->token.line;
    name *n = parser_expect_name(p, "a variable's name");
    if (!n || !dimensions_read(p, s, n->text)) return false;
    /* A definition that was there first stays when an .extern of it follows. */
    binding *b = n->bound[AS_VALUE];
    if (external && b && b->depth == p->depth && b->kind == BOUND_VARIABLE &&
        b->variable->variable->space == space)
        return true;
    variable_note *note = declare(p, n, space, s, line);
    if (!note) return false;
    ptx_variable *v = note->variable;
    *v = (ptx_variable){.name = n->text,
                        .space = space,
                        .type = s->type,
                        .align = s->align,
                        .size = s->bytes,
                        .external = external};
    if (external) return true;
    if (parser_take(p, '=')) {
        if (space != PTX_GLOBAL && space != PTX_CONST)
            return parser_fail(p, line, "'%.200s': only .global and .const can be initialised",
                               n->text);
        if (!parser_initialiser(p, note, s)) return false;
        v->size = s->bytes;
    } else if (s->unsized) {
        return parser_fail(p, line, "'%.200s' needs a size (only .extern arrays may have none)",
                           n->text);
    }
    return place_variable(p, v);
}

bool parser_variables(parser *p, ptx_space space, bool external) {
    shape s;
    if (p->depth == 0 && (space == PTX_LOCAL || space == PTX_PARAM))
        return parser_fail(p, p->token.line, "a .local or .param variable belongs in a function");
    if (!shape_read(p, &s)) return false;
    do {
        if (!one_variable(p, space, external, &s)) return false;
    } while (parser_take(p, ','));
    return parser_expect(p, ';');
}
