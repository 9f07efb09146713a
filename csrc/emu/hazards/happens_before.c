/* Barriers, and the test whether an epoch is ordered before a thread; see happens_before.h. */
#include "happens_before.h"

#include <stdlib.h>
#include <string.h>

#include "vector_clock.h"

/* barrier.cluster has a clock per cluster, at its first member, for what the whole cluster
 * acquires; and one per block, for what only its own threads do: after a .relaxed arrival, what a
 * fence of .cta scope releases. In `completed` the latter ones come after the former ones. */
enum { CLUSTER_BARRIER_IN_BLOCK = N_BARRIERS, N_BARRIER_CLOCKS };

/* ---- creation, and a new block ---- */

bool hb_init(happens_before *hb, const launch *l, bool fine_grained, bool sequential) {
    const uint32_t threads = l->block[0] * l->block[1] * l->block[2], n = l->group_blocks;
    *hb = (happens_before){.time = 1,
                           .n_members = n,
                           .cluster_blocks = l->cluster_blocks,
                           .n_threads = n > 1 ? n * l->n_warps * LANES : threads,
                           .n_warps = n * l->n_warps,
                           .fine_grained = fine_grained,
                           .sequential = sequential,
                           .min_end_floor = ~0u};
    hb->end_floors = calloc(hb->n_threads, sizeof *hb->end_floors);
    if (!hb->end_floors) return false;
    if (fine_grained) {
        hb->warp_floor = calloc(hb->n_warps, sizeof *hb->warp_floor);
        hb->lane_clocks = calloc(hb->n_warps, sizeof *hb->lane_clocks);
        hb->clocks = calloc(hb->n_threads, sizeof(vector_clock *));
        hb->barriers = calloc((size_t)n * N_BARRIER_CLOCKS, sizeof(vector_clock *));
        hb->completed = calloc(2 * (size_t)n, sizeof(vector_clock *));
        if (!hb->warp_floor || !hb->lane_clocks || !hb->clocks || !hb->barriers || !hb->completed ||
            !release_acquire_init(hb) || !proxy_fences_init(hb))
            return false;
    }
    return !sequential || acquisitions_init(hb, l->n_groups);
}

static void drop_clocks(happens_before *hb, vector_clock **clocks, size_t n) {
    for (size_t k = 0; clocks && k < n; k++) {
        clock_unref(hb, clocks[k]);
        clocks[k] = NULL;
    }
}

static void free_clocks(happens_before *hb) {
    drop_clocks(hb, hb->clocks, hb->n_threads);
}

static void drop_barriers(happens_before *hb) {
    drop_clocks(hb, hb->barriers, (size_t)hb->n_members * N_BARRIER_CLOCKS);
    drop_clocks(hb, hb->completed, 2 * (size_t)hb->n_members);
}

void hb_free(happens_before *hb) {
    free_clocks(hb);
    drop_barriers(hb);
    release_acquire_free(hb);
    proxy_fences_clear(hb);
    free(hb->proxy_fences);
    acquisitions_free(hb);
    free(hb->warp_floor);
    free(hb->lane_clocks);
    free(hb->end_floors);
    free(hb->clocks);
    free(hb->barriers);
    free(hb->completed);
    free(hb->turns);
}

bool hb_begin_block(happens_before *hb, uint64_t block) {
    const bool restarts = hb->time > TIME_IN_FLIGHT / 2;
    if (restarts) {
        hb->time = 0;
        hb->n_turns = 0;
        proxy_fences_clear(hb);
        if (hb->warp_floor) memset(hb->warp_floor, 0, hb->n_warps * sizeof *hb->warp_floor);
        if (hb->lane_clocks) memset(hb->lane_clocks, 0, hb->n_warps * sizeof *hb->lane_clocks);
    }
    hb->block = block;
    hb->begin = hb->floor = ++hb->time;
    if (hb->min_end_floor != ~0u) memset(hb->end_floors, 0, hb->n_threads * sizeof *hb->end_floors);
    hb->min_end_floor = ~0u;
    if (hb->fine_grained) {
        free_clocks(hb);
        release_acquire_begin_block(hb);
        drop_barriers(hb);
    }
    if (hb->sequential) acquisitions_begin_block(hb);
    return !restarts;
}

/* ---- blocks that run in turns ---- */

void hb_switch(happens_before *hb, uint32_t member) {
    if (hb->n_turns == hb->turns_capacity) {
        const size_t capacity = hb->turns_capacity ? 2 * hb->turns_capacity : 64;
        hb_turn *larger = realloc(hb->turns, capacity * sizeof *larger);
        if (!larger) {
            hb->out_of_memory = true;
            return;
        }
        hb->turns = larger;
        hb->turns_capacity = capacity;
    }
    hb->member = member;
    hb->first = member * (hb->n_threads / hb->n_members);
    hb->turns[hb->n_turns++] = (hb_turn){++hb->time, member};
}

uint32_t hb_member_of(const happens_before *hb, epoch e) {
    const uint32_t time = epoch_time(e);
    if (!hb->n_turns || time >= hb->turns[hb->n_turns - 1].time) return hb->member;
    size_t low = 0, high = hb->n_turns;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (hb->turns[middle].time <= time)
            low = middle;
        else
            high = middle;
    }
    return hb->turns[low].member;
}

uint32_t hb_thread_of(const happens_before *hb, epoch e) {
    if (hb->n_members == 1) return epoch_thread(e);
    return hb_member_of(hb, e) * (hb->n_threads / hb->n_members) + epoch_thread(e);
}

hb_scope hb_scope_between(const happens_before *hb, epoch e) {
    if (epoch_time(e) < hb->begin) return SCOPE_GPU;
    const uint32_t other = hb->n_members > 1 ? hb_member_of(hb, e) : hb->member;
    if (other == hb->member) return SCOPE_CTA;
    const uint32_t size = hb->cluster_blocks;
    return other / size == hb->member / size ? SCOPE_CLUSTER : SCOPE_GPU;
}

/* ---- the test ---- */

/* Of an access that is older than the last barrier: whether its thread took part in a barrier after
 * it. */
static bool is_before_end(const happens_before *hb, uint32_t time, uint32_t by, uint32_t thread) {
    const uint32_t end = hb->end_floors[by];
    return !end || time < end || by == thread;
}

bool hb_ordered(const happens_before *hb, uint32_t time, uint32_t by, uint32_t thread) {
    if (time < hb->floor) return time < hb->min_end_floor || is_before_end(hb, time, by, thread);
    if (time == TIME_IN_FLIGHT) return false;
    if (by == thread) return true;
    if (!hb->fine_grained) return false;
    const uint32_t warp = thread / LANES;
    if (by / LANES == warp &&
        (time < hb->warp_floor[warp] || time < hb->lane_clocks[warp][thread % LANES][by % LANES]))
        return true;
    return hb->clocks[thread] && time < hb->clocks[thread]->times[by];
}

bool hb_before(const happens_before *hb, epoch e, uint32_t thread) {
    const uint32_t time = epoch_time(e), by = hb_thread_of(hb, e);
    thread += hb->first;
    if (time < hb->begin) return hb->sequential && acquisitions_before(hb, e, thread);
    if (by == thread && time >= hb->floor && time != TIME_IN_FLIGHT)
        return epoch_kind(e) != SEVERAL_STRONG || hb->fine_grained;
    return hb_ordered(hb, time, by, thread);
}

vector_clock *hb_block_clock(happens_before *hb) {
    const uint32_t n = hb->n_threads / hb->n_members;
    vector_clock *all = NULL, *last = NULL;
    for (uint32_t t = hb->first; t < hb->first + n; t++) {
        if (hb->clocks[t] != last) clock_join(hb, &all, hb->clocks[t]);
        last = hb->clocks[t];
    }
    return all;
}

bool hb_covers(const happens_before *hb, const vector_clock *c, epoch e) {
    return c && epoch_time(e) < c->times[hb_thread_of(hb, e)];
}

/* ---- barriers ---- */

void hb_exit(happens_before *hb, uint32_t warp, uint32_t lanes, uint32_t last_access) {
    if (last_access < hb->floor || hb->n_members > 1) return;
    for (; lanes; lanes &= lanes - 1)
        hb->end_floors[warp * LANES + (uint32_t)__builtin_ctz(lanes)] = hb->floor;
    hb->min_end_floor = hb->floor < hb->min_end_floor ? hb->floor : hb->min_end_floor;
}

void hb_barrier_all(happens_before *hb) {
    if (hb->n_members > 1) return; /* the other blocks go on: hb_depart has ordered these threads */
    hb->floor = ++hb->time;
    if (hb->fine_grained) free_clocks(hb);
}

void hb_sync_lanes(happens_before *hb, uint32_t warp, uint32_t lanes) {
    warp += hb->first / LANES;
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

/* The first block of the running block's cluster. */
static uint32_t first_of_cluster(const happens_before *hb) {
    return hb->member - hb->member % hb->cluster_blocks;
}

/* The clock of a barrier of the running block. */
static vector_clock **barrier_clock(const happens_before *hb, uint32_t number) {
    const uint32_t member = number == CLUSTER_BARRIER ? first_of_cluster(hb) : hb->member;
    return &hb->barriers[(size_t)member * N_BARRIER_CLOCKS + number];
}

/* A relaxed arrival at barrier.cluster. */
static void arrive_relaxed(happens_before *hb, uint32_t thread) {
    static const uint32_t clock_of[] = {[REACH_BLOCK] = CLUSTER_BARRIER_IN_BLOCK,
                                        [REACH_CLUSTER] = CLUSTER_BARRIER};
    for (int reach = REACH_BLOCK; reach <= REACH_CLUSTER; reach++) {
        vector_clock *by_fence = release_by_fence(hb, thread, reach);
        clock_join(hb, barrier_clock(hb, clock_of[reach]), by_fence);
        clock_unref(hb, by_fence);
    }
}

void hb_arrive(happens_before *hb, uint32_t barrier, uint32_t warp, uint32_t lanes, bool relaxed) {
    vector_clock **released = barrier_clock(hb, barrier), *last = NULL;
    ++hb->time;
    for (; lanes; lanes &= lanes - 1) {
        const uint32_t thread = hb->first + warp * LANES + (uint32_t)__builtin_ctz(lanes);
        if (relaxed) {
            arrive_relaxed(hb, thread);
            continue;
        }
        const bool joined = last && hb->clocks[thread] == last;
        (joined ? clock_join_own : clock_join_thread)(hb, released, thread);
        last = hb->clocks[thread];
    }
}

/* These lanes acquire a clock. Lanes that share one still do afterwards: *before and *after are the
 * clocks of the lane before. */
static void acquire_lanes(happens_before *hb, uint32_t warp, uint32_t lanes, vector_clock *released,
                          vector_clock **before, vector_clock **after) {
    for (uint32_t todo = lanes; todo; todo &= todo - 1) {
        vector_clock **c = &hb->clocks[warp * LANES + (uint32_t)__builtin_ctz(todo)];
        if (!*after || *c != *before) {
            clock_unref(hb, *after);
            clock_unref(hb, *before);
            *before = clock_ref(*c);
            *after = clock_copy(hb, *before);
            if (!*after) return;
            clock_join_times(*after, released);
        }
        clock_unref(hb, *c);
        *c = clock_ref(*after);
    }
}

void hb_depart(happens_before *hb, uint32_t barrier, const uint32_t *waited) {
    vector_clock **at = barrier_clock(hb, barrier), *const released = *at;
    vector_clock *before = NULL, *after = NULL;
    const uint32_t first = hb->first / LANES, n = hb->n_warps / hb->n_members;
    ++hb->time;
    for (uint32_t warp = 0; released && warp < n; warp++)
        acquire_lanes(hb, first + warp, waited[warp], released, &before, &after);
    clock_unref(hb, after);
    clock_unref(hb, before);
    clock_unref(hb, released);
    *at = NULL;
}

static void complete_clock(happens_before *hb, vector_clock **released, vector_clock **completed) {
    if (!*released) return; /* the cluster's other blocks, and phases that release nothing */
    clock_unref(hb, *completed);
    *completed = *released;
    *released = NULL;
}

void hb_cluster_complete(happens_before *hb) {
    ++hb->time;
    complete_clock(hb, barrier_clock(hb, CLUSTER_BARRIER), &hb->completed[first_of_cluster(hb)]);
    complete_clock(hb, barrier_clock(hb, CLUSTER_BARRIER_IN_BLOCK),
                   &hb->completed[hb->n_members + hb->member]);
}

void hb_cluster_wait(happens_before *hb, uint32_t warp, uint32_t lanes) {
    vector_clock *const completed[] = {hb->completed[first_of_cluster(hb)],
                                       hb->completed[hb->n_members + hb->member]};
    ++hb->time;
    for (int k = 0; k < 2; k++) {
        vector_clock *before = NULL, *after = NULL;
        if (completed[k])
            acquire_lanes(hb, hb->first / LANES + warp, lanes, completed[k], &before, &after);
        clock_unref(hb, after);
        clock_unref(hb, before);
    }
}
