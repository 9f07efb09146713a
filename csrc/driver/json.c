/* JSON text, one value after the other. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

static void add(json *j, const char *text, size_t n) {
    if (j->failed) return;
    if (n > j->capacity - j->n) {
        const size_t capacity = 2 * (j->capacity + n) + 256;
        char *larger = realloc(j->text, capacity);
        if (!larger) {
            j->failed = true;
            return;
        }
        j->text = larger;
        j->capacity = capacity;
    }
    memcpy(j->text + j->n, text, n);
    j->n += n;
}

/* The comma before a value that follows another one. */
static void separate(json *j) {
    if (j->comma) add(j, ",", 1);
    j->comma = true;
}

static void add_string(json *j, const char *text) {
    add(j, "\"", 1);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        char escaped[8];
        if (*c >= 0x20 && *c < 0x7f && *c != '"' && *c != '\\')
            add(j, (const char *)c, 1);
        else
            add(j, escaped, (size_t)snprintf(escaped, sizeof escaped, "\\u%04x", *c));
    }
    add(j, "\"", 1);
}

void json_text(json *j, const char *text) {
    separate(j);
    if (text)
        add_string(j, text);
    else
        add(j, "null", 4);
}

void json_int(json *j, int64_t value) {
    char text[32];
    separate(j);
    add(j, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)value));
}

void json_uint(json *j, uint64_t value) {
    char text[32];
    separate(j);
    add(j, text, (size_t)snprintf(text, sizeof text, "%llu", (unsigned long long)value));
}

void json_real(json *j, double value) {
    char text[40];
    separate(j);
    add(j, text, (size_t)snprintf(text, sizeof text, "%.9f", isfinite(value) ? value : 0.0));
}

void json_bool(json *j, bool value) {
    separate(j);
    add(j, value ? "true" : "false", value ? 4 : 5);
}

void json_key(json *j, const char *key) {
    separate(j);
    add_string(j, key);
    add(j, ":", 1);
    j->comma = false;
}

void json_open(json *j, char bracket) {
    separate(j);
    add(j, &bracket, 1);
    j->comma = false;
}

void json_close(json *j, char bracket) {
    add(j, &bracket, 1);
    j->comma = true;
}
