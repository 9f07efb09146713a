/* Chooses the threads of gemm_gemv's blocks and the number of K ranges: of all forms, the one whose
 * predicted time is the shortest. The time is a sum of terms, which are counted here, times their
 * costs. There is a row of costs per order of the matrix and size of an element (gemv_costs.def).
 * benchmarks/gemv.py fits them to random products, each timed in many forms.
 */
#include "plan_parts.h"

#include <string.h>

#include "../kernels/args.h"

enum {
    RESIDENT = 640, /* threads of a multiprocessor, by their registers */
    LINE = 512      /* bytes of a row that a warp reads at once, at most */
};

/* Microseconds per unit of each term, ACROSS and ALONG, of 2, 4 and 8 bytes. */
static const double COSTS[2][3][GEMV_TERMS] = {
#include "gemv_costs.def"
};

static int64_t wide_of(int64_t itemsize) {
    return 16 / itemsize;
}

/* ACROSS, without aligned rows, the strips of neighbours overlap by a vector. */
static bool overlaps(const skinny_query *q) {
    return !q->k_major && !q->aligned;
}

/* Rows of the matrix of a block, or its columns. */
static int64_t strip_of(const skinny_query *q, int64_t itemsize, gemv_form f) {
    return q->k_major ? f.threads / f.lanes : (f.lanes - overlaps(q)) * wide_of(itemsize);
}

void gemv_terms(const skinny_query *q, int64_t itemsize, gemv_form f, double out[GEMV_TERMS]) {
    const int64_t k = ceil_div(q->k, f.split), others = f.threads / f.lanes;
    const int64_t each = q->k_major ? f.lanes * wide_of(itemsize) : others;
    const int64_t vectors = ceil_div(k, each);
    const double passes = (double)ceil_div(vectors, q->k_major ? GEMV_LOADS / 2 : GEMV_LOADS);
    const double matrices = (double)q->thin * (double)q->batch;
    const double multiprocessors = q->multiprocessors > 0 ? (double)q->multiprocessors : 1;
    const double blocks =
        (double)ceil_div(q->thick, strip_of(q, itemsize, f)) * matrices * (double)f.split;
    const double busiest = __builtin_ceil(blocks / multiprocessors);
    const double resident = (double)max_i64(RESIDENT / f.threads, 1);
    const double warps = busiest * (double)f.threads / 32 * 1e-2;
    const double bytes =
        blocks * (double)k * (double)(q->k_major ? others * itemsize : 16 * f.lanes) * 1e-7;
    const double shorter = LINE / 8 / (double)min_i64(16 * f.lanes, LINE);
    const double far = bytes > IN_L2 / 10.0 ? bytes - IN_L2 / 10.0 : 0;
    const double parts = f.split > 1 ? (double)f.split : 0;
    out[GEMV_CALL] = 1;
    out[GEMV_SECOND] = f.split > 1;
    out[GEMV_PASSES] = __builtin_ceil(busiest / resident) * passes;
    out[GEMV_WARPS] = warps;
    out[GEMV_VECTORS] = warps * (double)vectors;
    out[GEMV_BYTES] = bytes;
    out[GEMV_SHORT] = bytes * shorter;
    out[GEMV_ODD] = q->aligned ? 0 : bytes * shorter;
    out[GEMV_FAR] = far;
    out[GEMV_FAR_SHORT] = far * shorter;
    out[GEMV_PARTS] = parts * 1e-2;
    out[GEMV_SUMS] = parts * matrices * (double)q->thick * 1e-5;
}

/* ---- forms: powers of 2, of threads and of those along a row; up to 64 ranges of K ---- */

typedef struct powers {
    int64_t first, last;
} powers;

/* A value that is given counts, moved into the limits. */
static powers range_of(int64_t given, int64_t low, int64_t high) {
    if (given == 0) return (powers){low, high};
    const int64_t value = min_i64(max_i64(given, low), high);
    return (powers){value, value};
}

/* No more of them than steps of K, and not many times more blocks than multiprocessors. */
static int64_t most_ranges(const skinny_query *q, double blocks) {
    enum { MOST_RANGES = 64, BLOCKS = 8 /* per multiprocessor */ };
    const double few = (double)(BLOCKS * q->multiprocessors) / (blocks > 1 ? blocks : 1);
    const int64_t most = few < MOST_RANGES ? (int64_t)few : MOST_RANGES;
    return max_i64(min_i64(most, ceil_div(q->k, SKINNY_STEP)), 1);
}

int gemv_forms(const skinny_query *q, int64_t itemsize, gemv_form given,
               gemv_form forms[GEMV_FORMS]) {
    const int64_t wide = wide_of(itemsize), fewest = overlaps(q) ? 4 : 2;
    const powers lanes = q->k_major ? range_of(given.lanes, wide, given.lanes ? GEMV_THREADS : 256)
                                    : range_of(given.lanes, fewest, 32);
    int n = 0;
    for (int64_t l = lanes.first; l <= lanes.last; l *= 2) {
        const powers threads =
            range_of(given.threads, q->k_major ? max_i64(l, 64) : 32 * wide, GEMV_THREADS);
        for (int64_t t = threads.first; t <= threads.last; t *= 2) {
            const gemv_form form = {l, t, given.split};
            const double blocks = (double)ceil_div(q->thick, strip_of(q, itemsize, form)) *
                                  (double)q->thin * (double)q->batch;
            const int64_t most = given.split ? given.split : most_ranges(q, blocks);
            for (int64_t s = given.split ? given.split : 1; s <= most; s += s < 4 ? 1 : s / 2)
                forms[n++] = (gemv_form){l, t, s};
        }
    }
    return n;
}

double gemv_predict(const skinny_query *q, int64_t itemsize, gemv_form form) {
    const double *costs = COSTS[q->k_major][itemsize == 2 ? 0 : itemsize == 4 ? 1 : 2];
    double terms[GEMV_TERMS], time = 0;
    gemv_terms(q, itemsize, form, terms);
    for (int i = 0; i < GEMV_TERMS; i++)
        time += costs[i] * terms[i];
    return time;
}

/* The form with the shortest time; sets that. */
static gemv_form best_form(const skinny_query *q, int64_t itemsize, gemv_form given, double *time) {
    gemv_form forms[GEMV_FORMS], best = {0};
    const int n = gemv_forms(q, itemsize, given, forms);
    for (int i = 0; i < n; i++) {
        const double own = gemv_predict(q, itemsize, forms[i]);
        if (i > 0 && own >= *time) continue;
        best = forms[i];
        *time = own;
    }
    return best;
}

skinny_tiling gemv_tiling_of(const smk_variant *variant, const smk_dtype *dtype,
                             const int64_t *values, const skinny_query *q) {
    const gemv_form given = {.lanes = values[smk_variant_param(variant, "lanes")],
                             .threads = values[smk_variant_param(variant, "threads")],
                             .split = values[smk_variant_param(variant, "split")]};
    const int64_t key[LATELY_WORDS] = {(int64_t)(variant - smk_variants) + 1,
                                       dtype->itemsize,
                                       q->thin,
                                       q->thick,
                                       q->k,
                                       q->batch,
                                       q->multiprocessors,
                                       q->k_major | q->aligned << 1,
                                       given.lanes,
                                       given.threads,
                                       given.split};
    bool known;
    chosen_lately *at = lately(key, &known);
    if (!known) {
        const gemv_form best = best_form(q, dtype->itemsize, given, &at->time);
        memcpy(at->values, &best, sizeof best);
    }
    const gemv_form form = {at->values[0], at->values[1], at->values[2]};
    const int64_t others = form.threads / form.lanes;
    const int64_t sums = q->k_major ? form.lanes / 32 * others
                                    : form.threads / 32 * form.lanes * wide_of(dtype->itemsize);
    return (skinny_tiling){.threads = {form.lanes, others},
                           .strip = strip_of(q, dtype->itemsize, form),
                           .shared_bytes = sums * (dtype->itemsize == 8 ? 8 : 4),
                           .split = form.split,
                           .time = at->time};
}
