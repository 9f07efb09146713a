/* How fragments lie over a warp. PTX documents these for mma.sync (and wgmma's registers); wmma's are
 * opaque, and made of the same pieces.
 *
 * With g = lane / 4 and t = lane % 4, a register of A holds `per` neighbouring elements of row g from
 * column t * per on; one of B those of column g. C's registers hold row g, columns 2t and 2t + 1. Larger
 * tiles repeat that: A by 8 rows, then by 4 * per columns, then by 16 rows; B along k, then along n (of 32
 * columns, wmma's, as A does); C by 8 rows, then 8 columns, then 16 rows. An H200 has the same A and B.
 */
#include "matrix.h"

static uint32_t element_bits(matrix_element e) {
    static const uint8_t bits[N_ELEMENTS] = {
        [ELEMENT_F16] = 16, [ELEMENT_BF16] = 16, [ELEMENT_TF32] = 32, [ELEMENT_E4M3] = 8,
        [ELEMENT_E5M2] = 8, [ELEMENT_S8] = 8,    [ELEMENT_U8] = 8,    [ELEMENT_S4] = 4,
        [ELEMENT_U4] = 4,   [ELEMENT_B1] = 32, /* words of bits */
        [ELEMENT_F64] = 64, [ELEMENT_F32] = 32,  [ELEMENT_S32] = 32,
    };
    return bits[e];
}

/* Elements in a register. */
static uint32_t elements_per(matrix_element e) {
    const uint32_t bits = element_bits(e);
    return bits < 32 ? 32 / bits : 1;
}

static matrix_part part_a(uint32_t m, uint32_t k, matrix_element e) {
    matrix_part part = {.per = elements_per(e), .step = 1, .far = 2};
    const uint32_t columns = k / (4 * part.per), rows = m < 16 ? 1 : 2;
    for (uint32_t first_row = 0; first_row < m; first_row += 8 * rows)
        for (uint32_t block = 0; block < columns; block++)
            for (uint32_t half = 0; half < rows; half++, part.distinct++)
                for (uint32_t lane = 0; lane < LANES; lane++) {
                    const uint32_t row = first_row + 8 * half + lane / 4;
                    const uint32_t column = (4 * block + lane % 4) * part.per;
                    part.at[part.distinct][lane] = (uint16_t)(row * k + column);
                }
    part.registers = part.distinct;
    return part;
}

static matrix_part part_b(uint32_t n, uint32_t k, matrix_element e) {
    matrix_part part = {.per = elements_per(e), .step = n, .far = 2 * n};
    const uint32_t columns = n < 32 ? 8 : 16;
    for (uint32_t first = 0; first < n; first += columns)
        for (uint32_t block = 0; block < k / (4 * part.per); block++)
            for (uint32_t half = 0; half < columns; half += 8, part.distinct++)
                for (uint32_t lane = 0; lane < LANES; lane++) {
                    const uint32_t row = (4 * block + lane % 4) * part.per;
                    part.at[part.distinct][lane] = (uint16_t)(row * n + first + half + lane / 4);
                }
    part.registers = part.distinct;
    return part;
}

/* stride: from row to row of the array */
static matrix_part part_c(uint32_t m, uint32_t n, uint32_t stride, matrix_element e) {
    matrix_part part = {.per = e == ELEMENT_F16 ? 2 : 1, .step = 1};
    const uint32_t rows = m < 16 ? 1 : 2;
    for (uint32_t first_row = 0; first_row < m; first_row += 8 * rows)
        for (uint32_t block = 0; block < n / 8; block++)
            for (uint32_t half = 0; half < rows; half++)
                for (uint32_t k = 0; k < 2; k += part.per, part.distinct++)
                    for (uint32_t lane = 0; lane < LANES; lane++) {
                        const uint32_t row = first_row + 8 * half + lane / 4;
                        const uint32_t column = 8 * block + 2 * (lane % 4) + k;
                        part.at[part.distinct][lane] = (uint16_t)(row * stride + column);
                    }
    part.registers = part.distinct;
    return part;
}

/* Of each four neighbours along k the first two go to the first half of k, the others to the second. */
static void part_pairs(matrix_part *part, uint32_t k, uint32_t lines, bool is_a) {
    part->far = is_a ? k / 2 : k / 2 * lines;
    for (uint32_t r = 0; r < part->distinct; r++)
        for (uint32_t lane = 0; lane < LANES; lane++) {
            const uint32_t at = part->at[r][lane];
            const uint32_t along_k = is_a ? at % k : at / lines, line = is_a ? at / k : at % lines;
            part->at[r][lane] =
                (uint16_t)(is_a ? line * k + along_k / 2 : along_k / 2 * lines + line);
        }
}
