/* See text.h. */
#include "text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_clear(text *t) {
    t->size = 0;
    t->failed = false;
}

void text_free(text *t) {
    free(t->bytes);
    *t = (text){0};
}

static bool reserve(text *t, size_t more) {
    if (t->failed || more > SIZE_MAX / 4) return !(t->failed = true);
    const size_t needed = t->size + more + 1;
    if (needed <= t->capacity) return true;
    const size_t capacity = needed < 256 ? 256 : needed + needed / 2;
    char *larger = capacity < SIZE_MAX / 2 ? realloc(t->bytes, capacity) : NULL;
    if (!larger) return !(t->failed = true);
    t->bytes = larger;
    t->capacity = capacity;
    return true;
}

void text_add(text *t, const char *bytes, size_t size) {
    if (!reserve(t, size)) return;
    if (size) memcpy(t->bytes + t->size, bytes, size);
    t->size += size;
    t->bytes[t->size] = 0;
}

void text_format(text *t, const char *format, ...) {
    char piece[128];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof piece)
        t->failed = true;
    else
        text_add(t, piece, (size_t)length);
}

/* ---- JSON ---- */

void put_next(text *t) {
    if (t->size && !strchr("[{:", t->bytes[t->size - 1])) text_add(t, ",", 1);
}

void put_open(text *t, char bracket) {
    put_next(t);
    text_add(t, &bracket, 1);
}

void put_close(text *t, char bracket) {
    text_add(t, &bracket, 1);
}

static void add_quoted(text *t, const char *value) {
    text_add(t, "\"", 1);
    for (; *value; value++) {
        const unsigned char c = (unsigned char)*value;
        if (c == '"' || c == '\\')
            text_format(t, "\\%c", c);
        else if (c < ' ')
            text_format(t, "\\u%04x", c);
        else
            text_add(t, value, 1);
    }
    text_add(t, "\"", 1);
}

void put_key(text *t, const char *name) {
    put_next(t);
    add_quoted(t, name);
    text_add(t, ":", 1);
}

void put_string(text *t, const char *value) {
    put_next(t);
    if (value)
        add_quoted(t, value);
    else
        text_add(t, "null", 4);
}

void put_number(text *t, uint64_t value) {
    put_next(t);
    text_format(t, "%" PRIu64, value);
}

void put_signed(text *t, int64_t value) {
    put_next(t);
    text_format(t, "%" PRId64, value);
}

void put_bool(text *t, bool value) {
    put_next(t);
    text_format(t, "%s", value ? "true" : "false");
}

void put_member_string(text *t, const char *name, const char *value) {
    put_key(t, name);
    put_string(t, value);
}

void put_member_number(text *t, const char *name, uint64_t value) {
    put_key(t, name);
    put_number(t, value);
}

void put_member_signed(text *t, const char *name, int64_t value) {
    put_key(t, name);
    put_signed(t, value);
}

void put_member_bool(text *t, const char *name, bool value) {
    put_key(t, name);
    put_bool(t, value);
}

void put_member_dims(text *t, const char *name, const uint32_t dims[3]) {
    put_key(t, name);
    put_open(t, '[');
    for (int k = 0; k < 3; k++)
        put_number(t, dims[k]);
    put_close(t, ']');
}
