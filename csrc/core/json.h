/* A growing text of JSON. Each value is a member of an object, with its name, or of an array, name
 * NULL. json_next puts a comma before all but the first; after a name alone there is none. */
#ifndef SMK_JSON_H
#define SMK_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct json {
    char *text; /* malloc; NUL-terminated; NULL while it is empty */
    size_t n, capacity;
    bool out_of_memory; /* later additions do nothing */
} json;

void json_clear(json *j);
void json_raw(json *j, const char *text);
/* Starts a member: of an object with a name; of an array, name NULL. */
void json_next(json *j, const char *name);
void json_open(json *j, const char *name, char bracket); /* '{' or '[' */
void json_close(json *j, char bracket);                  /* '}' or ']' */
void json_number(json *j, const char *name, int64_t value);
void json_unsigned(json *j, const char *name, uint64_t value);
void json_real(json *j, const char *name, double value); /* 0 for infinity and NaN */
/* NULL: null. Bytes that are not UTF-8 become U+FFFD. */
void json_text(json *j, const char *name, const char *value);
void json_true_false(json *j, const char *name, bool value);
void json_null(json *j, const char *name);
/* null for UINT32_MAX */
void json_index(json *j, const char *name, uint32_t value);
void json_extent(json *j, const char *name, const uint32_t extent[3]);

#endif
