/* A row's predicted time is a sum of five terms, each a count of the problem times a cost of the row:
 * enough to know which row is faster, and little enough to be fitted to some dozens of runs.
 */
#include "auto.h"

#include <string.h>

#include "plan_parts.h"

const char *const smk_accuracy_names[SMK_N_ACCURACIES] = {"float32", "norm", "tf32"};

static const smk_dtype *dtype_of(const smk_row *row, const char *name) {
    for (int i = 0; i < row->n_dtypes; i++)
        if (!strcmp(row->dtypes[i].name, name)) return &row->dtypes[i];
    return NULL;
}

/* Code of one chip's own instructions runs on no other. */
static bool runs(const smk_row *row, int sm) {
    return sm == 0 || (row->portable ? sm >= row->min_sm : sm == row->min_sm);
}

static bool can_answer(const smk_row *row, const smk_question *q) {
    return row->op == q->op && runs(row, q->sm) && smk_strides_of(row) >= q->strides;
}

enum { STEP_BYTES = 128 /* of K, in the kernels that cut it */ };

/* Into how many parts the plan will cut K. */
static double split_of(const smk_timing *t, const smk_question *q, double tiles) {
    const bool few =
        tiles > 0 && tiles < 1e6; /* else it will not be cut, nor be a number of tiles */
    if (!t->row->split.rate || !few || !q->K || !q->multiprocessors) return 1;
    const split_question ask =
        split_ask(t->row, t->dtype, t->values, (int64_t[]){q->M, q->N, q->K}, q->batch,
                  STEP_BYTES / t->dtype->itemsize, q->multiprocessors);
    return (double)split_choose(&ask);
}

void smk_timing_terms(const smk_timing *t, const smk_question *q, double out[SMK_N_TERMS]) {
    smk_geometry g = {.output_tile = {1, 1}};
    t->row->geometry(t->values, t->dtype->itemsize, 0, &g);
    /* In floating point: the product of three sizes need not be a 64-bit number. */
    const double m = (double)q->M, n = (double)q->N, k = (double)q->K, batch = (double)q->batch;
    const double tiles =
        (double)ceil_div(q->M, g.output_tile[0]) * (double)ceil_div(q->N, g.output_tile[1]) * batch;
    const double split = split_of(t, q, tiles);
    const double busiest =
        __builtin_ceil(tiles * split / (q->multiprocessors > 0 ? q->multiprocessors : 1));
    out[SMK_TERM_CALL] = 1;
    out[SMK_TERM_DEPTH] = k / 1024;
    out[SMK_TERM_TILE] = busiest;
    out[SMK_TERM_STEP] = busiest * k / split / 1024;
    const double sums = split > 1 ? split * m * n : m * n;
    out[SMK_TERM_BYTES] = batch * (m * k + k * n + sums) * t->dtype->itemsize * 1e-6;
}

bool smk_timing_fits(const smk_timing *t, const smk_question *q) {
    const int64_t side = q->M < q->N ? q->M : q->N;
    if (t->side && side > t->side) return false;
    return can_answer(t->row, q) && !strcmp(t->dtype->name, q->dtype) &&
           t->accuracy <= q->accuracy && t->aligned == q->aligned;
}

double smk_timing_predicts(const smk_timing *t, const smk_question *q) {
    double terms[SMK_N_TERMS], sum = 0;
    smk_timing_terms(t, q, terms);
    for (int i = 0; i < SMK_N_TERMS; i++)
        sum += t->cost[i] * terms[i];
    return sum;
}

const smk_timing *smk_fastest(const smk_timing *timings, size_t n, const smk_question *q) {
    const smk_timing *best = NULL;
    double least = 0;
    for (size_t i = 0; i < n; i++) {
        if (!smk_timing_fits(&timings[i], q)) continue;
        const double time = smk_timing_predicts(&timings[i], q);
        if (best == NULL || time < least) {
            best = &timings[i];
            least = time;
        }
    }
    return best;
}

const smk_row *smk_only_choice(const smk_question *q) {
    /* The emulator's time is what its instructions take: long vectors and little else. On GPUs "sectors" has one
     * speed for all transposes, that of a copy. */
    const bool transpose_on_gpu = q->op == SMK_TRANSPOSE && q->sm;
    const char *const names[] = {transpose_on_gpu ? "sectors" : "vectorized", "fp16", "bf16",
                                 "mma_fp16", "mma_bf16"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const smk_row *row = smk_row_find(q->op, names[i]);
        if (row && dtype_of(row, q->dtype) && can_answer(row, q)) return row;
    }
    return NULL;
}
