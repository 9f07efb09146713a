/* Parts of happens_before.h that only its own files use: vector clocks, and releases that later
 * blocks can acquire (between_blocks.c). */
#ifndef EMU_HAZARDS_VECTOR_CLOCK_H
#define EMU_HAZARDS_VECTOR_CLOCK_H

#include "happens_before.h"

/* ---- vector_clock.c ---- */

/* Counts memory against MAX_HB_BYTES. False: out of memory. */
bool hb_charge(happens_before *hb, uint64_t bytes);

static inline vector_clock *clock_ref(vector_clock *c) {
    if (c) c->references++;
    return c;
}
/* A copy with one reference, the caller's. NULL stands for all zeros. NULL: out of memory. */
vector_clock *clock_copy(happens_before *hb, const vector_clock *c);
/* The maximum by thread; NULL stands for all zeros. */
void clock_join_times(vector_clock *c, const vector_clock *other);
/* Replaces *c by the maximum, which may be `other` itself. */
void clock_join(happens_before *hb, vector_clock **c, vector_clock *other);
/* The thread, counted in the group, of an epoch. */
uint32_t hb_thread_of(const happens_before *hb, epoch e);
/* hb_before for an access of the running group, with threads counted in the group. */
bool hb_ordered(const happens_before *hb, uint32_t time, uint32_t by, uint32_t thread);

/* Joins the thread's complete clock into *c: its vector clock, its lane clocks, its own time. */
void clock_join_thread(happens_before *hb, vector_clock **c, uint32_t thread);
/* The same without its vector clock. */
void clock_join_own(happens_before *hb, vector_clock **c, uint32_t thread);

/* ---- release_acquire.c ---- */

bool release_acquire_init(happens_before *hb);
/* Forgets the block's fences and what its threads observed. */
void release_acquire_begin_block(happens_before *hb);
void release_acquire_free(happens_before *hb);

/* What the thread's last fence releases; NULL: no fence, or out of memory. */
vector_clock *release_by_fence(happens_before *hb, uint32_t thread, int reach);

/* The thread runs a fence: what it knows. */
void record_fence(happens_before *hb, fence_record *f, uint32_t thread, bool sc);

/* ---- proxy_fences.c ---- */

bool proxy_fences_init(happens_before *hb);
/* Forgets all fences. */
void proxy_fences_clear(happens_before *hb);

/* ---- between_blocks.c ---- */

typedef struct block_release block_release;

bool acquisitions_init(happens_before *hb, uint64_t n_blocks);
void acquisitions_begin_block(happens_before *hb);
void acquisitions_free(happens_before *hb);
/* Records a release for later blocks, of what `covered` covers and of what these threads have
 * acquired by then; `previous` (may be NULL) comes with it. Returns the release, or `previous` if
 * out of memory. */
block_release *acquisitions_release(happens_before *hb, vector_clock *covered,
                                    block_release *previous);
/* The thread acquires a release, and all that come with it. NULL: none. */
void acquisitions_acquire(happens_before *hb, block_release *release, uint32_t thread);
/* The thread has observed a release, and acquires it at a later fence. */
void acquisitions_observe(happens_before *hb, block_release *release, int way, uint32_t thread);
/* A fence: acquires what was observed; if sc, also what fence.sc released. */
void acquisitions_fence(happens_before *hb, uint32_t thread, bool sc);
/* Whether an access of an earlier block is ordered before the thread's next access. */
bool acquisitions_before(const happens_before *hb, epoch e, uint32_t thread);

#endif
