/* The contents of buffers: constants, sequences, and random numbers that depend on the seed and the
 * element's index alone, so that Python and JavaScript can compute the same. */
#include <math.h>
#include <string.h>

#include "session.h"

typedef enum number_kind { UNSIGNED, SIGNED, FLOAT, BFLOAT } number_kind;

static const struct element_type {
    const char *name;
    number_kind kind;
    int bytes;
} types[] = {{"u8", UNSIGNED, 1},  {"s8", SIGNED, 1},  {"u16", UNSIGNED, 2}, {"s16", SIGNED, 2},
             {"u32", UNSIGNED, 4}, {"s32", SIGNED, 4}, {"u64", UNSIGNED, 8}, {"s64", SIGNED, 8},
             {"f16", FLOAT, 2},    {"f32", FLOAT, 4},  {"f64", FLOAT, 8},    {"bf16", BFLOAT, 2}};

static const struct element_type *find_type(const char *name) {
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (strcmp(types[k].name, name) == 0) return &types[k];
    return NULL;
}

int data_element_bytes(const char *type) {
    const struct element_type *t = find_type(type);
    return t ? t->bytes : 0;
}

static uint32_t mix(uint32_t x) {
    x ^= x >> 16;
    x *= 0x21f0aaad;
    x ^= x >> 15;
    x *= 0x735a2d97;
    return x ^ x >> 15;
}

static uint32_t hash(uint32_t seed, uint32_t index) {
    return mix(mix(index ^ seed * 0x9e3779b9) + seed);
}

/* x as the nearest f16 or bf16, ties to even. `mantissa`: its stored bits; min_exponent: of its
 * smallest normal number. */
static uint16_t narrow(double x, int mantissa, int min_exponent) {
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    const uint16_t infinity = (uint16_t)(0x7fff >> mantissa << mantissa);
    if (x != x) return 0x7fff;
    x = fabs(x);
    if (x >= INFINITY) return sign | infinity;
    if (x == 0) return sign;
    int exponent;
    frexp(x, &exponent); /* x = 0.1... * 2^exponent */
    exponent = exponent - 1 < min_exponent ? min_exponent : exponent - 1;
    /* rint: the host rounds to nearest even. A carry increments the exponent, up to infinity. */
    const double units = rint(ldexp(x, mantissa - exponent));
    const double bits = units + ldexp(exponent - min_exponent, mantissa);
    return sign | (bits < infinity ? (uint16_t)bits : infinity);
}

static uint64_t encode(double x, const struct element_type *t) {
    uint64_t bits = 0;
    const float single = (float)x;
    switch (t->kind) {
    case FLOAT:
        if (t->bytes == 2) return narrow(x, 10, -14);
        if (t->bytes == 4) memcpy(&bits, &single, sizeof single);
        if (t->bytes == 8) memcpy(&bits, &x, sizeof x);
        return bits;
    case BFLOAT: return narrow(x, 7, -126);
    case SIGNED: return fabs(x) < 0x1p62 ? (uint64_t)(int64_t)x : 0;
    default: return x < 0 ? (x > -0x1p62 ? (uint64_t)(int64_t)x : 0) : x < 0x1p63 ? (uint64_t)x : 0;
    }
}

void data_fill(void *to, size_t count, const char *type, int pattern, uint32_t seed, double low,
               double high) {
    const struct element_type *t = find_type(type);
    const bool whole = t->kind == UNSIGNED || t->kind == SIGNED;
    unsigned char *at = to;
    for (size_t k = 0; k < count; k++, at += t->bytes) {
        const uint32_t random = hash(seed, (uint32_t)k);
        double x = low;
        if (pattern == 1) x = low + (double)k * high;
        if (pattern == 2)
            x = whole ? low + fmod((double)random, high - low + 1)
                      : low + (high - low) * (double)(random >> 8) / 0x1p24;
        const uint64_t bits = encode(x, t);
        memcpy(at, &bits, (size_t)t->bytes);
    }
}
