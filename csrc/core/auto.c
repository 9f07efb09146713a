/* A row's predicted time is a sum of six terms, each a count of what its plan does times a cost of the row:
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

/* How the row's plan cuts the problem. In floating point: the product of three sizes need not be a 64-bit
 * number. */
typedef struct cut {
    double tiles; /* of C, times the batch */
    double size;  /* of one, in tiles as the table of rows has them */
    double split; /* parts of K */
} cut;

static cut cut_of(const smk_timing *t, const smk_question *q) {
    const bool skinny = t->row->skinny.rows[0] > 0;
    smk_geometry g = {.output_tile = {1, 1}};
    t->row->geometry(t->values, t->dtype->itemsize, 0, &g);
    int64_t *tile = g.output_tile;
    const double declared = (double)(tile[0] * tile[1]);
    if (skinny) { /* of operands that lie row by row */
        const bool along = q->N < q->M ? q->K > 1 : q->N == 1;
        const skinny_cut thin = skinny_cut_of(t->row, t->dtype, q->M, q->N, along);
        tile[0] = thin.tile[0];
        tile[1] = thin.tile[1];
    }
    cut c = {.tiles = (double)ceil_div(q->M, tile[0]) * (double)ceil_div(q->N, tile[1]) *
                      (double)q->batch,
             .size = (double)(tile[0] * tile[1]) / declared,
             .split = 1};
    const bool few =
        c.tiles > 0 && c.tiles < 1e6; /* else K will not be cut, nor are they counted */
    if (!t->row->split.rate || !few || !q->K || !q->multiprocessors) return c;
    if (skinny) {
        c.split = (double)skinny_split((int64_t)c.tiles, q->K, q->multiprocessors);
    } else {
        const split_question ask =
            split_ask(t->row, t->dtype, t->values, (int64_t[]){q->M, q->N, q->K}, q->batch,
                      STEP_BYTES / t->dtype->itemsize, q->aligned, q->multiprocessors);
        c.split = (double)split_choose(&ask);
    }
    return c;
}

/* Whether the row copies A, or both, to where TMA can read it; a warp then goes along all of a row. */
static bool packs(const smk_row *row, bool aligned) {
    return row->wgmma.parts > 1 || (row->wgmma.parts && !aligned);
}

/* Bytes that an element of A and one of B make the row move: itself and, where it is packed, its copy, written
 * and read. Of two parts B's largest elements are looked for before. */
static void bytes_of_elements(const smk_timing *t, bool aligned, double out[2]) {
    const smk_wgmma *kind = &t->row->wgmma;
    const double itemsize = t->dtype->itemsize;
    const double part = (double)smk_tensor_type_bytes(kind->operand);
    out[0] = itemsize + (packs(t->row, aligned) ? 2 * kind->parts * part : 0);
    out[1] = itemsize + (kind->parts > 1 ? itemsize : 0) +
             (packs(t->row, aligned) && !aligned ? 2 * itemsize : 0);
}

void smk_timing_terms(const smk_timing *t, const smk_question *q, double out[SMK_N_TERMS]) {
    const double m = (double)q->M, n = (double)q->N, k = (double)q->K, batch = (double)q->batch;
    const cut c = cut_of(t, q);
    const double busiest =
        __builtin_ceil(c.tiles * c.split / (q->multiprocessors > 0 ? q->multiprocessors : 1));
    const double part = k / c.split / 1024;
    double of[2];
    bytes_of_elements(t, q->aligned, of);
    double bytes = m * k * of[0] + k * n * of[1] + m * n * t->dtype->itemsize;
    if (c.split > 1) bytes += 2 * c.split * m * n * (t->dtype->itemsize == 8 ? 8 : 4);
    out[SMK_TERM_CALL] = 1;
    out[SMK_TERM_PARTS] = c.split > 1;
    out[SMK_TERM_DEPTH] = packs(t->row, q->aligned) ? k / 1024 : part;
    out[SMK_TERM_TILE] = busiest;
    out[SMK_TERM_STEP] = busiest * c.size * part;
    out[SMK_TERM_BYTES] = batch * bytes * 1e-6;
}

bool smk_timing_fits(const smk_timing *t, const smk_question *q) {
    const int64_t side = q->M < q->N ? q->M : q->N;
    if ((t->side && side > t->side) || (q->only && q->only != t->row)) return false;
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
    /* Of transposes "sectors" has a kernel for each shape. The emulator's time is what its instructions take:
     * long vectors and little else. */
    const bool on_gpu = q->op == SMK_TRANSPOSE && q->sm;
    const char *const names[] = {on_gpu ? "sectors" : "vectorized", "fp16", "bf16", "mma_fp16",
                                 "mma_bf16"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const smk_row *row = smk_row_find(q->op, names[i]);
        if (row && dtype_of(row, q->dtype) && can_answer(row, q)) return row;
    }
    return NULL;
}
