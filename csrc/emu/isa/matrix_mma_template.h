/* mma.sync, and what it shares with wmma.mma: D = A B + C, with all operands in registers. */
#include "matrix.h"

/* Converts an array's bits to numbers for the form's arithmetic. */
static void convert_elements(matrix_element e, bool floats, const uint32_t *bits, uint32_t count,
                             float *significand, int32_t *exponent, int32_t *integer) {
    if (floats)
        split_elements(e, bits, count, significand, exponent);
    else
        extend_elements(e, bits, count, integer);
}

static void unpack_a(const warp *w, const matrix_form *f, const uint32_t *slots, matrix_tile *t) {
    uint32_t bits[MAX_A];
    if (f->a == ELEMENT_F64) {
        unpack_f64(w, slots, &f->a_layout, t->a.f64);
        return;
    }
    unpack_bits(w, slots, &f->a_layout, f->a, bits);
    convert_elements(f->a, is_float_element(f->a), bits, f->m * f->k, t->a.significand,
                     t->a_exponent, t->a.integer);
}

static void unpack_b(const warp *w, const matrix_form *f, const uint32_t *slots, matrix_tile *t) {
    uint32_t bits[MAX_B];
    if (f->b == ELEMENT_F64) {
        unpack_f64(w, slots, &f->b_layout, t->b.f64);
        return;
    }
    unpack_bits(w, slots, &f->b_layout, f->b, bits);
    convert_elements(f->b, is_float_element(f->b), bits, rows_of_b(f) * f->n, t->b.significand,
                     t->b_exponent, t->b.integer);
}

static void convert_c(const matrix_form *f, const uint32_t *bits, matrix_tile *t) {
    convert_elements(f->c, is_float_element(f->a), bits, f->m * f->n, t->c.significand,
                     t->c_exponent, t->c.integer);
}

static void unpack_c(const warp *w, const matrix_form *f, const uint32_t *slots, matrix_tile *t) {
    uint32_t bits[MAX_C];
    if (f->c == ELEMENT_F64) {
        unpack_f64(w, slots, &f->c_layout, t->c.f64);
        return;
    }
    unpack_bits(w, slots, &f->c_layout, f->c, bits);
    convert_c(f, bits, t);
}

static void pack_d(warp *w, const matrix_form *f, const uint32_t *slots, const matrix_tile *t) {
    if (f->d == ELEMENT_F64)
        pack_f64(w, slots, &f->d_layout, t->d.f64);
    else
        pack_words(w, slots, &f->d_layout, t->d.bits);
}

/* A fragment is spread over all 32 lanes of the warp, so all must be active. */
static const insn *fault_partial_warp(warp *w, const insn *i) {
    return warp_fault(
        w, i, SMK_LAUNCH, w->active,
        "only %d of the warp's 32 lanes are active (mask 0x%08x); a matrix instruction "
        "needs all of them: keep it out of divergent code, and launch blocks of a "
        "multiple of 32 threads",
        __builtin_popcount(w->active), w->active);
}

static const insn *fault_metadata(warp *w, const insn *i) {
    return warp_fault(w, i, SMK_LAUNCH, w->active,
                      "the metadata has a code of a tf32 pair that is neither 0b0100 (the first is "
                      "stored) nor 0b1110 (the second)");
}

typedef struct multiplication {
    matrix_form form;
    fragment_slots slots;
} multiplication;

static const insn *exec_multiply(warp *w, const insn *i) {
    const multiplication *m = i->extra;
    if (w->active != FULL) return fault_partial_warp(w, i);
    matrix_tile t;
    unpack_a(w, &m->form, m->slots.a, &t);
    unpack_b(w, &m->form, m->slots.b, &t);
    unpack_c(w, &m->form, m->slots.c, &t);
    if (m->form.sparse && !read_metadata(&m->form, U32(w, m->slots.metadata), &t))
        return fault_metadata(w, i);
    multiply_tile(&m->form, &t);
    pack_d(w, &m->form, m->slots.d, &t);
    return i + 1;
}

/* ---- decoding ---- */

static matrix_element element_by_name(const char *modifier) {
    static const char *const names[N_ELEMENTS] = {
        [ELEMENT_F16] = "f16",   [ELEMENT_BF16] = "bf16", [ELEMENT_TF32] = "tf32",
        [ELEMENT_E4M3] = "e4m3", [ELEMENT_E5M2] = "e5m2", [ELEMENT_S8] = "s8",
        [ELEMENT_U8] = "u8",     [ELEMENT_S4] = "s4",     [ELEMENT_U4] = "u4",
        [ELEMENT_B1] = "b1",     [ELEMENT_F64] = "f64",   [ELEMENT_F32] = "f32",
        [ELEMENT_S32] = "s32",
    };
    for (int e = 0; e < N_ELEMENTS; e++)
        if (!strcmp(modifier, names[e])) return (matrix_element)e;
    return NO_ELEMENT;
}

/* Takes the element types, in the order of the modifiers; returns how many there are. */
static uint32_t take_element_types(decoder *dc, const ptx_instruction *p, matrix_element out[4]) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_modifiers && n < 4; k++) {
        const matrix_element e = element_by_name(p->modifiers[k]);
        if (e != NO_ELEMENT && decode_take(dc, p->modifiers[k])) out[n++] = e;
    }
    return n;
}

/* Takes the shape, such as .m16n8k16. */
static bool take_shape(decoder *dc, const ptx_instruction *p, uint32_t shape[3]) {
    for (uint32_t k = 0; k < p->n_modifiers; k++) {
        int end = 0;
        const char *text = p->modifiers[k];
        if (sscanf(text, "m%3un%3uk%3u%n", &shape[0], &shape[1], &shape[2], &end) == 3 &&
            !text[end])
            return decode_take(dc, text);
    }
    return false;
}

static bool is_shape(const uint32_t shape[3], uint32_t m, uint32_t n, uint32_t k) {
    return shape[0] == m && shape[1] == n && shape[2] == k;
}

/* Decodes a fragment of n registers (a vector, or a single register) to frame offsets; NULL if the
 * operand does not match. */
static uint32_t *decode_fragment(decoder *dc, const ptx_operand *o, uint32_t n, matrix_element e,
                                 bool written) {
    const ptx_operand *items = o->kind == PTX_VECTOR ? o->items : o;
    if ((o->kind == PTX_VECTOR ? o->n_items : 1) != n || o->negated) return NULL;
    uint32_t *slots = decode_alloc(dc, n * sizeof *slots);
    const ptx_type type = e == ELEMENT_F64 ? PTX_F64 : PTX_B32;
    for (uint32_t k = 0; k < n; k++)
        slots[k] =
            written ? decode_destination(dc, &items[k], type) : decode_source(dc, &items[k], type);
    return slots;
}

static void set_arithmetic(matrix_form *f) {
    f->fraction_bits = 25;
    f->result_bits = 23;
    f->k_step = f->k;
}

/* Sets layouts and arithmetic. The form has its types and its shape, with k as in the modifier. */
static void set_layouts(matrix_form *f) {
    if (f->a == ELEMENT_B1) f->k /= 32;
    f->a_layout = layout_a(f->m, f->k, f->a);
    f->b_layout = layout_b(f->n, rows_of_b(f), f->b);
    f->c_layout = layout_c(f->m, f->n, f->n, f->c);
    f->d_layout = layout_c(f->m, f->n, f->n, f->d);
    set_arithmetic(f);
}

/* mma.sync of 8-bit floats: two steps, and c is added last (matrix_float_template.h). */
static void set_f16_steps(matrix_form *f) {
    f->adds_c_last = true;
    f->k_step = f->k / 2;
    split_k_by_pairs(&f->a_layout, f->k, f->m, true);
    /* The rows of B are chosen by the metadata of a sparse product: stored_place. */
    if (!f->sparse) split_k_by_pairs(&f->b_layout, f->k, f->n, false);
}

/* Decodes the metadata of a sparse product and its selector, at o and after it. */
static bool decode_metadata(decoder *dc, const ptx_operand *o, matrix_form *f, uint32_t *slot) {
    const ptx_operand *selector = o + 1;
    if (selector->kind != PTX_IMMEDIATE || selector->is_float ||
        selector->bits >= QUAD / metadata_lanes(f))
        return false;
    f->selector = (uint32_t)selector->bits;
    *slot = decode_source(dc, o, PTX_B32);
    return true;
}

static exec_fn multiply_operands(decoder *dc, const ptx_instruction *p, insn *out,
                                 multiplication *m) {
    const ptx_operand *o = p->operands;
    if (p->n_operands != (m->form.sparse ? 6 : 4)) return NULL;
    if (m->form.sparse && !decode_metadata(dc, &o[4], &m->form, &m->slots.metadata)) return NULL;
    m->slots.d = decode_fragment(dc, &o[0], m->form.d_layout.n_registers, m->form.d, true);
    m->slots.a = decode_fragment(dc, &o[1], m->form.a_layout.n_registers, m->form.a, false);
    m->slots.b = decode_fragment(dc, &o[2], m->form.b_layout.n_registers, m->form.b, false);
    m->slots.c = decode_fragment(dc, &o[3], m->form.c_layout.n_registers, m->form.c, false);
    out->extra = m;
    return m->slots.d && m->slots.a && m->slots.b && m->slots.c ? exec_multiply : NULL;
}

/* Whether mma.sync has this shape with these types. */
static bool is_mma(const matrix_form *f) {
    const uint32_t shape[3] = {f->m, f->n, f->k};
    const bool same = f->a == f->b;
    const bool float_c = f->c == f->d && (f->d == ELEMENT_F16 || f->d == ELEMENT_F32);
    const bool s32_c = f->c == ELEMENT_S32 && f->d == ELEMENT_S32;
    switch (f->a) {
    case ELEMENT_F16:
        return same && float_c && (is_shape(shape, 16, 8, 8) || is_shape(shape, 16, 8, 16));
    case ELEMENT_BF16:
        return same && float_c && f->d == ELEMENT_F32 &&
               (is_shape(shape, 16, 8, 8) || is_shape(shape, 16, 8, 16));
    case ELEMENT_TF32:
        return same && float_c && f->d == ELEMENT_F32 &&
               (is_shape(shape, 16, 8, 4) || is_shape(shape, 16, 8, 8));
    case ELEMENT_E4M3:
    case ELEMENT_E5M2:
        return (f->b == ELEMENT_E4M3 || f->b == ELEMENT_E5M2) && float_c &&
               (is_shape(shape, 16, 8, 16) || is_shape(shape, 16, 8, 32));
    case ELEMENT_S8:
    case ELEMENT_U8:
        return (f->b == ELEMENT_S8 || f->b == ELEMENT_U8) && s32_c &&
               (is_shape(shape, 8, 8, 16) || is_shape(shape, 16, 8, 16) ||
                is_shape(shape, 16, 8, 32));
    case ELEMENT_S4:
    case ELEMENT_U4:
        return (f->b == ELEMENT_S4 || f->b == ELEMENT_U4) && s32_c &&
               (is_shape(shape, 8, 8, 32) || is_shape(shape, 16, 8, 32) ||
                is_shape(shape, 16, 8, 64));
    case ELEMENT_B1:
        return same && s32_c &&
               (is_shape(shape, 8, 8, 128) || is_shape(shape, 16, 8, 128) ||
                is_shape(shape, 16, 8, 256));
    case ELEMENT_F64:
        return same && f->c == ELEMENT_F64 && f->d == ELEMENT_F64 &&
               (is_shape(shape, 8, 8, 4) ||
                (f->m == 16 && f->n == 8 && (f->k == 4 || f->k == 8 || f->k == 16)));
    default: return false;
    }
}

/* Whether mma.sp has this shape, with k as stored: twice the k of a dense one. Of 8-bit floats only
 * m16n8k64 with f32. */
static bool is_sparse_mma(const matrix_form *f) {
    const bool narrow_float = f->a == ELEMENT_E4M3 || f->a == ELEMENT_E5M2;
    return f->m == 16 && f->a != ELEMENT_B1 && f->a != ELEMENT_F64 && is_mma(f) &&
           (!narrow_float || (f->k == 32 && f->d == ELEMENT_F32));
}

static bool take_bit_operation(decoder *dc, matrix_form *f) {
    if (f->a != ELEMENT_B1) return true;
    f->bits = decode_take(dc, "and") ? BITS_AND : BITS_XOR;
    return (f->bits == BITS_AND || decode_take(dc, "xor")) && decode_take(dc, "popc");
}

static void take_f64_rounding(decoder *dc, matrix_form *f) {
    if (f->a == ELEMENT_F64) f->rounding = (uint32_t)take_rounding(dc, ROUND_NEAREST);
}

/* Takes .row.col: A is row-major, B is column-major. Other layouts exist for old shapes only. */
static bool take_row_col(decoder *dc, const ptx_instruction *p) {
    for (uint32_t k = 0; k + 1 < p->n_modifiers; k++)
        if (!strcmp(p->modifiers[k], "row") && !strcmp(p->modifiers[k + 1], "col"))
            return decode_take(dc, "row") && decode_take(dc, "col");
    return false;
}

static exec_fn select_mma_quads(decoder *dc, const ptx_instruction *p, insn *out);

static exec_fn select_mma(decoder *dc, const ptx_instruction *p, insn *out) {
    matrix_element e[4];
    uint32_t shape[3];
    const bool sparse = decode_take(dc, "sp") || decode_take(dc, "sp::ordered_metadata");
    if (!decode_take(dc, "sync") || !decode_take(dc, "aligned") || !take_shape(dc, p, shape))
        return NULL;
    if (is_shape(shape, 8, 8, 4) && !(p->types & 1u << PTX_F64) && !sparse)
        return select_mma_quads(dc, p, out);
    if (!take_row_col(dc, p) || take_element_types(dc, p, e) != 4 || (sparse && shape[2] % 2))
        return NULL;
    multiplication *m = decode_alloc(dc, sizeof *m);
    m->form = (matrix_form){.m = shape[0],
                            .n = shape[1],
                            .k = sparse ? shape[2] / 2 : shape[2],
                            .sparse = sparse,
                            .d = e[0],
                            .a = e[1],
                            .b = e[2],
                            .c = e[3]};
    if (!(sparse ? is_sparse_mma : is_mma)(&m->form) || !take_bit_operation(dc, &m->form))
        return NULL;
    m->form.saturate = is_integer_element(m->form.a) && decode_take(dc, "satfinite");
    take_f64_rounding(dc, &m->form);
    set_layouts(&m->form);
    if (m->form.a == ELEMENT_E4M3 || m->form.a == ELEMENT_E5M2) set_f16_steps(&m->form);
    return multiply_operands(dc, p, out, m);
}
