/* D = A B + C on a tile's arrays: which multiply a form uses, and sparse products.
 *
 * A sparse product (mma.sp, wgmma.mma_async.sp) stores half of A's columns. Metadata tells which:
 * four bits per row and chunk of columns.
 *
 *   16 and 8 bits   chunks of 4 columns, 2 stored; two indices of 2 bits, the first one lower
 *   4 bits          chunks of 8 columns, 4 stored; two indices of neighbouring pairs
 *   tf32            chunks of 2 columns, 1 stored; 0b0100: the first, 0b1110: the second
 *
 * Only the rows of B that the stored columns name take part. So each row of A is multiplied with
 * its own choice of B's rows, as a dense product.
 *
 * A quad of lanes (4g to 4g + 3) has the codes of rows g and g + 8. The selector says which of its
 * lanes hold them:
 *
 *   16 bits, tf32   4 chunks of row g in the low half of a register, of row g + 8 in the high half;
 *                   the next 4 chunks in the next lane
 *   8 and 4 bits    8 chunks of row g in a register, of row g + 8 in the next lane; the next 8
 *                   chunks two lanes on
 *
 * (PTX ISA, "Sparse matrix storage" and the figures of the metadata.)
 */
#include "matrix.h"

static bool is_float_element(matrix_element e) {
    return e <= ELEMENT_E5M2;
}

static bool is_integer_element(matrix_element e) {
    return e >= ELEMENT_S8 && e <= ELEMENT_U4;
}

/* A is dense, or its rows are as dense as the form's k. */
static void multiply_dense(const matrix_form *f, matrix_tile *t) {
    if (f->a == ELEMENT_F64)
        multiply_f64(f, t->a.f64, t->b.f64, t->c.f64, t->d.f64);
    else if (is_float_element(f->a))
        multiply_float(f, t);
    else if (f->a == ELEMENT_B1)
        multiply_bits(f, t->a.integer, t->b.integer, t->c.integer, t->d.bits);
    else
        multiply_integers(f, t->a.integer, t->b.integer, t->c.integer, t->d.bits);
}

/* ---- sparse products ---- */

enum { CODE_BITS = 4, QUAD = 4 };

/* Columns of A per code of the metadata. */
static uint32_t sparse_chunk(matrix_element e) {
    return e == ELEMENT_TF32 ? 2 : element_bits(e) == 4 ? 8 : 4;
}

/* Lanes of a quad that hold codes. */
static uint32_t metadata_lanes(const matrix_form *f) {
    const uint32_t chunks = rows_of_b(f) / sparse_chunk(f->a);
    return element_bits(f->a) >= 16 ? chunks / 4 : chunks / 8 * 2;
}

static uint32_t metadata_code(const matrix_form *f, const uint32_t *words, uint32_t row,
                              uint32_t chunk) {
    const uint32_t in_group = row % 8, second = row / 8;
    const uint32_t quad = QUAD * in_group + f->selector * metadata_lanes(f);
    if (element_bits(f->a) >= 16)
        return words[quad + chunk / 4] >> (16 * second + CODE_BITS * (chunk % 4)) & 0xf;
    return words[quad + second + chunk / 8 * 2] >> CODE_BITS * (chunk % 8) & 0xf;
}

/* The column of A, and so the row of B, of stored element k. */
static uint32_t sparse_column(const matrix_form *f, const uint32_t *words, uint32_t row,
                              uint32_t k) {
    const uint32_t size = sparse_chunk(f->a), stored = size / 2, in_chunk = k % stored;
    const uint32_t code = metadata_code(f, words, row, k / stored), first = k / stored * size;
    switch (f->a) {
    case ELEMENT_TF32: return first + (code >> 1 & 1);
    case ELEMENT_S4:
    case ELEMENT_U4: return first + (code >> in_chunk / 2 * 2 & 3) * 2 + in_chunk % 2;
    default: return first + (code >> in_chunk * 2 & 3);
    }
}

/* The place of stored element k in a row of the array: see split_k_by_pairs. */
static uint32_t stored_place(const matrix_form *f, uint32_t k) {
    return f->adds_c_last ? k % 4 / 2 * (f->k / 2) + k / 4 * 2 + k % 2 : k;
}

/* words: the metadata of all lanes. False if a code of tf32 is not valid: PTX leaves its result
 * undefined, and an H200 joins halves of two elements. Equal indices of other types are undefined
 * in PTX, too; an H200 multiplies with that row of B twice, and so does this. */
static bool read_metadata(const matrix_form *f, const uint32_t *words, matrix_tile *t) {
    for (uint32_t row = 0; row < f->m && f->a == ELEMENT_TF32; row++)
        for (uint32_t chunk = 0; chunk < f->k; chunk++) {
            const uint32_t code = metadata_code(f, words, row, chunk);
            if (code != 0x4 && code != 0xe) return false;
        }
    for (uint32_t row = 0; row < f->m; row++)
        for (uint32_t k = 0; k < f->k; k++)
            t->b_row[row * f->k + stored_place(f, k)] = (uint16_t)sparse_column(f, words, row, k);
    return true;
}

/* One row of A, the rows of B that it names, and one row of C, as the tile of a dense product. The
 * arrays' members have the same size, so integers stand for floats, too. */
static void gather_row(const matrix_form *f, const matrix_tile *t, uint32_t row, matrix_tile *one) {
    const size_t a_bytes = f->k * sizeof(int32_t), line = f->n * sizeof(int32_t);
    const bool floats = is_float_element(f->a);
    memcpy(one->a.integer, t->a.integer + row * f->k, a_bytes);
    memcpy(one->c.integer, t->c.integer + row * f->n, line);
    if (floats) {
        memcpy(one->a_exponent, t->a_exponent + row * f->k, a_bytes);
        memcpy(one->c_exponent, t->c_exponent + row * f->n, line);
    }
    for (uint32_t k = 0; k < f->k; k++) {
        const uint32_t from = t->b_row[row * f->k + k] * f->n;
        memcpy(one->b.integer + k * f->n, t->b.integer + from, line);
        if (floats) memcpy(one->b_exponent + k * f->n, t->b_exponent + from, line);
    }
}

static void multiply_sparse(const matrix_form *f, const matrix_tile *t, uint32_t *d) {
    matrix_form one_row = *f;
    matrix_tile one;
    one_row.m = 1;
    for (uint32_t row = 0; row < f->m; row++) {
        gather_row(f, t, row, &one);
        multiply_dense(&one_row, &one);
        memcpy(d + row * f->n, one.d.bits, f->n * sizeof *d);
    }
}

static void multiply_tile(const matrix_form *f, matrix_tile *t) {
    if (f->sparse)
        multiply_sparse(f, t, t->d.bits);
    else
        multiply_dense(f, t);
}
