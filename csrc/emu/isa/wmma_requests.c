/* How ptxas loads and stores the fragments of wmma, read from machine code for sm_90 (CUDA 13.0).
 *
 * It processes blocks of 8 lines of memory (rows or columns). Elements in the wrong orientation are
 * transposed between registers.
 *
 *   A, B of 16 bits in .shared     LDSM, up to four blocks of 8 lines of 16 bytes at once
 *   A, B of 8 bits in .shared      LDSM, two blocks, if lines run along k
 *   16 bits otherwise, C and D     one block at a time, 4 bytes per lane
 *   C and D of 32 and 64 bits      one block at a time; a lane's two neighbours along n
 *                                  (m8n32: along m) together, if they are neighbours in memory, too
 *
 * Everything else moves register by register, in the layouts of matrix_layout_template.h.
 */
#include "wmma_requests.h"

#include "../base/lanes.h"
#include "../machine/machine.h"

enum { BLOCK_LINES = 8, ROW_BYTES = 16, WORD = 4 };

typedef struct block_address {
    uint64_t address; /* of the block's first line */
    uint64_t pitch;
} block_address;

static void report_words(const warp *w, const insn *i, block_address b) {
    lanes_u64 address;
    for (uint32_t l = 0; l < LANES; l++)
        address[l] = b.address + l / 4 * b.pitch + l % 4 * WORD;
    observe_access(w, i, (ptx_space)i->space, (emu_operation)i->operation, WORD, address, FULL);
}

static void report_pairs(const warp *w, const insn *i, const wmma_tile *t, block_address b) {
    const uint32_t bytes = t->element_bytes;
    for (uint32_t which = 0; which < (t->pairs_in_line ? 1 : 2); which++) {
        lanes_u64 address;
        for (uint32_t l = 0; l < LANES; l++) {
            const uint32_t line = l / 4, element = l % 4 * 2 + which;
            address[l] = t->pairs_in_line ? b.address + line * b.pitch + element * bytes
                                          : b.address + element * b.pitch + line * bytes;
        }
        observe_access(w, i, (ptx_space)i->space, (emu_operation)i->operation,
                       t->pairs_in_line ? 2 * bytes : bytes, address, FULL);
    }
}

/* Adds the addresses of a block's lines to the `rows` that are pending. A full set, or the last
 * one, is reported as a request. Returns how many are still pending. */
static uint32_t report_rows(const warp *w, const insn *i, block_address b, uint32_t rows,
                            uint32_t max_rows, bool last, lanes_u64 address) {
    for (uint32_t line = 0; line < BLOCK_LINES; line++)
        address[rows++] = b.address + line * b.pitch;
    if (rows < max_rows && !last) return rows;
    observe_access(w, i, (ptx_space)i->space, EMU_LDMATRIX, ROW_BYTES, address,
                   (uint32_t)((1ull << rows) - 1));
    return 0;
}

void wmma_report(const warp *w, const insn *i, const wmma_tile *t, uint64_t base, uint64_t pitch) {
    const uint32_t block_bytes = t->kind == WMMA_PAIRS ? 8 * t->element_bytes : ROW_BYTES;
    const uint32_t max_rows = t->element_bytes == 1 ? 2 * BLOCK_LINES : 4 * BLOCK_LINES;
    lanes_u64 address = {0};
    uint32_t rows = 0;
    for (uint32_t line = 0; line < t->lines; line += BLOCK_LINES)
        for (uint32_t byte = 0; byte < t->line_bytes; byte += block_bytes) {
            const block_address b = {base + line * pitch + byte, pitch};
            const bool last = line + BLOCK_LINES >= t->lines && byte + block_bytes >= t->line_bytes;
            if (t->kind == WMMA_LDMATRIX)
                rows = report_rows(w, i, b, rows, max_rows, last, address);
            else if (t->kind == WMMA_WORDS)
                report_words(w, i, b);
            else
                report_pairs(w, i, t, b);
        }
}
