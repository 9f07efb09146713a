/* Declarations: specifiers, declarators, variables. */
#include "parse.h"

/* ---- specifiers ---- */

static bool is_type_keyword(int keyword) {
    switch (keyword) {
    case LAB_KEY_VOID:
    case LAB_KEY_BOOL:
    case LAB_KEY_CHAR:
    case LAB_KEY_SHORT:
    case LAB_KEY_INT:
    case LAB_KEY_LONG:
    case LAB_KEY_SIGNED:
    case LAB_KEY_UNSIGNED:
    case LAB_KEY_FLOAT_TYPE:
    case LAB_KEY_DOUBLE_TYPE:
    case LAB_KEY_AUTO: return true;
    default: return false;
    }
}

static bool is_specifier(int keyword) {
    return is_type_keyword(keyword) || (keyword >= LAB_KEY_EXTERN && keyword <= LAB_KEY_ALIGNAS);
}

bool parse_starts_type(const parser *p) {
    const lab_token *t = parse_look(p, 0);
    if (t->kind != LAB_NAME) return false;
    if (t->name->keyword) return is_specifier(t->name->keyword);
    return !t->name->symbol && lab_named_type(t->name->text);
}

/* Words of the type: how often each stands there. */
typedef struct words {
    int count, longs, shorts, signeds, unsigneds, ints, chars, other;
    lab_type_kind kind; /* of `other` */
    bool is_auto;
    const lab_type *named;
} words;

static bool type_word(words *w, int keyword) {
    static const struct {
        int keyword;
        lab_type_kind kind;
    } others[] = {{LAB_KEY_VOID, LAB_VOID},
                  {LAB_KEY_BOOL, LAB_BOOL},
                  {LAB_KEY_FLOAT_TYPE, LAB_F32},
                  {LAB_KEY_DOUBLE_TYPE, LAB_F64}};
    if (!is_type_keyword(keyword)) return false;
    w->count++;
    w->longs += keyword == LAB_KEY_LONG;
    w->shorts += keyword == LAB_KEY_SHORT;
    w->signeds += keyword == LAB_KEY_SIGNED;
    w->unsigneds += keyword == LAB_KEY_UNSIGNED;
    w->ints += keyword == LAB_KEY_INT;
    w->chars += keyword == LAB_KEY_CHAR;
    w->is_auto |= keyword == LAB_KEY_AUTO;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (others[i].keyword != keyword) continue;
        w->other++;
        w->kind = others[i].kind;
    }
    return true;
}

/* NULL: the words are no type. */
static const lab_type *type_of(const words *w) {
    const int lengths = w->longs + w->shorts, signs = w->signeds + w->unsigneds;
    if (w->named) return w->count == 0 ? w->named : NULL;
    if (w->other + w->chars + w->ints > 1 || signs > 1 || w->longs > 2 || w->shorts > 1)
        return NULL;
    if (w->other) return lengths + signs == 0 ? lab_scalar(w->kind) : NULL;
    if ((w->chars && lengths) || (w->longs && w->shorts)) return NULL;
    const lab_type_kind kind = w->chars    ? LAB_I8
                               : w->shorts ? LAB_I16
                               : w->longs  ? LAB_I64
                                           : LAB_I32;
    return lab_scalar(w->unsigneds ? kind + 1 : kind); /* the unsigned type follows */
}

static void launch_bounds(parser *p, specifiers *s) {
    parse_expect(p, '(');
    const int64_t threads = parse_constant(p, "the number of threads");
    if (threads < 1 || threads > 1024)
        lab_fail(p->l, s->at, "expected 1 to 1024 threads, found %lld", (long long)threads);
    s->max_threads = (uint32_t)threads;
    while (parse_accept(p, ','))
        parse_constant(p, "a launch bound");
    parse_expect(p, ')');
}

static void alignment(parser *p, specifiers *s) {
    parse_expect(p, '(');
    const int64_t n = parse_constant(p, "the alignment");
    if (n < 1 || n > 1024 || (n & (n - 1)))
        lab_fail(p->l, s->at, "expected an alignment of 1, 2, 4, ... 1024");
    s->align = (uint32_t)n;
    parse_expect(p, ')');
}

/* "C" may follow extern. */
static void external(parser *p, specifiers *s) {
    const lab_token *t = parse_look(p, 0);
    if (t->kind != LAB_STRING) {
        s->is_extern = true;
        return;
    }
    if (t->length != 1 || t->text[0] != 'C') lab_fail(p->l, t->at, "expected extern \"C\"");
    parse_skip(p);
    if (parse_is(p, '{'))
        lab_fail(p->l, t->at, "write extern \"C\" before each kernel, without {}");
}

/* A specifier other than a word of the type; false: none. */
static bool other_specifier(parser *p, specifiers *s, bool *is_const, bool *is_volatile) {
    const lab_token *t = parse_look(p, 0);
    const int keyword = t->kind == LAB_NAME ? t->name->keyword : LAB_NO_KEYWORD;
    if (!is_specifier(keyword) || is_type_keyword(keyword)) return false;
    parse_skip(p);
    switch (keyword) {
    case LAB_KEY_EXTERN: external(p, s); break;
    case LAB_KEY_STATIC: s->is_static = true; break;
    case LAB_KEY_CONST: *is_const = true; break;
    case LAB_KEY_CONSTEXPR: *is_const = s->is_constexpr = true; break;
    case LAB_KEY_VOLATILE: *is_volatile = true; break;
    case LAB_KEY_GLOBAL: s->is_kernel = true; break;
    case LAB_KEY_DEVICE: s->is_device = true; break;
    case LAB_KEY_SHARED: s->is_shared = true; break;
    case LAB_KEY_CONSTANT: s->is_constant = true; break;
    case LAB_KEY_LAUNCH_BOUNDS: launch_bounds(p, s); break;
    case LAB_KEY_ALIGN:
    case LAB_KEY_ALIGNAS: alignment(p, s); break;
    default: break; /* inline, __host__, ... say nothing here */
    }
    return true;
}

specifiers parse_specifiers(parser *p) {
    specifiers s = {.at = parse_look(p, 0)->at};
    words w = {0};
    bool is_const = false, is_volatile = false;
    while (!p->l->failed) {
        const lab_token *t = parse_look(p, 0);
        if (other_specifier(p, &s, &is_const, &is_volatile)) continue;
        if (t->kind != LAB_NAME) break;
        if (!type_word(&w, t->name->keyword)) {
            const bool free_name = !t->name->keyword && !t->name->symbol && w.count == 0;
            if (!free_name || w.named || !(w.named = lab_named_type(t->name->text))) break;
        }
        parse_skip(p);
    }
    if (p->l->failed || (w.is_auto && w.count == 1)) return s;
    const lab_token *t = parse_look(p, 0);
    const char *refused = t->kind == LAB_NAME ? parse_refused(t->name->keyword) : NULL;
    const lab_type *type = w.count || w.named ? type_of(&w) : NULL;
    if (!type && refused)
        lab_fail(p->l, t->at, "%s", refused);
    else if (!type && t->kind == LAB_NAME && !w.count)
        lab_fail(p->l, t->at, "'%s' is not a type of the subset", t->name->text);
    else if (!type)
        lab_fail(p->l, s.at, "expected a type");
    if (type) s.type = lab_qualified(p->l, type, is_const, is_volatile);
    return s;
}

/* ---- declarators ---- */

static const lab_type *pointers(parser *p, const lab_type *type) {
    for (uint32_t n = 0; parse_accept(p, '*'); n++) {
        if (n == 4) lab_fail(p->l, parse_look(p, 0)->at, "more than 4 levels of pointers");
        type = lab_pointer_to(p->l, type);
        for (;;)
            if (parse_accept_keyword(p, LAB_KEY_CONST))
                type = lab_qualified(p->l, type, true, type->is_volatile);
            else if (parse_accept_keyword(p, LAB_KEY_VOLATILE))
                type = lab_qualified(p->l, type, type->is_const, true);
            else if (!parse_accept_keyword(p, LAB_KEY_RESTRICT))
                break;
    }
    if (parse_is(p, '&'))
        lab_fail(p->l, parse_look(p, 0)->at, "references are not supported; use pointers");
    return type;
}

/* [4][8], from the outermost dimension on; the first may be empty. */
static const lab_type *dimensions(parser *p, const lab_type *of) {
    uint32_t sizes[8], n = 0;
    const lab_position at = parse_look(p, 0)->at;
    while (parse_accept(p, '[')) {
        const bool open = parse_is(p, ']');
        const int64_t size = open ? 0 : parse_constant(p, "the size of the array");
        if (!open && (size < 1 || size > LAB_MAX_BYTES))
            lab_fail(p->l, at, "expected a size from 1 to 2^30, found %lld", (long long)size);
        if (n == 8 || (open && n))
            lab_fail(p->l, at, "expected at most 8 sizes, the first may be []");
        if (p->l->failed) return of;
        sizes[n++] = (uint32_t)size;
        parse_expect(p, ']');
    }
    if (n && of->kind == LAB_VOID) lab_fail(p->l, at, "an array of void");
    while (n--) {
        if ((uint64_t)of->size * sizes[n] > LAB_MAX_BYTES)
            lab_fail(p->l, at, "an array of more than 2^30 bytes");
        if (p->l->failed) return of;
        of = lab_array_of(p->l, of, sizes[n]);
    }
    return of;
}

const lab_type *parse_declarator(parser *p, const lab_type *base, lab_name **name) {
    const lab_type *type = pointers(p, base);
    const lab_token *t = parse_look(p, 0);
    bool to_array = false; /* (*name)[N] */
    if (parse_is(p, '(') && parse_look(p, 1)->kind == LAB_PUNCTUATOR &&
        parse_look(p, 1)->punctuator == '*') {
        parse_skip(p);
        parse_skip(p);
        to_array = true;
        t = parse_look(p, 0);
    }
    if (name) {
        *name = t->name;
        if (t->kind != LAB_NAME || t->name->keyword)
            parse_unexpected(p, "a name");
        else
            parse_skip(p);
    }
    if (to_array) parse_expect(p, ')');
    type = dimensions(p, type);
    return to_array ? lab_pointer_to(p->l, type) : type;
}

/* ---- variables ---- */

lab_symbol *parse_declare(parser *p, lab_name *name, const lab_type *type, lab_position at) {
    lab_symbol *s = lab_new(p->l, sizeof *s);
    s->name = name;
    s->type = type;
    s->at = at;
    s->depth = p->scopes;
    if (p->l->failed) return s;
    if (name->symbol && name->symbol->depth == p->scopes)
        lab_fail(p->l, at, "'%s' is declared twice", name->text);
    if (type->kind == LAB_VOID) lab_fail(p->l, at, "'%s' cannot be of type void", name->text);
    s->outer = name->symbol;
    name->symbol = s;
    s->scope_next = p->scope;
    p->scope = s;
    if (type->kind == LAB_POINTER && p->inside) {
        s->next_pointer = p->inside->pointers;
        p->inside->pointers = s;
    }
    return s;
}

static const lab_type *innermost(const lab_type *t) {
    while (t->kind == LAB_ARRAY)
        t = t->of;
    return t;
}

static void add_value(parser *p, lab_vector *values, lab_expression *e) {
    enum { MAX_VALUES = 8192 };
    if (values->count >= MAX_VALUES)
        lab_fail(p->l, e->at, "more than %d values in braces", MAX_VALUES);
    *(lab_expression **)lab_push(p->l, values, sizeof e) = e;
}

/* Values in braces for an array whose elements are `of`. Rows in braces of their own are filled up
 * with zeros. */
static void braces(parser *p, lab_vector *values, const lab_type *of) {
    if (!parse_enter(p)) return;
    parse_expect(p, '{');
    while (!parse_is(p, '}') && !p->l->failed) {
        const lab_position at = parse_look(p, 0)->at;
        const uint32_t first = values->count;
        if (!parse_is(p, '{')) {
            add_value(p, values, parse_assignment(p));
        } else if (of->kind == LAB_ARRAY) {
            braces(p, values, of->of);
            while (!p->l->failed && values->count - first < of->size / innermost(of)->size)
                add_value(p, values, lab_int_node(p->l, lab_scalar(LAB_I32), at, 0));
        } else {
            lab_fail(p->l, at, "expected a value, found '{'");
        }
        if (!parse_accept(p, ',')) break;
    }
    parse_expect(p, '}');
    parse_leave(p);
}

static initializer read_initializer(parser *p, const lab_type *type) {
    initializer i = {0};
    lab_vector values = {0};
    parse_accept(p, '=');
    i.braces = parse_is(p, '{');
    if (i.braces)
        braces(p, &values, type->kind == LAB_ARRAY ? type->of : type);
    else
        add_value(p, &values, parse_assignment(p));
    i.values = values.items;
    i.count = values.count;
    return i;
}

/* int a[] = {1, 2}; has its size from its values. */
static const lab_type *completed(parser *p, const lab_type *type, const initializer *i,
                                 lab_position at) {
    if (type->kind != LAB_ARRAY || type->count) return type;
    if (!i || !i->braces || type->of->kind == LAB_ARRAY) {
        lab_fail(p->l, at, "expected the size of the array");
        return type;
    }
    return lab_array_of(p->l, type->of, i->count ? i->count : 1);
}

/* The values of {} for a scalar or a vector. */
static lab_expression **zeros(parser *p, const lab_type *type, uint32_t *count, lab_position at) {
    lab_expression **values = lab_new(p->l, 4 * sizeof *values);
    *count = type->kind == LAB_VECTOR ? type->count : 1;
    for (uint32_t k = 0; k < *count; k++)
        values[k] = lab_int_node(p->l, lab_scalar(LAB_I32), at, 0);
    return values;
}

/* Converts the values to the type of the object; a vector's to one value. */
static void convert_values(parser *p, const lab_type *type, initializer *i, lab_position at) {
    if (p->l->failed) return;
    if (i->count == 0 && type->kind != LAB_ARRAY) i->values = zeros(p, type, &i->count, at);
    if (type->kind == LAB_VECTOR && i->braces) {
        i->values[0] = lab_make(p->l, type, i->values, i->count, at);
        i->count = 1;
        return;
    }
    const lab_type *element = innermost(type);
    const uint32_t room = type->kind == LAB_ARRAY ? type->size / element->size : 1;
    if (type->kind == LAB_ARRAY && !i->braces) lab_fail(p->l, at, "expected values in braces");
    if (i->count > room) lab_fail(p->l, at, "expected at most %u values, found %u", room, i->count);
    for (uint32_t k = 0; k < i->count && !p->l->failed; k++)
        i->values[k] = lab_convert(p->l, i->values[k], element);
}

static void place(parser *p, const specifiers *s, lab_symbol *symbol) {
    const lab_type *type = symbol->type;
    if (s->align > type->align) {
        lab_type *copy = lab_new(p->l, sizeof *copy);
        *copy = *type;
        copy->align = s->align;
        symbol->type = copy;
    }
    if (s->is_shared) symbol->storage = s->is_extern ? LAB_DYNAMIC_SHARED : LAB_SHARED_STORAGE;
    symbol->in_memory |= s->is_shared || type->kind == LAB_ARRAY;
    if (s->is_static && !s->is_shared && !type->is_const)
        lab_fail(p->l, symbol->at, "static variables are not supported");
    if (s->is_extern != (symbol->storage == LAB_DYNAMIC_SHARED))
        lab_fail(p->l, symbol->at, "extern is supported for __shared__ arrays and extern \"C\"");
    if (symbol->storage == LAB_DYNAMIC_SHARED && (type->kind != LAB_ARRAY || type->count))
        lab_fail(p->l, symbol->at, "expected [] after the name of an extern __shared__ array");
}

static bool starts_initializer(const parser *p) {
    return parse_is(p, '=') || parse_is(p, '{');
}

/* The type of a local variable: that of the value for auto, with its size for an array. */
static const lab_type *local_type(parser *p, const specifiers *s, const lab_type *type,
                                  const initializer *i, lab_position at) {
    if (!s->type) {
        if (!i || i->count == 0) {
            lab_fail(p->l, at, "expected a value after 'auto'");
            return type;
        }
        type = lab_qualified(p->l, lab_value(p->l, i->values[0])->type, false, false);
    }
    return s->is_extern ? type : completed(p, type, i, at);
}

/* The value of a declaration, which may make a constant of the variable. */
static void initial_value(parser *p, const specifiers *s, lab_statement *d, initializer *i) {
    const lab_type *type = d->symbol->type;
    if (s->is_shared) lab_fail(p->l, d->at, "__shared__ variables have no initial value");
    convert_values(p, type, i, d->at);
    if (p->l->failed) return;
    d->values = i->values;
    d->n_values = i->count;
    d->has_value = true;
    if (type->kind == LAB_ARRAY) return;
    lab_note_pointer(p->l, d->symbol, i->values[0]);
    if (type->is_const && lab_is_arithmetic(type) && lab_is_constant(i->values[0]))
        d->symbol->constant = i->values[0];
    if (s->is_constexpr && lab_is_arithmetic(type) && !d->symbol->constant)
        lab_fail(p->l, d->at, "expected a constant as the value of '%s'", d->symbol->name->text);
}

/* One declarator of a local declaration, with its statement. */
static lab_statement *local_variable(parser *p, const specifiers *s) {
    lab_statement *d = lab_new(p->l, sizeof *d);
    d->kind = LAB_DECLARATION;
    d->at = parse_look(p, 0)->at;
    lab_name *name = NULL;
    const lab_type *type = parse_declarator(p, s->type ? s->type : lab_scalar(LAB_I32), &name);
    initializer i = {0};
    const bool has_value = starts_initializer(p);
    if (has_value) i = read_initializer(p, type);
    if (!p->l->failed) type = local_type(p, s, type, has_value ? &i : NULL, d->at);
    if (p->l->failed) return d;
    d->symbol = parse_declare(p, name, type, d->at);
    place(p, s, d->symbol);
    if (has_value)
        initial_value(p, s, d, &i);
    else if (type->is_const && !s->is_shared && type->kind != LAB_ARRAY)
        lab_fail(p->l, d->at, "expected a value of the constant '%s'", name->text);
    return d;
}

lab_statement **parse_local_declaration(parser *p, lab_statement **last) {
    const specifiers s = parse_specifiers(p);
    if (s.is_kernel || s.is_device || s.is_constant)
        lab_fail(p->l, s.at,
                 "functions and __device__ variables are declared outside of functions");
    if (parse_is(p, ';')) parse_unexpected(p, "a name");
    do {
        *last = local_variable(p, &s);
        last = &(*last)->next;
    } while (parse_accept(p, ','));
    parse_expect(p, ';');
    return last;
}

/* ---- of the module ---- */

static void module_value(parser *p, const specifiers *s, lab_symbol *v, initializer *i) {
    convert_values(p, v->type, i, v->at);
    if (p->l->failed) return;
    for (uint32_t k = 0; k < i->count; k++)
        if (!lab_is_constant(i->values[k]))
            lab_fail(p->l, i->values[k]->at, "expected a constant as the value of '%s'",
                     v->name->text);
    v->values = i->values;
    v->n_values = i->count;
    const bool known = v->type->is_const && lab_is_arithmetic(v->type) && !s->is_device;
    if (known && !s->is_constant) v->constant = i->values[0];
}

void parse_module_variable(parser *p, const specifiers *s, lab_name *name, const lab_type *type,
                           lab_position at) {
    initializer i = {0};
    const bool has_value = starts_initializer(p);
    if (has_value) i = read_initializer(p, type);
    if (p->l->failed) return;
    if (!s->is_extern) type = completed(p, type, has_value ? &i : NULL, at);
    lab_symbol *v = parse_declare(p, name, type, at);
    const bool file_constant = type->is_const && !s->is_device && !s->is_constant;
    specifiers own = *s;
    own.is_static = false;
    place(p, &own, v);
    v->is_module = true;
    v->module_space = s->is_constant ? LAB_CONST_SPACE : LAB_GLOBAL_SPACE;
    if (s->is_shared) return;
    if (!s->is_device && !s->is_constant && !file_constant)
        lab_fail(p->l, at, "expected __device__, __constant__, __shared__ or const before '%s'",
                 name->text);
    if (innermost(type)->kind == LAB_POINTER || innermost(type)->kind == LAB_VECTOR)
        lab_fail(p->l, at, "variables outside of functions must be numbers or arrays of numbers");
    v->in_memory = v->is_assigned = true;
    if (has_value)
        module_value(p, s, v, &i);
    else if (type->is_const && !s->is_constant)
        lab_fail(p->l, at, "expected a value of the constant '%s'", name->text);
    if (v->constant || p->l->failed) return;
    if (file_constant) v->module_space = LAB_CONST_SPACE;
    *(lab_symbol **)lab_push(p->l, &p->variables, sizeof v) = v;
}
