/* printf in kernels: what a launch's blocks print, put together in the order of blocks. */
#ifndef EMU_PRINT_H
#define EMU_PRINT_H

#include "insn.h"

struct block;
struct smk_text;

/* What the block at work has printed. */
typedef struct print_buffer {
    char *bytes;
    size_t size, room, lost;
} print_buffer;

/* What the blocks that have ended printed; the launch's lock guards it. */
typedef struct print_log {
    struct print_piece *pieces;
    size_t n, bytes, lost;
} print_log;

/* The lane's vprintf(format, arguments), both of them generic addresses. *result is what the kernel gets
 * back: the number of arguments, -1 without a format. False after warp_fault. */
bool print_lane(warp *w, const insn *i, int lane, uint64_t format, uint64_t arguments,
                int32_t *result);

/* The block has ended: its text goes to the launch. */
void print_end_block(struct block *b);

/* The launch has ended: its text goes behind `out`'s (NULL: nobody wants it). */
void print_end_launch(print_log *log, struct smk_text *out);

#endif
