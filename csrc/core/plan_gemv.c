/* Plans blocks of kernels/include/gemv_parts.cuh: threads enough to keep all multiprocessors
 * reading, and no more than there are vectors of 16 bytes.
 */
#include "plan_parts.h"

#include "../kernels/args.h"

enum {
    BLOCK = 256, /* threads, if a row of the matrix has not more */
    PASSES = 4   /* loads one after another that take no longer than a second launch */
};

/* The largest power of 2 up to x, from `low` to `high`, which are powers of 2. */
static int64_t power_of_2(double x, int64_t low, int64_t high) {
    int64_t power = low;
    while (power < high && (double)(2 * power) <= x)
        power *= 2;
    return power;
}

/* The smallest power of 2 from x on, up to `high`. */
static int64_t whole_power(int64_t x, int64_t high) {
    int64_t power = 1;
    while (power < x && power < high)
        power *= 2;
    return power;
}

/* The matrix of a product, in its batch, and the variant's parameters; 0: to be chosen. */
typedef struct gemv {
    int64_t thick, k; /* rows or columns of the matrix */
    int64_t wide;     /* elements of 16 bytes */
    int64_t most;     /* threads of a block */
    double wanted;    /* threads, to read it */
    bool overlap;     /* columns that are not aligned: strips overlap by a vector */
    int64_t lanes, rows, threads;
} gemv;

/* How a block's threads lie. */
typedef struct shape {
    int64_t lanes, others; /* side by side; groups, or slices of K */
    int64_t strip;         /* rows or columns of the matrix */
    int64_t sums;          /* in shared memory, per vector that it is multiplied by */
    int64_t at_once;       /* elements of K that are read at once */
} shape;

/* lanes threads lie along each row. They are more than the elements that are read one by one, at
 * both ends of a row; and a block whose threads have several rows, `wide` apart, has whole sets of
 * them. */
static shape along(gemv g) {
    const int64_t fewest = 4 * g.wide, of_several = g.most / g.wide;
    const int64_t useful = max_i64(whole_power(ceil_div(ceil_div(g.k, g.wide), 2), g.most), fewest);
    const double groups = (double)ceil_div(g.thick, GEMV_ROWS);
    const int64_t several = power_of_2(g.wanted / groups, fewest, min_i64(of_several, useful));
    if (g.rows == 0) g.rows = (double)several * groups >= g.wanted / 2 ? GEMV_ROWS : 1;
    if (g.lanes == 0)
        g.lanes = g.rows > 1 ? several : power_of_2(g.wanted / (double)g.thick, fewest, useful);
    g.lanes = min_i64(max_i64(g.lanes, fewest), g.rows > 1 ? of_several : g.most);
    const int64_t set = g.rows > 1 ? g.wide : 1;
    if (g.threads == 0) {
        const int64_t groups_needed = ceil_div(g.thick, g.rows * set) * set;
        g.threads = min_i64(max_i64(BLOCK, g.lanes), whole_power(groups_needed, g.most) * g.lanes);
    }
    const int64_t others = max_i64(min_i64(max_i64(g.threads, 32), g.most) / g.lanes, set);
    return (shape){.lanes = g.lanes,
                   .others = others,
                   .strip = others * g.rows,
                   .sums = g.lanes / 32 * others * g.rows,
                   .at_once = g.lanes * GEMV_LOADS * g.wide};
}

/* lanes threads lie along each row of a slice of K. Without aligned rows the warps of a block take
 * all places modulo 16 bytes in turns; and a strip is not cut so short, for the sake of threads,
 * that much of it is read twice. */
static shape across(gemv g) {
    const int64_t fewest = g.overlap ? 4 : 2, shortest = g.overlap ? 8 : 2;
    if (g.lanes == 0) {
        g.lanes = g.overlap ? 16 : 8;
        while (g.lanes > fewest) {
            const int64_t strips = ceil_div(g.thick, (g.lanes - g.overlap) * g.wide);
            const bool fits = (g.lanes / 2 - g.overlap) * g.wide >= g.thick;
            const bool enough = g.lanes == shortest || (double)(strips * g.most) >= g.wanted / 2;
            if (!fits && enough) break;
            g.lanes /= 2;
        }
    }
    g.lanes = min_i64(max_i64(g.lanes, fewest), 32);
    const int64_t strip = (g.lanes - g.overlap) * g.wide, least = 32 * g.wide;
    const int64_t useful = g.lanes * whole_power(ceil_div(g.k, GEMV_LOADS), g.most / g.lanes);
    if (g.threads == 0)
        g.threads =
            power_of_2(g.wanted / (double)ceil_div(g.thick, strip), least, max_i64(useful, least));
    g.threads = min_i64(max_i64(g.threads, least), g.most);
    return (shape){.lanes = g.lanes,
                   .others = g.threads / g.lanes,
                   .strip = strip,
                   .sums = g.threads / 32 * g.lanes * g.wide,
                   .at_once = g.threads / g.lanes * GEMV_LOADS};
}

skinny_tiling gemv_tiling_of(const smk_variant *variant, const smk_dtype *dtype,
                             const int64_t *values, const skinny_query *q, int rows) {
    const double matrices = (double)ceil_div(q->thin, rows) * (double)q->batch;
    const int64_t most_threads = GEMV_THREADS(rows);
    const gemv g = {.thick = q->thick,
                    .k = q->k,
                    .wide = 16 / dtype->itemsize,
                    .most = most_threads,
                    .wanted = (double)most_threads * (double)q->multiprocessors / matrices,
                    .overlap = !q->aligned,
                    .lanes = values[smk_variant_param(variant, "lanes")],
                    .rows = values[smk_variant_param(variant, "rows")],
                    .threads = values[smk_variant_param(variant, "threads")]};
    const shape s = q->k_major ? along(g) : across(g);
    return (skinny_tiling){.threads = {s.lanes, s.others},
                           .strip = s.strip,
                           .shared_bytes = s.sums * rows * (dtype->itemsize == 8 ? 8 : 4),
                           .whole = PASSES * s.at_once,
                           .range = s.at_once};
}
