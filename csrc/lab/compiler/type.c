#include "type.h"

#include <string.h>

#define SCALAR(k, bytes, text) [k] = {.kind = k, .size = bytes, .align = bytes, .name = text}

static const lab_type scalars[] = {
    SCALAR(LAB_VOID, 1, "void"),     SCALAR(LAB_BOOL, 1, "bool"),
    SCALAR(LAB_I8, 1, "char"),       SCALAR(LAB_U8, 1, "unsigned char"),
    SCALAR(LAB_I16, 2, "short"),     SCALAR(LAB_U16, 2, "unsigned short"),
    SCALAR(LAB_I32, 4, "int"),       SCALAR(LAB_U32, 4, "unsigned int"),
    SCALAR(LAB_I64, 8, "long long"), SCALAR(LAB_U64, 8, "unsigned long long"),
    SCALAR(LAB_F32, 4, "float"),     SCALAR(LAB_F64, 8, "double"),
};

#define VECTOR(k, bytes, lanes, text, alignment)                                                   \
    {.kind = LAB_VECTOR,                                                                           \
     .size = (bytes) * (lanes),                                                                    \
     .align = alignment,                                                                           \
     .count = lanes,                                                                               \
     .of = &scalars[k],                                                                            \
     .name = text}

/* Vectors of 3 are aligned like their elements, the others to their size, at most 16. */
static const lab_type vectors[] = {
    VECTOR(LAB_F32, 4, 2, "float2", 8),    VECTOR(LAB_F32, 4, 3, "float3", 4),
    VECTOR(LAB_F32, 4, 4, "float4", 16),   VECTOR(LAB_I32, 4, 2, "int2", 8),
    VECTOR(LAB_I32, 4, 3, "int3", 4),      VECTOR(LAB_I32, 4, 4, "int4", 16),
    VECTOR(LAB_U32, 4, 2, "uint2", 8),     VECTOR(LAB_U32, 4, 3, "uint3", 4),
    VECTOR(LAB_U32, 4, 4, "uint4", 16),    VECTOR(LAB_F64, 8, 2, "double2", 16),
    VECTOR(LAB_I8, 1, 4, "char4", 4),      VECTOR(LAB_U8, 1, 4, "uchar4", 4),
    VECTOR(LAB_I8, 1, 2, "char2", 2),      VECTOR(LAB_U8, 1, 2, "uchar2", 2),
    VECTOR(LAB_I16, 2, 2, "short2", 4),    VECTOR(LAB_U16, 2, 2, "ushort2", 4),
    VECTOR(LAB_I16, 2, 4, "short4", 8),    VECTOR(LAB_U16, 2, 4, "ushort4", 8),
    VECTOR(LAB_I64, 8, 2, "longlong2", 16)};

static const struct {
    const char *name;
    lab_type_kind kind;
} aliases[] = {{"size_t", LAB_U64},   {"ptrdiff_t", LAB_I64}, {"int8_t", LAB_I8},
               {"uint8_t", LAB_U8},   {"int16_t", LAB_I16},   {"uint16_t", LAB_U16},
               {"int32_t", LAB_I32},  {"uint32_t", LAB_U32},  {"int64_t", LAB_I64},
               {"uint64_t", LAB_U64}, {"uint", LAB_U32},      {"uchar", LAB_U8},
               {"ushort", LAB_U16}};

const lab_type *lab_scalar(lab_type_kind kind) {
    return &scalars[kind];
}

const lab_type *lab_named_type(const char *name) {
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcmp(aliases[i].name, name) == 0) return &scalars[aliases[i].kind];
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        if (strcmp(vectors[i].name, name) == 0) return &vectors[i];
    return NULL;
}

const lab_type *lab_pointer_to(lab *l, const lab_type *to) {
    lab_type *t = lab_new(l, sizeof *t);
    *t = (lab_type){.kind = LAB_POINTER, .size = 8, .align = 8, .of = to};
    return t;
}

const lab_type *lab_array_of(lab *l, const lab_type *of, uint32_t count) {
    lab_type *t = lab_new(l, sizeof *t);
    *t = (lab_type){.kind = LAB_ARRAY, .size = of->size * count, .align = of->align};
    t->count = count;
    t->of = of;
    t->is_const = of->is_const;
    t->is_volatile = of->is_volatile;
    return t;
}

const lab_type *lab_qualified(lab *l, const lab_type *t, bool is_const, bool is_volatile) {
    if (t->is_const == is_const && t->is_volatile == is_volatile) return t;
    lab_type *copy = lab_new(l, sizeof *copy);
    *copy = *t;
    copy->is_const = is_const;
    copy->is_volatile = is_volatile;
    return copy;
}

bool lab_is_integer(const lab_type *t) {
    return t->kind >= LAB_BOOL && t->kind <= LAB_U64;
}
bool lab_is_float(const lab_type *t) {
    return t->kind == LAB_F32 || t->kind == LAB_F64;
}
bool lab_is_arithmetic(const lab_type *t) {
    return lab_is_integer(t) || lab_is_float(t);
}

bool lab_is_signed(const lab_type *t) {
    return lab_is_float(t) || t->kind == LAB_I8 || t->kind == LAB_I16 || t->kind == LAB_I32 ||
           t->kind == LAB_I64;
}

bool lab_same_type(const lab_type *a, const lab_type *b) {
    for (;; a = a->of, b = b->of) {
        if (a->kind != b->kind || a->count != b->count) return false;
        if (a->kind < LAB_POINTER) return true;
        if (a == b) return true;
    }
}

const lab_type *lab_promoted(const lab_type *t) {
    if (!lab_is_arithmetic(t)) return t;
    return lab_is_integer(t) && t->kind < LAB_I32 ? &scalars[LAB_I32] : &scalars[t->kind];
}

/* The kinds are in the order of conversion: int, unsigned, long long, ..., double. */
const lab_type *lab_common(const lab_type *a, const lab_type *b) {
    a = lab_promoted(a);
    b = lab_promoted(b);
    return a->kind > b->kind ? a : b;
}

const char *lab_type_text(lab *l, const lab_type *t) {
    const char *qualifier = t->is_const ? "const " : "";
    if (t->kind == LAB_ARRAY) {
        uint32_t dimensions = 0;
        for (; t->kind == LAB_ARRAY; t = t->of)
            dimensions++;
        return lab_text(l, "array of %s (%u dimensions)", t->name ? t->name : "pointers",
                        dimensions);
    }
    if (t->kind != LAB_POINTER) return lab_text(l, "%s%s", qualifier, t->name);
    uint32_t stars = 0;
    for (; t->kind == LAB_POINTER && stars < 8; t = t->of)
        stars++;
    qualifier = t->is_const ? "const " : "";
    return lab_text(l, "%s%s %.*s", qualifier, t->name ? t->name : "array", (int)stars, "********");
}

int64_t lab_wrapped(const lab_type *t, int64_t value) {
    switch (t->kind) {
    case LAB_BOOL: return value != 0;
    case LAB_I8: return (int8_t)value;
    case LAB_U8: return (uint8_t)value;
    case LAB_I16: return (int16_t)value;
    case LAB_U16: return (uint16_t)value;
    case LAB_I32: return (int32_t)value;
    case LAB_U32: return (uint32_t)value;
    default: return value;
    }
}
