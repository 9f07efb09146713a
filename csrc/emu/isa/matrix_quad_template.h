/* mma.sync.m8n8k4 of f16: four products at once, each by eight lanes (lanes 4q to 4q + 3, and those
 * 16 lanes on).
 *
 * It is made for sm_70. For later chips ptxas calls a function that shuffles and multiplies in f32
 * (sm_90, CUDA 13.0). Here is the same arithmetic:
 *
 *   d of f32   c + fma chain over ascending k, from zero
 *   d of f16   (c + (a0 b0 + a1 b1)) + (a2 b2 + a3 b3), each pair one product and one fma; then
 *              rounded to f16
 */
#include "matrix.h"

enum { QUADS = 4, QUAD_K = 4, QUAD_SIDE = 8 };

typedef struct quad_form {
    bool a_column_major, b_column_major;
    matrix_element c, d;
    fragment_slots slots;
} quad_form;

typedef struct quad_tile {
    float a[QUADS][QUAD_SIDE][QUAD_K], b[QUADS][QUAD_K][QUAD_SIDE];
    float c[QUADS][QUAD_SIDE][QUAD_SIDE];
} quad_tile;

/* Where element `which` of a lane is: its row and column in A (or C) or its column and row in B. */
typedef struct quad_place {
    uint32_t quad, line, in_line;
} quad_place;

static quad_place quad_factor_place(uint32_t lane, uint32_t which, bool across) {
    const uint32_t quad = lane % 16 / 4, base = lane / 16 * 4;
    return across ? (quad_place){quad, base + which, lane % 4}
                  : (quad_place){quad, base + lane % 4, which};
}

static quad_place quad_c_place(uint32_t lane, uint32_t which, matrix_element e) {
    const uint32_t quad = lane % 16 / 4, base = lane / 16 * 4;
    if (e == ELEMENT_F16) return (quad_place){quad, base + lane % 4, which};
    return (quad_place){quad, base + (lane & 1) + (which & 2),
                        (which & 4) + (lane & 2) + (which & 1)};
}

static float half_of_lane(const warp *w, const uint32_t *slots, uint32_t lane, uint32_t which) {
    return value_f16((uint16_t)(U32(w, slots[which / 2])[lane] >> which % 2 * 16));
}

static void unpack_quads(const warp *w, const quad_form *f, quad_tile *t) {
    for (uint32_t lane = 0; lane < LANES; lane++) {
        for (uint32_t which = 0; which < QUAD_K; which++) {
            const quad_place a = quad_factor_place(lane, which, f->a_column_major);
            const quad_place b = quad_factor_place(lane, which, !f->b_column_major);
            t->a[a.quad][a.line][a.in_line] = half_of_lane(w, f->slots.a, lane, which);
            t->b[b.quad][b.in_line][b.line] = half_of_lane(w, f->slots.b, lane, which);
        }
        for (uint32_t which = 0; which < QUAD_SIDE; which++) {
            const quad_place c = quad_c_place(lane, which, f->c);
            t->c[c.quad][c.line][c.in_line] = f->c == ELEMENT_F16
                                                  ? half_of_lane(w, f->slots.c, lane, which)
                                                  : F32(w, f->slots.c[which])[lane];
        }
    }
}

static uint32_t quad_element(const quad_form *f, const quad_tile *t, quad_place d) {
    const float *a = t->a[d.quad][d.line], c = t->c[d.quad][d.line][d.in_line];
    float b[QUAD_K];
    for (uint32_t k = 0; k < QUAD_K; k++)
        b[k] = t->b[d.quad][k][d.in_line];
    if (f->d == ELEMENT_F16) {
        const float first = fused_f32(a[1], b[1], a[0] * b[0]),
                    second = fused_f32(a[3], b[3], a[2] * b[2]);
        return round_to_format((c + first) + second, format_f16, ROUND_NEAREST, false);
    }
    float sum = 0;
    for (uint32_t k = 0; k < QUAD_K; k++)
        sum = fused_f32(a[k], b[k], sum);
    return canonical_f32(c + sum);
}

static const insn *exec_multiply_quads(warp *w, const insn *i) {
    const quad_form *f = i->extra;
    if (w->active != FULL) return fault_partial_warp(w, i);
    quad_tile t;
    unpack_quads(w, f, &t);
    const uint32_t step = f->d == ELEMENT_F16 ? 2 : 1;
    for (uint32_t lane = 0; lane < LANES; lane++)
        for (uint32_t which = 0; which < QUAD_SIDE; which += step) {
            const uint32_t low = quad_element(f, &t, quad_c_place(lane, which, f->d));
            const uint32_t high =
                step == 2 ? quad_element(f, &t, quad_c_place(lane, which + 1, f->d)) << 16 : 0;
            U32(w, f->slots.d[which / step])[lane] = low | high;
        }
    return i + 1;
}

/* ---- decoding ---- */

/* Takes .row or .col of A, then of B. */
static bool take_quad_layouts(decoder *dc, const ptx_instruction *p, quad_form *f) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_modifiers; k++) {
        const bool column = !strcmp(p->modifiers[k], "col");
        if (!column && strcmp(p->modifiers[k], "row") != 0) continue;
        if (n == 0) f->a_column_major = column;
        if (n == 1) f->b_column_major = column;
        n++;
        decode_take(dc, p->modifiers[k]);
    }
    return n == 2;
}

static exec_fn select_mma_quads(decoder *dc, const ptx_instruction *p, insn *out) {
    enum { FACTOR_REGISTERS = 2 };
    matrix_element e[4];
    const ptx_operand *o = p->operands;
    quad_form *f = decode_alloc(dc, sizeof *f);
    if (!take_quad_layouts(dc, p, f) || take_element_types(dc, p, e) != 4 || p->n_operands != 4)
        return NULL;
    f->d = e[0], f->c = e[3];
    const bool half_c = f->c == ELEMENT_F16, half_d = f->d == ELEMENT_F16;
    if (e[1] != ELEMENT_F16 || e[2] != ELEMENT_F16 || (!half_c && f->c != ELEMENT_F32) ||
        (!half_d && f->d != ELEMENT_F32) || (half_d && !half_c))
        return NULL;
    f->slots.d = decode_fragment(dc, &o[0], half_d ? 4 : 8, f->d, true);
    f->slots.a = decode_fragment(dc, &o[1], FACTOR_REGISTERS, ELEMENT_F16, false);
    f->slots.b = decode_fragment(dc, &o[2], FACTOR_REGISTERS, ELEMENT_F16, false);
    f->slots.c = decode_fragment(dc, &o[3], half_c ? 4 : 8, f->c, false);
    out->extra = f;
    return f->slots.d && f->slots.a && f->slots.b && f->slots.c ? exec_multiply_quads : NULL;
}
