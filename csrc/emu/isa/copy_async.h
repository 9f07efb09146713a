/* cp.async copies in flight; see copy_async.c. */
#ifndef EMU_COPY_ASYNC_H
#define EMU_COPY_ASYNC_H

#include "../machine/machine.h"

/* One cp.async of a warp: its source has been read; a wait that covers its group writes the
 * destination. */
typedef struct pending_copy {
    uint32_t lanes;
    uint32_t bytes;
    uint64_t clock;  /* the warp's clock at issue */
    lanes_u32 group; /* number of groups that each lane had committed before */
    unsigned char *to[LANES];
    unsigned char data[LANES][16];
} pending_copy;

/* A warp's copies in flight, and how many groups each lane has committed. */
typedef struct copy_queue {
    lanes_u32 committed;
    lanes_u32 bulk_committed; /* bulk groups (bulk.c) */
    pending_copy *pending;    /* ring buffer; the oldest is at `first` */
    uint32_t first, n, capacity;
} copy_queue;

/* Completes the lane's copies that were issued up to `clock`. Reports them as done by
 * `instruction`. */
void copy_async_complete(warp *w, const insn *instruction, int lane, uint64_t clock);

/* The queues of all warps of the block. copy_queues_new returns false if out of memory; call
 * copy_queues_free even then. */
bool copy_queues_new(block *b);
void copy_queues_clear(block *b);
void copy_queues_free(block *b);

/* cp.async, its groups and waits; copies.c dispatches to it. */
exec_fn copy_async_select(decoder *dc, const ptx_instruction *p, insn *out);

#endif
