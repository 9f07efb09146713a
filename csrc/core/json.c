/* Writes JSON; see json.h. */
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(json *j, size_t more) {
    if (j->out_of_memory || more > SIZE_MAX / 4) return !(j->out_of_memory = true);
    const size_t needed = j->n + more + 1;
    if (needed <= j->capacity) return true;
    const size_t capacity = needed + needed / 2 + 256;
    char *larger = capacity < SIZE_MAX / 2 ? realloc(j->text, capacity) : NULL;
    if (!larger) return !(j->out_of_memory = true);
    j->text = larger;
    j->capacity = capacity;
    return true;
}

static void append(json *j, const char *text, size_t n) {
    if (!reserve(j, n)) return;
    memcpy(j->text + j->n, text, n);
    j->n += n;
    j->text[j->n] = 0;
}

void json_clear(json *j) {
    j->n = 0;
    j->out_of_memory = false;
}

void json_raw(json *j, const char *text) {
    append(j, text, strlen(text));
}

/* The length of the UTF-8 sequence at `text`; 0: it is none. */
static size_t sequence_length(const unsigned char *text) {
    const unsigned char c = text[0];
    const size_t n = c < 0x80                 ? 1
                     : c >= 0xc2 && c <= 0xdf ? 2
                     : c >= 0xe0 && c <= 0xef ? 3
                     : c >= 0xf0 && c <= 0xf4 ? 4
                                              : 0;
    for (size_t k = 1; k < n; k++)
        if ((text[k] & 0xc0) != 0x80) return 0;
    if ((c == 0xe0 && text[1] < 0xa0) || (c == 0xed && text[1] > 0x9f) ||
        (c == 0xf0 && text[1] < 0x90) || (c == 0xf4 && text[1] > 0x8f))
        return 0;
    return n;
}

static void quoted(json *j, const char *given) {
    char escape[8];
    json_raw(j, "\"");
    for (const unsigned char *c = (const unsigned char *)given; *c;) {
        const size_t n = sequence_length(c);
        if (n == 0) {
            json_raw(j, "\\ufffd");
        } else if (*c == '"' || *c == '\\' || *c < 0x20) {
            snprintf(escape, sizeof escape, "\\u%04x", *c);
            json_raw(j, escape);
        } else {
            append(j, (const char *)c, n);
        }
        c += n ? n : 1;
    }
    json_raw(j, "\"");
}

void json_next(json *j, const char *name) {
    const char last = j->n ? j->text[j->n - 1] : '{';
    if (last != '{' && last != '[' && last != ':') json_raw(j, ",");
    if (!name) return;
    quoted(j, name);
    json_raw(j, ":");
}

void json_open(json *j, const char *name, char bracket) {
    json_next(j, name);
    append(j, &bracket, 1);
}

void json_close(json *j, char bracket) {
    append(j, &bracket, 1);
}

void json_number(json *j, const char *name, int64_t value) {
    char text[32];
    json_next(j, name);
    snprintf(text, sizeof text, "%" PRId64, value);
    json_raw(j, text);
}

void json_unsigned(json *j, const char *name, uint64_t value) {
    char text[32];
    json_next(j, name);
    snprintf(text, sizeof text, "%" PRIu64, value);
    json_raw(j, text);
}

void json_real(json *j, const char *name, double value) {
    char text[400]; /* of 309 digits before the point */
    json_next(j, name);
    snprintf(text, sizeof text, "%.9f", isfinite(value) ? value : 0.0);
    json_raw(j, text);
}

void json_text(json *j, const char *name, const char *value) {
    json_next(j, name);
    if (value)
        quoted(j, value);
    else
        json_raw(j, "null");
}

void json_true_false(json *j, const char *name, bool value) {
    json_next(j, name);
    json_raw(j, value ? "true" : "false");
}

void json_null(json *j, const char *name) {
    json_text(j, name, NULL);
}

void json_index(json *j, const char *name, uint32_t value) {
    if (value == UINT32_MAX)
        json_null(j, name);
    else
        json_number(j, name, value);
}

void json_extent(json *j, const char *name, const uint32_t extent[3]) {
    json_open(j, name, '[');
    for (int k = 0; k < 3; k++)
        json_number(j, NULL, extent[k]);
    json_close(j, ']');
}
