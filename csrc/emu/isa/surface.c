/* suld, sust and sured: elements of surfaces.
 *
 * Of .b instructions x is in bytes, and memory is accessed as it is. Of .p instructions x is in
 * elements, which have the surface's type. Observers see an access to global memory.
 */
#include <string.h>

#include "atomics.h"
#include "texel.h"
#include "texture.h"
#include "../observe/observer.h"

enum outside { OUTSIDE_TRAP, OUTSIDE_CLAMP, OUTSIDE_ZERO };

enum { MAX_ELEMENTS = 4 };

typedef struct surface_form {
    texture_operand surface;
    enum outside outside;
    bool by_element;                              /* .p */
    atomic_reduction reduction, signed_reduction; /* the latter of surfaces of signed integers */
    uint32_t n, width; /* elements of the value, and bytes of each in memory (.b) */
    uint32_t slot[MAX_ELEMENTS], slot_bytes[MAX_ELEMENTS];
} surface_form;

/* ---- places ---- */

static bool clamp_index(int64_t *index, int64_t size, enum outside outside) {
    const int64_t inside = *index < 0 ? 0 : *index >= size ? size - 1 : *index;
    const bool was_inside = *index == inside;
    if (outside == OUTSIDE_CLAMP) *index = inside;
    return was_inside || outside == OUTSIDE_CLAMP;
}

static uint32_t access_bytes(const surface_form *f, const smk_texture *s) {
    return f->by_element && !f->reduction.combine ? smk_texel_bytes(s) : f->n * f->width;
}

/* The byte of the surface that the lane accesses. False: it is outside. */
static bool place_of(const warp *w, const surface_form *f, const smk_texture *s, int lane,
                     uint64_t *out) {
    const uint32_t bytes = access_bytes(f, s), texel = smk_texel_bytes(s);
    const int64_t row = (int64_t)s->size[0] * texel;
    const uint32_t layers = s->layers * (s->cubemap ? SMK_CUBE_FACES : 1);
    int64_t layer = U32(w, f->surface.layer)[lane];
    int64_t x = S32(w, f->surface.coordinate[0])[lane];
    if (f->by_element) x *= texel;
    /* the first byte, whose last place leaves room for the access */
    bool inside = row >= bytes && clamp_index(&x, row - bytes + 1, f->outside) &&
                  clamp_index(&layer, layers, f->outside);
    uint64_t at = (uint64_t)layer;
    for (uint32_t d = s->rank; d-- > 1;) {
        int64_t index = S32(w, f->surface.coordinate[d])[lane];
        inside = inside && clamp_index(&index, s->size[d], f->outside);
        at = at * s->size[d] + (uint64_t)index;
    }
    *out = at * (uint64_t)row + (uint64_t)x;
    return inside;
}

/* ---- elements ---- */

static void load(warp *w, const surface_form *f, int lane, const unsigned char *from) {
    for (uint32_t k = 0; k < f->n; k++) {
        uint64_t value = 0; /* outside */
        if (from) memcpy(&value, from + k * f->width, f->width);
        memcpy(w->frame + f->slot[k] + (size_t)lane * f->slot_bytes[k], &value, f->slot_bytes[k]);
    }
}

static uint64_t value_of(const warp *w, const surface_form *f, uint32_t k, int lane) {
    uint64_t value = 0;
    memcpy(&value, w->frame + f->slot[k] + (size_t)lane * f->slot_bytes[k], f->slot_bytes[k]);
    return value;
}

static void store(const warp *w, const surface_form *f, const smk_texture *s, int lane,
                  unsigned char *to) {
    uint32_t words[MAX_ELEMENTS] = {0};
    for (uint32_t k = 0; k < f->n; k++) {
        const uint64_t value = value_of(w, f, k, lane);
        words[k] = (uint32_t)value;
        if (!f->by_element) memcpy(to + k * f->width, &value, f->width);
    }
    if (f->by_element) texel_write(s, to, words);
}

static void access_element(warp *w, const insn *i, const smk_texture *s, int lane,
                           unsigned char *at) {
    const surface_form *f = i->extra;
    if (i->operation == EMU_LOAD)
        load(w, f, lane, at);
    else if (!at)
        return;
    else if (i->operation == EMU_STORE)
        store(w, f, s, lane, at);
    else
        atomic_reduce(smk_texel_type_kind(s->type) == 's' ? &f->signed_reduction : &f->reduction,
                      at, value_of(w, f, 0, lane));
}

static bool check_place(warp *w, const insn *i, const bound_texture *t, int lane, bool inside,
                        uint64_t at) {
    const surface_form *f = i->extra;
    const uint32_t bytes = access_bytes(f, t->form);
    emu_fault fault = {.address = t->address + at, .width = bytes};
    if (inside && at % bytes) {
        fault.kind = EMU_MISALIGNED;
        warp_fault_at(w, i, 1u << lane, &fault,
                      "an access of %u bytes to a surface at x = %d bytes, which is not a multiple "
                      "of %u; x of suld.b and sust.b counts bytes",
                      bytes, S32(w, f->surface.coordinate[0])[lane], bytes);
        return false;
    }
    if (inside || f->outside != OUTSIDE_TRAP) return true;
    fault.kind = EMU_OUT_OF_BOUNDS;
    warp_fault_at(w, i, 1u << lane, &fault,
                  "an access outside of a surface, at x = %d%s; pass a boundary mode that clamps "
                  "or returns zero, or test the coordinates",
                  S32(w, f->surface.coordinate[0])[lane], f->by_element ? "" : " bytes");
    return false;
}

static const insn *exec_surface(warp *w, const insn *i) {
    const surface_form *f = i->extra;
    lanes_u64 address = {0};
    uint32_t accessed = 0, bytes = 0;
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        const bound_texture *t = texture_of_lane(w, i, &f->surface, lane, true);
        uint64_t at;
        if (!t) return NULL;
        const bool inside = place_of(w, f, t->form, lane, &at);
        if (!check_place(w, i, t, lane, inside, at)) return NULL;
        access_element(w, i, t->form, lane, inside ? t->texels + at : NULL);
        if (!inside) continue;
        bytes = access_bytes(f, t->form);
        address[lane] = t->address + at;
        accessed |= 1u << lane;
    }
    if (accessed && w->block->observer)
        observe_access(w, i, PTX_GLOBAL, (emu_operation)i->operation, bytes, address, accessed);
    return i + 1;
}

/* ---- decoding ---- */

static bool take_outside(decoder *dc, surface_form *f) {
    f->outside = decode_take(dc, "trap")    ? OUTSIDE_TRAP
                 : decode_take(dc, "clamp") ? OUTSIDE_CLAMP
                                            : OUTSIDE_ZERO;
    return f->outside != OUTSIDE_ZERO || decode_take(dc, "zero");
}

/* A register may be wider than its element. */
static bool take_value(decoder *dc, const ptx_operand *o, ptx_type type, bool destination,
                       surface_form *f) {
    const bool vector = o->kind == PTX_VECTOR;
    f->n = decode_take(dc, "v2") ? 2 : decode_take(dc, "v4") ? 4 : 1;
    f->width = ptx_type_size[type];
    if ((vector ? o->n_items : 1) != f->n || f->n * f->width > 16) return false;
    for (uint32_t k = 0; k < f->n; k++) {
        const ptx_operand *item = vector ? &o->items[k] : o;
        const ptx_type declared = decode_register_type(dc, item);
        const ptx_type own = declared == PTX_NO_TYPE ? type : declared;
        if (ptx_slot_bytes(own) < ptx_slot_bytes(type) || ptx_slot_bytes(own) > LANES * 8)
            return false;
        f->slot[k] = destination ? decode_destination(dc, item, own) : decode_source(dc, item, own);
        f->slot_bytes[k] = ptx_slot_bytes(own) / LANES;
        if (!destination && f->slot_bytes[k] != f->slot_bytes[0]) return false;
    }
    return true;
}

/* The stored values, for observers (observer.h). */
static void describe_values(surface_form *f, insn *out) {
    if (f->by_element || out->operation != EMU_STORE) return;
    out->list = f->slot;
    out->count = (uint8_t)f->n;
    out->c = f->slot_bytes[0];
    out->unobserved = exec_surface;
}

static exec_fn select_access(decoder *dc, const ptx_instruction *p, insn *out,
                             emu_operation operation) {
    surface_form *f = decode_alloc(dc, sizeof *f);
    const uint32_t at = operation == EMU_LOAD;
    if (p->n_operands != 2 || !take_outside(dc, f)) return NULL;
    f->by_element = operation != EMU_LOAD && decode_take(dc, "p");
    if (!f->by_element && !decode_take(dc, "b")) return NULL;
    const char *const hint = operation == EMU_LOAD ? "ca cg cs cv" : "wb cg cs wt";
    for (uint32_t k = 0; operation != EMU_ATOMIC && k < p->n_modifiers; k++)
        if (strlen(p->modifiers[k]) == 2 && strstr(hint, p->modifiers[k]))
            decode_take(dc, p->modifiers[k]);
    if (!texture_decode(dc, &p->operands[at], &f->surface) || f->surface.geometry->cubemap)
        return NULL;
    out->operation = (uint8_t)operation;
    out->extra = f;
    return exec_surface;
}

static exec_fn select_move(decoder *dc, const ptx_instruction *p, insn *out,
                           emu_operation operation) {
    const exec_fn exec = select_access(dc, p, out, operation);
    surface_form *f = (surface_form *)out->extra;
    const ptx_type type = decode_take_type(dc);
    const bool legal = type == PTX_B32 || (f && !f->by_element &&
                                           (type == PTX_B8 || type == PTX_B16 || type == PTX_B64));
    const bool load = operation == EMU_LOAD;
    if (!exec || !legal || !take_value(dc, &p->operands[load ? 0 : 1], type, load, f)) return NULL;
    describe_values(f, out);
    return exec;
}

static exec_fn select_suld(decoder *dc, const ptx_instruction *p, insn *out) {
    return select_move(dc, p, out, EMU_LOAD);
}

static exec_fn select_sust(decoder *dc, const ptx_instruction *p, insn *out) {
    return select_move(dc, p, out, EMU_STORE);
}

/* .b: add of u32 s32 u64, min and max of u32 s32 u64 s64, and and or of b32. .p: all of b32, which
 * is compared as the surface's type. */
static void take_reduction(decoder *dc, surface_form *f) {
    static const char *const operations[] = {"add", "min", "max", "and", "or"};
    const bool by_element = f->by_element;
    const ptx_type type = decode_take_type(dc);
    for (size_t k = 0; k < sizeof operations / sizeof *operations; k++) {
        if (!decode_take(dc, operations[k])) continue;
        const bool bits = k >= 3;
        const bool integer =
            type == PTX_U32 || type == PTX_S32 || type == PTX_U64 || type == PTX_S64;
        if (by_element ? type != PTX_B32 : bits ? type != PTX_B32 : !integer) return;
        if (k == 0 && type == PTX_S64) return;
        const bool compared = by_element && !bits;
        f->reduction = atomic_find_reduction(operations[k], compared ? PTX_U32 : type, false);
        f->signed_reduction =
            atomic_find_reduction(operations[k], compared ? PTX_S32 : type, false);
        return;
    }
}

static exec_fn select_sured(decoder *dc, const ptx_instruction *p, insn *out) {
    const exec_fn exec = select_access(dc, p, out, EMU_ATOMIC);
    surface_form *f = (surface_form *)out->extra;
    if (!exec || f->surface.geometry->layered) return NULL;
    take_reduction(dc, f);
    if (!f->reduction.combine) return NULL;
    const ptx_type type = f->reduction.width == 8 ? PTX_B64 : PTX_B32;
    return take_value(dc, &p->operands[1], type, false, f) && f->n == 1 ? exec : NULL;
}

opcode_table surface_opcodes = {
    [PTX_OP_suld] = select_suld,
    [PTX_OP_sust] = select_sust,
    [PTX_OP_sured] = select_sured,
};
