/* The hash table of names (open addressing), for a PTX text or for the strings of a trace. */
#include "names.h"

#include "../../core/job.h"
#include "../base/hash.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 1024 };

static uint32_t hash_of(const char *text, size_t length) {
    uint64_t hash = hash_seed(); /* 64-bit FNV-1a with a final mix */
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    hash = (hash ^ hash >> 32) * 0xff51afd7ed558ccdu;
    return (uint32_t)(hash >> 32);
}

bool names_start(names *table, ptx_arena *arena, ptx_arena *texts) {
    *table = (names){.arena = arena, .texts = texts, .capacity = FIRST_CAPACITY};
    table->slots = calloc(FIRST_CAPACITY, sizeof *table->slots);
    return table->slots != NULL;
}

void names_free(names *table) {
    free(table->slots);
    table->slots = NULL;
}

static bool grow(names *table) {
    size_t capacity = table->capacity * 2;
    name **slots = calloc(capacity, sizeof *slots);
    if (!slots) return false;
    for (size_t i = 0; i < table->capacity; i++) {
        name *n = table->slots[i];
        if (!n) continue;
        size_t at = n->hash & (capacity - 1);
        while (slots[at])
            at = (at + 1) & (capacity - 1);
        slots[at] = n;
    }
    free(table->slots);
    table->slots = slots;
    table->capacity = capacity;
    return true;
}

/* The slot that holds the name, or the empty one where it would be inserted. */
static name **find(names *table, const char *text, size_t length, uint32_t hash) {
    size_t at = hash & (table->capacity - 1);
    for (name *n; (n = table->slots[at]); at = (at + 1) & (table->capacity - 1))
        if (n->hash == hash && n->length == length && memcmp(n->text, text, length) == 0) break;
    return &table->slots[at];
}

name *names_get(names *table, const char *text, size_t length) {
    uint32_t hash = hash_of(text, length);
    name **slot = find(table, text, length, hash);
    if (*slot) return *slot;

    if (table->count >= table->capacity / 2) {
        if (!grow(table)) return NULL;
        slot = find(table, text, length, hash);
    }
    name *n = arena_alloc(table->arena, 1, sizeof *n);
    char *copy = arena_string(table->texts, text, length);
    if (!n || !copy) return NULL;
    *n = (name){.text = copy, .length = (uint32_t)length, .hash = hash};
    table->count++;
    return *slot = n;
}

/* ---- strings of a trace ---- */

static void free_texts(void *texts) {
    names *table = texts;
    names_free(table);
    arena_free(table->arena); /* includes the table itself */
}

static names *texts_new(void) {
    ptx_arena *arena = arena_new();
    names *table = arena ? arena_alloc(arena, 1, sizeof *table) : NULL;
    if (table && names_start(table, arena, arena)) return table;
    if (arena) arena_free(arena);
    return NULL;
}

const char *ptx_keep_text(smk_trace *trace, const char *text) {
    if (!text) return NULL;
    if (!trace->texts) {
        trace->texts = texts_new();
        trace->free_texts = free_texts;
    }
    const name *n = trace->texts ? names_get(trace->texts, text, strlen(text)) : NULL;
    return n ? n->text : NULL;
}
