/* What all parts of the compiler share: memory, errors, names, positions.
 *
 * The first error is kept and sets `failed`. After that the parser reads only TOKEN_END and code
 * generation stops, so no function has to return a status.
 */
#ifndef LAB_LAB_H
#define LAB_LAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emu/base/arena.h"

/* Limits that bound time and memory for any text. */
enum {
    LAB_MAX_SOURCE = 256 << 10,  /* bytes */
    LAB_MAX_TOKENS = 200000,     /* after expansion of macros */
    LAB_MAX_EXPANSIONS = 100000, /* of macros */
    LAB_MAX_NAMES = 16384,
    LAB_MAX_NAME = 128,     /* characters of a name */
    LAB_MAX_DEPTH = 200,    /* of nested expressions and statements */
    LAB_MAX_INLINED = 32,   /* of nested calls */
    LAB_MAX_CODE = 60000,   /* PTX instructions of a module */
    LAB_MAX_WORK = 1000000, /* visits of nodes by the code generator */
    LAB_MAX_PARAMETERS = 64,
    LAB_MAX_BYTES = 1 << 30 /* of an array */
};

typedef struct lab_position {
    uint32_t line, column;
} lab_position;

struct lab_macro;
struct lab_symbol;

/* An identifier; there is one lab_name for each spelling. */
typedef struct lab_name {
    struct lab_name *next; /* in its bucket */
    const char *text;
    uint32_t length;
    int keyword;               /* lab_keyword, 0: none */
    struct lab_macro *macro;   /* NULL: none */
    struct lab_symbol *symbol; /* in the innermost scope; NULL: none */
    uint32_t ptx_names;        /* how many names of the PTX are made of it */
    bool is_host;              /* a function that was left out */
} lab_name;

enum { LAB_BUCKETS = 4096 };

typedef struct lab {
    ptx_arena *arena;
    const char *file;
    char *error;
    size_t error_size;
    bool failed;
    uint32_t names;
    lab_name *buckets[LAB_BUCKETS];
    _Alignas(16) unsigned char spare[1024]; /* what lab_new returns when memory is out */
} lab;

/* A growing array. */
typedef struct lab_vector {
    void *items;
    uint32_t count, capacity;
} lab_vector;

/* Keeps the first message, with file, line and column. */
void lab_fail(lab *l, lab_position at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Zeroed memory of at most sizeof l->spare bytes; never NULL. */
void *lab_new(lab *l, size_t size);

/* A further zeroed item of `size` bytes; never NULL. */
void *lab_push(lab *l, lab_vector *v, size_t size);

/* A text in the arena, as by printf. */
const char *lab_text(lab *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

lab_name *lab_intern(lab *l, const char *text, size_t length, lab_position at);

#endif
