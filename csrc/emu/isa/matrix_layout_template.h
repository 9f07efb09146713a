/* The layouts of fragments. PTX documents those of mma.sync (and of wgmma's registers); those of
 * wmma are opaque and built of the same pieces here.
 *
 * With g = lane / 4, t = lane % 4 and p elements per register: a register of A holds elements t * p
 * to t * p + p - 1 of row g; one of B holds those of column g. C's registers hold row g, columns 2t
 * and 2t + 1. A larger tile repeats that in further registers, in this order:
 *
 *   A           by 8 rows, then by 4 * p columns, then by 16 rows
 *   B           along k, then along n
 *   B, n of 32  by 8 columns, then along k, then by 16 columns (wmma only)
 *   C           by 8 rows, then by 8 columns, then by 16 rows
 *
 * An H200 has the same layouts of A and B.
 */
#include "matrix.h"

static uint32_t element_bits(matrix_element e) {
    static const uint8_t bits[N_ELEMENTS] = {
        [ELEMENT_F16] = 16, [ELEMENT_BF16] = 16, [ELEMENT_TF32] = 32, [ELEMENT_E4M3] = 8,
        [ELEMENT_E5M2] = 8, [ELEMENT_S8] = 8,    [ELEMENT_U8] = 8,    [ELEMENT_S4] = 4,
        [ELEMENT_U4] = 4,   [ELEMENT_B1] = 32, /* 32-bit words of bits */
        [ELEMENT_F64] = 64, [ELEMENT_F32] = 32,  [ELEMENT_S32] = 32,
    };
    return bits[e];
}

/* Elements per register. */
static uint32_t elements_per(matrix_element e) {
    const uint32_t bits = element_bits(e);
    return bits < 32 ? 32 / bits : 1;
}

static fragment_layout layout_a(uint32_t m, uint32_t k, matrix_element e) {
    fragment_layout layout = {.per_register = elements_per(e), .element_step = 1, .pair_step = 2};
    const uint32_t columns = k / (4 * layout.per_register), rows = m < 16 ? 1 : 2;
    for (uint32_t first_row = 0; first_row < m; first_row += 8 * rows)
        for (uint32_t block = 0; block < columns; block++)
            for (uint32_t half = 0; half < rows; half++, layout.n_distinct++)
                for (uint32_t lane = 0; lane < LANES; lane++) {
                    const uint32_t row = first_row + 8 * half + lane / 4;
                    const uint32_t column = (4 * block + lane % 4) * layout.per_register;
                    layout.index[layout.n_distinct][lane] = (uint16_t)(row * k + column);
                }
    layout.n_registers = layout.n_distinct;
    return layout;
}

static fragment_layout layout_b(uint32_t n, uint32_t k, matrix_element e) {
    fragment_layout layout = {
        .per_register = elements_per(e), .element_step = n, .pair_step = 2 * n};
    const uint32_t columns = n < 32 ? 8 : 16;
    for (uint32_t first = 0; first < n; first += columns)
        for (uint32_t block = 0; block < k / (4 * layout.per_register); block++)
            for (uint32_t half = 0; half < columns; half += 8, layout.n_distinct++)
                for (uint32_t lane = 0; lane < LANES; lane++) {
                    const uint32_t row = (4 * block + lane % 4) * layout.per_register;
                    layout.index[layout.n_distinct][lane] =
                        (uint16_t)(row * n + first + half + lane / 4);
                }
    layout.n_registers = layout.n_distinct;
    return layout;
}

/* stride: distance between rows of the array, in elements. */
static fragment_layout layout_c(uint32_t m, uint32_t n, uint32_t stride, matrix_element e) {
    fragment_layout layout = {.per_register = e == ELEMENT_F16 ? 2 : 1, .element_step = 1};
    const uint32_t rows = m < 16 ? 1 : 2;
    for (uint32_t first_row = 0; first_row < m; first_row += 8 * rows)
        for (uint32_t block = 0; block < n / 8; block++)
            for (uint32_t half = 0; half < rows; half++)
                for (uint32_t k = 0; k < 2; k += layout.per_register, layout.n_distinct++)
                    for (uint32_t lane = 0; lane < LANES; lane++) {
                        const uint32_t row = first_row + 8 * half + lane / 4;
                        const uint32_t column = 8 * block + 2 * (lane % 4) + k;
                        layout.index[layout.n_distinct][lane] = (uint16_t)(row * stride + column);
                    }
    layout.n_registers = layout.n_distinct;
    return layout;
}

/* Reorders k: of each four neighbours along k, the first two go to the first half of k and the
 * others to the second half. */
static void split_k_by_pairs(fragment_layout *layout, uint32_t k, uint32_t lines, bool is_a) {
    layout->pair_step = is_a ? k / 2 : k / 2 * lines;
    for (uint32_t r = 0; r < layout->n_distinct; r++)
        for (uint32_t lane = 0; lane < LANES; lane++) {
            const uint32_t at = layout->index[r][lane];
            const uint32_t along_k = is_a ? at % k : at / lines, line = is_a ? at / k : at % lines;
            layout->index[r][lane] =
                (uint16_t)(is_a ? line * k + along_k / 2 : along_k / 2 * lines + line);
        }
}
