/* Release and acquire patterns, as the PTX memory model defines them (PTX ISA, Memory Consistency
 * Model: "Release and Acquire Patterns", "Observation order", "Causality order").
 *
 * A release pattern is a release operation, or a release fence and then a strong write by the same
 * thread. An acquire pattern is an acquire operation, or a strong read and then an acquire fence by
 * the same thread. A thread's record of its last fence says what a later strong write releases; its
 * `observed` clock says what a later fence acquires.
 *
 * Two fence.sc synchronise in the order in which fence.sc order has them. The order of this run is
 * only one of several, so it proves nothing, except in one case: a thread runs a fence.sc, another
 * thread that is ordered after it writes, and the reader of that write runs a fence.sc. The other
 * order would contradict causality. So a strong write also releases, for readers with a fence.sc,
 * what threads before it did before their last fence.sc.
 */
#include <stdlib.h>
#include <string.h>

#include "vector_clock.h"

static uint32_t later(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

bool release_acquire_init(happens_before *hb) {
    hb->fences = calloc(hb->n_threads, sizeof *hb->fences);
    hb->observed = calloc(hb->n_threads, sizeof *hb->observed);
    return hb->fences && hb->observed;
}

void release_acquire_begin_block(happens_before *hb) {
    for (uint32_t t = 0; t < hb->n_threads; t++) {
        for (int way = 0; way < N_WAYS; way++) {
            clock_unref(hb, hb->observed[t][way]);
            hb->observed[t][way] = NULL;
        }
        for (int reach = 0; hb->any_fence && reach < N_REACHES; reach++) {
            clock_unref(hb, hb->fences[t][reach].clock);
            hb->fences[t][reach] = (fence_record){0};
        }
    }
    hb->any_fence = hb->any_fence_sc = hb->any_fence_cta = false;
}

static void clear_clocks(happens_before *hb, sync_object *o) {
    for (int way = 0; way < N_WAYS; way++) {
        clock_unref(hb, o->clocks[way]);
        o->clocks[way] = NULL;
    }
}

static void clear_owner(happens_before *hb, sync_object *o) {
    clock_unref(hb, o->owner_clock);
    o->owner_clock = NULL;
    o->owner_release = NULL;
}

void release_acquire_free(happens_before *hb) {
    if (hb->fences && hb->observed) release_acquire_begin_block(hb);
    for (size_t k = 0; k < hb->objects_capacity; k++) {
        clear_clocks(hb, &hb->objects[k]);
        clear_owner(hb, &hb->objects[k]);
    }
    free(hb->objects);
    free(hb->fences);
    free(hb->observed);
}

/* ---- fences ---- */

void record_fence(happens_before *hb, fence_record *f, uint32_t thread, bool sc) {
    const uint32_t warp = thread / LANES;
    clock_unref(hb, f->clock);
    f->clock = clock_ref(hb->clocks[thread]);
    f->time = hb->time;
    f->floor = hb->floor;
    f->warp_floor = hb->warp_floor[warp];
    memcpy(f->lane_clocks, hb->lane_clocks[warp][thread % LANES], sizeof f->lane_clocks);
    if (!sc) return;
    f->sc[1] = f->sc[0];
    f->sc[0].time = f->time;
    f->sc[0].floor = f->floor;
}

static void acquire_observed(happens_before *hb, uint32_t thread, int way) {
    vector_clock **observed = &hb->observed[thread][way];
    if (*observed) clock_join(hb, &hb->clocks[thread], *observed);
    clock_unref(hb, *observed);
    *observed = NULL;
}

void hb_fence(happens_before *hb, uint32_t warp, uint32_t lanes, hb_ordering ordering) {
    if (!hb->fine_grained) return; /* the instruction has no site */
    const int n_reaches = hb_reaches_other_blocks(ordering.scope) ? N_REACHES : REACH_DEVICE;
    ++hb->time;
    for (; lanes; lanes &= lanes - 1) {
        const uint32_t thread = hb->first + warp * LANES + (uint32_t)__builtin_ctz(lanes);
        if (ordering.acquires) {
            acquire_observed(hb, thread, BY_RELEASE);
            if (ordering.sc) acquire_observed(hb, thread, BY_FENCE_SC);
            if (hb->sequential && n_reaches == N_REACHES)
                acquisitions_fence(hb, thread, ordering.sc);
        }
        if (!ordering.releases) continue;
        hb->any_fence = true;
        hb->any_fence_sc |= ordering.sc;
        hb->any_fence_cta |= n_reaches < N_REACHES;
        for (int reach = 0; reach < n_reaches; reach++)
            record_fence(hb, &hb->fences[thread][reach], thread, ordering.sc);
    }
}

vector_clock *release_by_fence(happens_before *hb, uint32_t thread, int reach) {
    const fence_record *f = &hb->fences[thread][reach];
    if (!f->time) return NULL;
    vector_clock *covered = clock_copy(hb, f->clock);
    if (!covered) return NULL;
    const uint32_t first = thread / LANES * LANES;
    for (uint32_t t = 0; t < hb->n_threads; t++)
        covered->times[t] = later(covered->times[t], f->floor);
    for (uint32_t l = 0; l < LANES && first + l < hb->n_threads; l++) {
        uint32_t *time = &covered->times[first + l];
        *time = later(*time, later(f->warp_floor, f->lane_clocks[l]));
    }
    covered->times[thread] = f->time;
    return covered;
}

/* What a release operation of the thread releases: all that it knows. */
static vector_clock *thread_clock(happens_before *hb, uint32_t thread) {
    vector_clock *covered = NULL;
    clock_join_thread(hb, &covered, thread);
    for (uint32_t t = 0; covered && t < hb->n_threads; t++)
        covered->times[t] = later(covered->times[t], hb->floor);
    return covered;
}

/* What fence.sc of threads before this one release: each thread's own accesses before its last
 * fence.sc, and all that barriers of the whole block had ordered before one of these. */
static vector_clock *release_by_fence_sc(happens_before *hb, uint32_t thread, int reach) {
    vector_clock *known = hb->any_fence_sc ? thread_clock(hb, thread) : NULL;
    uint32_t floor = 0, any = 0;
    for (uint32_t t = 0; known && t < known->n; t++) {
        /* The last fence.sc may come after what this thread knows: t has run ahead. */
        const fence_record *f = &hb->fences[t][reach];
        const int k = f->sc[0].time > known->times[t];
        const bool is_known = f->sc[k].time <= known->times[t];
        if (is_known) floor = later(floor, f->sc[k].floor);
        known->times[t] = is_known ? f->sc[k].time : 0;
        any |= known->times[t];
    }
    for (uint32_t t = 0; known && t < known->n; t++)
        known->times[t] = later(known->times[t], floor);
    if (any | floor) return known;
    clock_unref(hb, known);
    return NULL;
}

/* ---- objects ---- */

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

/* Whether the access and the last write of the object are morally strong. */
static bool observes(const happens_before *hb, const sync_object *o, const hb_access *a) {
    if (!o->address || o->width != a->width) return false;
    const uint32_t size = hb->cluster_blocks;
    if (o->block == hb->block && o->member == hb->member) return true;
    if (o->block == hb->block && o->member / size == hb->member / size)
        return o->scope >= SCOPE_CLUSTER && a->ordering.scope >= SCOPE_CLUSTER;
    return (hb_reaches_other_blocks(o->scope) && hb_reaches_other_blocks(a->ordering.scope));
}

void hb_strong_read(happens_before *hb, const hb_access *a) {
    const sync_object *o = find_object(hb, a->address, false);
    const bool reaches = hb_reaches_other_blocks(a->ordering.scope);
    if (!o || !observes(hb, o, a)) return;
    for (int way = 0; way < N_WAYS; way++) {
        const bool acquires = a->ordering.acquires && way == BY_RELEASE;
        vector_clock **to = acquires ? &hb->clocks[a->thread] : &hb->observed[a->thread][way];
        if (o->block == hb->block) clock_join(hb, to, o->clocks[way]);
        if (hb->sequential && acquires && reaches)
            acquisitions_acquire(hb, o->releases[way], a->thread);
        else if (hb->sequential)
            acquisitions_observe(hb, o->releases[way], way, a->thread);
    }
}

/* Ends the chain of observations, less what later writes of the owner belong to. */
static void begin_chain(happens_before *hb, sync_object *o, const hb_access *a) {
    const bool owns = o->block == hb->block && o->owner == a->thread;
    clear_clocks(hb, o);
    memset(o->releases, 0, sizeof o->releases);
    if (!owns) return;
    o->clocks[BY_RELEASE] = clock_ref(o->owner_clock);
    o->releases[BY_RELEASE] = o->owner_release;
}

void hb_weak_write(happens_before *hb, uint64_t address) {
    sync_object *o = find_object(hb, address, false);
    if (!o || !o->address) return;
    clear_clocks(hb, o);
    memset(o->releases, 0, sizeof o->releases);
}

/* Adds what threads of the block and of later blocks can acquire; either clock may be NULL. */
static void add_release(happens_before *hb, sync_object *o, int way, vector_clock *for_block,
                        vector_clock *for_device) {
    if (for_block) clock_join(hb, &o->clocks[way], for_block);
    if (for_device && hb->sequential)
        o->releases[way] = acquisitions_release(hb, for_device, o->releases[way]);
}

/* Release by an earlier fence of the thread, or by fence.sc of threads before it. */
static void release_by_fences(happens_before *hb, sync_object *o, const hb_access *a) {
    const bool reaches = hb->sequential && hb_reaches_other_blocks(a->ordering.scope);
    vector_clock *(*const release_of[N_WAYS])(happens_before *, uint32_t, int) = {
        [BY_RELEASE] = release_by_fence, [BY_FENCE_SC] = release_by_fence_sc};
    for (int way = 0; way < N_WAYS; way++) {
        vector_clock *for_block = release_of[way](hb, a->thread, REACH_BLOCK);
        vector_clock *for_device = !reaches ? NULL
                                   : !hb->any_fence_cta
                                       ? clock_ref(for_block)
                                       : release_of[way](hb, a->thread, REACH_DEVICE);
        add_release(hb, o, way, for_block, for_device);
        clock_unref(hb, for_block);
        clock_unref(hb, for_device);
    }
}

static void release_operation(happens_before *hb, sync_object *o, const hb_access *a) {
    vector_clock *covered = thread_clock(hb, a->thread);
    const bool reaches = hb_reaches_other_blocks(a->ordering.scope);
    add_release(hb, o, BY_RELEASE, covered, reaches ? covered : NULL);
    clear_owner(hb, o);
    o->owner = a->thread;
    o->owner_clock = covered;
    if (reaches) o->owner_release = o->releases[BY_RELEASE];
}

void hb_strong_write(happens_before *hb, const hb_access *a, bool read_modify_write) {
    const bool releases = a->ordering.releases || hb->any_fence;
    /* Without a release there is a chain to record only where one exists. */
    sync_object *o = find_object(hb, a->address, releases);
    if (!o || (!releases && !o->address)) return;
    ++hb->time;
    if (!o->address) hb->n_objects++;
    if (!read_modify_write || !observes(hb, o, a)) begin_chain(hb, o, a);
    if (o->block != hb->block) {
        clear_clocks(hb, o);
        clear_owner(hb, o);
        o->owner = hb->n_threads; /* no thread */
    }
    o->address = a->address;
    o->width = a->width;
    o->scope = a->ordering.scope;
    o->block = hb->block;
    o->member = hb->member;
    if (hb->any_fence) release_by_fences(hb, o, a);
    if (a->ordering.releases) release_operation(hb, o, a);
}
