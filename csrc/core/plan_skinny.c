/* Plans the rows for results of few rows or columns (kernels/gemm_skinny.cu has the picture).
 *
 * The operand of few rows or columns is thin, the other one thick; a kernel takes 1, 2, 4, 8 or 16 of the
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

/* As many parts as give each multiprocessor a block, of enough steps to be worth a launch that adds them up. */
static int64_t choose_split(int64_t blocks, int64_t steps, int64_t multiprocessors) {
    enum { LEAST_STEPS = 16 };
    if (blocks >= multiprocessors / 2) return 1;
    const int64_t fill = 2 * multiprocessors / blocks, most = steps / LEAST_STEPS;
    return fill < most ? fill : most > 1 ? most : 1;
}

smk_code plan_skinny(const smk_row *row, const smk_dtype *dtype, const int64_t *values,
                     const smk_gemm *problem, smk_plan *plan, smk_status *status) {
    const smk_matrix *operands[] = {&problem->a, &problem->b, &problem->c};
    const walk w = walk_fold(&problem->batch, operands, 3);
    gemm_args args = plan_gemm_args(problem, &w);
    *plan = plan_of_gemm();

    const bool columns = problem->N < problem->M;
    const int64_t thin = columns ? problem->N : problem->M;
    const int64_t thick = columns ? problem->M : problem->N;
    const int64_t apart = columns ? problem->a.ld : problem->b.step;
    const int64_t k_apart = columns ? problem->a.step : problem->b.ld;
    const bool along = thick == 1 || (problem->K > 1 && magnitude(k_apart) < magnitude(apart));
    int height = 0;
    while (height < SMK_SKINNY_HEIGHTS - 1 && 1 << height < thin)
        height++;

    const int rows = 1 << height, sum = dtype->itemsize == 8 ? 8 : 4;
    const int64_t wide = SKINNY_WARPS_J(rows);
    const int64_t lanes = along ? 4 * SKINNY_NEIGHBOURS(rows, sum, 4)
                                : 8 * SKINNY_NEIGHBOURS(rows, sum, 16 / dtype->itemsize);
    smk_geometry geometry = geometry_of(row, dtype, values, 0);
    geometry.threads[0] = 32 * wide * SKINNY_WARPS_K;
    geometry.output_tile[!columns] = lanes * wide;
    geometry.output_tile[columns] = rows;
    geometry.shared_bytes = wide * SKINNY_RING + 16 * rows;
    shape s;
    if (shape_make(row, dtype, &geometry, problem->M, problem->N, &s, status)) return status->code;
    if (s.n_kernels && w.total) {
        int64_t own[SMK_MAX_PARAMS];
        memcpy(own, values, sizeof own[0] * (size_t)row->n_params);
        int64_t *split = &own[smk_row_param(row, "split")];
        if (*split == 0)
            *split = choose_split(s.kernels[0].blocks * walk_z_size(&w),
                                  ceil_div(problem->K, SKINNY_STEP), problem->multiprocessors);
        s.kernels[0].entry = row->skinny.products[height][along];
        if (split_plan(row, dtype, own, problem, &w, SKINNY_STEP, (split_place){plan, &args, 0}, &s,
                       status))
            return status->code;
        split_add_reduce(row, dtype, &args, &s);
    }
    return plan_launches(plan, &s, &w, operands, &args, status);
}
