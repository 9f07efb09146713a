/* Releases that threads of later blocks acquire. Blocks that synchronise run one after the other,
 * in ascending order, so a release is complete when a later block acquires it.
 *
 * An acquisition has a thread and a time, like an access: it counts for the threads that it is
 * ordered before. After MAX_VISITS in one block each counts for the whole block, which may hide a
 * race, but bounds the time. */
#include <stdlib.h>
#include <string.h>

#include "../base/size.h"
#include "vector_clock.h"

enum { MAX_VISITS = 1 << 12, ANY_THREAD = INT32_MAX };

struct block_release {
    block_release *next;     /* in all_releases */
    block_release *to_visit; /* in the work list of acquisitions_acquire */
    vector_clock *clock;
    uint64_t block; /* the releasing block */
    /* Releases that come with it: those that its thread had acquired, and the previous one on its
     * object. */
    block_release **included;
    size_t n_included;
    uint64_t visiting_block; /* index of the block that last acquired it, plus 1 ... */
    uint32_t visits;         /* ... and its acquisitions: a list in `visits` */
};

/* A thread has acquired a release, or observed it. */
typedef struct visit {
    block_release *release;
    uint32_t thread, time;
    uint32_t next; /* in a list; 0: end */
    int way;
} visit;

/* What an acquisition makes known of one earlier block. */
typedef struct knowledge {
    vector_clock *clock;
    uint64_t block;
    uint32_t thread, time;
    uint32_t next; /* of the same earlier block; 0: end */
} knowledge;

/* Arrays whose element 0 is unused. */
typedef struct visit_list {
    visit *items;
    uint32_t n, capacity;
} visit_list;

struct acquisitions {
    visit_list visits; /* by release */
    /* Acquired releases of earlier blocks, less those that come with another one; no list. */
    visit_list roots;
    visit_list observed;
    uint32_t *observed_by;  /* by thread: a list in `observed` ... */
    uint32_t free_observed; /* ... and those that are in none */
    knowledge *known;
    uint32_t n_known, known_capacity;
    uint32_t *known_of; /* by block: a list in `known` */
    uint32_t *begins;   /* by block index: its first time; blocks run in ascending order */
    uint64_t n_begins;
};
typedef struct acquisitions acquisitions;

/* ---- creation, and a new block ---- */

bool acquisitions_init(happens_before *hb, uint64_t n_blocks) {
    acquisitions *a = hb->acquisitions = calloc(1, sizeof *a);
    if (!a) return false;
    a->observed_by = calloc(hb->n_threads, sizeof *a->observed_by);
    a->known_of = calloc(size_from(n_blocks), sizeof *a->known_of);
    a->begins = calloc(size_from(n_blocks + 1), sizeof *a->begins);
    a->n_known = a->visits.n = a->roots.n = a->observed.n = 1;
    return a->observed_by && a->known_of && a->begins;
}

static void forget(happens_before *hb) {
    acquisitions *a = hb->acquisitions;
    for (uint32_t k = 1; k < a->n_known; k++) {
        a->known_of[a->known[k].block] = 0;
        clock_unref(hb, a->known[k].clock);
    }
    if (a->observed.n > 1) memset(a->observed_by, 0, hb->n_threads * sizeof *a->observed_by);
    a->n_known = a->visits.n = a->roots.n = a->observed.n = 1;
    a->free_observed = 0;
}

void acquisitions_begin_block(happens_before *hb) {
    forget(hb);
    hb->acquisitions->begins[hb->block] = hb->begin;
    hb->acquisitions->n_begins = hb->block + 1;
}

void acquisitions_free(happens_before *hb) {
    acquisitions *a = hb->acquisitions;
    if (!a) return;
    forget(hb);
    for (block_release *n = hb->all_releases, *next; n; n = next) {
        next = n->next;
        clock_unref(hb, n->clock);
        free(n->included);
        free(n);
    }
    free(a->visits.items);
    free(a->roots.items);
    free(a->observed.items);
    free(a->observed_by);
    free(a->known);
    free(a->known_of);
    free(a->begins);
    free(a);
}

/* An index; 0: out of memory. */
static uint32_t add_visit(happens_before *hb, visit_list *list, visit v) {
    if (list->n >= list->capacity) {
        const uint32_t capacity = list->capacity ? 2 * list->capacity : 64;
        visit *larger = realloc(list->items, capacity * sizeof *larger);
        if (!larger) {
            hb->out_of_memory = true;
            return 0;
        }
        list->items = larger;
        list->capacity = capacity;
    }
    list->items[list->n] = v;
    return list->n++;
}

/* Whether what a thread acquired at this time is ordered before the other thread's next access. */
static bool is_known(const happens_before *hb, uint32_t thread, uint32_t time, uint32_t other) {
    return thread == ANY_THREAD || thread == other || hb_ordered(hb, time, thread, other);
}

/* ---- releases ---- */

block_release *acquisitions_release(happens_before *hb, vector_clock *covered,
                                    block_release *previous) {
    const visit_list *roots = &hb->acquisitions->roots;
    const uint64_t bytes = sizeof(block_release) + roots->n * sizeof(block_release *);
    block_release *release = hb_charge(hb, bytes) ? calloc(1, sizeof *release) : NULL;
    if (release) release->included = calloc(roots->n, sizeof(block_release *));
    if (!release || !release->included) {
        free(release);
        hb->out_of_memory = true;
        return previous;
    }
    release->clock = clock_ref(covered);
    release->block = hb->block;
    for (uint32_t k = 1; k < roots->n; k++) {
        const visit *v = &roots->items[k];
        if (v->thread == ANY_THREAD || v->time < covered->times[v->thread])
            release->included[release->n_included++] = v->release;
    }
    if (previous) release->included[release->n_included++] = previous;
    release->next = hb->all_releases;
    return hb->all_releases = release;
}

/* ---- acquires ---- */

/* Whether the thread has acquired the release before; if not, it has from now on. */
static bool visit_release(happens_before *hb, block_release *release, uint32_t thread) {
    visit_list *visits = &hb->acquisitions->visits;
    if (release->visiting_block != hb->block + 1) {
        release->visiting_block = hb->block + 1;
        release->visits = 0;
    }
    for (uint32_t k = release->visits; k; k = visits->items[k].next)
        if (visits->items[k].thread == ANY_THREAD ||
            (thread != ANY_THREAD &&
             is_known(hb, visits->items[k].thread, visits->items[k].time, thread)))
            return true;
    release->visits = add_visit(hb, visits, (visit){release, thread, hb->time, release->visits, 0});
    return false;
}

/* Adds a clock to what the acquisition that is under way makes known of the block. */
static void add_knowledge(happens_before *hb, uint64_t block, vector_clock *clock, uint32_t thread,
                          uint32_t first) {
    acquisitions *a = hb->acquisitions;
    const uint32_t last = a->known_of[block];
    if (last >= first) {
        clock_join(hb, &a->known[last].clock, clock);
        return;
    }
    if (a->n_known >= a->known_capacity) {
        const uint32_t capacity = a->known_capacity ? 2 * a->known_capacity : 64;
        knowledge *larger = realloc(a->known, capacity * sizeof *larger);
        if (!larger) {
            hb->out_of_memory = true;
            return;
        }
        a->known = larger;
        a->known_capacity = capacity;
    }
    a->known[a->n_known] = (knowledge){clock_ref(clock), block, thread, hb->time, last};
    a->known_of[block] = a->n_known++;
}

void acquisitions_acquire(happens_before *hb, block_release *release, uint32_t thread) {
    acquisitions *a = hb->acquisitions;
    const uint32_t first = a->n_known;
    if (a->visits.n > MAX_VISITS) thread = ANY_THREAD;
    if (!release || visit_release(hb, release, thread)) return;
    if (release->block != hb->block)
        add_visit(hb, &a->roots, (visit){release, thread, hb->time, 0, 0});
    release->to_visit = NULL;
    for (block_release *todo = release, *n; (n = todo);) {
        todo = n->to_visit;
        if (n->block != hb->block) add_knowledge(hb, n->block, n->clock, thread, first);
        for (size_t k = 0; k < n->n_included; k++) {
            block_release *other = n->included[k];
            if (visit_release(hb, other, thread)) continue;
            if (n->block == hb->block && other->block != hb->block)
                add_visit(hb, &a->roots, (visit){other, thread, hb->time, 0, 0});
            other->to_visit = todo;
            todo = other;
        }
    }
}

void acquisitions_observe(happens_before *hb, block_release *release, int way, uint32_t thread) {
    acquisitions *a = hb->acquisitions;
    if (!release) return;
    for (uint32_t k = a->observed_by[thread]; k; k = a->observed.items[k].next)
        if (a->observed.items[k].release == release && a->observed.items[k].way == way) return;
    const visit v = {release, thread, 0, a->observed_by[thread], way};
    const uint32_t reused = a->free_observed;
    if (reused) {
        a->free_observed = a->observed.items[reused].next;
        a->observed.items[reused] = v;
    }
    a->observed_by[thread] = reused ? reused : add_visit(hb, &a->observed, v);
}

void acquisitions_fence(happens_before *hb, uint32_t thread, bool sc) {
    acquisitions *a = hb->acquisitions;
    uint32_t kept = 0;
    for (uint32_t k = a->observed_by[thread], next; k; k = next) {
        visit *v = &a->observed.items[k];
        next = v->next;
        if (sc || v->way == BY_RELEASE) {
            acquisitions_acquire(hb, v->release, thread);
            v->next = a->free_observed;
            a->free_observed = k;
            continue;
        }
        v->next = kept;
        kept = k;
    }
    a->observed_by[thread] = kept;
}

/* ---- the test ---- */

/* The index of the block to which the time belongs. */
static uint64_t block_at(const acquisitions *a, uint32_t time) {
    uint64_t low = 0, high = a->n_begins;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (a->begins[middle] <= time)
            low = middle;
        else
            high = middle;
    }
    return low;
}

bool acquisitions_before(const happens_before *hb, epoch e, uint32_t thread) {
    const acquisitions *a = hb->acquisitions;
    if (a->n_known == 1) return false; /* [0] is unused */
    for (uint32_t k = a->known_of[block_at(a, epoch_time(e))]; k; k = a->known[k].next)
        if (a->known[k].clock->times[hb_thread_of(hb, e)] > epoch_time(e) &&
            is_known(hb, a->known[k].thread, a->known[k].time, thread))
            return true;
    return false;
}
