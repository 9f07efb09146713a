/* Initial values of variables: their bytes, and relocations for addresses among them. */
#include <string.h>

#include "parser_variable.h"

/* Limits the size of all initialised variables together to the text's size plus this, because
 * "x[1000000] = {1}" initialises a million elements in a few characters. */
static const uint64_t max_beyond_text = 64 << 20;

typedef struct initialiser {
    shape *shape;
    variable_info *info;
    list bytes;
    list relocations;
    uint32_t element;    /* bytes of a scalar */
    uint64_t end;        /* size of the variable; UINT64_MAX if not known yet */
    uint32_t mask_bytes; /* bytes seen so far of an address written as masked bytes; 0: none */
} initialiser;

static bool too_large(parser *p, const ptx_variable *v) {
    return parser_fail(p, p->token.line,
                       "'%.200s' brings the initialised variables to more than %llu bytes", v->name,
                       (unsigned long long)(max_beyond_text + p->text_bytes));
}

static bool write(parser *p, initialiser *in, uint64_t at, uint64_t bits) {
    uint64_t end = at + in->element;
    if (end > in->end)
        return parser_fail(p, p->token.line, "'%.200s' has more initial values than elements",
                           in->info->variable->name);
    if (end > max_beyond_text + p->text_bytes) return too_large(p, in->info->variable);
    if (end > in->bytes.count && !list_extend(p, &in->bytes, end - in->bytes.count, 1))
        return false;
    unsigned char *to = (unsigned char *)in->bytes.items + at;
    for (uint32_t i = 0; i < in->element; i++)
        to[i] = i < 8 ? (unsigned char)(bits >> 8 * i) : 0;
    return true;
}

/* sym  sym+8  generic(sym)  generic(sym)+8 */
static bool symbol(parser *p, initialiser *in, struct ptx_relocation *out) {
    uint32_t line = p->token.line;
    name *n = parser_expect_name(p, "a variable or function");
    if (!n) return false;
    *out = (struct ptx_relocation){0};
    if (strcmp(n->text, "generic") == 0 && parser_accept(p, '(')) {
        out->generic = true;
        line = p->token.line;
        n = parser_expect_name(p, "a variable");
        if (!n || !parser_offset(p, &out->addend) || !parser_expect(p, ')')) return false;
    }
    binding *b = scope_find(p, n);
    if (p->failed) return false;
    if (!b || (b->kind != BOUND_VARIABLE && b->kind != BOUND_FUNCTION))
        return parser_fail(p, line, "'%.200s' is not declared as a variable or function", n->text);
    if (b->kind == BOUND_VARIABLE)
        out->variable = b->variable->variable;
    else
        out->function = b->function->function;
    parser_record_use(p, b, line, &in->info->references, in->info);
    return !p->failed && parser_offset(p, &out->addend);
}

static bool relocate(parser *p, initialiser *in, uint64_t at, struct ptx_relocation r) {
    struct ptx_relocation *stored = list_push(p, &in->relocations, sizeof *stored);
    if (!stored) return false;
    r.at = at;
    *stored = r;
    return true;
}

/* 0xFF(sym), 0xFF00(sym), ...: an address in a packed structure, one byte per element. Compilers
 * write all eight bytes in order, so together they make one ordinary 8-byte relocation. */
static bool masked_symbol(parser *p, initialiser *in, uint64_t at, uint64_t mask) {
    uint32_t line = p->token.line;
    struct ptx_relocation r;
    if (!symbol(p, in, &r) || !parser_expect(p, ')')) return false;
    struct ptx_relocation *last = in->relocations.items;
    if (in->relocations.count) last += in->relocations.count - 1;
    uint32_t byte = in->mask_bytes;
    bool same = byte == 0 || (last->variable == r.variable && last->function == r.function &&
                              last->addend == r.addend && last->generic == r.generic);
    if (in->element != 1 || mask != 0xffull << 8 * byte || !same)
        return parser_fail(p, line,
                           "an address masked to a byte must be followed by its other "
                           "bytes, 0xFF(x) to 0xFF00000000000000(x), in an 8-bit array");
    if (byte == 0 && !relocate(p, in, at, r)) return false;
    in->mask_bytes = (byte + 1) % 8;
    return write(p, in, at, 0);
}

static bool scalar(parser *p, initialiser *in, uint64_t at) {
    uint32_t line = p->token.line;
    ptx_type type = in->shape->type;
    if (p->token.kind == TOKEN_NAME) {
        struct ptx_relocation r;
        if (!symbol(p, in, &r)) return false;
        if (in->element != 8 || type == PTX_F64)
            return parser_fail(p, line, "an address needs a 64-bit integer element, found .%s",
                               ptx_type_spelling[type]);
        return in->mask_bytes == 0 ? relocate(p, in, at, r) && write(p, in, at, 0)
                                   : parser_unexpected(p, "the rest of a masked address");
    }
    constant c;
    if (!parser_constant(p, &c)) return false;
    if (parser_accept(p, '(')) return masked_symbol(p, in, at, c.is_float ? 0 : c.bits);
    if (in->mask_bytes) return parser_unexpected(p, "the rest of a masked address");
    bool float_type = type == PTX_F32 || type == PTX_F64;
    if (c.is_float ? in->element != 4 && in->element != 8 : float_type)
        return parser_fail(p, line, "%s cannot initialise .%s",
                           c.is_float ? "a float" : "an integer", ptx_type_spelling[type]);
    ptx_operand immediate;
    constant_to_immediate(&c, &immediate);
    return write(p, in, at, ptx_immediate_bits(&immediate, type));
}

/* The items of a { ... } at array dimension `level`, after the brace. A nested list starts at the
 * next multiple of this dimension's stride. */
static bool values(parser *p, initialiser *in, uint32_t level, uint64_t *at) {
    const shape *s = in->shape;
    uint64_t stride = level < s->n_dimensions ? s->strides[level] : in->element;
    if (level > s->n_dimensions)
        return parser_fail(p, p->token.line, "initial values are nested deeper than the array");
    while (!parser_accept(p, '}')) {
        if (parser_accept(p, '{')) {
            if (*at % stride) *at += stride - *at % stride;
            uint64_t inner = *at;
            if (!values(p, in, level + 1, &inner)) return false;
            if (inner > *at + stride)
                return parser_fail(p, p->token.line, "a nested list has too many initial values");
            *at += stride;
        } else {
            if (!scalar(p, in, *at)) return false;
            *at += in->element;
        }
        if (!parser_at(p, '}') && !parser_expect(p, ',')) return false;
    }
    return true;
}

static bool store(parser *p, initialiser *in) {
    ptx_variable *v = in->info->variable;
    shape *s = in->shape;
    if (s->unsized) {
        uint64_t stride = s->strides[0];
        s->bytes = (in->bytes.count + stride - 1) / stride * stride;
    }
    p->initialised_bytes += s->bytes;
    if (p->initialised_bytes > max_beyond_text + p->text_bytes) return too_large(p, v);
    v->init = parser_alloc(p, s->bytes, 1);
    if (!v->init) return false;
    if (in->bytes.count) memcpy(v->init, in->bytes.items, in->bytes.count);
    v->n_relocations = (uint32_t)in->relocations.count;
    v->relocations = list_to_arena(p, &in->relocations, sizeof *v->relocations);
    return v->relocations != NULL;
}

bool parser_initialiser(parser *p, variable_info *info, shape *s) {
    if (s->type == PTX_TEXREF) /* { addr_mode_0 = wrap, ... } */
        return !parser_at(p, '{') ? parser_unexpected(p, "'{'") : parser_skip_braces(p);
    initialiser in = {.shape = s,
                      .info = info,
                      .element = ptx_type_size[s->type],
                      .end = s->unsized ? UINT64_MAX : s->bytes};
    uint64_t at = 0;
    bool done = parser_accept(p, '{') ? values(p, &in, 0, &at) : scalar(p, &in, 0);
    if (done && in.mask_bytes) done = parser_unexpected(p, "the rest of a masked address");
    done = done && store(p, &in);
    list_free(&in.bytes);
    list_free(&in.relocations);
    return done;
}
