/* A block: its warps, barriers and memory. One host thread runs it (block_group.h). */
#ifndef EMU_BLOCK_H
#define EMU_BLOCK_H

#include "../base/guarded.h"
#include "launch.h"
#include "warp_split.h"

enum {
    MAX_LOCAL_BYTES = 512 * 1024, /* per thread, as on a GPU */
    MAX_CALL_DEPTH = 256,
    N_NAMED_BARRIERS = 16,
    CLUSTER_BARRIER = N_NAMED_BARRIERS, /* barrier.cluster: the block's part of it */
    N_BARRIERS
};

/* Fills uninitialized memory, so that reading it shows: it is a NaN in every 16-, 32- or 64-bit
 * floating-point type. */
enum { POISON = 0x7ff7 };

typedef struct barrier {
    lanes_u32 arrived;       /* per warp: the lanes that have arrived */
    uint32_t complete_warps; /* warps all of whose live lanes have arrived */
    uint32_t expected_warps; /* 0: all live warps */
    uint32_t n_true;         /* bar.red: number of threads whose predicate holds */
    uint32_t n_threads;      /* bar.red: number of threads that have arrived */
} barrier;

/* A block that a host thread is running. Its memory is reused for one block after the other. */
typedef struct block {
    launch *launch;
    const program *program;       /* of the entry */
    const emu_observer *observer; /* the launch's; NULL: the block is not observed */
    void *observer_state;
    const struct observe_functions *observing;
    uint32_t index[3];
    uint64_t linear;
    uint32_t member;       /* of its group (block_group.h), counted from 0 */
    uint32_t rank;         /* in its cluster */
    struct block **peers;  /* the cluster's blocks, by rank */
    uint64_t window;       /* address of its shared memory (spaces.h) */
    bool ended;            /* all its threads have exited ... */
    const insn *last_exit; /* ... the last of them here */
    uint32_t last_exit_thread;
    warp *warps;
    region *regions; /* the launch's, with this block's shared memory */
    unsigned char *shared;
    barrier barriers[N_BARRIERS];
    uint32_t used_barriers; /* those with arrivals, as bits */
    uint32_t live_warps;
    uint32_t free_registers; /* of its pool, per thread of one warp (registers.c) */
    uint64_t time;           /* of %clock and %globaltimer, up to the end of the last slice */
    guarded_arena registers; /* of all frames */
    frame **frames;          /* the entry's frame of each warp */
    frame *all_frames;
    frame *free_frames;
    warp_split *free_splits;
    struct slab *slabs;
    struct bulk_copy *bulk, **bulk_end; /* list of bulk copies in flight, and its end */
    print_buffer printed;
    uint64_t charged;        /* bytes, of MAX_BLOCK_BYTES */
    uint64_t *group_charged; /* the same of its group, of MAX_GROUP_GIB */
    uint64_t unpolled;       /* work since the last poll (block_group.c) */
    void (*poll)(void *);    /* stops the launch when it has to end */
    void *poll_arg;
} block;

/* That member of every group that it runs in. observer_state NULL: it is not observed. Returns NULL
 * if out of memory. */
block *block_new(launch *l, uint32_t member, uint64_t *group_charged, void *observer_state);
void block_free(block *b);
/* Whether it runs. NULL: none. */
static inline bool block_is_live(const block *b) {
    return b && !b->ended;
}
/* Makes it a block of the grid that has run nothing yet. False: out of memory. */
bool block_begin(block *b, uint64_t linear);
/* All its threads have exited, or the launch has been stopped. */
void block_end(block *b);

/* Polls. False: the launch has been stopped. Called between slices, and by instructions so slow
 * that a slice of them could take seconds. */
bool block_goes_on(const block *b);

/* Charges host memory to the block's limit (MAX_BLOCK_BYTES). False: the limit is reached, and
 * the launch has failed. */
bool block_charge(block *b, uint64_t bytes);
void block_uncharge(block *b, uint64_t bytes);

/* Lanes of w have exited: completes the barriers and collectives that waited only for them
 * (barrier.c, collective.c). */
void barrier_lanes_left(warp *w);
void collective_lanes_left(warp *w);

#endif
