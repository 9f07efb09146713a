/* Launch planning: see plan.h. */
#include "plan_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kernels/args.h"

enum { MAX_THREADS = 1024, STEP_BYTES = 128 /* bytes of K per step, in mma_gemm.cuh */ };

/* ---- folding of batch dimensions ---- */

/* Whether, in every operand, a single stride describes the dimensions `outer` and `inner`. */
static bool folds(const batch_iterator *it, int outer, const smk_matrix *const *operands, int inner,
                  int64_t inner_size) {
    for (int o = 0; o < it->n_operands; o++) {
        if (it->stride[o][outer] != operands[o]->batch[inner] * inner_size) {
            return false;
        }
    }
    return true;
}

batch_iterator batch_fold(const smk_batch *batch, const smk_matrix *const *operands,
                          int n_operands) {
    batch_iterator it = {.n_operands = n_operands, .z = -1, .total = 1};
    for (int d = 0; d < batch->n; d++) {
        int64_t size = batch->size[d];
        it.total *= size;
        if (size == 1) {
            continue;
        }
        bool fold = it.n > 0 && folds(&it, it.n - 1, operands, d, size);
        int at = fold ? it.n - 1 : it.n++;
        it.size[at] = fold ? it.size[at] * size : size;
        for (int o = 0; o < n_operands; o++) {
            it.stride[o][at] = operands[o]->batch[d];
        }
    }
    for (int d = 0; d < it.n; d++) {
        if (it.z < 0 || it.size[d] > it.size[it.z]) {
            it.z = d;
        }
    }
    return it;
}

int64_t batch_z_size(const batch_iterator *it) {
    return it->z < 0 ? 1 : it->size[it->z];
}

int64_t batch_z_stride(const batch_iterator *it, int operand) {
    return it->z < 0 ? 0 : it->stride[operand][it->z];
}

/* ---- from a folded batch to launches ---- */

smk_geometry geometry_of(const smk_row *row, const smk_dtype *dtype, const int64_t *values,
                         int64_t n) {
    smk_geometry g = {.threads = {1, 1, 1}, .output_tile = {1, 1}};
    row->geometry(values, dtype->itemsize, n, &g);
    return g;
}

smk_code launch_shape_init(const smk_row *row, const smk_dtype *dtype, const smk_geometry *g,
                           int64_t rows, int64_t cols, launch_shape *out, smk_status *status) {
    int64_t tiles;
    if (__builtin_mul_overflow(ceil_div(rows, g->output_tile[0]), ceil_div(cols, g->output_tile[1]),
                               &tiles) ||
        tiles > MAX_GRID_X) {
        return smk_fail(
            status, SMK_VALUE,
            "%s variant '%s': a result of %" PRId64 " x %" PRId64 " is more than the %d "
            "tiles of %" PRId64 " x %" PRId64 " that one launch can have; take a variant "
            "with a larger tile, or split the arrays",
            smk_op_names[row->op], row->name, rows, cols, MAX_GRID_X, g->output_tile[0],
            g->output_tile[1]);
    }
    int64_t threads = g->threads[0] * g->threads[1] * g->threads[2];
    if (threads < 1 || threads > MAX_THREADS) {
        return smk_fail(status, SMK_VALUE,
                        "%s variant '%s': these parameters make a block of %" PRId64
                        " threads; the "
                        "hardware has at most %d",
                        smk_op_names[row->op], row->name, threads, MAX_THREADS);
    }
    *out = (launch_shape){.itemsize = dtype->itemsize,
                          .n_kernels = tiles > 0,
                          .batches_per_block = 1,
                          .overlaps = row->overlaps};
    out->kernels[0] = (kernel){
        .entry = row->entry,
        .blocks = (uint32_t)tiles,
        .threads = {(uint32_t)g->threads[0], (uint32_t)g->threads[1], (uint32_t)g->threads[2]},
        .shared_bytes = (size_t)g->shared_bytes};
    return SMK_OK;
}

/* Sets the pointer arguments: `elements` are the operands' offsets, in elements. */
static void set_pointers(unsigned char *args, const smk_plan *plan, int n_operands,
                         const smk_matrix *const *operands, const int64_t *elements, int itemsize) {
    for (size_t p = 0; p < plan->n_pointers; p++) {
        const uint32_t o = plan->pointers[p].buffer;
        if (o >= (uint32_t)n_operands) {
            continue;
        }
        const long long at = operands[o]->offset + elements[o] * itemsize;
        memcpy(args + plan->pointers[p].arg_offset, &at, sizeof at);
    }
}

/* The launches of one chunk of the batch, with z matrices. */
static void launch_batch(smk_launch *out, const launch_shape *s, int64_t z, const void *args) {
    for (int k = 0; k < s->n_kernels; k++) {
        const kernel *own = &s->kernels[k];
        out[k] = (smk_launch){
            .entry = own->entry,
            .grid = {own->blocks, 1, (uint32_t)ceil_div(z, s->batches_per_block)},
            .block = {own->threads[0], own->threads[1], own->threads[2]},
            .shared_bytes = own->shared_bytes,
            .overlaps = s->overlaps,
            .args = args,
        };
    }
}

smk_code plan_launches(smk_plan *plan, const launch_shape *s, const batch_iterator *it,
                       const smk_matrix *const *operands, const void *args, smk_status *status) {
    const size_t n_kernels = (size_t)s->n_kernels;
    if (it->total == 0 || n_kernels == 0) {
        return SMK_OK;
    }
    const int64_t z_size = batch_z_size(it), max_z = (int64_t)MAX_GRID_Z * s->batches_per_block;
    const int64_t chunks = ceil_div(z_size, max_z);
    size_t n = (size_t)(it->total / z_size * chunks);
    plan->launches = calloc(n * n_kernels, sizeof *plan->launches);
    plan->args = calloc(n, plan->args_bytes);
    if (plan->launches == NULL || plan->args == NULL) {
        smk_plan_free(plan);
        return smk_fail_memory(status, n * (n_kernels * sizeof *plan->launches + plan->args_bytes),
                               "the launches of a batch; make it contiguous to have one launch");
    }
    plan->n_launches = n * n_kernels;

    int64_t index[SMK_MAX_BATCH] = {0};
    for (size_t i = 0; i < n;) {
        int64_t base[SMK_MAX_OPERANDS] = {0};
        for (int o = 0; o < it->n_operands; o++) {
            for (int d = 0; d < it->n; d++) {
                base[o] += index[d] * it->stride[o][d];
            }
        }
        for (int64_t z = 0; z < z_size; z += max_z, i++) {
            const long long batches = z_size - z < max_z ? z_size - z : max_z;
            unsigned char *own = plan->args + i * plan->args_bytes;
            memcpy(own, args, plan->args_bytes);
            set_pointers(own, plan, it->n_operands, operands, base, s->itemsize);
            if (s->batches_offset) {
                memcpy(own + s->batches_offset, &batches, sizeof batches);
            }
            launch_batch(plan->launches + i * n_kernels, s, batches, own);
            for (int o = 0; o < it->n_operands; o++) {
                base[o] += max_z * batch_z_stride(it, o);
            }
        }
        for (int d = it->n - 1; d >= 0; d--) {
            if (d != it->z && ++index[d] < it->size[d]) {
                break;
            }
            index[d] = 0;
        }
    }
    plan->launches[0].overlaps = false; /* the previous work on the stream is not ours */
    return SMK_OK;
}

void smk_plan_free(smk_plan *plan) {
    free(plan->launches);
    free(plan->args);
    plan->launches = NULL;
    plan->args = NULL;
    plan->n_launches = 0;
}

/* ---- the operations ---- */

gemm_args plan_gemm_args(const smk_gemm *problem, const batch_iterator *it) {
    return (gemm_args){
        .M = problem->M,
        .N = problem->N,
        .K = problem->K,
        .lda = problem->a.ld,
        .ldb = problem->b.ld,
        .ldc = problem->c.ld,
        .step_a = problem->a.step,
        .step_b = problem->b.step,
        .batch_a = batch_z_stride(it, 0),
        .batch_b = batch_z_stride(it, 1),
        .batch_c = batch_z_stride(it, 2),
        .alpha = problem->alpha,
        .beta = problem->beta,
        .split = 1,
    };
}

/* Whether a matrix is read as column-major. A single column is, if it is contiguous. */
static bool is_column_major(const smk_matrix *m, int64_t rows, int64_t columns) {
    return columns > 1 ? m->step != 1 : rows > 1 && m->ld == 1;
}

smk_plan plan_of_gemm(void) {
    return (smk_plan){
        .args_bytes = sizeof(gemm_args),
        .n_parameters = 1,
        .pointers = {{offsetof(gemm_args, A), 0},
                     {offsetof(gemm_args, B), 1},
                     {offsetof(gemm_args, C), 2}},
        .n_pointers = 3,
    };
}

smk_code smk_plan_gemm(const smk_row *row, const smk_dtype *dtype, const int64_t *values,
                       const smk_gemm *problem, smk_plan *plan, smk_status *status) {
    if (row->wgmma.terms) {
        return plan_wgmma(row, dtype, values, problem, plan, status);
    }
    if (problem->prepack.only) { /* the other rows do not prepack */
        *plan = (smk_plan){0};
        return SMK_OK;
    }
    if (row->skinny.rows[0]) {
        return plan_skinny(row, dtype, values, problem, plan, status);
    }
    *plan = plan_of_gemm();
    const smk_geometry geometry = geometry_of(row, dtype, values, problem->K);
    launch_shape s;
    if (launch_shape_init(row, dtype, &geometry, problem->M, problem->N, &s, status)) {
        return status->code;
    }
    if (row->by_layout[0][0]) {
        s.kernels[0].entry = row->by_layout[is_column_major(&problem->a, problem->M, problem->K)]
                                           [is_column_major(&problem->b, problem->K, problem->N)];
    }
    const smk_matrix *operands[] = {&problem->a, &problem->b, &problem->c};
    batch_iterator it = batch_fold(&problem->batch, operands, 3);
    gemm_args args = plan_gemm_args(problem, &it);
    if (split_plan(row, dtype, values, problem, &it, STEP_BYTES / dtype->itemsize,
                   (split_output){plan, &args, 0}, &s, status)) {
        return status->code;
    }
    if (args.split > 1) { /* shared memory may depend on the length of a K range */
        const int64_t step = STEP_BYTES / dtype->itemsize;
        const int64_t k = ceil_div(ceil_div(problem->K, step), args.split) * step;
        s.kernels[0].shared_bytes = (size_t)geometry_of(row, dtype, values, k).shared_bytes;
    }
    split_add_reduce(row, dtype, &args, &s);
    return plan_launches(plan, &s, &it, operands, &args, status);
}

smk_code smk_probe_size(const smk_row *row, const smk_dtype *dtype, const int64_t *values,
                        int64_t n, int64_t *n_y, smk_status *status) {
    const smk_geometry geometry = geometry_of(row, dtype, values, n);
    if (n < geometry.input) {
        return smk_fail(status, SMK_VALUE,
                        "probe variant '%s' with these parameters reads %" PRId64
                        " elements; x has "
                        "%" PRId64,
                        row->name, geometry.input, n);
    }
    *n_y = geometry.output;
    return SMK_OK;
}

smk_code smk_plan_probe(const smk_row *row, const smk_dtype *dtype, const int64_t *values,
                        const smk_probe *problem, smk_plan *plan, smk_status *status) {
    *plan = (smk_plan){
        .args_bytes = sizeof(probe_args),
        .n_parameters = 1,
        .pointers = {{offsetof(probe_args, x), 0}, {offsetof(probe_args, y), 1}},
        .n_pointers = 2,
    };
    probe_args args = {.n_x = problem->n_x};
    int64_t n_y = 0;
    if (smk_probe_size(row, dtype, values, problem->n_x, &n_y, status)) {
        return status->code;
    }
    args.n_y = n_y;
    size_t n_runtime = 0;
    for (int i = 0; i < row->n_params; i++) {
        if (row->params[i].runtime && n_runtime < sizeof args.runtime / sizeof args.runtime[0]) {
            args.runtime[n_runtime++] = values[i];
        }
    }
    const smk_geometry geometry = geometry_of(row, dtype, values, problem->n_x);
    launch_shape s;
    if (launch_shape_init(row, dtype, &geometry, 1, n_y, &s, status)) {
        return status->code;
    }
    smk_matrix x = {.offset = problem->offset_x}, y = {0};
    const smk_matrix *operands[] = {&x, &y};
    batch_iterator it = batch_fold(&(smk_batch){0}, operands, 2);
    return plan_launches(plan, &s, &it, operands, &args, status);
}
