/* tex, tld4, txq and suq; and what surface.c shares with them.
 *
 * With integer coordinates .level clamps them, and a level that does not exist reads 0, as on an
 * H200. tld4 reads level 0. Every texel is resident.
 */
#include "texture.h"

#include "alu_format.h"
#include "memory.h"
#include "mipmap.h"

/* ---- the texture operand ---- */

static const geometry geometries[] = {
    {"1d", 1, false, false},  {"2d", 2, false, false}, {"3d", 3, false, false},
    {"a1d", 1, true, false},  {"a2d", 2, true, false}, {"cube", 3, false, true},
    {"acube", 3, true, true},
};

static const geometry *take_geometry(decoder *dc) {
    for (size_t k = 0; k < sizeof geometries / sizeof *geometries; k++)
        if (decode_take(dc, geometries[k].name)) return &geometries[k];
    return NULL;
}

/* An operand {a, b} or, for one element, a: the frame offsets of the first n. */
static bool decode_vector(decoder *dc, const ptx_operand *o, ptx_type type, uint32_t n,
                          uint32_t *out) {
    const bool vector = o->kind == PTX_VECTOR;
    if (vector ? o->n_items < n || o->n_items == 3 : n != 1) return false;
    for (uint32_t k = 0; k < n; k++)
        out[k] = decode_source(dc, vector ? &o->items[k] : o, type);
    return true;
}

/* [texture], of a query */
static bool decode_handle(decoder *dc, const ptx_operand *o, texture_operand *out) {
    return decode_address(dc, o, &out->handle) && out->handle.wide && !o->offset &&
           (o->has_register || o->variable);
}

bool texture_decode(decoder *dc, const ptx_operand *o, texture_operand *out) {
    uint32_t slots[1 + SMK_TEXTURE_RANK];
    out->geometry = take_geometry(dc);
    if (!out->geometry || !decode_handle(dc, o, out) || o->n_items != 1) return false;
    const uint32_t first = out->geometry->layered, n = first + out->geometry->rank;
    if (!decode_vector(dc, o->items, PTX_B32, n, slots)) return false;
    out->layer = first ? slots[0] : decode_constant(dc, 0, PTX_B32);
    for (uint32_t d = 0; d < out->geometry->rank; d++)
        out->coordinate[d] = slots[first + d];
    return true;
}

/* A surface's faces are layers. */
static const geometry *geometry_of(const smk_texture *t) {
    const bool cubemap = t->cubemap && !t->surface,
               layered = t->layered || (t->cubemap && !cubemap);
    const uint32_t rank = cubemap ? 3 : t->rank;
    const geometry *g = geometries;
    while (g->rank != rank || g->layered != layered || g->cubemap != cubemap)
        g++;
    return g;
}

const bound_texture *texture_of_lane(warp *w, const insn *i, const texture_operand *o, int lane,
                                     bool surface) {
    const uint64_t handle = decoded_lane_address(w, &o->handle, lane);
    const bound_texture *t = texture_find(w, i, lane, handle, surface);
    if (!t || !o->geometry || geometry_of(t->form) == o->geometry) return t;
    warp_fault(w, i, SMK_LAUNCH, 1u << lane, "a .%s instruction accesses a .%s %s",
               o->geometry->name, geometry_of(t->form)->name, surface ? "surface" : "texture");
    return NULL;
}

/* ---- tex and tld4 ---- */

enum result_type { RESULT_WORDS, RESULT_HALVES, RESULT_HALF_PAIRS };

/* How the level of a mipmap is chosen; the numbers are those of operands. */
typedef enum level_mode { BASE_LEVEL, BY_LEVEL, BY_GRADIENT } level_mode;

typedef struct fetch_form {
    texture_operand texture;
    bool integer;    /* coordinates */
    bool has_offset; /* of texels */
    uint32_t offset[SMK_TEXTURE_RANK];
    level_mode mode;
    uint32_t level;                         /* of BY_LEVEL, and ... */
    uint32_t gradient[2][SMK_TEXTURE_RANK]; /* ... of BY_GRADIENT: frame offsets */
    enum result_type type;
    uint32_t result[SMK_TEXTURE_CHANNELS]; /* frame offsets; of pairs only two */
    bool has_resident;
    uint32_t resident; /* a predicate */
    int channel;       /* of tld4; -1: tex */
} fetch_form;

static uint32_t half_of(uint32_t word) {
    return round_to_format(f32_of_bits(word), format_f16, ROUND_NEAREST, false);
}

static void write_result(warp *w, const fetch_form *f, int lane, const texel *from) {
    for (int c = 0; c < SMK_TEXTURE_CHANNELS; c++) {
        const uint32_t word = from->word[c];
        if (f->type == RESULT_WORDS)
            U32(w, f->result[c])[lane] = word;
        else if (f->type == RESULT_HALVES)
            U16(w, f->result[c])[lane] = (uint16_t)half_of(word);
        else if (c % 2)
            U32(w, f->result[c / 2])[lane] = half_of(from->word[c - 1]) | half_of(word) << 16;
    }
    if (f->has_resident) PRED(w, f->resident)[lane] = ~0u;
}

/* Hardware takes four bits of an offset: -8 to 7. */
static int32_t signed_nibble(uint32_t x) {
    return (int32_t)(x << 28) >> 28;
}

static sample_point point_of(const warp *w, const fetch_form *f, int lane) {
    sample_point p = {.layer = U32(w, f->texture.layer)[lane]};
    for (uint32_t d = 0; d < f->texture.geometry->rank; d++) {
        p.integer[d] = S32(w, f->texture.coordinate[d])[lane];
        if (f->has_offset) p.offset[d] = signed_nibble(U32(w, f->offset[d])[lane]);
    }
    return p;
}

/* Texels of a warp that are known to be in linear memory. */
typedef struct linear_texels {
    lanes_u64 address;
    uint32_t lanes, bytes;
} linear_texels;

/* Integer coordinates in one dimension are of a texture in linear memory (tex1Dfetch). How texels
 * lie in the memory of others is not known here. */
static void note_texel(const fetch_form *f, const bound_texture *t, const sample_point *p, int lane,
                       linear_texels *out) {
    const int64_t index = (int64_t)p->integer[0] + p->offset[0];
    if (!f->integer || f->mode == BY_LEVEL || t->form->rank > 1 || t->form->layered || index < 0 ||
        index >= t->form->size[0])
        return;
    out->bytes = smk_texel_bytes(t->form);
    out->address[lane] = t->address + (uint64_t)index * out->bytes;
    out->lanes |= 1u << lane;
}

static texel fetch_integer(const warp *w, const fetch_form *f, const bound_texture *t,
                           const sample_point *p, int lane) {
    smk_texture form;
    const uint32_t level = f->mode == BY_LEVEL ? U32(w, f->level)[lane] : 0;
    if (level >= smk_texture_levels(t->form)) return (texel){0};
    if (!level) return sample_integer(t, p, f->mode == BY_LEVEL);
    const bound_texture one = texture_level(t, level, &form);
    return sample_integer(&one, p, true);
}

static texel fetch(const warp *w, const fetch_form *f, const bound_texture *t,
                   const sample_point *p, int lane) {
    float step[2][SMK_TEXTURE_RANK] = {{0}};
    if (f->channel >= 0) return sample_gather(t, p, (uint32_t)f->channel);
    if (f->integer) return fetch_integer(w, f, t, p, lane);
    if (f->mode != BY_GRADIENT)
        return sample_mipmap(t, p, f->mode == BY_LEVEL ? F32(w, f->level)[lane] : 0);
    for (int k = 0; k < 2; k++)
        for (uint32_t d = 0; d < f->texture.geometry->rank; d++)
            step[k][d] = F32(w, f->gradient[k][d])[lane];
    return sample_gradients(t, p, step);
}

static const insn *exec_fetch(warp *w, const insn *i) {
    const fetch_form *f = i->extra;
    linear_texels linear = {0};
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        const bound_texture *t = texture_of_lane(w, i, &f->texture, lane, false);
        if (!t) return NULL;
        const sample_point p = point_of(w, f, lane);
        note_texel(f, t, &p, lane, &linear);
        const texel result = fetch(w, f, t, &p, lane);
        write_result(w, f, lane, &result);
    }
    if (linear.lanes && w->block->observer)
        observe_access(w, i, PTX_GLOBAL, EMU_TEXTURE_READ, linear.bytes, linear.address,
                       linear.lanes);
    return i + 1;
}

/* {d0, d1, d2, d3} or, of f16x2, {d0, d1}; then perhaps |p */
static bool take_result(decoder *dc, const ptx_operand *o, ptx_type type, fetch_form *f) {
    f->type = type == PTX_F16     ? RESULT_HALVES
              : type == PTX_F16X2 ? RESULT_HALF_PAIRS
                                  : RESULT_WORDS;
    const uint32_t n = f->type == RESULT_HALF_PAIRS ? 2 : 4;
    if (!decode_take(dc, n == 2 ? "v2" : "v4") || o->kind != PTX_VECTOR || o->n_items != n)
        return false;
    for (uint32_t k = 0; k < n; k++)
        f->result[k] = decode_destination(dc, &o->items[k], type);
    f->has_resident = o->pair;
    if (o->pair) f->resident = decode_destination(dc, o->pair, PTX_PRED);
    return true;
}

static level_mode take_level(decoder *dc) {
    if (decode_take(dc, "level")) return BY_LEVEL;
    if (decode_take(dc, "grad")) return BY_GRADIENT;
    decode_take(dc, "base");
    return BASE_LEVEL;
}

/* A gradient of three dimensions has four elements. */
static bool take_gradients(decoder *dc, const ptx_operand *o, fetch_form *f) {
    for (int k = 0; k < 2; k++)
        if (o[k].kind != PTX_VECTOR ||
            !decode_vector(dc, &o[k], PTX_F32, f->texture.geometry->rank, f->gradient[k]))
            return false;
    return true;
}

/* An offset is integers; a float is a depth to compare with, which is not supported. */
static bool take_offset(decoder *dc, const ptx_operand *o, fetch_form *f) {
    f->has_offset = true;
    if (o->kind != PTX_VECTOR && (o->is_float || decode_register_type(dc, o) == PTX_F32))
        return false;
    return !f->texture.geometry->cubemap &&
           decode_vector(dc, o, PTX_B32, f->texture.geometry->rank, f->offset);
}

static exec_fn select_fetch(decoder *dc, const ptx_instruction *p, insn *out, int channel) {
    fetch_form *f = decode_alloc(dc, sizeof *f);
    const ptx_operand *o = p->operands;
    f->channel = channel;
    f->mode = take_level(dc);
    const uint32_t more = 2 + (uint32_t)f->mode;
    const ptx_type type = decode_take_type(dc), coordinate = decode_take_type(dc);
    f->integer = coordinate == PTX_S32;
    if (p->n_operands < more || p->n_operands > more + 1 || !take_result(dc, &o[0], type, f) ||
        !texture_decode(dc, &o[1], &f->texture))
        return NULL;
    const bool words = type == PTX_U32 || type == PTX_S32 || type == PTX_F32;
    const bool halves = type == PTX_F16 || type == PTX_F16X2;
    if (!(words || (halves && channel < 0)) || (coordinate != PTX_F32 && !f->integer) ||
        (f->integer && (f->texture.geometry->cubemap || channel >= 0)))
        return NULL;
    if (f->mode == BY_LEVEL) f->level = decode_source(dc, &o[2], f->integer ? PTX_S32 : PTX_F32);
    if (f->mode == BY_GRADIENT && !take_gradients(dc, &o[2], f)) return NULL;
    if (p->n_operands > more && !take_offset(dc, &o[more], f)) return NULL;
    out->extra = f;
    return exec_fetch;
}

static exec_fn select_tex(decoder *dc, const ptx_instruction *p, insn *out) {
    return select_fetch(dc, p, out, -1);
}

static exec_fn select_tld4(decoder *dc, const ptx_instruction *p, insn *out) {
    static const char *const channels[] = {"r", "g", "b", "a"};
    for (int c = 0; c < SMK_TEXTURE_CHANNELS; c++) {
        if (!decode_take(dc, channels[c])) continue;
        const exec_fn exec = select_fetch(dc, p, out, c);
        const geometry *g = exec ? ((const fetch_form *)out->extra)->texture.geometry : NULL;
        return g && (g->cubemap || g->rank == 2) ? exec : NULL;
    }
    return NULL;
}

/* ---- queries ---- */

typedef struct query_form {
    texture_operand texture;
    uint32_t (*value)(const smk_texture *t);
    bool surface, has_level;
    uint32_t level; /* frame offset */
} query_form;

static uint32_t width_of(const smk_texture *t) {
    return t->size[0];
}
/* Of one dimension: its layers, or 1; a surface's are 0 without layers. */
static uint32_t height_of(const smk_texture *t) {
    if (t->rank > 1) return t->size[1];
    return t->layered ? t->layers : !t->surface;
}
/* Of two dimensions: layers, and of a surface also faces. */
static uint32_t depth_of(const smk_texture *t) {
    if (t->rank != 2) return t->rank > 2 ? t->size[2] : 0;
    const uint32_t faces = t->cubemap && t->surface ? SMK_CUBE_FACES : 1;
    return t->layered || faces > 1 ? t->layers * faces : 0;
}

static const insn *exec_query(warp *w, const insn *i) {
    const query_form *f = i->extra;
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        const bound_texture *t = texture_of_lane(w, i, &f->texture, lane, f->surface);
        if (!t) return NULL;
        const uint32_t level = f->has_level ? U32(w, f->level)[lane] : 0;
        const uint32_t last = smk_texture_levels(t->form) - 1;
        uint64_t offset;
        const smk_texture one = smk_texture_level(t->form, level < last ? level : last, &offset);
        U32(w, i->d)[lane] = f->value(&one);
    }
    return i + 1;
}

static exec_fn select_query(decoder *dc, const ptx_instruction *p, insn *out, bool surface) {
    static const struct {
        const char *name;
        uint32_t (*value)(const smk_texture *t);
    } queries[] = {{"width", width_of}, {"height", height_of}, {"depth", depth_of}};
    query_form *f = decode_alloc(dc, sizeof *f);
    f->has_level = !surface && decode_take(dc, "level");
    if (!decode_take(dc, "b32") || p->n_operands != 2u + f->has_level ||
        !decode_handle(dc, &p->operands[1], &f->texture) || p->operands[1].n_items)
        return NULL;
    f->surface = surface;
    for (size_t k = 0; k < sizeof queries / sizeof *queries; k++)
        if (decode_take(dc, queries[k].name)) f->value = queries[k].value;
    out->d = decode_destination(dc, &p->operands[0], PTX_B32);
    if (f->has_level) f->level = decode_source(dc, &p->operands[2], PTX_B32);
    out->extra = f;
    return f->value ? exec_query : NULL;
}

static exec_fn select_txq(decoder *dc, const ptx_instruction *p, insn *out) {
    return select_query(dc, p, out, false);
}

static exec_fn select_suq(decoder *dc, const ptx_instruction *p, insn *out) {
    return select_query(dc, p, out, true);
}

opcode_table texture_opcodes = {
    [PTX_OP_tex] = select_tex,
    [PTX_OP_tld4] = select_tld4,
    [PTX_OP_txq] = select_txq,
    [PTX_OP_suq] = select_suq,
};
