/* Matrix instructions: what mma.sync, wmma and wgmma share.
 *
 * Each computes D = A B + C for a tile. Its operands come as fragments, registers of a warp that hold the
 * tile's elements in an order of their own, or from shared memory. Here every operand first becomes a
 * plain row-major array (A: m x k, B: k x n, C: m x n), once per instruction; then one of three rules
 * multiplies: floating point (matrix_float.c), integers and bits, f64 (matrix_exact.c). So a layout and an
 * arithmetic each stand in one place, and the inner loops are vector code over n.
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
    MAX_REGISTERS = 8, /* of a fragment */
    MAX_N = 64,        /* columns at a time; wgmma takes its up to 256 in slabs */
    MAX_A = 1024,      /* elements: 16 x 64 */
    MAX_B = 2048,      /* 32 x 64 */
    MAX_C = 1024
};

/* How a fragment lies over the warp: register r of lane l holds `per` elements, the first at at[r][l] of
 * the array, the next `step` further, pairs `far` from each other. Registers beyond `distinct` repeat the
 * first ones. */
typedef struct matrix_part {
    uint32_t registers, distinct, per, step, far;
    uint16_t at[MAX_REGISTERS][LANES];
} matrix_part;

typedef enum bit_operation { BITS_XOR, BITS_AND } bit_operation;

typedef struct matrix_form {
    uint32_t m, n, k; /* k: of elements as unpacked: bits come as words of 32 */
    matrix_element a, b, c, d;
    bool saturate;      /* integers */
    bit_operation bits; /* b1 */
    uint32_t
        fraction; /* floating point: bits kept below the largest exponent; see matrix_float.c */
    uint32_t result_bits; /* ... and of an f32 result: 23, or 13 */
    uint32_t step;        /* ... elements of k that are added at once */
    bool adds_last;       /* ... c is added after all steps */
    matrix_part a_part, b_part, c_part, d_part;
} matrix_form;

/* The slots of an instruction's fragments. */
typedef struct matrix_slots {
    uint32_t *a, *b, *c, *d;
} matrix_slots;

/* A finite number is significand x 2^exponent with 1 <= |significand| < 2; a subnormal has its format's
 * least exponent and a smaller significand. NaN and infinity stand in significand. */
typedef struct split_numbers {
    float *significand;
    int32_t *exponent;
} split_numbers;

enum { ZERO_EXPONENT = -1000 }; /* a zero's: never the largest */

/* The operands as arrays; which members are used depends on the form. */
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
} matrix_tile;

static inline uint32_t part_offset(const matrix_part *part, uint32_t which) {
    return which % 2 * part->step + which / 2 * part->far;
}

#define INLINE_PART static inline __attribute__((always_inline))

#endif
