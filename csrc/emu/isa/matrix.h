/* Matrix instructions: what mma.sync, wmma and wgmma share.
 *
 * Each computes D = A B + C for a tile. Operands are fragments (registers of a warp that hold the
 * tile's elements in a layout of their own) or come from shared memory. Each instruction first
 * unpacks every operand into a plain row-major array (A: m x k, B: k x n, C: m x n). Then one of
 * three multiplies follows: floating point (matrix_float_template.h), integers and bits, or f64
 * (both in matrix_exact_template.h). So every layout and every arithmetic is written once, and the
 * inner loops are vector code over n.
 */
#ifndef EMU_MATRIX_H
#define EMU_MATRIX_H

#include <float.h>

#include "alu_format.h"
#include "../machine/machine.h"
#include "../base/lanes.h"
#include "../observe/observer.h"

typedef enum matrix_element {
    ELEMENT_F16,
    ELEMENT_BF16,
    ELEMENT_TF32,
    ELEMENT_E4M3,
    ELEMENT_E5M2,
    ELEMENT_S8,
    ELEMENT_U8,
    ELEMENT_S4,
    ELEMENT_U4,
    ELEMENT_B1,
    ELEMENT_F64,
    ELEMENT_F32,
    ELEMENT_S32,
    N_ELEMENTS,
    NO_ELEMENT = N_ELEMENTS
} matrix_element;

enum {
    MAX_REGISTERS = 8, /* per fragment */
    MAX_N = 64,        /* columns at a time; wgmma's n, up to 256, is processed in slabs */
    MAX_A = 1024,      /* elements: 16 x 64 */
    MAX_B = 2048,      /* 32 x 64, or 64 x 32 */
    MAX_C = 1024
};

/* The layout of a fragment in a warp. Register r of lane l holds per_register elements of the
 * array. The first is at index[r][l], the second element_step after it, and each further pair
 * pair_step after the one before. Registers from n_distinct on repeat the first ones. */
typedef struct fragment_layout {
    uint32_t n_registers, n_distinct, per_register, element_step, pair_step;
    uint16_t index[MAX_REGISTERS][LANES];
} fragment_layout;

typedef enum bit_operation { BITS_XOR, BITS_AND } bit_operation;

typedef struct matrix_form {
    /* k counts unpacked elements: for b1, words of 32 bits. */
    uint32_t m, n, k; /* k of a sparse product: the stored columns of A, half of all */
    bool sparse;
    uint32_t selector; /* which lanes hold the metadata (matrix_product_template.h) */
    matrix_element a, b, c, d;
    bool saturate;      /* integers: .satfinite */
    bit_operation bits; /* b1: .xor or .and */
    uint32_t rounding;  /* f64 */
    /* Floating point (matrix_float_template.h): bits kept below the largest exponent, ... */
    uint32_t fraction_bits;
    uint32_t result_bits; /* ... mantissa bits of an f32 result: 23, or 13 */
    uint32_t k_step;      /* ... elements of k that are summed at once */
    bool adds_c_last;     /* ... c is added after all steps */
    fragment_layout a_layout, b_layout, c_layout, d_layout;
} matrix_form;

/* The frame offsets of each fragment's registers. */
typedef struct fragment_slots {
    uint32_t *a, *b, *c, *d;
    uint32_t metadata; /* of a sparse product: a register */
} fragment_slots;

/* Numbers as significand x 2^exponent with 1 <= |significand| < 2. A subnormal has its format's
 * minimum exponent and |significand| < 1. NaN and infinity are in significand. */
typedef struct split_floats {
    float *significand;
    int32_t *exponent;
} split_floats;

enum { ZERO_EXPONENT = -1000 }; /* of zero: below all others */

/* The operands as arrays. Which members are used depends on the form. */
typedef struct matrix_tile {
    union {
        float significand[MAX_A];
        int32_t integer[MAX_A];
        double f64[MAX_A / 2];
    } a;
    union {
        float significand[MAX_B];
        int32_t integer[MAX_B];
        double f64[MAX_B / 2];
    } b;
    union {
        float significand[MAX_C];
        int32_t integer[MAX_C];
        double f64[MAX_C / 2];
    } c;
    union {
        uint32_t bits[MAX_C];
        double f64[MAX_C / 2];
    } d;
    int32_t a_exponent[MAX_A], b_exponent[MAX_B], c_exponent[MAX_C];
    uint16_t b_row[MAX_A]; /* sparse: the row of B that an element of A is multiplied with */
} matrix_tile;

static inline uint32_t rows_of_b(const matrix_form *f) {
    return f->sparse ? 2 * f->k : f->k;
}

static inline uint32_t layout_offset(const fragment_layout *layout, uint32_t which) {
    return which % 2 * layout->element_step + which / 2 * layout->pair_step;
}

#define ALWAYS_INLINE static inline __attribute__((always_inline))

#endif
