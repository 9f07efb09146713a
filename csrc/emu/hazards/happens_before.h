/* What happens before what, inside the block at work and between blocks.
 *
 * Time counts the block's synchronisations, and goes on from block to block. An access is marked with
 * the time at which it was made. A thread knows, of every other thread, up to which time that one's
 * accesses are ordered before its own next one: two accesses race if neither is, whatever the schedule
 * of this run was.
 *
 * Nearly always all threads have the same vector_clock, that of the last barrier, and one number (`floor`)
 * says it. Kernels that synchronise more finely (order_is_fine) have beside it what a warp knows of its own
 * lanes, and, for named barriers and flags, a vector of times, by thread, that lanes share.
 */
#ifndef EMU_HAZARDS_ORDER_H
#define EMU_HAZARDS_ORDER_H

#include "../machine/machine.h"

/* Who touched a granule last, and when: time, site of the instruction, thread, access_kind. */
typedef uint64_t epoch;

enum access_kind { WEAK, STRONG, ATOMIC, SEVERAL_STRONG /* strong ones of several threads */ };
enum {
    EPOCH_THREAD_AT = 2,
    EPOCH_SITE_AT = 12,
    EPOCH_TIME_AT = 32,
    EPOCH_THREADS = MAX_THREADS - 1,
    EPOCH_SITES = (1 << (EPOCH_TIME_AT - EPOCH_SITE_AT)) - 1 /* 0: a site that is not known */
};
enum { MAX_HB_BYTES = 1 << 30 };
#define TIME_IN_FLIGHT 0xffffffffu /* a cp.async that is not complete */

static inline epoch epoch_make(uint32_t time, uint32_t site, uint32_t thread,
                               enum access_kind access_kind) {
    return (uint64_t)time << EPOCH_TIME_AT | (uint64_t)site << EPOCH_SITE_AT |
           thread << EPOCH_THREAD_AT | access_kind;
}
static inline uint32_t epoch_time(epoch m) {
    return (uint32_t)(m >> EPOCH_TIME_AT);
}
static inline uint32_t epoch_site(epoch m) {
    return (uint32_t)(m >> EPOCH_SITE_AT) & EPOCH_SITES;
}
static inline uint32_t epoch_thread(epoch m) {
    return (uint32_t)(m >> EPOCH_THREAD_AT) & EPOCH_THREADS;
}
static inline enum access_kind epoch_kind(epoch m) {
    return (enum access_kind)(m & 3);
}

/* Accesses that PTX orders by themselves, so that two of them are no race. */
static inline bool is_strong_pair(epoch a, epoch b) {
    return epoch_kind(a) != WEAK && epoch_kind(b) != WEAK;
}

/* Times by thread; shared, so never changed once a second holder has it. */
typedef struct vector_clock {
    uint32_t holders, n;
    uint32_t times[];
} vector_clock;

/* What somebody has released, for who acquires it. */
typedef struct released {
    uint64_t object;            /* 0: an empty place of the table */
    vector_clock *own;          /* of the releasing block's threads, ... */
    uint64_t block;             /* ... whose number this is */
    struct release_note *notes; /* for other blocks: the last of them */
} released;

typedef struct happens_before {
    uint32_t time, begin, floor;
    uint32_t n_threads, n_warps;
    uint64_t block; /* linear number of the block at work */
    bool fine, sequential;
    bool out_of_memory;
    uint64_t bytes; /* of vector_clock and notes, of MAX_HB_BYTES */

    /* The rest only where synchronisation is fine. */
    uint32_t warp_floor[MAX_WARPS];
    uint32_t (*peers)[LANES][LANES];    /* by warp: of lane, by lane */
    vector_clock **clocks;              /* by thread, NULL: nothing beyond the floor */
    vector_clock *barriers[N_BARRIERS]; /* what has arrived */
    uint32_t *fenced; /* by thread: when it had its last fence; 0: none in this block */
    bool any_fence;
    released *table; /* open addressing */
    size_t n_table, table_size;
    vector_clock **acquired; /* by block number: what this block has seen of it */
    uint64_t n_acquired;
    struct release_note **direct; /* the notes that said so */
    size_t n_direct, direct_room;
    struct release_note *all_notes;
    uint32_t *begins; /* by block number: its first time (blocks run in ascending order) */
    uint64_t n_begins;
} happens_before;

bool hb_init(happens_before *hb, const launch *l, bool fine, bool sequential);
void hb_free(happens_before *hb);
/* False: time has run out, epochs of before must go. */
bool hb_begin_block(happens_before *hb, uint64_t block);

/* Whether all of the epoch's access is ordered before the thread's next one. The epoch is of this block,
 * or, in a sequential run, of any. */
bool hb_before(const happens_before *hb, epoch m, uint32_t thread);

/* Everybody in the block has waited for everybody. */
void hb_barrier_all(happens_before *hb);
/* These lanes of a warp have waited for each other. */
void hb_sync_lanes(happens_before *hb, uint32_t warp, uint32_t lanes);
/* Barriers of some: arrivals release, those who waited acquire. */
void hb_arrive(happens_before *hb, uint32_t barrier, uint32_t warp, uint32_t lanes);
void hb_depart(happens_before *hb, uint32_t barrier, const uint32_t *waited);
/* Fences, and strong accesses to a place in memory, which order what fences have covered. */
void hb_fence(happens_before *hb, uint32_t warp, uint32_t lanes);
void hb_release(happens_before *hb, uint64_t object, uint32_t thread);
void hb_acquire(happens_before *hb, uint64_t object, uint32_t thread);

#endif
