/* wgmma: a warpgroup's product. B comes from shared memory through a descriptor; A comes from there
 * or from registers.
 *
 * A warpgroup is four warps; the first one's index is a multiple of four. Each computes its own 16
 * of the 64 rows and needs nothing from the others, so warps do not synchronise here.
 *
 * The product is complete at issue: reading the accumulators early gives their final values, not
 * garbage. Withholding them until wgmma.wait_group would break correct programs. Compilers may emit
 * PTX that moves accumulators between virtual registers between a wgmma and its wait, and a result
 * withheld by register name would be lost. Operands in shared memory are read at issue, too.
 *
 * A descriptor describes 16-byte chunks of shared memory: the address of the first, two distances
 * (leading and stride), and a swizzle. A row has as many bytes as the swizzle (16 without one);
 * eight rows are an atom. An operand is K-major (a row runs along k) or MN-major (.trans; along m
 * or n). Swizzles permute chunks by address bits: bits 4-6 ^= bits 7-9, with as many of the three
 * bits as the chunks of a row need. (PTX ISA, "Asynchronous warpgroup-level matrix instructions",
 * and the layouts in CUTLASS's mma_sm90_desc.hpp.)
 */
#include "matrix.h"
#include "../machine/machine.h"

enum { CHUNK = 16, GROUP_WARPS = 4, WARP_ROWS = 16, K_BYTES = 32 };

typedef struct wgmma_operand {
    bool in_registers, mn_major;
    uint32_t descriptor; /* frame offset */
    uint32_t *slots;
} wgmma_operand;

typedef struct wgmma_form {
    matrix_form form; /* of one warp and slab: m is 16, n is the slab's */
    uint32_t slabs;
    uint32_t block_registers; /* of D, per 8 columns */
    wgmma_operand a, b;
    uint32_t *d;
    uint32_t metadata; /* frame offset, of a sparse product */
    uint32_t scale_d;  /* frame offset of the predicate */
    bool scale_d_negated, negated;
} wgmma_form;

/* ---- descriptors ---- */

typedef struct descriptor {
    uint64_t start, leading, stride, row_bytes; /* row_bytes: 16, or the swizzle's 32, 64, 128 */
} descriptor;

static descriptor read_descriptor(uint64_t bits) {
    static const uint8_t row_bytes[4] = {16, 128, 64, 32};
    return (descriptor){.start = (bits & 0x3fff) << 4,
                        .leading = (bits >> 16 & 0x3fff) << 4,
                        .stride = (bits >> 32 & 0x3fff) << 4,
                        .row_bytes = row_bytes[bits >> 62]};
}

/* The address of a chunk. K-major: rows run along m or n, chunks along k; MN-major: the reverse. */
static uint64_t chunk_address(const descriptor *d, bool mn_major, uint32_t row, uint32_t chunk) {
    const uint64_t in_row = d->row_bytes / CHUNK;
    const bool plain = in_row == 1;
    const uint64_t in_atom = row % 8 * d->row_bytes + chunk % in_row * CHUNK;
    const uint64_t atoms_down = row / 8, atoms_across = chunk / in_row;
    /* Without a swizzle, MN-major operands exchange the two distances. */
    const bool exchanged = plain && mn_major;
    const uint64_t down = exchanged ? d->leading : d->stride;
    const uint64_t across = exchanged ? d->stride : d->leading;
    const uint64_t address = d->start + in_atom + atoms_down * down + atoms_across * across;
    return address ^ (address >> 7 & (in_row - 1)) << 4;
}

typedef struct chunk_reader {
    warp *w;
    const insn *i;
    bool reports;
    uint32_t pending;
    lanes_u64 address;
} chunk_reader;

static void report_chunks(chunk_reader *r) {
    if (r->pending)
        observe_access(r->w, r->i, PTX_SHARED, EMU_MATRIX_READ, CHUNK, r->address,
                       (uint32_t)((1ull << r->pending) - 1));
    r->pending = 0;
}

static const unsigned char *read_chunk(chunk_reader *r, uint64_t address) {
    const unsigned char *from = lane_reach(r->w, r->i, PTX_SHARED, 0, address, CHUNK, false);
    if (from && r->reports) {
        r->address[r->pending++] = address;
        if (r->pending == LANES) report_chunks(r);
    }
    return from;
}

/* Stores a chunk's elements of `size` bytes to bits, `step` apart. */
static void spread_chunk(const unsigned char *chunk, uint32_t size, uint32_t *bits, uint32_t step) {
    for (uint32_t k = 0; k < CHUNK / size; k++) {
        uint32_t element = 0;
        memcpy(&element, chunk + k * size, size);
        bits[k * step] = element;
    }
}

/* Reads `count` rows of m (or n) from `first` on, over all of k. Element (mn, k) goes to
 * bits[mn * mn_step + k * k_step]. Core matrices (eight rows of one chunk) are read in turn. */
static bool read_operand(chunk_reader *r, const wgmma_operand *o, matrix_element e, uint32_t first,
                         uint32_t count, uint32_t k, uint32_t mn_step, uint32_t k_step,
                         uint32_t *bits) {
    const descriptor d = read_descriptor(U64(r->w, o->descriptor)[0]);
    const uint32_t size = element_bits(e) / 8, in_chunk = CHUNK / size;
    const uint32_t rows = o->mn_major ? k : count;
    const uint32_t chunks = (o->mn_major ? count : k) / in_chunk;
    const uint32_t row_step = o->mn_major ? k_step : mn_step;
    const uint32_t step = o->mn_major ? mn_step : k_step;
    const uint32_t first_row = o->mn_major ? 0 : first;
    const uint32_t first_chunk = o->mn_major ? first / in_chunk : 0;
    for (uint32_t core = 0; core < rows / 8 * chunks; core++)
        for (uint32_t row = core / chunks * 8, end = row + 8; row < end; row++) {
            const uint32_t chunk = core % chunks;
            const unsigned char *from =
                read_chunk(r, chunk_address(&d, o->mn_major, first_row + row, first_chunk + chunk));
            if (!from) return false;
            spread_chunk(from, size, bits + row * row_step + chunk * in_chunk * step, step);
        }
    report_chunks(r);
    return true;
}

static void convert_operand(matrix_element e, uint32_t *bits, uint32_t count, float *significand,
                            int32_t *exponent, int32_t *integer) {
    if (e == ELEMENT_TF32)
        for (uint32_t k = 0; k < count; k++)
            bits[k] >>= 13;
    convert_elements(e, is_float_element(e), bits, count, significand, exponent, integer);
}

/* ---- execution ---- */

static bool load_a(warp *w, const insn *i, const wgmma_form *f, matrix_tile *t) {
    const uint32_t count = WARP_ROWS * f->form.k;
    if (f->a.in_registers) {
        unpack_a(w, &f->form, f->a.slots, t);
    } else {
        uint32_t bits[MAX_A];
        chunk_reader r = {.w = w, .i = i, .reports = w->block->observer != NULL};
        if (!read_operand(&r, &f->a, f->form.a, w->index % GROUP_WARPS * WARP_ROWS, WARP_ROWS,
                          f->form.k, f->form.k, 1, bits))
            return false;
        convert_operand(f->form.a, bits, count, t->a.significand, t->a_exponent, t->a.integer);
    }
    if (f->negated)
        for (uint32_t k = 0; k < count; k++)
            t->a.significand[k] = -t->a.significand[k];
    return true;
}

/* All four warps use the same B; only the first one reports it to the observer. */
static bool load_b(warp *w, const insn *i, const wgmma_form *f, uint32_t slab, matrix_tile *t) {
    const uint32_t n = f->form.n, k = rows_of_b(&f->form);
    uint32_t bits[MAX_B];
    chunk_reader r = {.w = w, .i = i, .reports = w->block->observer && w->index % GROUP_WARPS == 0};
    if (!read_operand(&r, &f->b, f->form.b, slab * n, n, k, 1, n, bits)) return false;
    convert_operand(f->form.b, bits, n * k, t->b.significand, t->b_exponent, t->b.integer);
    return true;
}

static void load_c(const warp *w, const wgmma_form *f, const uint32_t *slots, bool add,
                   matrix_tile *t) {
    uint32_t bits[MAX_C];
    if (!add) memset(bits, 0, WARP_ROWS * f->form.n * sizeof *bits);
    for (uint32_t block = 0; block < f->form.n / 8 && add; block++, slots += f->block_registers)
        unpack_bits(w, slots, &f->form.c_layout, f->form.c, bits + 8 * block);
    convert_c(&f->form, bits, t);
}

static const insn *exec_wgmma(warp *w, const insn *i) {
    const wgmma_form *f = i->extra;
    const uint32_t group = w->index / GROUP_WARPS * GROUP_WARPS;
    if (w->active != FULL) return fault_partial_warp(w, i);
    if (!block_goes_on(w->block)) return NULL;
    if (group + GROUP_WARPS > w->block->launch->n_warps)
        return warp_fault(w, i, SMK_LAUNCH, w->active,
                          "wgmma needs four warps, the first with an index that is a multiple of "
                          "four; this block has %u warps",
                          w->block->launch->n_warps);
    const bool add = (PRED(w, f->scale_d)[0] != 0) != f->scale_d_negated;
    const uint32_t slab_registers = f->form.n / 8 * f->block_registers;
    matrix_tile t;
    if (!load_a(w, i, f, &t)) return NULL;
    if (f->form.sparse && !read_metadata(&f->form, U32(w, f->metadata), &t))
        return fault_metadata(w, i);
    for (uint32_t slab = 0; slab < f->slabs; slab++) {
        const uint32_t *slots = f->d + slab * slab_registers;
        if (!load_b(w, i, f, slab, &t)) return NULL;
        load_c(w, f, slots, add, &t);
        multiply_tile(&f->form, &t);
        for (uint32_t block = 0; block < f->form.n / 8; block++)
            pack_words(w, slots + block * f->block_registers, &f->form.d_layout,
                       t.d.bits + 8 * block);
    }
    return i + 1;
}

/* ---- decoding ---- */

/* The widest slab of B, of k rows, that divides n: a multiple of 8 columns, at most MAX_N. */
static uint32_t slab_of(uint32_t n, uint32_t k) {
    const uint32_t max = MAX_B / k < MAX_N ? MAX_B / k : MAX_N;
    uint32_t slab = n < max ? n : max;
    while (n % slab)
        slab -= 8;
    return slab;
}

static bool is_wgmma(const matrix_form *f) {
    const uint32_t bytes = f->a == ELEMENT_B1 ? f->k / 8 : f->k * element_bits(f->a) / 8;
    const bool f32 = f->d == ELEMENT_F32, f16_or_f32 = f32 || f->d == ELEMENT_F16;
    if (f->m != 64 || f->n % 8 || f->n < 8 || f->n > 256 || bytes != K_BYTES) return false;
    switch (f->a) {
    case ELEMENT_F16: return f->b == f->a && f16_or_f32;
    case ELEMENT_BF16:
    case ELEMENT_TF32: return f->b == f->a && f32;
    case ELEMENT_E4M3:
    case ELEMENT_E5M2: return (f->b == ELEMENT_E4M3 || f->b == ELEMENT_E5M2) && f16_or_f32;
    case ELEMENT_S8:
    case ELEMENT_U8:
        return (f->b == ELEMENT_S8 || f->b == ELEMENT_U8) && f->d == ELEMENT_S32 &&
               (f->n <= 24 || f->n % 16 == 0);
    case ELEMENT_B1: return f->b == f->a && f->d == ELEMENT_S32 && (f->n <= 24 || f->n % 16 == 0);
    default: return false;
    }
}

/* Whether the operand is an immediate equal to low or high; *is_high tells which. */
static bool immediate_is(const ptx_operand *o, int64_t low, int64_t high, bool *is_high) {
    const int64_t value = (int64_t)o->bits;
    *is_high = value == high;
    return o->kind == PTX_IMMEDIATE && !o->is_float && (value == low || value == high);
}

/* Decodes the operands from index `first` on: scale-d; the signs of A and B (floating point); the
 * transpose flags (16-bit types). */
static bool wgmma_switches(decoder *dc, const ptx_instruction *p, uint32_t first, wgmma_form *f) {
    const ptx_operand *o = p->operands + first;
    const uint32_t n = p->n_operands - first;
    const bool floats = is_float_element(f->form.a);
    const bool may_transpose = f->form.a == ELEMENT_F16 || f->form.a == ELEMENT_BF16;
    const uint32_t transposes = !may_transpose ? 0 : f->a.in_registers ? 1 : 2;
    bool plus_a = true, plus_b = true;
    if (n != 1 + (floats ? 2 : 0) + transposes) return false;
    f->scale_d = decode_source(dc, &o[0], PTX_PRED);
    f->scale_d_negated = o[0].negated;
    if (floats && (!immediate_is(&o[1], -1, 1, &plus_a) || !immediate_is(&o[2], -1, 1, &plus_b)))
        return false;
    f->negated = plus_a != plus_b;
    if (transposes == 2 && !immediate_is(&o[3], 0, 1, &f->a.mn_major)) return false;
    return !transposes || immediate_is(&o[2 + transposes], 0, 1, &f->b.mn_major);
}

/* Takes the shape, the types and what follows from them. *n: columns of the whole product; the
 * form's m and k are then a warp's, and its n a slab's. */
static bool take_wgmma_form(decoder *dc, const ptx_instruction *p, matrix_form *f, uint32_t *n) {
    matrix_element e[4];
    uint32_t shape[3];
    const bool sparse = decode_take(dc, "sp");
    if (!decode_take(dc, "sync") || !decode_take(dc, "aligned") || !take_shape(dc, p, shape) ||
        take_element_types(dc, p, e) != 3 || (sparse && shape[2] % 2))
        return false;
    *f = (matrix_form){.m = shape[0],
                       .n = shape[1],
                       .k = sparse ? shape[2] / 2 : shape[2],
                       .sparse = sparse,
                       .d = e[0],
                       .a = e[1],
                       .b = e[2],
                       .c = e[0]};
    if ((sparse && f->a == ELEMENT_B1) || !is_wgmma(f) || !take_bit_operation(dc, f)) return false;
    if (f->a == ELEMENT_B1 && f->bits != BITS_AND) return false;
    f->saturate = is_integer_element(f->a) && decode_take(dc, "satfinite");
    *n = f->n;
    f->m = WARP_ROWS;
    if (f->a == ELEMENT_B1) f->k /= 32;
    f->n = slab_of(*n, rows_of_b(f));
    return true;
}

/* Decodes D, A and B. */
static bool wgmma_matrices(decoder *dc, const ptx_instruction *p, wgmma_form *f) {
    const matrix_form *form = &f->form;
    const ptx_operand *d = &p->operands[0], *a = &p->operands[1], *b = &p->operands[2];
    f->a.in_registers = a->kind == PTX_VECTOR;
    if (f->a.in_registers)
        f->a.slots = decode_fragment(dc, a, form->a_layout.n_registers, form->a, false);
    else
        f->a.descriptor = decode_source(dc, a, PTX_B64);
    f->b.descriptor = decode_source(dc, b, PTX_B64);
    f->d = decode_fragment(dc, d, f->slabs * form->n / 8 * f->block_registers, form->d, true);
    return f->d && (!f->a.in_registers || f->a.slots);
}

static exec_fn select_product(decoder *dc, const ptx_instruction *p, insn *out) {
    uint32_t n;
    wgmma_form *f = decode_alloc(dc, sizeof *f);
    matrix_form *form = &f->form;
    if (!take_wgmma_form(dc, p, form, &n)) return NULL;
    const uint32_t first_switch = form->sparse ? 5 : 3;
    if (p->n_operands <= first_switch) return NULL;
    f->slabs = n / form->n;
    set_arithmetic(form);
    if (form->a == ELEMENT_E4M3 || form->a == ELEMENT_E5M2)
        form->fraction_bits = form->result_bits = 13;
    form->a_layout = layout_a(WARP_ROWS, form->k, form->a);
    form->c_layout = form->d_layout = layout_c(WARP_ROWS, 8, form->n, form->d);
    f->block_registers = form->d_layout.n_registers;
    if (!wgmma_matrices(dc, p, f)) return NULL;
    if (form->sparse && !decode_metadata(dc, &p->operands[3], form, &f->metadata)) return NULL;
    if (!wgmma_switches(dc, p, first_switch, f)) return NULL;
    out->extra = f;
    return exec_wgmma;
}

/* fence, commit_group, wait_group: products are already complete, so these only notify the
 * observer. */
enum { ORDER_FENCE, ORDER_COMMIT, ORDER_WAIT };

static const insn *exec_wgmma_order(warp *w, const insn *i) {
    if (w->active != FULL) return fault_partial_warp(w, i);
    if (i->flags != ORDER_FENCE)
        observe_event(
            w, (emu_sync){.kind = i->flags == ORDER_WAIT ? EMU_MATRIX_WAIT : EMU_MATRIX_COMMIT,
                          .ptx = i->ptx,
                          .lanes = FULL,
                          .object = (uint32_t)i->imm});
    return i + 1;
}

static exec_fn select_wgmma(decoder *dc, const ptx_instruction *p, insn *out) {
    if (decode_take(dc, "mma_async")) return select_product(dc, p, out);
    if (!decode_take(dc, "sync") || !decode_take(dc, "aligned")) return NULL;
    const bool waits = decode_take(dc, "wait_group"), commits = decode_take(dc, "commit_group");
    if (!waits && !commits && !decode_take(dc, "fence")) return NULL;
    if (p->n_operands != waits || (waits && p->operands[0].kind != PTX_IMMEDIATE)) return NULL;
    out->flags = waits ? ORDER_WAIT : commits ? ORDER_COMMIT : ORDER_FENCE;
    out->imm = waits ? (int64_t)p->operands[0].bits : 0;
    return exec_wgmma_order;
}
