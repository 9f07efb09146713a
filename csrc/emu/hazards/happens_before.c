/* Vector clocks of threads, barriers and objects; see happens_before.h. */
#include "happens_before.h"

#include <stdlib.h>
#include <string.h>

/* A release that later blocks can acquire (if `sequential`). */
struct block_release {
    struct block_release *next;     /* in all_releases */
    struct block_release *to_visit; /* in the work list of acquire_release */
    vector_clock *clock;
    uint64_t block;   /* the releasing block */
    uint64_t visited; /* index of the block that last acquired it, plus 1 */
    /* Releases that come with it: those that its block had acquired, and the previous one on its
     * object. */
    struct block_release **included;
    size_t n_included;
};
typedef struct block_release block_release;

/* ---- vector clocks ---- */

static vector_clock *clock_ref(vector_clock *c) {
    if (c) c->references++;
    return c;
}

static bool charge(happens_before *hb, uint64_t bytes) {
    if (bytes > MAX_HB_BYTES - hb->bytes) hb->out_of_memory = true;
    if (hb->out_of_memory) return false;
    hb->bytes += bytes;
    return true;
}

static uint64_t clock_bytes(const happens_before *hb) {
    return sizeof(vector_clock) + hb->n_threads * sizeof(uint32_t);
}

static void clock_unref(happens_before *hb, vector_clock *c) {
    if (!c || --c->references) return;
    hb->bytes -= clock_bytes(hb);
    free(c);
}

/* A copy with one reference, the caller's. NULL stands for all zeros. */
static vector_clock *clock_copy(happens_before *hb, const vector_clock *c) {
    const uint64_t bytes = clock_bytes(hb);
    vector_clock *fresh = charge(hb, bytes) ? calloc(1, bytes) : NULL;
    if (!fresh) {
        hb->out_of_memory = true;
        return NULL;
    }
    if (c) memcpy(fresh, c, bytes);
    fresh->references = 1;
    fresh->n = hb->n_threads;
    return fresh;
}

/* The maximum by thread; NULL stands for all zeros. */
static void join_times(vector_clock *c, const vector_clock *other) {
    if (!other) return;
    for (uint32_t t = 0; t < c->n; t++)
        c->times[t] = other->times[t] > c->times[t] ? other->times[t] : c->times[t];
}

/* *c as a clock that the caller may change; a copy if there are other references. NULL: out of
 * memory. */
static vector_clock *clock_writable(happens_before *hb, vector_clock **c) {
    if (*c && (*c)->references == 1) return *c;
    vector_clock *fresh = clock_copy(hb, *c);
    if (!fresh) return NULL;
    clock_unref(hb, *c);
    return *c = fresh;
}

static void clock_join(happens_before *hb, vector_clock **c, vector_clock *other) {
    if (!*c)
        *c = clock_ref(other);
    else if (other && clock_writable(hb, c))
        join_times(*c, other);
}

/* ---- creation, and a new block ---- */

bool hb_init(happens_before *hb, const launch *l, bool fine_grained, bool sequential) {
    *hb = (happens_before){.time = 1,
                           .n_threads = l->block[0] * l->block[1] * l->block[2],
                           .n_warps = l->n_warps,
                           .fine_grained = fine_grained,
                           .sequential = sequential};
    if (fine_grained) {
        hb->lane_clocks = calloc(hb->n_warps, sizeof *hb->lane_clocks);
        hb->clocks = calloc(hb->n_threads, sizeof(vector_clock *));
        hb->last_fence = calloc(hb->n_threads, sizeof *hb->last_fence);
        if (!hb->lane_clocks || !hb->clocks || !hb->last_fence) return false;
    }
    if (sequential) {
        hb->n_acquired = l->n_blocks;
        hb->acquired = calloc(l->n_blocks, sizeof(vector_clock *));
        hb->block_begins = calloc(l->n_blocks + 1, sizeof *hb->block_begins);
        if (!hb->acquired || !hb->block_begins) return false;
    }
    return true;
}

static void free_clocks(happens_before *hb) {
    for (uint32_t t = 0; hb->clocks && t < hb->n_threads; t++) {
        clock_unref(hb, hb->clocks[t]);
        hb->clocks[t] = NULL;
    }
}

static void drop_acquired(happens_before *hb) {
    for (uint64_t k = 0; hb->n_direct && k < hb->n_acquired; k++) {
        clock_unref(hb, hb->acquired[k]);
        hb->acquired[k] = NULL;
    }
    hb->n_direct = 0;
}

void hb_free(happens_before *hb) {
    free_clocks(hb);
    for (int k = 0; k < N_BARRIERS; k++)
        clock_unref(hb, hb->barriers[k]);
    for (size_t k = 0; k < hb->objects_capacity; k++)
        clock_unref(hb, hb->objects[k].clock);
    drop_acquired(hb);
    for (block_release *n = hb->all_releases, *next; n; n = next) {
        next = n->next;
        clock_unref(hb, n->clock);
        free(n->included);
        free(n);
    }
    free(hb->lane_clocks);
    free(hb->clocks);
    free(hb->last_fence);
    free(hb->objects);
    free(hb->acquired);
    free(hb->direct);
    free(hb->block_begins);
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
    hb->any_fence = false;
    if (hb->fine_grained) {
        free_clocks(hb);
        memset(hb->last_fence, 0, hb->n_threads * sizeof *hb->last_fence);
        for (int k = 0; k < N_BARRIERS; k++) {
            clock_unref(hb, hb->barriers[k]);
            hb->barriers[k] = NULL;
        }
    }
    if (hb->sequential) {
        drop_acquired(hb);
        hb->block_begins[block] = hb->begin;
        hb->n_block_begins = block + 1;
    }
    return !restarts;
}

/* ---- the test ---- */

/* The index of the block to which the time belongs. */
static uint64_t block_at(const happens_before *hb, uint32_t time) {
    uint64_t low = 0, high = hb->n_block_begins;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (hb->block_begins[middle] <= time)
            low = middle;
        else
            high = middle;
    }
    return low;
}

bool hb_before(const happens_before *hb, epoch e, uint32_t thread) {
    const uint32_t time = epoch_time(e), other = epoch_thread(e);
    if (time < hb->begin) {
        if (!hb->sequential) return false;
        const vector_clock *c = hb->acquired[block_at(hb, time)];
        return c && c->times[other] > time;
    }
    if (time < hb->floor) return true;
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

/* Joins the thread's complete clock into *c: its vector clock, its lane clocks, its own time. */
static void join_thread(happens_before *hb, vector_clock **c, uint32_t thread) {
    const uint32_t warp = thread / LANES, lane = thread % LANES;
    vector_clock *to = clock_writable(hb, c);
    if (!to) return;
    join_times(to, hb->clocks[thread]);
    for (uint32_t l = 0; l < LANES && warp * LANES + l < hb->n_threads; l++) {
        const uint32_t a = hb->warp_floor[warp], b = hb->lane_clocks[warp][lane][l];
        uint32_t *time = &to->times[warp * LANES + l];
        const uint32_t known = a > b ? a : b;
        *time = known > *time ? known : *time;
    }
    to->times[thread] = hb->time;
}

void hb_arrive(happens_before *hb, uint32_t barrier, uint32_t warp, uint32_t lanes) {
    ++hb->time;
    for (; lanes; lanes &= lanes - 1)
        join_thread(hb, &hb->barriers[barrier], warp * LANES + (uint32_t)__builtin_ctz(lanes));
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
                join_times(after, released_clock);
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

/* ---- fences, releases and acquires ---- */

void hb_fence(happens_before *hb, uint32_t warp, uint32_t lanes) {
    ++hb->time;
    hb->any_fence = true;
    for (; lanes; lanes &= lanes - 1)
        hb->last_fence[warp * LANES + (uint32_t)__builtin_ctz(lanes)] = hb->time;
}

/* The object's slot, or the empty slot for it. create: first grows the table if needed. NULL: there
 * is no table, or out of memory. */
static sync_object *find_object(happens_before *hb, uint64_t address, bool create) {
    if (create && 2 * (hb->n_objects + 1) > hb->objects_capacity) {
        const size_t size = hb->objects_capacity ? 2 * hb->objects_capacity : 64;
        sync_object *larger = calloc(size, sizeof *larger), *smaller = hb->objects;
        if (!larger) {
            hb->out_of_memory = true;
            return NULL;
        }
        const size_t n = hb->objects_capacity;
        hb->objects = larger;
        hb->objects_capacity = size;
        for (size_t k = 0; k < n; k++)
            if (smaller[k].address) *find_object(hb, smaller[k].address, false) = smaller[k];
        free(smaller);
    }
    if (!hb->objects_capacity) return NULL;
    size_t at = (size_t)(address * 0x9e3779b97f4a7c15u >> 20) & (hb->objects_capacity - 1);
    while (hb->objects[at].address && hb->objects[at].address != address)
        at = (at + 1) & (hb->objects_capacity - 1);
    return &hb->objects[at];
}

/* Records a release for later blocks. Returns the object's last release. */
static block_release *release_to_blocks(happens_before *hb, vector_clock *covered,
                                        block_release *previous) {
    const uint64_t bytes = sizeof(block_release) + (hb->n_direct + 1) * sizeof(block_release *);
    block_release *release = charge(hb, bytes) ? calloc(1, sizeof *release) : NULL;
    if (release) release->included = calloc(hb->n_direct + 1, sizeof(block_release *));
    if (!release || !release->included) {
        free(release);
        hb->out_of_memory = true;
        return previous;
    }
    release->clock = clock_ref(covered);
    release->block = hb->block;
    if (hb->n_direct) memcpy(release->included, hb->direct, hb->n_direct * sizeof(block_release *));
    release->n_included = hb->n_direct;
    if (previous) release->included[release->n_included++] = previous;
    release->next = hb->all_releases;
    return hb->all_releases = release;
}

/* A release covers what fences cover. Of the thread's own accesses: those before its last fence. Of
 * another thread's accesses that are ordered before this thread: all, if this thread's last fence
 * is later; else those before the other thread's last fence. */
void hb_release(happens_before *hb, uint64_t address, uint32_t thread) {
    if (!hb->any_fence) return;
    vector_clock *covered = NULL;
    join_thread(hb, &covered, thread);
    if (!covered) return;
    const uint32_t fence = hb->last_fence[thread];
    bool any = false;
    for (uint32_t t = 0; t < hb->n_threads; t++) {
        const uint32_t known = covered->times[t] > hb->floor ? covered->times[t] : hb->floor;
        const uint32_t theirs = hb->last_fence[t] < known ? hb->last_fence[t] : known;
        covered->times[t] = t == thread ? fence : fence >= known ? known : theirs;
        any |= covered->times[t] != 0;
    }
    sync_object *r = any ? find_object(hb, address, true) : NULL;
    if (r) {
        if (!r->address) hb->n_objects++;
        if (r->block != hb->block) {
            clock_unref(hb, r->clock);
            r->clock = NULL;
        }
        r->address = address;
        r->block = hb->block;
        clock_join(hb, &r->clock, covered);
        if (hb->sequential) r->last_release = release_to_blocks(hb, covered, r->last_release);
        ++hb->time;
    }
    clock_unref(hb, covered);
}

static void add_direct(happens_before *hb, block_release *release) {
    if (hb->n_direct == hb->direct_capacity) {
        const size_t capacity = hb->direct_capacity ? 2 * hb->direct_capacity : 16;
        block_release **larger = realloc(hb->direct, capacity * sizeof *larger);
        if (!larger) {
            hb->out_of_memory = true;
            return;
        }
        hb->direct = larger;
        hb->direct_capacity = capacity;
    }
    hb->direct[hb->n_direct++] = release;
}

/* Acquires a release and, transitively, the releases that it includes, for the clocks between
 * blocks. These are kept per block: what one thread acquires counts for its whole block. */
static void acquire_release(happens_before *hb, block_release *release) {
    if (release->visited == hb->block + 1) return;
    add_direct(hb, release);
    release->visited = hb->block + 1;
    release->to_visit = NULL;
    for (block_release *todo = release, *n; (n = todo);) {
        todo = n->to_visit;
        if (n->block != hb->block) clock_join(hb, &hb->acquired[n->block], n->clock);
        for (size_t k = 0; k < n->n_included; k++) {
            block_release *other = n->included[k];
            if (other->visited == hb->block + 1) continue;
            other->visited = hb->block + 1;
            other->to_visit = todo;
            todo = other;
        }
    }
}

void hb_acquire(happens_before *hb, uint64_t address, uint32_t thread) {
    sync_object *r = find_object(hb, address, false);
    if (!r || !r->address) return;
    if (r->clock && r->block == hb->block) clock_join(hb, &hb->clocks[thread], r->clock);
    if (hb->sequential && r->last_release) acquire_release(hb, r->last_release);
}
