/* What happens before what, inside the block at work and between blocks.
 *
 * Time counts the block's synchronisations, and goes on from block to block. An access is marked with
 * the time at which it was made. A thread knows, of every other thread, up to which time that one's
 * accesses are ordered before its own next one: two accesses race if neither is, whatever the schedule
 * of this run was.
 *
 * Nearly always all threads have the same knowledge, that of the last barrier, and one number (`floor`)
 * says it. Kernels that synchronise more finely (order_is_fine) have beside it what a warp knows of its own
 * lanes, and, for named barriers and flags, a vector of times, by thread, that lanes share.
 */
#ifndef EMU_HAZARDS_ORDER_H
#define EMU_HAZARDS_ORDER_H

#include "block.h"

/* Who touched a granule last, and when: time, site of the instruction, thread, strength. */
typedef uint64_t mark;

enum strength { WEAK, STRONG, ATOMIC, SEVERAL /* strong ones of several threads */ };
enum {
    MARK_THREAD_AT = 2,
    MARK_SITE_AT = 12,
    MARK_TIME_AT = 32,
    MARK_THREADS = MAX_THREADS - 1,
    MARK_SITES = (1 << (MARK_TIME_AT - MARK_SITE_AT)) - 1 /* 0: a site that is not known */
};
enum { MAX_ORDER_BYTES = 1 << 30 };
#define TIME_FLYING 0xffffffffu /* a cp.async that is not complete */

static inline mark mark_make(uint32_t time, uint32_t site, uint32_t thread,
                             enum strength strength) {
    return (uint64_t)time << MARK_TIME_AT | (uint64_t)site << MARK_SITE_AT |
           thread << MARK_THREAD_AT | strength;
}
static inline uint32_t mark_time(mark m) {
    return (uint32_t)(m >> MARK_TIME_AT);
}
static inline uint32_t mark_site(mark m) {
    return (uint32_t)(m >> MARK_SITE_AT) & MARK_SITES;
}
static inline uint32_t mark_thread(mark m) {
    return (uint32_t)(m >> MARK_THREAD_AT) & MARK_THREADS;
}
static inline enum strength mark_strength(mark m) {
    return (enum strength)(m & 3);
}

/* Times by thread; shared, so never changed once a second holder has it. */
typedef struct knowledge {
    uint32_t holders, n;
    uint32_t seen[];
} knowledge;

/* What somebody has released, for who acquires it. */
typedef struct released {
    uint64_t object;            /* 0: an empty place of the table */
    knowledge *own;             /* of the releasing block's threads, ... */
    uint64_t block;             /* ... whose number this is */
    struct release_note *notes; /* for other blocks: the last of them */
} released;

typedef struct order {
    uint32_t time, begin, floor;
    uint32_t n_threads, n_warps;
    uint64_t block; /* linear number of the block at work */
    bool fine, sequential;
    bool out_of_memory;
    uint64_t bytes; /* of knowledge and notes, of MAX_ORDER_BYTES */

    /* The rest only where synchronisation is fine. */
    uint32_t warp_floor[MAX_WARPS];
    uint32_t (*peers)[LANES][LANES]; /* by warp: of lane, by lane */
    knowledge **known;               /* by thread, NULL: nothing beyond the floor */
    knowledge *barriers[N_BARRIERS]; /* what has arrived */
    uint32_t *fenced; /* by thread: when it had its last fence; 0: none in this block */
    bool any_fence;
    released *table; /* open addressing */
    size_t n_table, table_size;
    knowledge **acquired; /* by block number: what this block has seen of it */
    uint64_t n_acquired;
    struct release_note **direct; /* the notes that said so */
    size_t n_direct, direct_room;
    struct release_note *all_notes;
    uint32_t *begins; /* by block number: its first time (blocks run in ascending order) */
    uint64_t n_begins;
} order;

bool order_init(order *o, const launch *l, bool fine, bool sequential);
void order_free(order *o);
/* False: time has run out, marks of before must go. */
bool order_begin_block(order *o, uint64_t block);

/* Whether all of the mark's access is ordered before the thread's next one. The mark is of this block,
 * or, in a sequential run, of any. */
bool order_before(const order *o, mark m, uint32_t thread);

/* Everybody in the block has waited for everybody. */
void order_all(order *o);
/* These lanes of a warp have waited for each other. */
void order_lanes(order *o, uint32_t warp, uint32_t lanes);
/* Barriers of some: arrivals release, those who waited acquire. */
void order_arrive(order *o, uint32_t barrier, uint32_t warp, uint32_t lanes);
void order_depart(order *o, uint32_t barrier, const uint32_t *waited);
/* Fences, and strong accesses to a place in memory, which order what fences have covered. */
void order_fence(order *o, uint32_t warp, uint32_t lanes);
void order_release(order *o, uint64_t object, uint32_t thread);
void order_acquire(order *o, uint64_t object, uint32_t thread);

#endif
