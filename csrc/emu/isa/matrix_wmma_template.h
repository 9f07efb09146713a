/* wmma: loads and stores of fragments, and their products (what nvcuda::wmma compiles to).
 *
 * PTX leaves the layout of fragments open: load, mma and store must only agree. Here they are
 * mma.sync's. Where PTX requires more registers than the tile has elements for (f16), the others
 * repeat the first.
 *
 * An observer sees the requests that ptxas generates (wmma_requests.h). Where those are not known,
 * it sees one request per register if the register's elements are neighbours in memory, else one
 * per element.
 */
#include "matrix.h"
#include "memory.h"
#include "../machine/machine.h"
#include "wmma_requests.h"

typedef struct wmma_access {
    fragment_layout layout;
    uint32_t *slots;
    uint32_t columns; /* of the array that layout.index refers to */
    uint32_t stride;  /* frame offset; 0: default_stride */
    uint32_t default_stride;
    uint32_t bits;        /* per element of the array */
    uint32_t memory_bits; /* per element in memory, as the stride counts */
    bool column_major;
    bool contiguous; /* a register's elements are neighbours in memory and move together */
    wmma_tile tile;
} wmma_access;

static uint64_t element_offset(const wmma_access *f, uint32_t at, uint64_t stride) {
    const uint64_t row = at / f->columns, column = at % f->columns;
    /* The stride counts elements. For b1 these are bits, not words of the array. */
    const uint64_t line = f->column_major ? column : row, in_line = f->column_major ? row : column;
    return line * stride * f->memory_bits / 8 + in_line * f->bits / 8;
}

/* Moves `bytes` of register r, from byte which * bytes on, in all lanes. */
static bool move_elements(warp *w, const insn *i, uint64_t stride, uint32_t r, uint32_t which,
                          uint32_t bytes) {
    const wmma_access *f = i->extra;
    const bool load = i->operation == EMU_LOAD, f64 = f->bits == 64;
    const uint32_t at_byte = which * bytes;
    lanes_u64 address;
    for (int lane = 0; lane < LANES; lane++) {
        const uint32_t at =
            f->layout.index[r % f->layout.n_distinct][lane] + layout_offset(&f->layout, which);
        address[lane] = lane_address(w, i, lane) + element_offset(f, at, stride);
        unsigned char *host =
            lane_reach(w, i, (ptx_space)i->space, lane, address[lane], bytes, !load);
        if (!host) return false;
        unsigned char *in_register = w->frame + f->slots[r] + lane * (f64 ? 8 : 4) + at_byte;
        memcpy(load ? in_register : host, load ? host : in_register, bytes);
    }
    if (w->block->observer && f->tile.kind == WMMA_PER_REGISTER && r < f->layout.n_distinct)
        observe_access(w, i, (ptx_space)i->space, (emu_operation)i->operation, bytes, address,
                       FULL);
    return true;
}

static const insn *exec_wmma_access(warp *w, const insn *i) {
    const wmma_access *f = i->extra;
    if (w->active != FULL) return fault_partial_warp(w, i);
    const uint32_t n_moves = f->contiguous ? 1 : f->layout.per_register;
    const uint32_t bytes = (f->contiguous ? f->layout.per_register : 1) * f->bits / 8;
    const uint64_t stride = f->stride ? U32(w, f->stride)[0] : f->default_stride;
    const uint64_t base = lane_address(w, i, 0); /* PTX requires the same address in all lanes */
    for (uint32_t r = 0; r < f->layout.n_registers; r++)
        for (uint32_t which = 0; which < n_moves; which++)
            if (!move_elements(w, i, stride, r, which, bytes)) return NULL;
    if (w->block->observer && f->tile.kind != WMMA_PER_REGISTER)
        wmma_report(w, i, &f->tile, base, stride * f->memory_bits / 8);
    return i + 1;
}

/* ---- decoding ---- */

/* Bits per element in memory; element_bits gives those in registers. */
static uint32_t memory_bits(matrix_element e) {
    return e == ELEMENT_B1 ? 1 : element_bits(e);
}

static bool is_wmma_shape(const uint32_t shape[3], matrix_element factor) {
    switch (factor) {
    case ELEMENT_F16:
    case ELEMENT_BF16:
    case ELEMENT_S8:
    case ELEMENT_U8:
        return is_shape(shape, 16, 16, 16) || is_shape(shape, 32, 8, 16) ||
               is_shape(shape, 8, 32, 16);
    case ELEMENT_TF32: return is_shape(shape, 16, 16, 8);
    case ELEMENT_F64: return is_shape(shape, 8, 8, 4);
    case ELEMENT_S4:
    case ELEMENT_U4: return is_shape(shape, 8, 8, 32);
    case ELEMENT_B1: return is_shape(shape, 8, 8, 128);
    default: return false;
    }
}

/* An accumulator's type belongs to the shapes of several factor types. */
static bool is_wmma_accumulator(const uint32_t shape[3], matrix_element e) {
    switch (e) {
    case ELEMENT_F16: return is_wmma_shape(shape, ELEMENT_F16);
    case ELEMENT_F32:
        return is_wmma_shape(shape, ELEMENT_F16) || is_wmma_shape(shape, ELEMENT_TF32);
    case ELEMENT_S32:
        return is_wmma_shape(shape, ELEMENT_S8) || is_wmma_shape(shape, ELEMENT_S4) ||
               is_wmma_shape(shape, ELEMENT_B1);
    case ELEMENT_F64: return is_wmma_shape(shape, ELEMENT_F64);
    default: return false;
    }
}

static wmma_tile tile_of(const wmma_access *f, uint32_t rows, uint32_t columns, bool factor,
                         ptx_space space) {
    const uint32_t lines = f->column_major ? columns : rows;
    const uint32_t length = f->column_major ? rows : columns, bytes = f->bits / 8;
    wmma_tile tile = {.lines = lines, .line_bytes = length * bytes, .element_bytes = bytes};
    const bool is_flat = rows == 8 && columns == 32;
    tile.pairs_in_line = f->column_major == is_flat;
    if (!factor && bytes >= 4)
        tile.kind = WMMA_PAIRS;
    else if (f->memory_bits == 16)
        tile.kind = factor && space == PTX_SHARED ? WMMA_LDMATRIX : WMMA_WORDS;
    else if (f->memory_bits == 8 && f->contiguous && space == PTX_SHARED)
        tile.kind = WMMA_LDMATRIX;
    return tile;
}

enum { F16_REGISTERS = 8 };

/* A and B: f16 fragments have eight registers in PTX, whatever the shape. */
static void set_wmma_registers(fragment_layout *layout, matrix_element e) {
    if (e == ELEMENT_F16) layout->n_registers = F16_REGISTERS;
}

static exec_fn select_wmma_access(decoder *dc, const ptx_instruction *p, insn *out, bool load) {
    static const char *const matrices[] = {"a", "b", "c", "d"};
    matrix_element e[4];
    uint32_t shape[3], which = load ? 0 : 3;
    const uint32_t last = load ? 2 : 3;
    while (which <= last && !decode_take(dc, matrices[which]))
        which++;
    if (which > last || !decode_take(dc, "sync") || !decode_take(dc, "aligned") ||
        !take_shape(dc, p, shape) || take_element_types(dc, p, e) != 1 || p->n_operands < 2 ||
        p->n_operands > 3)
        return NULL;
    wmma_access *f = decode_alloc(dc, sizeof *f);
    f->column_major = decode_take(dc, "col");
    if (!f->column_major && !decode_take(dc, "row")) return NULL;
    const uint32_t m = shape[0], n = shape[1], k = e[0] == ELEMENT_B1 ? shape[2] / 32 : shape[2];
    if (which < 2 ? !is_wmma_shape(shape, e[0]) : !is_wmma_accumulator(shape, e[0])) return NULL;
    f->layout = which == 0   ? layout_a(m, k, e[0])
                : which == 1 ? layout_b(n, k, e[0])
                             : layout_c(m, n, n, e[0]);
    if (which < 2) set_wmma_registers(&f->layout, e[0]);
    f->columns = which == 0 ? k : n;
    const uint32_t rows = which == 1 ? k : m;
    f->bits = element_bits(e[0]);
    f->memory_bits = memory_bits(e[0]);
    f->default_stride = (f->column_major ? rows : f->columns) * (f->bits / f->memory_bits);
    /* A register's elements lie along a column of B, and along a row of A or C. */
    f->contiguous = f->layout.per_register == 1 || f->column_major == (which == 1);
    if (memory_bits(e[0]) < 8 && f->column_major != (which == 1)) return NULL;
    out->space = (uint8_t)decode_take_space(dc);
    out->operation = load ? EMU_LOAD : EMU_STORE;
    f->tile = tile_of(f, rows, f->columns, which < 2, (ptx_space)out->space);
    const ptx_operand *address = &p->operands[load ? 1 : 0], *value = &p->operands[load ? 0 : 1];
    decoded_address at;
    if (!decode_address(dc, address, &at)) return NULL;
    out->a = at.slot, out->wide = at.wide, out->imm = at.imm;
    if (p->n_operands == 3) f->stride = decode_source(dc, &p->operands[2], PTX_U32);
    f->slots = decode_fragment(dc, value, f->layout.n_registers, e[0], load);
    out->extra = f;
    return f->slots ? exec_wmma_access : NULL;
}

static bool is_wmma(const matrix_form *f) {
    const uint32_t shape[3] = {f->m, f->n, f->k};
    const bool floats = f->d == ELEMENT_F32 && f->c == ELEMENT_F32;
    if (f->a != f->b || !is_wmma_shape(shape, f->a)) return false;
    switch (f->a) {
    case ELEMENT_F16:
        return (f->c == ELEMENT_F16 || f->c == ELEMENT_F32) &&
               (f->d == ELEMENT_F16 || f->d == ELEMENT_F32);
    case ELEMENT_BF16:
    case ELEMENT_TF32: return floats;
    case ELEMENT_F64: return f->c == ELEMENT_F64 && f->d == ELEMENT_F64;
    default: return f->c == ELEMENT_S32 && f->d == ELEMENT_S32;
    }
}

static exec_fn select_wmma_product(decoder *dc, const ptx_instruction *p, insn *out) {
    matrix_element e[4];
    uint32_t shape[3];
    if (!decode_take(dc, "sync") || !decode_take(dc, "aligned") || !take_shape(dc, p, shape))
        return NULL;
    const bool row_col = take_row_col(dc, p);
    uint32_t layouts = row_col ? 2 : 0;
    while (layouts < 2 && (decode_take(dc, "row") || decode_take(dc, "col")))
        layouts++;
    const uint32_t n = take_element_types(dc, p, e);
    /* The factors' types are in the text, unless they are f16. */
    if (layouts != 2 || (n != 2 && n != 4) || (n == 4 && e[1] == ELEMENT_F16)) return NULL;
    multiplication *m = decode_alloc(dc, sizeof *m);
    m->form = (matrix_form){.m = shape[0],
                            .n = shape[1],
                            .k = shape[2],
                            .d = e[0],
                            .a = n == 2 ? ELEMENT_F16 : e[1],
                            .b = n == 2 ? ELEMENT_F16 : e[2],
                            .c = n == 2 ? e[1] : e[3]};
    if (memory_bits(m->form.a) < 8 && !row_col) return NULL;
    if (!is_wmma(&m->form) || !take_bit_operation(dc, &m->form)) return NULL;
    m->form.saturate = is_integer_element(m->form.a) && decode_take(dc, "satfinite");
    take_f64_rounding(dc, &m->form);
    set_layouts(&m->form);
    set_wmma_registers(&m->form.a_layout, m->form.a);
    set_wmma_registers(&m->form.b_layout, m->form.b);
    if (m->form.a == ELEMENT_TF32) m->form.k_step = m->form.k / 2;
    return multiply_operands(dc, p, out, m);
}

static exec_fn select_wmma(decoder *dc, const ptx_instruction *p, insn *out) {
    if (decode_take(dc, "load")) return select_wmma_access(dc, p, out, true);
    if (decode_take(dc, "store")) return select_wmma_access(dc, p, out, false);
    return decode_take(dc, "mma") ? select_wmma_product(dc, p, out) : NULL;
}
