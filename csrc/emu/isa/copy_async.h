/* cp.async's copies in flight; see copy_async.c. */
#ifndef EMU_COPY_ASYNC_H
#define EMU_COPY_ASYNC_H

#include "../machine/machine.h"

/* A copy that cp.async has begun: read already, written when a wait covers its group. */
typedef struct pending_copy {
    uint32_t lanes;
    uint32_t bytes;
    uint64_t clock;  /* of the warp, when it was issued */
    lanes_u32 group; /* how many groups the lane had committed before */
    unsigned char *to[LANES];
    unsigned char data[LANES][16];
} pending_copy;

/* A warp's. */
typedef struct copy_queue {
    lanes_u32 committed;
    lanes_u32 bulk_committed; /* groups of bulk copies (bulk.c) */
    pending_copy *pending;    /* a ring, oldest at first */
    uint32_t first, n, capacity;
} copy_queue;

/* The lane's copies that were issued up to then are complete. */
void copy_async_complete(warp *w, const insn *by, int lane, uint64_t clock);

/* Of all warps of the block; new: false if out of memory, and free is due all the same. */
bool copy_queues_new(block *b);
void copy_queues_clear(block *b);
void copy_queues_free(block *b);

#endif
