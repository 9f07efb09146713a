/* Bulk copies in flight, and the instructions that issue, await and complete them; see
 * bulk_queue.c. */
#ifndef EMU_BULK_H
#define EMU_BULK_H

#include "tile.h"

typedef enum bulk_kind {
    BULK_LOAD,   /* into shared memory; its bytes count towards an mbarrier's transaction count */
    BULK_STORE,  /* out of shared memory; belongs to a bulk group of its thread */
    BULK_ARRIVAL /* a thread's arrival at an mbarrier, once its earlier cp.async complete */
} bulk_kind;

typedef struct bulk_copy {
    struct bulk_copy *next; /* the block's next copy, in order of issue */
    bulk_kind kind;
    warp *warp; /* the warp, instruction and lane that issued the copy ... */
    const insn *instruction;
    int lane;
    uint64_t clock;      /* ... and the warp's clock at issue */
    struct block *owner; /* the block whose shared memory it reads or writes; it has its mbarrier */
    uint64_t barrier;    /* the mbarrier's offset in shared memory */
    uint32_t group;      /* number of groups that the thread had committed before */
    uint64_t shared;     /* offset of the copy's bytes in shared memory */
    uint32_t bytes;
    tile tile;
    atomic_reduction reduction; /* of a reducing copy; combine is NULL for plain copies */
    bool source_read;           /* BULK_STORE: data already holds the source's bytes */
    unsigned char data[];
} bulk_copy;

/* ---- for instructions ---- */

/* Adds a copy of `spec` to its owner's queue. NULL after a fault. */
bulk_copy *bulk_append(warp *w, const insn *i, int lane, const bulk_copy *spec);

/* Where the operands of a copy say that it goes. */
typedef struct bulk_place {
    ptx_space space; /* of both addresses */
    uint64_t shared;
    uint64_t barrier; /* of a load */
    bool multicast;   /* of a load: to the same offsets in each ... */
    uint32_t ranks;   /* ... of these blocks of the cluster, as bits */
} bulk_place;

/* Checks the shared memory of a copy and the mbarrier of a load, and sets spec->owner, .shared and
 * .barrier. Of a multicast it takes the first block. False after a fault. */
bool bulk_locate(warp *w, const insn *i, int lane, bulk_place place, bulk_copy *spec);
/* Queues the copy, and a multicast's copies to the other blocks. A load reads its box now, a store
 * at its wait. False after a fault. */
bool bulk_issue(warp *w, const insn *i, int lane, const bulk_place *place, const bulk_copy *spec);
exec_fn bulk_select_group(decoder *dc, const ptx_instruction *p, insn *out);

/* Takes .L2::cache_hint, whose policy is the last operand. Returns the number of the other
 * operands. */
uint32_t bulk_take_hints(decoder *dc, const ptx_instruction *p);

/* ---- for mbarrier.c ---- */

/* The arrivals and bytes that copies in flight will contribute to the mbarrier. */
void bulk_in_flight(const block *b, uint64_t barrier, uint32_t *arrivals, int64_t *bytes);
/* Completes the oldest copy or arrival in flight for the mbarrier; *arrivals and *bytes are its
 * contribution. False if there is none. */
bool bulk_complete_one(block *b, uint64_t barrier, uint32_t *arrivals, int64_t *bytes);

/* ---- for isa.c ---- */

/* End of a block: performs the stores that no wait has covered, and drops everything else. */
void bulk_end_block(block *b);
void bulk_clear(block *b);

/* ---- select functions; copies.c dispatches to them ---- */

/* cp.async.bulk */
exec_fn bulk_select(decoder *dc, const ptx_instruction *p, insn *out);
/* cp.reduce.async.bulk */
exec_fn bulk_reduce_select(decoder *dc, const ptx_instruction *p, insn *out);
/* cp.async.bulk.prefetch */
exec_fn bulk_prefetch_select(decoder *dc, const ptx_instruction *p, insn *out);
/* cp.async.mbarrier.arrive */
exec_fn bulk_select_arrival(decoder *dc, const ptx_instruction *p, insn *out);

/* Tensor copies, in tensor_copy.c. */
exec_fn tensor_copy_select(decoder *dc, const ptx_instruction *p, insn *out);
exec_fn tensor_reduce_select(decoder *dc, const ptx_instruction *p, insn *out);
exec_fn tensor_prefetch_select(decoder *dc, const ptx_instruction *p, insn *out);

#endif
