/* From a batch and a kernel's tile to launches: what the planners share. */
#include "plan_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 1024 };

/* ---- folding of batch dimensions ---- */

/* Whether, in every operand, a single stride describes the dimensions `outer` and `inner`. */
static bool folds(const batch_iterator *it, int outer, const smk_matrix *const *operands, int inner,
                  int64_t inner_size) {
    for (int o = 0; o < it->n_operands; o++)
        if (it->stride[o][outer] != operands[o]->batch[inner] * inner_size) return false;
    return true;
}

batch_iterator batch_fold(const smk_batch *batch, const smk_matrix *const *operands,
                          int n_operands) {
    batch_iterator it = {.n_operands = n_operands, .z = -1, .total = 1};
    for (int d = 0; d < batch->n; d++) {
        int64_t size = batch->size[d];
        it.total *= size;
        if (size == 1) continue;
        bool fold = it.n > 0 && folds(&it, it.n - 1, operands, d, size);
        int at = fold ? it.n - 1 : it.n++;
        it.size[at] = fold ? it.size[at] * size : size;
        for (int o = 0; o < n_operands; o++)
            it.stride[o][at] = operands[o]->batch[d];
    }
    for (int d = 0; d < it.n; d++)
        if (it.z < 0 || it.size[d] > it.size[it.z]) it.z = d;
    return it;
}

int64_t batch_z_size(const batch_iterator *it) {
    return it->z < 0 ? 1 : it->size[it->z];
}

int64_t batch_z_stride(const batch_iterator *it, int operand) {
    return it->z < 0 ? 0 : it->stride[operand][it->z];
}

/* ---- from a folded batch to launches ---- */

smk_geometry geometry_of(const smk_variant *variant, const smk_dtype *dtype, const int64_t *values,
                         int64_t n) {
    smk_geometry g = {.threads = {1, 1, 1}, .output_tile = {1, 1}};
    variant->geometry(values, dtype->itemsize, n, &g);
    return g;
}

smk_code launch_shape_init(const smk_variant *variant, const smk_dtype *dtype,
                           const smk_geometry *g, int64_t rows, int64_t cols, launch_shape *out,
                           smk_status *status) {
    int64_t tiles;
    if (__builtin_mul_overflow(ceil_div(rows, g->output_tile[0]), ceil_div(cols, g->output_tile[1]),
                               &tiles) ||
        tiles > MAX_GRID_X) {
        return smk_fail(
            status, SMK_VALUE,
            "%s variant '%s': a result of %" PRId64 " x %" PRId64 " is more than the %d "
            "tiles of %" PRId64 " x %" PRId64 " that one launch can have; take a variant "
            "with a larger tile, or split the arrays",
            smk_op_names[variant->op], variant->name, rows, cols, MAX_GRID_X, g->output_tile[0],
            g->output_tile[1]);
    }
    int64_t threads = g->threads[0] * g->threads[1] * g->threads[2];
    if (threads < 1 || threads > MAX_THREADS) {
        return smk_fail(status, SMK_VALUE,
                        "%s variant '%s': these parameters make a block of %" PRId64
                        " threads; the "
                        "hardware has at most %d",
                        smk_op_names[variant->op], variant->name, threads, MAX_THREADS);
    }
    *out = (launch_shape){.itemsize = dtype->itemsize,
                          .n_kernels = tiles > 0,
                          .batches_per_block = 1,
                          .overlaps = variant->overlaps};
    out->kernels[0] = (kernel){
        .entry = variant->entry,
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
        if (o >= (uint32_t)n_operands) continue;
        const long long at = operands[o]->offset + elements[o] * itemsize;
        memcpy(args + plan->pointers[p].arg_offset, &at, sizeof at);
    }
}

/* The launches of one chunk of the batch, with z matrices. */
static void launch_batch(smk_launch *out, const launch_shape *s, int64_t z, const void *args) {
    for (int k = 0; k < s->n_kernels; k++) {
        const kernel *own = &s->kernels[k];
        const uint32_t across = own->cluster ? own->cluster : 1; /* cluster.cuh */
        out[k] = (smk_launch){
            .entry = own->entry,
            .grid = {own->blocks / across, across,
                     own->loops_over_batch ? 1 : (uint32_t)ceil_div(z, s->batches_per_block)},
            .block = {own->threads[0], own->threads[1], own->threads[2]},
            .cluster = {own->cluster > 0, own->cluster, own->cluster > 0},
            .shared_bytes = own->shared_bytes,
            .overlaps = s->overlaps,
            .args = args,
        };
    }
}

smk_code plan_launches(smk_plan *plan, const launch_shape *s, const batch_iterator *it,
                       const smk_matrix *const *operands, const void *args, smk_status *status) {
    const size_t n_kernels = (size_t)s->n_kernels;
    if (it->total == 0 || n_kernels == 0) return SMK_OK;
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
        for (int o = 0; o < it->n_operands; o++)
            for (int d = 0; d < it->n; d++)
                base[o] += index[d] * it->stride[o][d];
        for (int64_t z = 0; z < z_size; z += max_z, i++) {
            const long long batches = z_size - z < max_z ? z_size - z : max_z;
            unsigned char *own = plan->args + i * plan->args_bytes;
            memcpy(own, args, plan->args_bytes);
            set_pointers(own, plan, it->n_operands, operands, base, s->itemsize);
            if (s->batches_offset) memcpy(own + s->batches_offset, &batches, sizeof batches);
            launch_batch(plan->launches + i * n_kernels, s, batches, own);
            for (int o = 0; o < it->n_operands; o++)
                base[o] += max_z * batch_z_stride(it, o);
        }
        for (int d = it->n - 1; d >= 0; d--) {
            if (d != it->z && ++index[d] < it->size[d]) break;
            index[d] = 0;
        }
    }
    plan->launches[0].overlaps = false; /* the previous work on the stream is not ours */
    return SMK_OK;
}

/* ---- gemm_args ---- */

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

divisor divisor_of(int64_t d) {
    if (d < 1 || d > INT32_MAX) return (divisor){0}; /* no kernel divides by 0; else n / d is 0 */
    int shift = 0;
    while (INT64_C(1) << shift < d)
        shift++;
    return (divisor){(unsigned)ceil_div(INT64_C(1) << (31 + shift), d), shift};
}

tile_list tile_list_of(int64_t down, int64_t across, int64_t band, int64_t steps, int64_t split) {
    return (tile_list){.down = (int)down,
                       .across = (int)across,
                       .band = (int)band,
                       .even_steps = (int)(steps / split),
                       .longer = (int)(steps % split),
                       .by_all = divisor_of(down * across),
                       .by_band = divisor_of(band * across),
                       .by_height = divisor_of(band),
                       .by_last = divisor_of(down % band)};
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

void smk_plan_free(smk_plan *plan) {
    free(plan->launches);
    free(plan->args);
    plan->launches = NULL;
    plan->args = NULL;
    plan->n_launches = 0;
}
