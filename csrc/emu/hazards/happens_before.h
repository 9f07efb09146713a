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
 *
 * Flags follow the PTX memory model (release_acquire.c). Strong accesses to one address make a
 * chain of observations: a store begins a new one, a read-modify-write continues it. A release
 * pattern in the chain synchronises with a later acquire pattern if the scopes of both include the
 * other's thread.
 *
 * Blocks of a group (machine/block_group.h) run in turns. A vector clock has an entry per thread
 * of all of them, block after block. There is no floor but the group's begin. Each turn of a block
 * has times of its own, so the time of an epoch tells its block.
 */
#ifndef EMU_HAZARDS_HAPPENS_BEFORE_H
#define EMU_HAZARDS_HAPPENS_BEFORE_H

#include "../machine/machine.h"

/* An access: its time, site (which instruction), thread and access kind. FastTrack's epoch is a
 * time and a thread; reports need the site, is_morally_strong both the site and the kind. 0: no
 * access. */
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

/* Accesses by thread t at times below times[t] are ordered. Reference-counted, and copied before a
 * change if there are other references. */
typedef struct vector_clock {
    uint32_t references, n;
    uint32_t times[];
} vector_clock;

/* In ascending order: each includes the threads of the one before. */
typedef enum hb_scope { SCOPE_CTA, SCOPE_CLUSTER, SCOPE_GPU, SCOPE_SYS } hb_scope;

/* The memory ordering of a fence or a strong access. */
typedef struct hb_ordering {
    hb_scope scope;
    bool acquires, releases;
    bool sc; /* of fences: fence.sc */
} hb_ordering;

/* A strong access to a flag, an atomic or an mbarrier. */
typedef struct hb_access {
    uint64_t address;
    uint32_t width, thread;
    hb_ordering ordering;
    hb_scope scope; /* decides which accesses it observes; that of an mbarrier may be wider */
} hb_access;

/* Which threads can synchronise with an operation: those of its block, its cluster, all blocks. */
enum { REACH_BLOCK, REACH_CLUSTER, REACH_DEVICE, N_REACHES };
static inline int hb_reach(hb_scope scope) {
    return scope < SCOPE_GPU ? (int)scope : REACH_DEVICE;
}

/* What releases make visible. A plain release synchronises with any acquire pattern, a release by a
 * fence.sc that another thread ran only with a fence.sc (release_acquire.c). */
enum { BY_RELEASE, BY_FENCE_SC, N_WAYS };

/* What threads of one block of the running group released with one reach; an element of a list. */
typedef struct released {
    struct released *next;
    vector_clock *clock;
    uint32_t member;
    int reach;
} released;

/* A thread's last release operation on an address, of a reach: later strong writes there by the
 * thread belong to it, whatever others write in between. An element of a list. */
typedef struct own_release {
    struct own_release *next;
    uint32_t thread;
    int reach;
    vector_clock *clock;           /* what it released ... */
    struct block_release *release; /* ... to later blocks */
} own_release;

/* Of an address: a counter to which all threads release has no later writes by one of them. */
enum { MOST_OWNED = 24 };

/* The chain of observations of an address, as its next reader finds it. */
typedef struct sync_object {
    uint64_t address;                       /* 0: an empty slot of the hash table */
    uint32_t width;                         /* of the last write */
    hb_scope scope;                         /* of the last write */
    uint64_t block;                         /* group of the last write ... */
    uint32_t member;                        /* ... and the block in it */
    released *released[N_WAYS];             /* by threads of that group */
    struct block_release *releases[N_WAYS]; /* the last one, for later blocks */
    own_release *owned;                     /* by threads of that group, newest first: MOST_OWNED */
} sync_object;

/* A thread's last release fence, and what the thread knew there. */
typedef struct fence_record {
    uint32_t time; /* 0: no fence in this block */
    uint32_t floor, warp_floor, lane_clocks[LANES];
    vector_clock *clock;
    struct {
        uint32_t time, floor;
    } sc[2]; /* the last fence.sc, and the one before it */
} fence_record;

/* From this time on the block runs, until the next turn begins. */
typedef struct hb_turn {
    uint32_t time, member;
} hb_turn;

typedef struct happens_before {
    uint32_t time;               /* the logical clock */
    uint32_t begin;              /* the running block's first time */
    uint32_t floor;              /* time of the last barrier of the whole block */
    uint32_t n_threads, n_warps; /* of all blocks of the group */
    uint64_t block;              /* number of the running group, in the order of their runs */
    uint32_t n_members, cluster_blocks;
    uint32_t member, first; /* the running block, and its first thread */
    hb_turn *turns;         /* if there are several members; in ascending order */
    size_t n_turns, turns_capacity;
    bool fine_grained; /* some synchronisation covers less than the block */
    bool sequential;   /* blocks synchronise with each other, so they run one after the other */
    /* Barriers order nothing that a thread did between its last barrier and its end. By thread: the
     * floor at the thread's end; 0: it is alive, or is known to have done nothing since. */
    uint32_t *end_floors;
    uint32_t min_end_floor; /* of those that are not 0; ~0: all are */
    bool out_of_memory;
    uint64_t bytes; /* of vector clocks and releases; at most MAX_HB_BYTES */

    /* If fine_grained: */
    uint32_t *warp_floor;                  /* by warp: time of the last __syncwarp of all lanes */
    uint32_t (*lane_clocks)[LANES][LANES]; /* by warp, lane, other lane: as in a vector clock */
    vector_clock **clocks;                 /* by thread; NULL: nothing beyond the floor */
    vector_clock **barriers;  /* by member and barrier: released by arrivals (happens_before.c) */
    vector_clock **completed; /* by member: what the last phase of barrier.cluster released */
    fence_record (*fences)[N_REACHES]; /* by thread */
    released *(*observed)[N_WAYS];     /* by thread: read, but not acquired yet */
    struct proxy_fences *proxy_fences; /* by thread */
    bool any_fence, any_fence_sc;      /* in this group */
    bool any_narrow_fence;             /* ... that not all blocks can synchronise with */
    sync_object *objects;              /* hash table with open addressing */
    size_t n_objects, objects_capacity;
    /* If sequential: */
    struct acquisitions *acquisitions; /* of releases by earlier blocks */
    struct block_release *all_releases;
    uint32_t *block_begins; /* by block index: its first time; blocks run in ascending order */
    uint64_t n_block_begins;
} happens_before;

bool hb_init(happens_before *hb, const launch *l, bool fine_grained, bool sequential);
void hb_free(happens_before *hb);
/* False: the clock was about to overflow and has restarted, so the caller must clear all epochs. */
bool hb_begin_block(happens_before *hb, uint64_t block);

/* Another member of the group runs. Threads and warps are those of the running block, in all
 * functions but hb_strong_read and hb_strong_write. */
void hb_switch(happens_before *hb, uint32_t member);
/* The member whose access the epoch is. */
uint32_t hb_member_of(const happens_before *hb, epoch e);
/* The narrowest scope that includes both the running block and the access. */
hb_scope hb_scope_between(const happens_before *hb, epoch e);

/* Whether all accesses that the epoch stands for are ordered before the thread's next access. The
 * epoch is of the running group or, if `sequential`, of any group. */
bool hb_before(const happens_before *hb, epoch e, uint32_t thread);

/* Lanes exit; last_access: when their warp last accessed memory. */
void hb_exit(happens_before *hb, uint32_t warp, uint32_t lanes, uint32_t last_access);
/* A barrier of all live threads of the block; if fine_grained, of all threads. */
void hb_barrier_all(happens_before *hb);
/* A __syncwarp of these lanes. */
void hb_sync_lanes(happens_before *hb, uint32_t warp, uint32_t lanes);
/* A barrier of some threads: arriving releases, and completing acquires, for the lanes that waited.
 * A relaxed arrival releases only what an earlier fence of the thread does. */
void hb_arrive(happens_before *hb, uint32_t barrier, uint32_t warp, uint32_t lanes, bool relaxed);
void hb_depart(happens_before *hb, uint32_t barrier, const uint32_t *waited);
/* barrier.cluster: the phase completes, and lanes that have waited for it acquire what was
 * released. Arrivals are hb_arrive at CLUSTER_BARRIER. */
void hb_cluster_complete(happens_before *hb);
void hb_cluster_wait(happens_before *hb, uint32_t warp, uint32_t lanes);
/* What some thread of the running block knows; NULL: nothing, or out of memory. The caller frees it
 * by clock_unref. */
vector_clock *hb_block_clock(happens_before *hb);
void clock_unref(happens_before *hb, vector_clock *c);
/* Whether another member's access is covered. */
bool hb_covers(const happens_before *hb, const vector_clock *c, epoch e);
/* Flags, atomics and mbarriers. A read-modify-write is a read and then a write. */
void hb_fence(happens_before *hb, uint32_t warp, uint32_t lanes, hb_ordering ordering);
void hb_strong_read(happens_before *hb, const hb_access *access);
void hb_strong_write(happens_before *hb, const hb_access *access, bool read_modify_write);
/* Fences to the asynchronous proxy. */
void hb_proxy_fence(happens_before *hb, uint32_t warp, uint32_t lanes);
/* Whether one makes the write visible to asynchronous operations that the thread issues now. */
bool hb_proxy_fenced(const happens_before *hb, epoch e, uint32_t thread);
/* A weak store ends the chain of observations. */
void hb_weak_write(happens_before *hb, uint64_t address);

/* Whether operations of this scope can synchronise with threads of other blocks. */
static inline bool hb_reaches_other_blocks(hb_scope scope) {
    return scope >= SCOPE_GPU;
}

#endif
