/* Release and acquire patterns, as the PTX memory model defines them (PTX ISA, Memory Consistency
 * Model: "Release and Acquire Patterns", "Observation order", "Causality order").
 *
 * A release pattern is a release operation, or a release fence and then a strong write by the same
 * thread. An acquire pattern is an acquire operation, or a strong read and then an acquire fence by
 * the same thread. A thread's record of its last fence says what a later strong write releases; its
 * `observed` list says what a later fence acquires. Both sides count the threads that their scope
 * reaches: those of the block, of the cluster, or all.
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

/* ---- what was released ---- */

static uint32_t member_of(const happens_before *hb, uint32_t thread) {
    return thread / (hb->n_threads / hb->n_members);
}

/* The reach that two blocks of the group need to synchronise. */
static int reach_between(const happens_before *hb, uint32_t a, uint32_t b) {
    if (a == b) return REACH_BLOCK;
    return a / hb->cluster_blocks == b / hb->cluster_blocks ? REACH_CLUSTER : REACH_DEVICE;
}

static void released_free(happens_before *hb, released **list) {
    for (released *r = *list, *next; r; r = next) {
        next = r->next;
        clock_unref(hb, r->clock);
        free(r);
    }
    *list = NULL;
}

/* Adds a clock (NULL: nothing), which is joined with that of the same block and reach. */
static void released_add(happens_before *hb, released **list, uint32_t member, int reach,
                         vector_clock *clock) {
    if (hb->n_members == 1) reach = REACH_BLOCK; /* all acquire it */
    if (!clock) return;
    released *r = *list;
    while (r && (r->member != member || r->reach != reach))
        r = r->next;
    if (r) {
        clock_join(hb, &r->clock, clock);
        return;
    }
    r = malloc(sizeof *r);
    if (!r) {
        hb->out_of_memory = true;
        return;
    }
    *r = (released){*list, clock_ref(clock), member, reach};
    *list = r;
}

/* The thread acquires what both reaches allow it to. The rest is added to *rest. */
static void acquire_released(happens_before *hb, const released *list, uint32_t thread, int reach,
                             released **rest) {
    for (const released *r = list; r; r = r->next) {
        const int needed = reach_between(hb, r->member, member_of(hb, thread));
        if (r->reach >= needed && reach >= needed)
            clock_join(hb, &hb->clocks[thread], r->clock);
        else
            released_add(hb, rest, r->member, r->reach, r->clock);
    }
}

bool release_acquire_init(happens_before *hb) {
    hb->fences = calloc(hb->n_threads, sizeof *hb->fences);
    hb->observed = calloc(hb->n_threads, sizeof *hb->observed);
    return hb->fences && hb->observed;
}

void release_acquire_begin_block(happens_before *hb) {
    for (uint32_t t = 0; t < hb->n_threads; t++) {
        for (int way = 0; way < N_WAYS; way++)
            released_free(hb, &hb->observed[t][way]);
        for (int reach = 0; hb->any_fence && reach < N_REACHES; reach++) {
            clock_unref(hb, hb->fences[t][reach].clock);
            hb->fences[t][reach] = (fence_record){0};
        }
    }
    hb->any_fence = hb->any_fence_sc = hb->any_narrow_fence = false;
}

static void clear_released(happens_before *hb, sync_object *o) {
    for (int way = 0; way < N_WAYS; way++)
        released_free(hb, &o->released[way]);
}

static void clear_owned(happens_before *hb, sync_object *o) {
    for (own_release *r = o->owned, *next; r; r = next) {
        next = r->next;
        clock_unref(hb, r->clock);
        free(r);
    }
    o->owned = NULL;
}

void release_acquire_free(happens_before *hb) {
    if (hb->fences && hb->observed) release_acquire_begin_block(hb);
    for (size_t k = 0; k < hb->objects_capacity; k++) {
        clear_released(hb, &hb->objects[k]);
        clear_owned(hb, &hb->objects[k]);
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

static void acquire_observed(happens_before *hb, uint32_t thread, int way, int reach) {
    released *observed = hb->observed[thread][way];
    if (!observed) return;
    hb->observed[thread][way] = NULL;
    acquire_released(hb, observed, thread, reach, &hb->observed[thread][way]);
    released_free(hb, &observed);
}

void hb_fence(happens_before *hb, uint32_t warp, uint32_t lanes, hb_ordering ordering) {
    if (!hb->fine_grained) return; /* the instruction has no site */
    const int fence_reach = hb_reach(ordering.scope);
    ++hb->time;
    for (; lanes; lanes &= lanes - 1) {
        const uint32_t thread = hb->first + warp * LANES + (uint32_t)__builtin_ctz(lanes);
        if (ordering.acquires) {
            acquire_observed(hb, thread, BY_RELEASE, fence_reach);
            if (ordering.sc) acquire_observed(hb, thread, BY_FENCE_SC, fence_reach);
            if (hb->sequential && fence_reach == REACH_DEVICE)
                acquisitions_fence(hb, thread, ordering.sc);
        }
        if (!ordering.releases) continue;
        hb->any_fence = true;
        hb->any_fence_sc |= ordering.sc;
        hb->any_narrow_fence |= fence_reach < REACH_DEVICE;
        for (int reach = 0; reach <= fence_reach; reach++)
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
 * fence.sc, and all that barriers of the whole block had ordered before one of these. The threads
 * are those within reach of this one. */
static vector_clock *release_by_fence_sc(happens_before *hb, uint32_t thread, int reach) {
    vector_clock *known = hb->any_fence_sc ? thread_clock(hb, thread) : NULL;
    const uint32_t blocks = reach == REACH_BLOCK     ? 1
                            : reach == REACH_CLUSTER ? hb->cluster_blocks
                                                     : hb->n_members;
    const uint32_t n = blocks * (hb->n_threads / hb->n_members), first = thread / n * n;
    uint32_t floor = 0, any = 0;
    for (uint32_t t = 0; known && t < known->n; t++) {
        /* The last fence.sc may come after what this thread knows: t has run ahead. */
        const fence_record *f = &hb->fences[t][reach];
        const bool reached = t - first < n;
        const int k = f->sc[0].time > known->times[t];
        const bool is_known = reached && f->sc[k].time <= known->times[t];
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
    const int needed =
        o->block == hb->block ? reach_between(hb, o->member, hb->member) : REACH_DEVICE;
    return hb_reach(o->scope) >= needed && hb_reach(a->scope) >= needed;
}

void hb_strong_read(happens_before *hb, const hb_access *a) {
    const sync_object *o = find_object(hb, a->address, false);
    if (!o || !observes(hb, o, a)) return;
    for (int way = 0; way < N_WAYS; way++) {
        const bool acquires = a->ordering.acquires && way == BY_RELEASE;
        const int reach = hb_reach(a->ordering.scope);
        released **observed = &hb->observed[a->thread][way];
        if (o->block == hb->block && acquires)
            acquire_released(hb, o->released[way], a->thread, reach, observed);
        else if (o->block == hb->block)
            for (const released *r = o->released[way]; r; r = r->next)
                released_add(hb, observed, r->member, r->reach, r->clock);
        if (hb->sequential && acquires && reach == REACH_DEVICE)
            acquisitions_acquire(hb, o->releases[way], a->thread);
        else if (hb->sequential)
            acquisitions_observe(hb, o->releases[way], way, a->thread);
    }
}

/* Ends the chain of observations, less the thread's own releases, which this write belongs to. */
static void begin_chain(happens_before *hb, sync_object *o, const hb_access *a) {
    clear_released(hb, o);
    memset(o->releases, 0, sizeof o->releases);
    if (o->block != hb->block) return;
    for (const own_release *r = o->owned; r; r = r->next) {
        if (r->thread != a->thread) continue;
        released_add(hb, &o->released[BY_RELEASE], hb->member, r->reach, r->clock);
        if (r->release) o->releases[BY_RELEASE] = r->release;
    }
}

/* The list's element for a thread and reach, or a new one, or in a full list the oldest; first in
 * the list, and empty. NULL: out of memory. */
static own_release *renew_owned(happens_before *hb, own_release **list, uint32_t thread,
                                int reach) {
    own_release **at = list;
    for (int n = 1; *at && n < MOST_OWNED && ((*at)->thread != thread || (*at)->reach != reach);
         n++)
        at = &(*at)->next;
    own_release *r = *at;
    if (r) {
        *at = r->next;
        clock_unref(hb, r->clock);
    } else {
        r = malloc(sizeof *r);
        hb->out_of_memory |= !r;
        if (!r) return NULL;
    }
    *r = (own_release){.next = *list, .thread = thread, .reach = reach};
    return *list = r;
}

void hb_weak_write(happens_before *hb, uint64_t address) {
    sync_object *o = find_object(hb, address, false);
    if (!o || !o->address) return;
    clear_released(hb, o);
    memset(o->releases, 0, sizeof o->releases);
}

/* Adds what threads of the running group, and of later ones (`later`), can acquire. */
static void add_release(happens_before *hb, sync_object *o, int way, int reach, vector_clock *clock,
                        bool later) {
    if (!clock) return;
    released_add(hb, &o->released[way], hb->member, reach, clock);
    if (later && hb->sequential && reach == REACH_DEVICE)
        o->releases[way] = acquisitions_release(hb, clock, o->releases[way]);
}

/* Release by an earlier fence of the thread, or by fence.sc of threads before it. */
static void release_by_fences(happens_before *hb, sync_object *o, const hb_access *a) {
    const bool later = hb_reaches_other_blocks(a->scope);
    vector_clock *(*const release_of[N_WAYS])(happens_before *, uint32_t, int) = {
        [BY_RELEASE] = release_by_fence, [BY_FENCE_SC] = release_by_fence_sc};
    for (int way = 0; way < N_WAYS; way++)
        for (int reach = hb->any_narrow_fence ? REACH_BLOCK : REACH_DEVICE; reach < N_REACHES;
             reach++) {
            if (reach == REACH_CLUSTER && hb->cluster_blocks == 1) continue; /* REACH_BLOCK */
            vector_clock *clock = release_of[way](hb, a->thread, reach);
            add_release(hb, o, way, reach, clock, later);
            clock_unref(hb, clock);
        }
}

static void release_operation(happens_before *hb, sync_object *o, const hb_access *a) {
    vector_clock *covered = thread_clock(hb, a->thread);
    const int reach = hb_reach(a->ordering.scope);
    add_release(hb, o, BY_RELEASE, reach, covered, true);
    own_release *own = renew_owned(hb, &o->owned, a->thread, reach);
    if (!own) {
        clock_unref(hb, covered);
        return;
    }
    own->clock = covered;
    if (reach == REACH_DEVICE) own->release = o->releases[BY_RELEASE];
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
        clear_released(hb, o);
        clear_owned(hb, o);
    }
    o->address = a->address;
    o->width = a->width;
    o->scope = a->scope;
    o->block = hb->block;
    o->member = hb->member;
    if (hb->any_fence) release_by_fences(hb, o, a);
    if (a->ordering.releases) release_operation(hb, o, a);
}
