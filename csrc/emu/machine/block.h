/* A block: its warps, barriers and memory, on one host thread. */
#ifndef EMU_BLOCK_H
#define EMU_BLOCK_H

#include "../base/guarded.h"
#include "launch.h"
#include "warp_split.h"

enum {
    MAX_LOCAL_BYTES = 512 * 1024, /* per thread, as on hardware */
    MAX_CALL_DEPTH = 256,
    N_NAMED_BARRIERS = 16,
    CLUSTER_BARRIER = N_NAMED_BARRIERS, /* barrier.cluster: of a cluster that is this block */
    N_BARRIERS
};

/* Fills memory that is uninitialized: as 16, 32 or 64 bits a NaN in every floating-point type, so that
 * a kernel that reads it shows. */
enum { POISON = 0x7ff7 };

typedef struct barrier {
    lanes_u32 arrived;  /* by warp */
    uint32_t complete;  /* warps of which all living lanes have arrived */
    uint32_t wanted;    /* warps; 0: all that live */
    uint32_t n_true;    /* bar.red: threads whose predicate holds ... */
    uint32_t n_threads; /* ... of these */
} barrier;

/* One host thread's: the block it works on, and memory that serves block after block. */
typedef struct block {
    launch *launch;
    void *observer_state;
    const struct observe_functions *observing;
    uint32_t index[3];
    uint64_t linear;
    warp *warps;
    region *regions; /* the launch's, with this block's shared memory */
    unsigned char *shared;
    barrier barriers[N_BARRIERS];
    uint32_t used_barriers; /* bits */
    uint32_t living_warps;
    guarded_arena registers; /* of all frames */
    frame **frames;          /* the entry's, by warp */
    frame *all_frames;
    frame *free_frames;
    warp_split *free_splits;
    struct slab *slabs;
    struct bulk_copy *bulk, **bulk_end; /* bulk copies in flight, and where the next is put */
    uint64_t fruitless; /* rounds in which all warps only failed to wait for mbarriers */
    print_buffer printed;
    uint64_t charged;     /* bytes, of MAX_BLOCK_BYTES */
    void (*idle)(void *); /* polls, if this host thread is the caller's; else NULL */
    void *idle_arg;
} block;

block *block_new(launch *l, void *observer_state);
void block_free(block *b);
/* Runs one block to its end; `idle` is called now and then and stops the launch by setting stop. */
void block_run(block *b, uint64_t linear, void (*idle)(void *), void *idle_arg);

/* Polls. False: the launch has been stopped. Called between slices, and by instructions of which a slice
 * could take seconds. */
bool block_goes_on(const block *b);

/* Whether the block's threads may make it keep so many more bytes; if not, the launch has failed. */
bool block_charge(block *b, uint64_t bytes);

/* Lanes of w exited: threads that waited for them may go on. (barrier.c, collective.c) */
void barrier_lanes_left(warp *w);
void collective_lanes_left(warp *w);

#endif
