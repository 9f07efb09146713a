/* Barriers, and the test whether an epoch is ordered before a thread; see happens_before.h. */
#include "happens_before.h"

#include <stdlib.h>
#include <string.h>

#include "vector_clock.h"

/* ---- creation, and a new block ---- */

bool hb_init(happens_before *hb, const launch *l, bool fine_grained, bool sequential) {
    *hb = (happens_before){.time = 1,
                           .n_threads = l->block[0] * l->block[1] * l->block[2],
                           .n_warps = l->n_warps,
                           .fine_grained = fine_grained,
                           .sequential = sequential,
                           .min_end_floor = ~0u};
    hb->end_floors = calloc(hb->n_threads, sizeof *hb->end_floors);
    if (!hb->end_floors) return false;
    if (fine_grained) {
        hb->lane_clocks = calloc(hb->n_warps, sizeof *hb->lane_clocks);
        hb->clocks = calloc(hb->n_threads, sizeof(vector_clock *));
        if (!hb->lane_clocks || !hb->clocks || !release_acquire_init(hb)) return false;
    }
    return !sequential || acquisitions_init(hb, l->n_blocks);
}

static void free_clocks(happens_before *hb) {
    for (uint32_t t = 0; hb->clocks && t < hb->n_threads; t++) {
        clock_unref(hb, hb->clocks[t]);
        hb->clocks[t] = NULL;
    }
}

void hb_free(happens_before *hb) {
    free_clocks(hb);
    for (int k = 0; k < N_BARRIERS; k++)
        clock_unref(hb, hb->barriers[k]);
    release_acquire_free(hb);
    acquisitions_free(hb);
    free(hb->lane_clocks);
    free(hb->end_floors);
    free(hb->clocks);
}

bool hb_begin_block(happens_before *hb, uint64_t block) {
    const bool restarts = hb->time > TIME_IN_FLIGHT / 2;
    if (restarts) {
        hb->time = 0;
        memset(hb->warp_floor, 0, sizeof hb->warp_floor);
        if (hb->lane_clocks) memset(hb->lane_clocks, 0, hb->n_warps * sizeof *hb->lane_clocks);
    }
    hb->block = block;
    hb->begin = hb->floor = ++hb->time;
    if (hb->min_end_floor != ~0u) memset(hb->end_floors, 0, hb->n_threads * sizeof *hb->end_floors);
    hb->min_end_floor = ~0u;
    if (hb->fine_grained) {
        free_clocks(hb);
        release_acquire_begin_block(hb);
        for (int k = 0; k < N_BARRIERS; k++) {
            clock_unref(hb, hb->barriers[k]);
            hb->barriers[k] = NULL;
        }
    }
    if (hb->sequential) acquisitions_begin_block(hb);
    return !restarts;
}

/* ---- the test ---- */

/* Of an access that is older than the last barrier: whether its thread took part in a barrier after
 * it. */
static bool is_before_end(const happens_before *hb, epoch e, uint32_t thread) {
    const uint32_t end = hb->end_floors[epoch_thread(e)];
    return !end || epoch_time(e) < end || epoch_thread(e) == thread;
}

bool hb_before(const happens_before *hb, epoch e, uint32_t thread) {
    const uint32_t time = epoch_time(e), other = epoch_thread(e);
    if (time < hb->begin) return hb->sequential && acquisitions_before(hb, e, thread);
    if (time < hb->floor) return time < hb->min_end_floor || is_before_end(hb, e, thread);
    if (time == TIME_IN_FLIGHT) return false;
    if (other == thread) return epoch_kind(e) != SEVERAL_STRONG || hb->fine_grained;
    if (!hb->fine_grained) return false;
    const uint32_t warp = thread / LANES;
    if (other / LANES == warp && (time < hb->warp_floor[warp] ||
                                  time < hb->lane_clocks[warp][thread % LANES][other % LANES]))
        return true;
    return hb->clocks[thread] && time < hb->clocks[thread]->times[other];
}

/* ---- barriers ---- */

void hb_exit(happens_before *hb, uint32_t warp, uint32_t lanes, uint32_t last_access) {
    if (last_access < hb->floor) return;
    for (; lanes; lanes &= lanes - 1)
        hb->end_floors[warp * LANES + (uint32_t)__builtin_ctz(lanes)] = hb->floor;
    hb->min_end_floor = hb->floor < hb->min_end_floor ? hb->floor : hb->min_end_floor;
}

void hb_barrier_all(happens_before *hb) {
    hb->floor = ++hb->time;
    if (hb->fine_grained) free_clocks(hb);
}

void hb_sync_lanes(happens_before *hb, uint32_t warp, uint32_t lanes) {
    const uint32_t left = hb->n_threads - warp * LANES;
    const uint32_t all = left >= LANES ? FULL : (1u << left) - 1;
    const uint32_t now = ++hb->time;
    vector_clock *joined = NULL, *last = NULL;
    bool differs = false;
    for (uint32_t todo = lanes; todo; todo &= todo - 1) {
        vector_clock *c = hb->clocks[warp * LANES + (uint32_t)__builtin_ctz(todo)];
        differs |= todo != lanes && c != last;
        last = c;
    }
    if (lanes == all)
        hb->warp_floor[warp] = now;
    else
        for (uint32_t a = lanes; a; a &= a - 1)
            for (uint32_t peer = 0; peer < LANES; peer++) {
                /* All lanes get the maximum of their clocks. */
                uint32_t max = lanes >> peer & 1 ? now : 0;
                for (uint32_t b = lanes; b; b &= b - 1) {
                    const uint32_t time = hb->lane_clocks[warp][__builtin_ctz(b)][peer];
                    max = time > max ? time : max;
                }
                hb->lane_clocks[warp][__builtin_ctz(a)][peer] = max;
            }
    if (!differs) return;
    for (uint32_t todo = lanes; todo; todo &= todo - 1)
        clock_join(hb, &joined, hb->clocks[warp * LANES + (uint32_t)__builtin_ctz(todo)]);
    for (uint32_t todo = lanes; todo; todo &= todo - 1) {
        vector_clock **c = &hb->clocks[warp * LANES + (uint32_t)__builtin_ctz(todo)];
        clock_unref(hb, *c);
        *c = clock_ref(joined);
    }
    clock_unref(hb, joined);
}

void hb_arrive(happens_before *hb, uint32_t barrier, uint32_t warp, uint32_t lanes, bool relaxed) {
    ++hb->time;
    for (; lanes; lanes &= lanes - 1) {
        const uint32_t thread = warp * LANES + (uint32_t)__builtin_ctz(lanes);
        if (!relaxed) {
            clock_join_thread(hb, &hb->barriers[barrier], thread);
            continue;
        }
        vector_clock *released = release_by_fence(hb, thread, REACH_BLOCK);
        clock_join(hb, &hb->barriers[barrier], released);
        clock_unref(hb, released);
    }
}

void hb_depart(happens_before *hb, uint32_t barrier, const uint32_t *waited) {
    vector_clock *const released_clock = hb->barriers[barrier];
    ++hb->time;
    for (uint32_t warp = 0; released_clock && warp < hb->n_warps; warp++) {
        vector_clock *before = NULL, *after = NULL;
        for (uint32_t todo = waited[warp]; todo; todo &= todo - 1) {
            vector_clock **c = &hb->clocks[warp * LANES + (uint32_t)__builtin_ctz(todo)];
            if (!after || *c != before) {
                clock_unref(hb, after);
                clock_unref(hb, before);
                before = clock_ref(*c);
                after = clock_copy(hb, before);
                if (!after) break;
                clock_join_times(after, released_clock);
            }
            clock_unref(hb, *c);
            *c = clock_ref(after);
        }
        clock_unref(hb, after);
        clock_unref(hb, before);
    }
    clock_unref(hb, released_clock);
    hb->barriers[barrier] = NULL;
}
