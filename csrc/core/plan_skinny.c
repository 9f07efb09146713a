/* Plans the rows for results of few rows or columns (kernels/gemm_skinny.cu has the picture).
 *
 * The operand of few rows or columns is thin, the other one thick; a kernel takes up to 16 of the
 * thin one's rows at a time, and goes across K or along it, whichever way the thick one's neighbours lie. A
 * block reads a strip of the thick one: one wave of blocks should keep all multiprocessors reading, so where
 * strips are few K is cut into parts (plan_split.c).
 */
#include "plan_parts.h"

#include <stddef.h>
#include <string.h>

#include "../kernels/args.h"

static int64_t magnitude(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

/* What the kernels' geometry says of a block. */
typedef struct block {
    int64_t warps_j, warps_k, neighbours; /* of a warp */
    int64_t resident;                     /* blocks on a multiprocessor */
} block;

static block block_of(int rows, bool along, const smk_dtype *dtype) {
    if (dtype->itemsize == 2)
        return (block){SKINNY_MMA_WARPS_J(rows / 8, along), SKINNY_MMA_WARPS_K(along),
                       SKINNY_MMA_NEIGHBOURS(along), 2};
    const int sum = dtype->itemsize;
    const int each = along ? SKINNY_NEIGHBOURS(rows, sum, 4)
                           : SKINNY_NEIGHBOURS(rows, sum, 16 / dtype->itemsize);
    const int64_t warps_j = SKINNY_WARPS_J(rows), warps_k = SKINNY_WARPS_K(rows, along, sum);
    return (block){warps_j, warps_k, (int64_t)SKINNY_LANES(rows, along) * each,
                   rows <= 4 ? 32 / (warps_j * warps_k) : 2};
}

skinny_cut skinny_cut_of(const smk_row *row, const smk_dtype *dtype, int64_t m, int64_t n,
                         bool along) {
    const smk_skinny *kinds = &row->skinny;
    const bool columns = n < m;
    const int64_t thin = columns ? n : m;
    int kind = 0;
    while (kind < SMK_SKINNY_KERNELS - 1 && kinds->rows[kind + 1] && kinds->rows[kind] < thin)
        kind++;
    const int rows = kinds->rows[kind];
    const block b = block_of(rows, along, dtype);
    return (skinny_cut){.kernel = kinds->products[kind][along],
                        .threads = 32 * b.warps_j * b.warps_k,
                        .resident = b.resident,
                        .tile = {columns ? b.neighbours * b.warps_j : rows,
                                 columns ? rows : b.neighbours * b.warps_j},
                        .shared_bytes = (rows < 16 ? 1 : 2) * SKINNY_RING + SKINNY_MORE};
}

/* Where blocks do not keep all multiprocessors reading, parts enough for as many as run there at once; a part has
 * to be worth the launch that adds them up. */
int64_t skinny_split(const skinny_cut *cut, int64_t blocks, int64_t k, int64_t multiprocessors) {
    enum { LEAST_STEPS = 8 };
    if (blocks >= multiprocessors * 7 / 8) return 1;
    const int64_t fill = cut->resident * multiprocessors / blocks;
    const int64_t most = ceil_div(k, SKINNY_STEP) / LEAST_STEPS;
    return fill < most ? fill : most > 1 ? most : 1;
}

smk_code plan_skinny(const smk_row *row, const smk_dtype *dtype, const int64_t *values,
                     const smk_gemm *problem, smk_plan *plan, smk_status *status) {
    const smk_matrix *operands[] = {&problem->a, &problem->b, &problem->c};
    const walk w = walk_fold(&problem->batch, operands, 3);
    gemm_args args = plan_gemm_args(problem, &w);
    *plan = plan_of_gemm();

    const bool columns = problem->N < problem->M;
    const int64_t thick = columns ? problem->M : problem->N;
    const int64_t apart = columns ? problem->a.ld : problem->b.step;
    const int64_t k_apart = columns ? problem->a.step : problem->b.ld;
    const bool along = thick == 1 || (problem->K > 1 && magnitude(k_apart) < magnitude(apart));
    const skinny_cut cut = skinny_cut_of(row, dtype, problem->M, problem->N, along);
    smk_geometry geometry = geometry_of(row, dtype, values, 0);
    geometry.threads[0] = cut.threads;
    geometry.output_tile[0] = cut.tile[0];
    geometry.output_tile[1] = cut.tile[1];
    geometry.shared_bytes = cut.shared_bytes;
    shape s;
    if (shape_make(row, dtype, &geometry, problem->M, problem->N, &s, status)) return status->code;
    if (s.n_kernels && w.total) {
        int64_t own[SMK_MAX_PARAMS];
        memcpy(own, values, sizeof own[0] * (size_t)row->n_params);
        int64_t *split = &own[smk_row_param(row, "split")];
        if (*split == 0)
            *split = skinny_split(&cut, s.kernels[0].blocks * walk_z_size(&w), problem->K,
                                  problem->multiprocessors);
        s.kernels[0].entry = cut.kernel;
        if (split_plan(row, dtype, own, problem, &w, SKINNY_STEP, (split_place){plan, &args, 0}, &s,
                       status))
            return status->code;
        split_add_reduce(row, dtype, &args, &s);
    }
    return plan_launches(plan, &s, &w, operands, &args, status);
}
