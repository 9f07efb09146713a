/* A growing text, and JSON in it. */
#ifndef LAB_TEXT_H
#define LAB_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct text {
    char *bytes; /* NUL-terminated; NULL while it is empty */
    size_t size, capacity;
    bool failed; /* out of memory: later additions do nothing */
} text;

void text_clear(text *t);
void text_free(text *t);
void text_add(text *t, const char *bytes, size_t size);
void text_format(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* In JSON a comma goes before every item but the first of a list: after '[', '{' and ':' there is
 * none. */
void put_next(text *t);
void put_open(text *t, char bracket);
void put_close(text *t, char bracket);
void put_key(text *t, const char *name);
void put_string(text *t, const char *value); /* NULL: null */
void put_number(text *t, uint64_t value);
void put_signed(text *t, int64_t value);
void put_bool(text *t, bool value);

/* The same as members of an object. */
void put_member_string(text *t, const char *name, const char *value);
void put_member_number(text *t, const char *name, uint64_t value);
void put_member_signed(text *t, const char *name, int64_t value);
void put_member_bool(text *t, const char *name, bool value);
void put_member_dims(text *t, const char *name, const uint32_t dims[3]);

#endif
