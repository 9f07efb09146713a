/* Blocks that are resident together: a cluster, all blocks of a cooperative launch, or all blocks
 * of a launch in which some may wait for others. One host thread runs them in turns, so that each
 * can wait for the others, and nothing needs a lock. A block of any other launch is a group of its
 * own.
 *
 * In a launch of the third kind (launch.one_by_one) a block begins when the one before has ended,
 * as elsewhere. Only if those that have begun go on for long, as one that waits does, the next
 * begins beside them. */
#ifndef EMU_BLOCK_GROUP_H
#define EMU_BLOCK_GROUP_H

#include "block.h"

typedef struct block_group {
    launch *launch;
    uint32_t n_blocks, begun;
    uint64_t since;       /* instructions since a block has begun or ended */
    uint64_t patience;    /* so many, and the next block begins */
    void *observer_state; /* of the blocks */
    uint64_t charged;     /* bytes of host memory (block_charge) */
    uint64_t idle_rounds; /* consecutive rounds over all warps with nothing but failed try_waits */
    /* Cluster by cluster, by rank. NULL: it has not begun, or another has its memory. */
    block *blocks[];
} block_group;

/* NULL: out of memory. */
block_group *block_group_new(launch *l, void *observer_state);
void block_group_free(block_group *g);
/* Whether the launch's observer is to see one of its groups. */
bool block_group_is_observed(const launch *l, uint64_t number);
/* Runs one of the launch's groups to its end. `poll` is called between slices, and sets the
 * launch's `stop` if it has to end. */
void block_group_run(block_group *g, uint64_t number, void (*poll)(void *), void *poll_arg);

/* No thread of the group can go on: fails the launch, and says who waits for what (deadlock.c). */
void fail_deadlock(const block_group *g);

#endif
