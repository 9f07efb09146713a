/* printf in kernels: the output of a launch, in block order. */
#ifndef EMU_PRINT_H
#define EMU_PRINT_H

#include "insn.h"

struct block;
struct smk_text;

/* Output of the running block. */
typedef struct print_buffer {
    char *bytes;
    size_t size, room, lost;
} print_buffer;

/* Output of the finished blocks; guarded by the launch's lock. */
typedef struct print_log {
    struct print_chunk *chunks;
    size_t n, bytes, lost;
} print_log;

/* One lane's vprintf(format, arguments), both generic addresses. *result is vprintf's return
 * value: the number of arguments, or -1 if format is NULL. False: warp_fault has been called. */
bool print_lane(warp *w, const insn *i, int lane, uint64_t format, uint64_t arguments,
                int32_t *result);

/* The block has ended: moves its output to the launch. */
void print_end_block(struct block *b);

/* The launch has ended: appends its output to `out` (NULL: discards it). */
void print_end_launch(print_log *log, struct smk_text *out);

#endif
