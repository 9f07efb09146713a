/* How ptxas loads and stores the fragments of wmma, read from machine code for sm_90 (CUDA 13.0).
 *
 * It goes by blocks of 8 lines in memory, whether they are rows or columns; what comes the wrong way
 * round, it transposes between registers.
 *
 *   A, B of 16 bits in .shared     LDSM, up to four blocks of 8 lines of 16 bytes at once
 *   A, B of 8 bits in .shared      LDSM, two blocks, if lines run along k
 *   16 bits otherwise, C and D     a block at a time, 4 bytes a lane
 *   C and D of 32 and 64 bits      a block at a time; a lane's two neighbours along n (of m8n32 along m)
 *                                  together, if they are neighbours in memory too
 *
 * Anything else goes register by register, as the fragments of matrix_layout.c have it.
 */
#include "wmma_requests.h"

#include "../base/lanes.h"
#include "../machine/machine.h"

enum { BLOCK_LINES = 8, ROW_BYTES = 16, WORD = 4 };

typedef struct block_place {
    uint64_t at; /* of the block's first line */
    uint64_t pitch;
} block_place;

static void report_words(const warp *w, const insn *i, block_place b) {
    lanes_u64 address;
    for (uint32_t l = 0; l < LANES; l++)
        address[l] = b.at + l / 4 * b.pitch + l % 4 * WORD;
    observe_access(w, i, (ptx_space)i->space, (emu_operation)i->operation, WORD, address, FULL);
}

static void report_pairs(const warp *w, const insn *i, const wmma_tile *t, block_place b) {
    const uint32_t bytes = t->element_bytes;
    for (uint32_t which = 0; which < (t->pairs_in_line ? 1 : 2); which++) {
        lanes_u64 address;
        for (uint32_t l = 0; l < LANES; l++) {
            const uint32_t other = l / 4, along = l % 4 * 2 + which;
            address[l] = t->pairs_in_line ? b.at + other * b.pitch + along * bytes
                                          : b.at + along * b.pitch + other * bytes;
        }
        observe_access(w, i, (ptx_space)i->space, (emu_operation)i->operation,
                       t->pairs_in_line ? 2 * bytes : bytes, address, FULL);
    }
}

/* `rows` addresses so far; a full set, or the last, is a request. */
static uint32_t report_rows(const warp *w, const insn *i, block_place b, uint32_t rows,
                            uint32_t most, bool last, lanes_u64 address) {
    for (uint32_t line = 0; line < BLOCK_LINES; line++)
        address[rows++] = b.at + line * b.pitch;
    if (rows < most && !last) return rows;
    observe_access(w, i, (ptx_space)i->space, EMU_LDMATRIX, ROW_BYTES, address,
                   (uint32_t)((1ull << rows) - 1));
    return 0;
}

void wmma_report(const warp *w, const insn *i, const wmma_tile *t, uint64_t base, uint64_t pitch) {
    const uint32_t block_bytes = t->way == WMMA_PAIRS ? 8 * t->element_bytes : ROW_BYTES;
    const uint32_t most = t->element_bytes == 1 ? 2 * BLOCK_LINES : 4 * BLOCK_LINES;
    lanes_u64 address = {0};
    uint32_t rows = 0;
    for (uint32_t line = 0; line < t->lines; line += BLOCK_LINES)
        for (uint32_t byte = 0; byte < t->line_bytes; byte += block_bytes) {
            const block_place b = {base + line * pitch + byte, pitch};
            const bool last = line + BLOCK_LINES >= t->lines && byte + block_bytes >= t->line_bytes;
            if (t->way == WMMA_ROWS)
                rows = report_rows(w, i, b, rows, most, last, address);
            else if (t->way == WMMA_WORDS)
                report_words(w, i, b);
            else
                report_pairs(w, i, t, b);
        }
}
