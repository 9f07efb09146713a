/* See guarded.h. */
#include "guarded.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pages.h"

/* ---- canaries ---- */

#ifdef EMU_CHECKED
enum { CANARY = 0xc5, CHUNK = 0 }; /* chunk size 0: each arena block gets its own guard pages */

static void fill_canary(unsigned char *from, const unsigned char *to) {
    memset(from, CANARY, (size_t)(to - from));
}

static void check_canary(const unsigned char *from, const unsigned char *to, const char *where) {
    for (; from < to; from++)
        if (*from != CANARY) {
            fprintf(stderr,
                    "smemkern: memory corruption: bytes %s a kernel's memory were overwritten\n",
                    where);
            abort();
        }
}
#else
enum { CHUNK = 256 << 10 };

static void fill_canary(unsigned char *from, const unsigned char *to) {
    (void)from, (void)to;
}

static void check_canary(const unsigned char *from, const unsigned char *to, const char *where) {
    (void)from, (void)to, (void)where;
}
#endif

static size_t round_up(size_t bytes, size_t to) {
    return (bytes + to - 1) & ~(to - 1);
}

/* ---- cache of free mappings ---- */

enum { MAX_CACHED = 32 };
static const size_t max_cached_bytes = 1 << 20; /* per mapping */

static struct {
    pthread_mutex_t lock;
    size_t n;
    struct {
        unsigned char *pages;
        size_t bytes;
    } entries[MAX_CACHED];
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static unsigned char *cache_take(size_t bytes) {
    unsigned char *pages = NULL;
    pthread_mutex_lock(&cache.lock);
    for (size_t k = cache.n; k-- > 0 && !pages;)
        if (cache.entries[k].bytes == bytes) {
            pages = cache.entries[k].pages;
            cache.entries[k] = cache.entries[--cache.n];
        }
    pthread_mutex_unlock(&cache.lock);
    return pages;
}

static bool cache_put(unsigned char *pages, size_t bytes) {
    pthread_mutex_lock(&cache.lock);
    const bool room = bytes <= max_cached_bytes && cache.n < MAX_CACHED;
    if (room) {
        cache.entries[cache.n].pages = pages;
        cache.entries[cache.n++].bytes = bytes;
    }
    pthread_mutex_unlock(&cache.lock);
    return room;
}

void guarded_trim(void) {
    pthread_mutex_lock(&cache.lock);
    while (cache.n--)
        pages_unmap_guarded(cache.entries[cache.n].pages, cache.entries[cache.n].bytes);
    cache.n = 0;
    pthread_mutex_unlock(&cache.lock);
}

/* ---- blocks ---- */

static _Alignas(GUARDED_ALIGN) unsigned char empty_block[GUARDED_ALIGN];

/* Places the block at the end of its pages, up to alignment. */
static void *place_block(unsigned char *pages, size_t bytes) {
    if (!pages) return NULL;
    unsigned char *const end = pages + round_up(bytes, page_bytes());
    unsigned char *const begin = end - round_up(bytes, GUARDED_ALIGN);
    fill_canary(pages, begin);
    fill_canary(begin + bytes, end);
    return begin;
}

void *guarded_alloc(uint64_t size) {
    if (!size) return empty_block;
    if (size > SIZE_MAX / 2) return NULL;
    const size_t bytes = (size_t)size, pages = round_up(bytes, page_bytes());
    unsigned char *old = cache_take(pages);
    return place_block(old ? old : pages_map_guarded(pages), bytes);
}

void *guarded_zeros(uint64_t size) {
    if (!size) return empty_block;
    if (size > SIZE_MAX / 2) return NULL;
    const size_t bytes = (size_t)size;
    return place_block(pages_map_guarded(round_up(bytes, page_bytes())), bytes);
}

void guarded_free(void *p, uint64_t allocated) {
    if (!p || p == empty_block) return;
    const size_t bytes = (size_t)allocated, size = round_up(bytes, page_bytes());
    unsigned char *const begin = p, *const end = begin + round_up(bytes, GUARDED_ALIGN);
    check_canary(end - size, begin, "before");
    check_canary(begin + bytes, end, "after");
    if (!cache_put(end - size, size)) pages_unmap_guarded(end - size, size);
}

/* ---- arenas ---- */

struct guarded_chunk {
    struct guarded_chunk *next;
    unsigned char *bytes;
    size_t used, size;
};

static struct guarded_chunk *add_chunk(guarded_arena *arena, size_t size) {
    struct guarded_chunk *c = malloc(sizeof *c);
    if (!c) return NULL;
    *c = (struct guarded_chunk){arena->chunks, guarded_alloc(size), 0, size};
    if (!c->bytes) {
        free(c);
        return NULL;
    }
    return arena->chunks = c;
}

void *guarded_arena_alloc(guarded_arena *arena, size_t bytes) {
    if (bytes > SIZE_MAX / 2) return NULL;
    const size_t size = round_up(bytes, GUARDED_ARENA_ALIGN);
    struct guarded_chunk *c = arena->chunks;
    if (!c || c->size - c->used < size) c = add_chunk(arena, size > CHUNK ? size : CHUNK);
    if (!c) return NULL;
    unsigned char *const begin = c->bytes + c->used;
    c->used += size;
    return begin;
}

void guarded_arena_free(guarded_arena *arena) {
    for (struct guarded_chunk *c = arena->chunks, *next; c; c = next) {
        next = c->next;
        guarded_free(c->bytes, c->size);
        free(c);
    }
    arena->chunks = NULL;
}
