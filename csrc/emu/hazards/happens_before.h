/* The happens-before relation, within the running block and between blocks.
 *
 * Epochs and vector clocks come from FastTrack (Flanagan and Freund, PLDI 2009). An epoch stands
 * for one access. A thread's vector clock says, for every other thread, up to which time that
 * thread's accesses are ordered before its own next access. Two accesses, at least one of them a
 * write, race if the epoch of the earlier one is not below the vector clock of the later one's
 * thread. So the detector finds races whatever the schedule of this run was.
 *
 * Unlike FastTrack, there is one logical clock per host thread rather than per GPU thread. It
 * counts the synchronisations of the running block, and continues from block to block.
 *
 * Most kernels synchronise with __syncthreads only. Then all threads have the same vector clock,
 * and one number represents it: `floor`, the time of the last barrier of the whole block. Kernels
 * with finer synchronisation (`fine_grained`) have two more: clocks between the lanes of a warp for
 * __syncwarp, and vector clocks by thread for named barriers, mbarriers and flags. Lanes may share
 * a vector clock.
 */
#ifndef EMU_HAZARDS_HAPPENS_BEFORE_H
#define EMU_HAZARDS_HAPPENS_BEFORE_H

#include "../machine/machine.h"

/* An access: its time, site (which instruction), thread and access kind. FastTrack's epoch is a
 * time and a thread; reports need the site, is_strong_pair the kind. 0: no access. */
typedef uint64_t epoch;

enum access_kind {
    WEAK,
    STRONG,
    ATOMIC,
    SEVERAL_STRONG /* strong or atomic writes by several threads since the last barrier */
};
enum {
    EPOCH_THREAD_SHIFT = 2,
    EPOCH_SITE_SHIFT = 12,
    EPOCH_TIME_SHIFT = 32,
    EPOCH_THREAD_MASK = MAX_THREADS - 1,
    EPOCH_SITE_MASK = (1 << (EPOCH_TIME_SHIFT - EPOCH_SITE_SHIFT)) - 1 /* site 0: unknown */
};
enum { MAX_HB_BYTES = 1 << 30 };
/* The time of an access by a cp.async, a bulk copy or wgmma that has not completed. */
#define TIME_IN_FLIGHT 0xffffffffu

static inline epoch epoch_make(uint32_t time, uint32_t site, uint32_t thread,
                               enum access_kind access_kind) {
    return (uint64_t)time << EPOCH_TIME_SHIFT | (uint64_t)site << EPOCH_SITE_SHIFT |
           thread << EPOCH_THREAD_SHIFT | access_kind;
}
static inline uint32_t epoch_time(epoch e) {
    return (uint32_t)(e >> EPOCH_TIME_SHIFT);
}
static inline uint32_t epoch_site(epoch e) {
    return (uint32_t)(e >> EPOCH_SITE_SHIFT) & EPOCH_SITE_MASK;
}
static inline uint32_t epoch_thread(epoch e) {
    return (uint32_t)(e >> EPOCH_THREAD_SHIFT) & EPOCH_THREAD_MASK;
}
static inline enum access_kind epoch_kind(epoch e) {
    return (enum access_kind)(e & 3);
}

/* Two strong or atomic accesses do not race with each other in PTX. */
static inline bool is_strong_pair(epoch a, epoch b) {
    return epoch_kind(a) != WEAK && epoch_kind(b) != WEAK;
}

/* Accesses by thread t at times below times[t] are ordered. Reference-counted, and copied before a
 * change if there are other references. */
typedef struct vector_clock {
    uint32_t references, n;
    uint32_t times[];
} vector_clock;

/* What threads have released at an address (mbarrier, flag, atomic); an acquire joins it. */
typedef struct sync_object {
    uint64_t address;                   /* 0: an empty slot of the hash table */
    vector_clock *clock;                /* of the releasing block's threads */
    uint64_t block;                     /* the releasing block */
    struct block_release *last_release; /* for acquires by later blocks */
} sync_object;

typedef struct happens_before {
    uint32_t time;  /* the logical clock */
    uint32_t begin; /* the running block's first time */
    uint32_t floor; /* time of the last barrier of the whole block */
    uint32_t n_threads, n_warps;
    uint64_t block;    /* linear index of the running block */
    bool fine_grained; /* some synchronisation covers less than the block */
    bool sequential;   /* blocks synchronise with each other, so they run one after the other */
    bool out_of_memory;
    uint64_t bytes; /* of vector clocks and releases; at most MAX_HB_BYTES */

    /* If fine_grained: */
    uint32_t warp_floor[MAX_WARPS];        /* time of the last __syncwarp of all lanes */
    uint32_t (*lane_clocks)[LANES][LANES]; /* by warp, lane, other lane: as in a vector clock */
    vector_clock **clocks;                 /* by thread; NULL: nothing beyond the floor */
    vector_clock *barriers[N_BARRIERS];    /* released by arrivals */
    uint32_t *last_fence;                  /* by thread: time; 0: no fence in this block */
    bool any_fence;                        /* in this block */
    sync_object *objects;                  /* hash table with open addressing */
    size_t n_objects, objects_capacity;
    /* If sequential: */
    vector_clock **acquired; /* by block index: what the running block has acquired from it */
    uint64_t n_acquired;
    struct block_release **direct; /* releases that the running block has acquired itself */
    size_t n_direct, direct_capacity;
    struct block_release *all_releases;
    uint32_t *block_begins; /* by block index: its first time; blocks run in ascending order */
    uint64_t n_block_begins;
} happens_before;

bool hb_init(happens_before *hb, const launch *l, bool fine_grained, bool sequential);
void hb_free(happens_before *hb);
/* False: the clock was about to overflow and has restarted, so the caller must clear all epochs. */
bool hb_begin_block(happens_before *hb, uint64_t block);

/* Whether all accesses that the epoch stands for are ordered before the thread's next access. The
 * epoch is of the running block or, if `sequential`, of any block. */
bool hb_before(const happens_before *hb, epoch e, uint32_t thread);

/* A barrier of all live threads of the block. */
void hb_barrier_all(happens_before *hb);
/* A __syncwarp of these lanes. */
void hb_sync_lanes(happens_before *hb, uint32_t warp, uint32_t lanes);
/* A barrier of some threads: arriving releases; completing acquires, for the lanes that waited. */
void hb_arrive(happens_before *hb, uint32_t barrier, uint32_t warp, uint32_t lanes);
void hb_depart(happens_before *hb, uint32_t barrier, const uint32_t *waited);
/* Flags: a release covers the accesses before the thread's last fence. */
void hb_fence(happens_before *hb, uint32_t warp, uint32_t lanes);
void hb_release(happens_before *hb, uint64_t address, uint32_t thread);
void hb_acquire(happens_before *hb, uint64_t address, uint32_t thread);

#endif
