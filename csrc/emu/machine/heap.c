/* The heap of malloc and free in kernels. It consists of granules of 16 bytes; an allocation is a
 * run of them. */
#include "heap.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/guarded.h"
#include "block.h"

enum { GRANULE = 16, GRANULES = HEAP_BYTES / GRANULE, NEVER_USED = 0, RELEASED = 0xff };

struct heap {
    pthread_mutex_t lock;
    unsigned char *bytes;
    /* Per granule: how many of its bytes are allocated, NEVER_USED or RELEASED. Accesses read it
     * without the lock. */
    uint8_t state[GRANULES];
    uint32_t length[GRANULES]; /* in granules, of an allocation that starts here; 0: none */
    uint64_t size[GRANULES];   /* in bytes, of an allocation that started here last */
    uint32_t next;             /* where the search for room starts */
    uint32_t too_large;        /* no room for so many granules, until something is released */
};

heap *heap_new(void) {
    heap *h = calloc(1, sizeof *h);
    if (!h) return NULL;
    h->bytes = guarded_zeros(HEAP_BYTES);
    if (!h->bytes) {
        free(h);
        return NULL;
    }
    pthread_mutex_init(&h->lock, NULL);
    h->too_large = GRANULES + 1;
    return h;
}

void heap_free(heap *h) {
    if (!h) return;
    pthread_mutex_destroy(&h->lock);
    guarded_free(h->bytes, HEAP_BYTES);
    free(h);
}

static uint8_t state_of(const heap *h, uint64_t granule) {
    return __atomic_load_n(&h->state[granule], __ATOMIC_RELAXED);
}

static void set_state(heap *h, uint64_t granule, uint8_t state) {
    __atomic_store_n(&h->state[granule], state, __ATOMIC_RELAXED);
}

/* The first run of n granules without an allocation, from `at` on. GRANULES: there is none. */
static uint32_t find_room(const heap *h, uint32_t at, uint32_t n) {
    uint32_t first = at;
    while (at < GRANULES && at - first < n) {
        if (h->length[at]) first = at + h->length[at];
        at += h->length[at] ? h->length[at] : 1;
    }
    return at - first >= n ? first : GRANULES;
}

bool heap_allocate(heap *h, uint64_t bytes, uint64_t *offset) {
    if (bytes > HEAP_BYTES) return false;
    if (!bytes) bytes = 1;
    const uint32_t n = (uint32_t)((bytes + GRANULE - 1) / GRANULE);
    uint32_t first = GRANULES;
    pthread_mutex_lock(&h->lock);
    if (n < h->too_large) first = find_room(h, h->next, n);
    if (n < h->too_large && first == GRANULES) first = find_room(h, 0, n);
    if (first < GRANULES) {
        h->length[first] = n;
        h->size[first] = bytes;
        h->next = first + n;
        for (uint32_t k = 0; k < n; k++)
            set_state(h, first + k, GRANULE);
        if (bytes % GRANULE) set_state(h, first + n - 1, bytes % GRANULE);
        for (uint64_t at = 0; at < (uint64_t)n * GRANULE; at += sizeof(uint16_t))
            memcpy(h->bytes + (uint64_t)first * GRANULE + at, &(uint16_t){POISON},
                   sizeof(uint16_t));
    } else if (n < h->too_large) {
        h->too_large = n;
    }
    pthread_mutex_unlock(&h->lock);
    *offset = (uint64_t)first * GRANULE;
    return first < GRANULES;
}

const char *heap_release(heap *h, uint64_t offset) {
    const uint64_t first = offset / GRANULE;
    if (offset >= HEAP_BYTES) return "malloc did not return that address";
    const char *wrong = NULL;
    pthread_mutex_lock(&h->lock);
    const uint32_t n = offset % GRANULE ? 0 : h->length[first];
    if (!n)
        wrong = state_of(h, first) == RELEASED ? "that memory has been freed before"
                                               : "malloc did not return that address";
    for (uint32_t k = 0; k < n; k++)
        set_state(h, first + k, RELEASED);
    if (n) {
        h->length[first] = 0;
        h->too_large = GRANULES + 1;
    }
    pthread_mutex_unlock(&h->lock);
    return wrong;
}

unsigned char *heap_reach(heap *h, uint64_t offset, uint32_t bytes) {
    if (offset >= HEAP_BYTES) return NULL;
    const uint8_t state = state_of(h, offset / GRANULE);
    return state != RELEASED && offset % GRANULE + bytes <= state ? h->bytes + offset : NULL;
}

bool heap_holds(heap *h, uint64_t offset, uint64_t bytes) {
    const uint64_t first = offset / GRANULE;
    if (offset >= HEAP_BYTES || offset % GRANULE) return false;
    pthread_mutex_lock(&h->lock);
    const bool holds = h->length[first] && bytes <= h->size[first];
    pthread_mutex_unlock(&h->lock);
    return holds;
}

void heap_describe(heap *h, uint64_t offset, char *out, size_t size) {
    pthread_mutex_lock(&h->lock);
    uint64_t first = offset / GRANULE;
    if (offset < HEAP_BYTES && state_of(h, first) == RELEASED) {
        snprintf(out, size, "memory that has been freed");
    } else {
        if (first >= GRANULES) first = GRANULES - 1;
        while (first && !h->length[first])
            first--;
        if (h->length[first])
            snprintf(out, size, "%" PRIu64 " bytes past the start of %" PRIu64 " bytes from malloc",
                     offset - first * GRANULE, h->size[first]);
        else
            snprintf(out, size, "memory that malloc has not returned");
    }
    pthread_mutex_unlock(&h->lock);
}
