/* See guarded.h. */
#include "guarded.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- canaries ---- */

#ifdef EMU_CHECKED
enum { CANARY = 0xc5, CHUNK = 0 }; /* each block of an arena between guards of its own */

static void paint(unsigned char *from, const unsigned char *to) {
    memset(from, CANARY, (size_t)(to - from));
}

static void look(const unsigned char *from, const unsigned char *to, const char *what) {
    for (; from < to; from++)
        if (*from != CANARY) {
            fprintf(stderr, "smemkern: something has written %s a kernel's memory\n", what);
            abort();
        }
}
#else
enum { CHUNK = 256 << 10 };

static void paint(unsigned char *from, const unsigned char *to) {
    (void)from, (void)to;
}

static void look(const unsigned char *from, const unsigned char *to, const char *what) {
    (void)from, (void)to, (void)what;
}
#endif

/* ---- mappings ---- */

static size_t page_bytes(void) {
    static size_t bytes;
    size_t known = __atomic_load_n(&bytes, __ATOMIC_RELAXED);
    if (!known) __atomic_store_n(&bytes, known = (size_t)sysconf(_SC_PAGESIZE), __ATOMIC_RELAXED);
    return known;
}

static size_t rounded(size_t bytes, size_t to) {
    return (bytes + to - 1) & ~(to - 1);
}

/* Of pages between the guards. */
static unsigned char *map(size_t bytes) {
    const size_t page = page_bytes();
    unsigned char *all =
        mmap(NULL, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return NULL;
    if (!mprotect(all + page, bytes, PROT_READ | PROT_WRITE)) return all + page;
    munmap(all, bytes + 2 * page);
    return NULL;
}

static void unmap(unsigned char *pages, size_t bytes) {
    const size_t page = page_bytes();
    munmap(pages - page, bytes + 2 * page);
}

/* ---- mappings that are kept ---- */

enum { MAX_KEPT = 32 };
static const size_t max_kept_bytes = 1 << 20; /* of one */

static struct {
    pthread_mutex_t lock;
    size_t n;
    struct {
        unsigned char *pages;
        size_t bytes;
    } at[MAX_KEPT];
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static unsigned char *take_kept(size_t bytes) {
    unsigned char *pages = NULL;
    pthread_mutex_lock(&kept.lock);
    for (size_t k = kept.n; k-- > 0 && !pages;)
        if (kept.at[k].bytes == bytes) {
            pages = kept.at[k].pages;
            kept.at[k] = kept.at[--kept.n];
        }
    pthread_mutex_unlock(&kept.lock);
    return pages;
}

static bool keep(unsigned char *pages, size_t bytes) {
    pthread_mutex_lock(&kept.lock);
    const bool room = bytes <= max_kept_bytes && kept.n < MAX_KEPT;
    if (room) {
        kept.at[kept.n].pages = pages;
        kept.at[kept.n++].bytes = bytes;
    }
    pthread_mutex_unlock(&kept.lock);
    return room;
}

void guarded_trim(void) {
    pthread_mutex_lock(&kept.lock);
    while (kept.n--)
        unmap(kept.at[kept.n].pages, kept.at[kept.n].bytes);
    kept.n = 0;
    pthread_mutex_unlock(&kept.lock);
}

/* ---- blocks ---- */

static _Alignas(GUARDED_ALIGN) unsigned char nothing[GUARDED_ALIGN];

static void *place(unsigned char *pages, size_t bytes) {
    if (!pages) return NULL;
    unsigned char *const end = pages + rounded(bytes, page_bytes());
    unsigned char *const begin = end - rounded(bytes, GUARDED_ALIGN);
    paint(pages, begin);
    paint(begin + bytes, end);
    return begin;
}

void *guarded_alloc(size_t bytes) {
    if (!bytes) return nothing;
    if (bytes > SIZE_MAX / 2) return NULL;
    const size_t pages = rounded(bytes, page_bytes());
    unsigned char *old = take_kept(pages);
    return place(old ? old : map(pages), bytes);
}

void *guarded_zeros(size_t bytes) {
    if (!bytes) return nothing;
    return bytes > SIZE_MAX / 2 ? NULL : place(map(rounded(bytes, page_bytes())), bytes);
}

void guarded_free(void *p, size_t bytes) {
    if (!p || p == nothing) return;
    const size_t size = rounded(bytes, page_bytes());
    unsigned char *const begin = p, *const end = begin + rounded(bytes, GUARDED_ALIGN);
    look(end - size, begin, "before");
    look(begin + bytes, end, "behind");
    if (!keep(end - size, size)) unmap(end - size, size);
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
    const size_t size = rounded(bytes, GUARDED_ARENA_ALIGN);
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
