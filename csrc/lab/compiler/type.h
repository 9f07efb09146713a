/* Types of the subset. */
#ifndef LAB_TYPE_H
#define LAB_TYPE_H

#include "lab.h"

typedef enum lab_type_kind {
    LAB_VOID,
    LAB_BOOL, /* from here to LAB_U64: integers, narrow ones first */
    LAB_I8,
    LAB_U8,
    LAB_I16,
    LAB_U16,
    LAB_I32,
    LAB_U32,
    LAB_I64,
    LAB_U64,
    LAB_F32,
    LAB_F64,
    LAB_POINTER,
    LAB_ARRAY,
    LAB_VECTOR /* float4 and its kin */
} lab_type_kind;

typedef struct lab_type {
    lab_type_kind kind;
    bool is_const, is_volatile;
    uint32_t size, align, count; /* count: elements of an array (0: unknown), lanes of a vector */
    const struct lab_type *of;   /* what a pointer points to; elements */
    const char *name;            /* of scalars and vectors */
} lab_type;

/* The unqualified scalar type. */
const lab_type *lab_scalar(lab_type_kind kind);

/* "float4", "uint", "size_t": NULL if it names no type. */
const lab_type *lab_named_type(const char *name);

const lab_type *lab_pointer_to(lab *l, const lab_type *to);
const lab_type *lab_array_of(lab *l, const lab_type *of, uint32_t count);
const lab_type *lab_qualified(lab *l, const lab_type *t, bool is_const, bool is_volatile);

bool lab_is_integer(const lab_type *t); /* bool, too */
bool lab_is_float(const lab_type *t);
bool lab_is_arithmetic(const lab_type *t);
bool lab_is_signed(const lab_type *t);

/* Equal but for const and volatile at any level. */
bool lab_same_type(const lab_type *a, const lab_type *b);

/* Integer promotion, and the usual arithmetic conversions. */
const lab_type *lab_promoted(const lab_type *t);
const lab_type *lab_common(const lab_type *a, const lab_type *b);

/* As in C++, for messages. */
const char *lab_type_text(lab *l, const lab_type *t);

/* An integer as a value of type t: cut, and extended with its sign. */
int64_t lab_wrapped(const lab_type *t, int64_t value);

#endif
