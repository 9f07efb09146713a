/* Bulk copies in flight, and what waits for them; see bulk.c. */
#ifndef EMU_BULK_H
#define EMU_BULK_H

#include "tile.h"

typedef enum bulk_kind {
    BULK_LOAD,   /* into shared memory; completes bytes of a barrier's transaction count */
    BULK_STORE,  /* out of shared memory; belongs to a group of its thread */
    BULK_ARRIVAL /* of a thread at a barrier, once the cp.async that it has issued are complete */
} bulk_kind;

typedef struct bulk_copy {
    struct bulk_copy *next; /* in the block, in order of issue */
    bulk_kind kind;
    warp *warp; /* whose lane issued it ... */
    const insn *by;
    int lane;
    uint64_t clock;   /* ... when */
    uint64_t barrier; /* offset in shared memory */
    uint32_t group;   /* how many groups the thread had committed before */
    uint64_t shared;  /* offset */
    uint32_t bytes;
    tile tile;
    atomic_change change; /* of a store, or of a load that reduces into shared memory */
    bool captured;        /* a store's source has been read */
    unsigned char image[];
} bulk_copy;

/* ---- for instructions ---- */

/* Reads the box (a load), or notes it (a store), and queues it. False after a fault. */
bool bulk_issue(warp *w, const insn *i, int lane, const bulk_copy *what);
/* Whether the lane may use this much shared memory from there, chunk by chunk. */
bool bulk_reach_shared(warp *w, const insn *i, int lane, const tile *t, uint64_t shared,
                       uint32_t bytes, bool write);
exec_fn bulk_select_group(decoder *dc, const ptx_instruction *p, insn *out);

/* The modifiers and operands that all of them share: .L2::cache_hint and its policy, the last operand. Returns
 * the number of operands that are left. */
uint32_t bulk_take_hints(decoder *dc, const ptx_instruction *p);

/* ---- for mbarrier.c ---- */

/* What is on its way to the barrier. */
void bulk_outstanding(const block *b, uint64_t barrier, uint32_t *arrivals, int64_t *bytes);
/* The oldest copy or arrival on its way to the barrier happens now. */
bool bulk_land_one(block *b, uint64_t barrier, uint32_t *arrivals, int64_t *bytes);

/* ---- for block.c ---- */

/* The block ends: stores that nobody waited for happen now; the rest is dropped. */
void bulk_end_block(block *b);
void bulk_clear(block *b);

/* ---- the instructions behind cp.async (copy_async.c dispatches) ---- */

exec_fn bulk_select(decoder *dc, const ptx_instruction *p, insn *out);          /* cp.async.bulk */
exec_fn bulk_reduce_select(decoder *dc, const ptx_instruction *p, insn *out);   /* cp.reduce... */
exec_fn bulk_prefetch_select(decoder *dc, const ptx_instruction *p, insn *out); /* ... .prefetch */
exec_fn bulk_select_arrival(decoder *dc, const ptx_instruction *p,
                            insn *out); /* cp.async.mbarrier */

/* ... of tensors, in tensor_copy.c */
exec_fn tensor_copy_select(decoder *dc, const ptx_instruction *p, insn *out);
exec_fn tensor_reduce_select(decoder *dc, const ptx_instruction *p, insn *out);
exec_fn tensor_prefetch_select(decoder *dc, const ptx_instruction *p, insn *out);

#endif
