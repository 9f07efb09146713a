/* Plans the rows for results of few rows or columns (layout: kernels/library/gemm_skinny.cu).
 *
 * The operand with few rows or columns is called thin, the other one thick. There is a kernel for
 * each of several numbers of thin rows, up to 16, in one version for K-major thick operands and one
 * for MN-major ones. A block reads a strip of the thick operand. One wave of blocks should keep all
 * multiprocessors reading, so with few strips K is split (plan_split.c).
 */
#include "plan_parts.h"

#include <stddef.h>
#include <string.h>

#include "../kernels/args.h"

/* Shape of a block; `strip`: rows or columns of the thick operand per warp. */
typedef struct block {
    int64_t warps_j, warps_k, strip;
} block;

static block block_of(int rows, bool k_major, bool mma, int itemsize) {
    if (mma)
        return (block){SKINNY_MMA_WARPS_J(rows / 8, k_major), SKINNY_MMA_WARPS_K(k_major),
                       SKINNY_MMA_NEIGHBOURS(k_major)};
    const int each = SKINNY_NEIGHBOURS(rows, itemsize, k_major ? 4 : 16 / itemsize);
    return (block){SKINNY_WARPS_J(rows), SKINNY_WARPS_K(rows, k_major, itemsize),
                   (int64_t)SKINNY_LANES(k_major) * each};
}

/* If the blocks do not keep all multiprocessors reading: enough K ranges for two blocks per
 * multiprocessor, if each is worth the reduction launch. Four blocks per multiprocessor, which fit
 * with one thin row, were slower. */
static int64_t split_of(const skinny_query *q, int rows, int64_t strip) {
    enum { WORTH_A_RANGE = 8 /* steps, for the reduction launch */ };
    const double blocks =
        (double)ceil_div(q->thin, rows) * (double)ceil_div(q->thick, strip) * (double)q->batch;
    if (q->k == 0 || blocks >= (double)(q->multiprocessors * 7 / 8)) return 1;
    const int64_t fill = 2 * q->multiprocessors / max_i64((int64_t)blocks, 1);
    return max_i64(min_i64(fill, ceil_div(q->k, SKINNY_STEP) / WORTH_A_RANGE), 1);
}

skinny_tiling skinny_tiling_of(const smk_variant *variant, const smk_dtype *dtype,
                               const int64_t *values, const skinny_query *q) {
    const smk_skinny *kinds = &variant->skinny;
    int kind = 0;
    while (kind < SMK_SKINNY_KERNELS - 1 && kinds->rows[kind + 1] && kinds->rows[kind] < q->thin)
        kind++;
    const int rows = kinds->rows[kind];
    skinny_tiling tiling;
    if (kinds->gemv) {
        tiling = gemv_tiling_of(variant, dtype, values, q);
    } else {
        const block b = block_of(rows, q->k_major, kinds->mma, dtype->itemsize);
        tiling = (skinny_tiling){.threads = {32 * b.warps_j * b.warps_k, 1},
                                 .strip = b.strip * b.warps_j,
                                 .shared_bytes = (rows < 16 ? 1 : 2) * SKINNY_RING + SKINNY_MORE};
        tiling.split = split_of(q, rows, tiling.strip);
    }
    tiling.kernel = kinds->products[kind][q->k_major];
    tiling.tile[!q->few_columns] = tiling.strip;
    tiling.tile[q->few_columns] = rows;
    return tiling;
}

/* Whether all vectors of 16 bytes of its rows, `pitch` elements apart, are aligned. */
static bool is_aligned(const smk_matrix *x, int64_t pitch, const smk_batch *batch,
                       int64_t itemsize) {
    int64_t all = x->offset | pitch * itemsize;
    for (int d = 0; d < batch->n; d++)
        all |= x->batch[d] * itemsize;
    return all % 16 == 0;
}

smk_code plan_skinny(const smk_variant *variant, const smk_dtype *dtype, const int64_t *values,
                     const smk_gemm *problem, smk_plan *plan, smk_status *status) {
    const smk_matrix *operands[] = {&problem->a, &problem->b, &problem->c};
    const batch_iterator it = batch_fold(&problem->batch, operands, 3);
    gemm_args args = plan_gemm_args(problem, &it);
    *plan = plan_of_gemm();

    skinny_query query = skinny_query_of(problem->M, problem->N, problem->K);
    const smk_matrix *thick = query.few_columns ? &problem->a : &problem->b;
    const int64_t stride = query.few_columns ? thick->ld : thick->step;
    const int64_t k_stride = query.few_columns ? thick->step : thick->ld;
    query.batch = batch_z_size(&it);
    query.multiprocessors = problem->multiprocessors;
    query.k_major = query.thick == 1 || (query.k > 1 && magnitude(k_stride) < magnitude(stride));
    query.aligned =
        is_aligned(thick, query.k_major ? stride : k_stride, &problem->batch, dtype->itemsize);
    const skinny_tiling tiling = skinny_tiling_of(variant, dtype, values, &query);
    smk_geometry geometry = geometry_of(variant, dtype, values, 0);
    geometry.threads[0] = tiling.threads[0];
    geometry.threads[1] = tiling.threads[1];
    geometry.output_tile[0] = tiling.tile[0];
    geometry.output_tile[1] = tiling.tile[1];
    geometry.shared_bytes = tiling.shared_bytes;
    launch_shape s;
    if (launch_shape_init(variant, dtype, &geometry, problem->M, problem->N, &s, status))
        return status->code;
    if (s.n_kernels && it.total) {
        int64_t own[SMK_MAX_PARAMS];
        memcpy(own, values, sizeof own[0] * (size_t)variant->n_params);
        int64_t *split = &own[smk_variant_param(variant, "split")];
        if (*split == 0) *split = tiling.split;
        s.kernels[0].entry = tiling.kernel;
        if (split_plan(variant, dtype, &geometry, own, problem, &it, SKINNY_STEP,
                       (split_output){plan, &args, 0}, &s, status))
            return status->code;
        args.tiles = tile_list_of(ceil_div(query.thin, tiling.tile[query.few_columns]),
                                  ceil_div(query.thick, tiling.strip), 1,
                                  ceil_div(query.k, SKINNY_STEP), args.split);
        args.tiles.strip = (int)tiling.strip;
        split_add_reduce(variant, dtype, &args, &s);
    }
    return plan_launches(plan, &s, &it, operands, &args, status);
}
