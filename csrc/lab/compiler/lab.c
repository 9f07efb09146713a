#include "lab.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void lab_fail(lab *l, lab_position at, const char *format, ...) {
    if (l->failed) return;
    l->failed = true;
    if (l->error_size == 0) return;
    int used = snprintf(l->error, l->error_size, "%s:%u:%u: ", l->file, at.line, at.column);
    if (used < 0 || (size_t)used >= l->error_size) return;
    va_list list;
    va_start(list, format);
    vsnprintf(l->error + used, l->error_size - (size_t)used, format, list);
    va_end(list);
}

static void out_of_memory(lab *l) {
    lab_fail(l, (lab_position){1, 1}, "out of memory");
}

void *lab_new(lab *l, size_t size) {
    void *block = arena_alloc(l->arena, 1, size);
    if (block) return block;
    out_of_memory(l);
    memset(l->spare, 0, sizeof l->spare);
    return l->spare;
}

/* Doubles the room. The old items stay in the arena, so all vectors together take twice their
 * size. */
static bool grow(lab *l, lab_vector *v, size_t size) {
    const uint32_t capacity = v->capacity ? 2 * v->capacity : 16;
    void *items = arena_alloc(l->arena, capacity, size);
    if (!items) return false;
    if (v->count) memcpy(items, v->items, v->count * size);
    v->items = items;
    v->capacity = capacity;
    return true;
}

void *lab_push(lab *l, lab_vector *v, size_t size) {
    if (v->count == v->capacity && !grow(l, v, size)) {
        out_of_memory(l);
        memset(l->spare, 0, sizeof l->spare);
        return l->spare;
    }
    return (char *)v->items + size * v->count++;
}

const char *lab_text(lab *l, const char *format, ...) {
    char text[2 * LAB_MAX_NAME + 64];
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    const size_t size = length < 0                     ? 0
                        : (size_t)length < sizeof text ? (size_t)length
                                                       : sizeof text - 1;
    const char *copy = arena_string(l->arena, text, size);
    if (copy) return copy;
    out_of_memory(l);
    return "";
}

static uint32_t hash(const char *text, size_t length) {
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h ^ h >> 15;
}

lab_name *lab_intern(lab *l, const char *text, size_t length, lab_position at) {
    lab_name **bucket = &l->buckets[hash(text, length) % LAB_BUCKETS];
    for (lab_name *n = *bucket; n; n = n->next)
        if (n->length == length && memcmp(n->text, text, length) == 0) return n;
    lab_name *n = lab_new(l, sizeof *n);
    if (l->failed) return n;
    if (length > LAB_MAX_NAME)
        lab_fail(l, at, "expected a name of at most %d characters, found %zu", LAB_MAX_NAME,
                 length);
    if (++l->names > LAB_MAX_NAMES) lab_fail(l, at, "more than %d different names", LAB_MAX_NAMES);
    n->text = arena_string(l->arena, text, length);
    if (!n->text) {
        out_of_memory(l);
        n->text = "";
        length = 0;
    }
    n->length = (uint32_t)length;
    n->next = *bucket;
    *bucket = n;
    return n;
}
