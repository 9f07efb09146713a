/* mov of registers and of other values that decode keeps in frame slots (immediates, special
 * registers, addresses of variables and functions); packing into and unpacking from vectors.
 */
#include "alu.h"

LANEWISE(mov_u16, u16, u16, u16, u16, a)
LANEWISE(mov_u32, u32, u32, u32, u32, a)
LANEWISE(mov_u64, u64, u64, u64, u64, a)

enum { B128_BYTES = 16 };

/* A copy of 32 lanes of up to 16 bytes. It is needed because destinations may share frame slots
 * with sources. */
typedef unsigned char staged_lanes[LANES * B128_BYTES] __attribute__((aligned(64)));

static const insn *mov_b128(warp *w, const insn *in) {
    staged_lanes staged;
    memcpy(staged, w->frame + in->a, sizeof staged);
    for (int lane = 0; lane < LANES; lane++)
        if (w->mask[lane])
            memcpy(w->frame + in->d + lane * B128_BYTES, staged + lane * B128_BYTES, B128_BYTES);
    return in + 1;
}

/* ---- vectors: element k is at byte k * size of the scalar ---- */

LANEWISE(pack_2xu16, u32, u16, u16, u16, packed_u16x2(a, b))
LANEWISE(pack_2xu32, u64, u32, u32, u32, (uint64_t)b << 32 | a)

#define UNPACK_TWO(name, T, W, bits)                                                               \
    static const insn *name(warp *w, const insn *in) {                                             \
        const lane_##W *pa = LANE_POINTER(W, w, in->a);                                            \
        lane_##T low[LANES] __attribute__((aligned(64)));                                          \
        lane_##T high[LANES] __attribute__((aligned(64)));                                         \
        EACH_LANE {                                                                                \
            low[lane] = (lane_##T)pa[lane];                                                        \
            high[lane] = (lane_##T)(pa[lane] >> bits);                                             \
        }                                                                                          \
        STORE_LANES(T, w, in->d, low);                                                             \
        STORE_LANES(T, w, in->e, high);                                                            \
        return in + 1;                                                                             \
    }

UNPACK_TWO(unpack_2xu16, u16, u32, 16)
UNPACK_TWO(unpack_2xu32, u32, u64, 32)

/* Other vectors. insn: width bytes per element, count elements, list of their frame offsets. An
 * 8-bit register has 16 bits per lane. */
static uint32_t lane_bytes(const insn *in) {
    return in->width < 2 ? 2 : in->width;
}

static const insn *pack_any(warp *w, const insn *in) {
    const uint32_t vector_bytes = (uint32_t)in->width * in->count;
    staged_lanes staged;
    for (uint32_t k = 0; k < in->count; k++)
        for (uint32_t lane = 0; lane < LANES; lane++)
            memcpy(staged + lane * vector_bytes + k * in->width,
                   w->frame + in->list[k] + lane * lane_bytes(in), in->width);
    for (uint32_t lane = 0; lane < LANES; lane++)
        if (w->mask[lane])
            memcpy(w->frame + in->d + lane * vector_bytes, staged + lane * vector_bytes,
                   vector_bytes);
    return in + 1;
}

static const insn *unpack_any(warp *w, const insn *in) {
    const uint32_t vector_bytes = (uint32_t)in->width * in->count;
    staged_lanes staged;
    memcpy(staged, w->frame + in->a, LANES * vector_bytes);
    for (uint32_t k = 0; k < in->count; k++)
        for (uint32_t lane = 0; lane < LANES; lane++) {
            unsigned char *to = w->frame + in->list[k] + lane * lane_bytes(in);
            if (!w->mask[lane]) continue;
            memset(to, 0, lane_bytes(in));
            memcpy(to, staged + lane * vector_bytes + k * in->width, in->width);
        }
    return in + 1;
}

static exec_fn select_mov_vector(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    const bool unpack = p->operands[0].kind == PTX_VECTOR;
    const ptx_operand *vector = &p->operands[unpack ? 0 : 1],
                      *scalar = &p->operands[unpack ? 1 : 0];
    const uint32_t n = vector->n_items;
    if (t != PTX_B16 && t != PTX_B32 && t != PTX_B64 && t != PTX_B128) return NULL;
    if (scalar->kind == PTX_VECTOR || scalar->pair || (n != 2 && n != 4)) return NULL;
    if (!alu_fits(dc, scalar, t)) return NULL;
    const uint32_t bytes = ptx_type_size[t] / n;
    const ptx_type element = bytes == 8   ? PTX_B64
                             : bytes == 4 ? PTX_B32
                             : bytes == 2 ? PTX_B16
                             : bytes == 1 ? PTX_B8
                                          : PTX_NO_TYPE;
    if (element == PTX_NO_TYPE) return NULL;

    uint32_t *list = decode_alloc(dc, n * sizeof *list);
    for (uint32_t k = 0; k < n; k++) {
        if (!alu_fits(dc, &vector->items[k], element)) return NULL;
        list[k] = unpack ? decode_destination(dc, &vector->items[k], element)
                         : decode_source(dc, &vector->items[k], element);
    }
    out->list = list;
    out->width = (uint8_t)bytes;
    out->count = (uint8_t)n;
    const bool words = n == 2 && bytes == 4, halves = n == 2 && bytes == 2;
    if (unpack) {
        out->a = decode_source(dc, scalar, t);
        out->d = list[0], out->e = list[1];
        return words ? unpack_2xu32 : halves ? unpack_2xu16 : unpack_any;
    }
    out->d = decode_destination(dc, scalar, t);
    out->a = list[0], out->b = list[1];
    return words ? pack_2xu32 : halves ? pack_2xu16 : pack_any;
}

/* mov.v2 and mov.v4: elements of `width` bytes; list: the frame offsets of the sources, then those
 * of the destinations, which may be the same registers. */
static const insn *mov_elements(warp *w, const insn *in) {
    const uint32_t n = in->count, bytes = in->width;
    unsigned char staged[4][LANES * sizeof(uint64_t)];
    for (uint32_t k = 0; k < n; k++)
        memcpy(staged[k], w->frame + in->list[k], LANES * bytes);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t lane = 0; lane < LANES; lane++)
            if (w->mask[lane])
                memcpy(w->frame + in->list[n + k] + lane * bytes, staged[k] + lane * bytes, bytes);
    return in + 1;
}

static exec_fn select_mov_elements(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t,
                                   uint32_t n) {
    const ptx_operand *to = &p->operands[0], *from = &p->operands[1];
    const uint32_t bytes = t == PTX_NO_TYPE ? 0 : ptx_type_size[t];
    if (to->kind != PTX_VECTOR || from->kind != PTX_VECTOR) return NULL;
    if (to->n_items != n || from->n_items != n || bytes < 2 || bytes > 8) return NULL;
    uint32_t *list = decode_alloc(dc, 2 * n * sizeof *list);
    for (uint32_t k = 0; k < n; k++) {
        if (!alu_fits(dc, &to->items[k], t) || !alu_fits(dc, &from->items[k], t)) return NULL;
        list[k] = decode_source(dc, &from->items[k], t);
        list[n + k] = decode_destination(dc, &to->items[k], t);
    }
    out->list = list;
    out->count = (uint8_t)n;
    out->width = (uint8_t)bytes;
    return mov_elements;
}

static exec_fn select_mov(decoder *dc, const ptx_instruction *p, insn *out) {
    static const exec_by_type table = {TYPES_ANY(mov), [PTX_B128] = mov_b128};
    if (p->n_operands != 2) return NULL;
    const uint32_t elements = decode_take(dc, "v2") ? 2 : decode_take(dc, "v4") ? 4 : 1;
    const ptx_type t = decode_take_type(dc);
    if (elements > 1 && t != PTX_PRED) return select_mov_elements(dc, p, out, t, elements);
    if (elements > 1) return NULL;
    if (t == PTX_PRED) return alu_predicates(dc, p, out, 1, mov_pred);
    if (t == PTX_NO_TYPE || !table[t]) return NULL;
    if (p->operands[0].kind == PTX_VECTOR || p->operands[1].kind == PTX_VECTOR)
        return select_mov_vector(dc, p, out, t);
    return alu_uniform(dc, p, out, t, 1, table);
}
