/* A bump allocator over a list of chunks, newest first.
 *
 * Chunks come from calloc, so the pages of a large chunk are only allocated when first written. A
 * large PTX variable with a short initialiser therefore costs address space, not memory.
 */
#include "arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16, MIN_CHUNK = 16 << 10, MAX_CHUNK = 1 << 20 };

typedef struct chunk {
    struct chunk *next;
    size_t used, size;
    _Alignas(ALIGNMENT) unsigned char bytes[];
} chunk;

struct ptx_arena {
    chunk *chunks;
    size_t next_size;
};

ptx_arena *arena_new(void) {
    ptx_arena *arena = calloc(1, sizeof *arena);
    if (arena) arena->next_size = MIN_CHUNK;
    return arena;
}

void arena_free(ptx_arena *arena) {
    if (!arena) return;
    for (chunk *c = arena->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(arena);
}

size_t arena_bytes(const ptx_arena *arena) {
    size_t bytes = sizeof *arena;
    for (const chunk *c = arena->chunks; c; c = c->next)
        bytes += sizeof *c + c->size;
    return bytes;
}

static chunk *new_chunk(size_t size) {
    chunk *c = calloc(1, sizeof *c + size);
    if (c) c->size = size;
    return c;
}

void *arena_alloc(ptx_arena *arena, uint64_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2) return NULL;
    bytes = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);

    chunk *c = arena->chunks;
    if (c && c->size - c->used >= bytes) {
        void *block = c->bytes + c->used;
        c->used += bytes;
        return block;
    }
    /* A large block gets its own chunk, inserted second: the first chunk still has free space. */
    if (c && bytes > MAX_CHUNK / 4) {
        chunk *own = new_chunk(bytes);
        if (!own) return NULL;
        own->used = bytes;
        own->next = c->next;
        c->next = own;
        return own->bytes;
    }
    c = new_chunk(bytes > arena->next_size ? bytes : arena->next_size);
    if (!c) return NULL;
    if (arena->next_size < MAX_CHUNK) arena->next_size *= 2;
    c->used = bytes;
    c->next = arena->chunks;
    arena->chunks = c;
    return c->bytes;
}

char *arena_string(ptx_arena *arena, const char *text, size_t length) {
    char *copy = arena_alloc(arena, length + 1, 1);
    if (copy) memcpy(copy, text, length);
    return copy;
}
