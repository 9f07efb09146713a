/* The hash table of names, and the interning of opcodes and modifiers that is built on it. */
#include "names.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 1024 };

static uint32_t hash_of(const char *text, size_t length) {
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return hash;
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

/* The slot where the name is, or where it would be put. */
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

const char *ptx_intern(const char *spelling, size_t length) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static names words;
    const char *text = NULL;

    pthread_mutex_lock(&lock);
    if (!words.arena) {
        ptx_arena *arena = arena_new();
        if (arena && !names_start(&words, arena, arena)) {
            arena_free(arena);
            words.arena = NULL;
        }
    }
    name *n = words.arena ? names_get(&words, spelling, length) : NULL;
    if (n) text = n->text;
    pthread_mutex_unlock(&lock);
    return text;
}
