/* ldmatrix, stmatrix, movmatrix: 8x8 matrices of 16-bit elements between shared memory and
 * fragments.
 *
 * A matrix is eight rows of 16 bytes, whose addresses come from eight lanes. In a fragment's
 * register lane l holds row l / 4, columns 2 (l % 4) and 2 (l % 4) + 1. With .trans the matrix is
 * transposed on the way. All 32 lanes must be active.
 */
#include "../machine/machine.h"

#include <string.h>

#include "memory.h"
#include "../observe/observer.h"

enum { ROWS = 8, ROW_BYTES = 16 };

/* insn.flags: the number of 8x8 matrices in bits 0-2, and .trans. */
enum { LDMATRIX_COUNT = 7, LDMATRIX_TRANSPOSED = 8 };

typedef uint16_t matrix[ROWS][ROWS];

static bool check_whole_warp(warp *w, const insn *i) {
    if (w->active == FULL) return true;
    warp_fault(w, i, SMK_LAUNCH, w->active,
               "only %d of the warp's 32 lanes are active (mask 0x%08x); %s needs all of them: "
               "keep it out of divergent code, and launch blocks of a multiple of 32 threads",
               __builtin_popcount(w->active), w->active, i->ptx->opcode);
    return false;
}

static void to_fragment(const matrix from, bool transposed, uint32_t *d) {
    for (int l = 0; l < LANES; l++) {
        const int row = l / 4, column = 2 * (l % 4);
        const uint32_t low = transposed ? from[column][row] : from[row][column];
        const uint32_t high = transposed ? from[column + 1][row] : from[row][column + 1];
        d[l] = low | high << 16;
    }
}

static void from_fragment(const uint32_t *a, bool transposed, matrix to) {
    for (int l = 0; l < LANES; l++) {
        const int row = l / 4, column = 2 * (l % 4);
        *(transposed ? &to[column][row] : &to[row][column]) = (uint16_t)a[l];
        *(transposed ? &to[column + 1][row] : &to[row][column + 1]) = (uint16_t)(a[l] >> 16);
    }
}

/* Bounds-checks the rows and returns their host pointers; false after a fault. */
static bool row_pointers(warp *w, const insn *i, unsigned char *rows[LANES], bool write) {
    const int n = ROWS * (i->flags & LDMATRIX_COUNT);
    for (int lane = 0; lane < n; lane++) {
        const uint64_t address = lane_address(w, i, lane);
        rows[lane] = lane_reach(w, i, (ptx_space)i->space, lane, address, ROW_BYTES, write);
        if (!rows[lane]) return false;
    }
    return true;
}

static const insn *exec_ldmatrix(warp *w, const insn *i) {
    unsigned char *rows[LANES];
    if (!check_whole_warp(w, i) || !row_pointers(w, i, rows, false)) return NULL;
    /* Read all rows first: a destination may share the address's slot. */
    matrix loaded[4];
    const int n = i->flags & LDMATRIX_COUNT;
    for (int row = 0; row < ROWS * n; row++)
        memcpy(loaded[row / ROWS][row % ROWS], rows[row], ROW_BYTES);
    for (int k = 0; k < n; k++)
        to_fragment(loaded[k], i->flags & LDMATRIX_TRANSPOSED, U32(w, i->list[k]));
    return i + 1;
}

static const insn *exec_stmatrix(warp *w, const insn *i) {
    unsigned char *rows[LANES];
    if (!check_whole_warp(w, i) || !row_pointers(w, i, rows, true)) return NULL;
    for (int k = 0; k < (i->flags & LDMATRIX_COUNT); k++) {
        matrix stored;
        from_fragment(U32(w, i->list[k]), i->flags & LDMATRIX_TRANSPOSED, stored);
        for (int row = 0; row < ROWS; row++)
            memcpy(rows[ROWS * k + row], stored[row], ROW_BYTES);
    }
    return i + 1;
}

/* Lanes 8j to 8j + 7 hold the addresses of matrix j's rows. Addresses of further lanes are not
 * used. */
static const insn *exec_observed_rows(warp *w, const insn *i) {
    const int lanes = ROWS * (i->flags & LDMATRIX_COUNT);
    lanes_u64 address;
    observe_addresses(w, i, address);
    const insn *next = i->unobserved(w, i);
    if (next)
        observe_access(w, i, (ptx_space)i->space, (emu_operation)i->operation, ROW_BYTES, address,
                       (uint32_t)((1ull << lanes) - 1));
    return next;
}

static const insn *exec_movmatrix(warp *w, const insn *i) {
    matrix moved;
    if (!check_whole_warp(w, i)) return NULL;
    from_fragment(U32(w, i->a), false, moved);
    to_fragment(moved, true, U32(w, i->d));
    return i + 1;
}

/* ---- decoding ---- */

static exec_fn select_access(decoder *dc, const ptx_instruction *p, insn *out, bool load) {
    if (!decode_take(dc, "sync") || !decode_take(dc, "aligned") || !decode_take(dc, "m8n8") ||
        !decode_take(dc, "b16") || p->n_operands != 2)
        return NULL;
    const uint32_t n = decode_take(dc, "x4") ? 4 : decode_take(dc, "x2") ? 2 : 1;
    if (n == 1 && !decode_take(dc, "x1")) return NULL;
    const ptx_operand *fragment = &p->operands[load ? 0 : 1];
    const ptx_operand *items = fragment->kind == PTX_VECTOR ? fragment->items : fragment;
    decoded_address at;
    out->space = (uint8_t)decode_take_space(dc);
    if (out->space != PTX_SHARED && out->space != PTX_GENERIC) return NULL;
    if ((fragment->kind == PTX_VECTOR ? fragment->n_items : 1) != n ||
        !decode_address(dc, &p->operands[load ? 1 : 0], &at))
        return NULL;
    uint32_t *list = decode_alloc(dc, n * sizeof *list);
    for (uint32_t k = 0; k < n; k++)
        list[k] = load ? decode_destination(dc, &items[k], PTX_B32)
                       : decode_source(dc, &items[k], PTX_B32);
    out->a = at.slot, out->wide = at.wide, out->imm = at.imm;
    out->flags = (uint8_t)(n | (decode_take(dc, "trans") ? LDMATRIX_TRANSPOSED : 0));
    out->width = ROW_BYTES;
    out->count = 1;
    out->operation = load ? EMU_LDMATRIX : EMU_STMATRIX;
    out->list = list;
    out->unobserved = load ? exec_ldmatrix : exec_stmatrix;
    return exec_observed_rows;
}

static exec_fn select_ldmatrix(decoder *dc, const ptx_instruction *p, insn *out) {
    return select_access(dc, p, out, true);
}

static exec_fn select_stmatrix(decoder *dc, const ptx_instruction *p, insn *out) {
    return select_access(dc, p, out, false);
}

static exec_fn select_movmatrix(decoder *dc, const ptx_instruction *p, insn *out) {
    if (!decode_take(dc, "sync") || !decode_take(dc, "aligned") || !decode_take(dc, "m8n8") ||
        !decode_take(dc, "trans") || !decode_take(dc, "b16") || p->n_operands != 2)
        return NULL;
    out->d = decode_destination(dc, &p->operands[0], PTX_B32);
    out->a = decode_source(dc, &p->operands[1], PTX_B32);
    return exec_movmatrix;
}

opcode_table ldmatrix_opcodes = {
    [PTX_OP_ldmatrix] = select_ldmatrix,
    [PTX_OP_stmatrix] = select_stmatrix,
    [PTX_OP_movmatrix] = select_movmatrix,
};
