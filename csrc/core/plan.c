/* Launch planning: see plan.h. */
#include "plan_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kernels/args.h"

enum { BAND = 8 /* rows of tiles of the kernels by mma.sync: tile_order.cuh */ };

/* ---- the operations ---- */

/* Whether a matrix is read as column-major. A single column is, if it is contiguous. */
static bool is_column_major(const smk_matrix *m, int64_t rows, int64_t columns) {
    return columns > 1 ? m->step != 1 : rows > 1 && m->ld == 1;
}

smk_code smk_plan_gemm(const smk_variant *variant, const smk_dtype *dtype, const int64_t *values,
                       const smk_gemm *problem, smk_plan *plan, smk_status *status) {
    if (variant->wgmma.terms) return plan_wgmma(variant, dtype, values, problem, plan, status);
    if (problem->prepack.only) { /* the other rows do not prepack */
        *plan = (smk_plan){0};
        return SMK_OK;
    }
    if (variant->skinny.rows[0]) return plan_skinny(variant, dtype, values, problem, plan, status);
    if (variant->ozaki.pack) return plan_ozaki(variant, dtype, values, problem, plan, status);
    *plan = plan_of_gemm();
    const smk_geometry geometry = geometry_of(variant, dtype, values, problem->K);
    launch_shape s;
    if (launch_shape_init(variant, dtype, &geometry, problem->M, problem->N, &s, status))
        return status->code;
    if (variant->by_layout[0][0]) {
        s.kernels[0].entry =
            variant->by_layout[is_column_major(&problem->a, problem->M, problem->K)]
                              [is_column_major(&problem->b, problem->K, problem->N)];
    }
    const smk_matrix *operands[] = {&problem->a, &problem->b, &problem->c};
    batch_iterator it = batch_fold(&problem->batch, operands, 3);
    gemm_args args = plan_gemm_args(problem, &it);
    if (split_plan(variant, dtype, &geometry, values, problem, &it, STEP_BYTES / dtype->itemsize,
                   (split_output){plan, &args, 0}, &s, status)) {
        return status->code;
    }
    if (args.split > 1) { /* shared memory may depend on the length of a K range */
        const int64_t step = STEP_BYTES / dtype->itemsize;
        const int64_t k = ceil_div(ceil_div(problem->K, step), args.split) * step;
        s.kernels[0].shared_bytes = (size_t)geometry_of(variant, dtype, values, k).shared_bytes;
        if (s.kernels[0].cluster)
            s.kernels[0].shared_bytes += (size_t)split_cluster_bytes(dtype, &geometry, args.split);
    }
    /* Where tiles go through a ring, K is long, and blocks that run together share operands. */
    const int64_t band = smk_variant_param(variant, "stages") < 0 ? 1 : BAND;
    args.tiles = tile_list_of(ceil_div(problem->M, geometry.output_tile[0]),
                              ceil_div(problem->N, geometry.output_tile[1]), band,
                              ceil_div(problem->K, STEP_BYTES / dtype->itemsize), args.split);
    args.tiles.rows_per_part = (int)CLUSTER_ROWS(geometry.output_tile[0], args.split);
    split_add_reduce(variant, dtype, &args, &s);
    return plan_launches(plan, &s, &it, operands, &args, status);
}

smk_code smk_probe_size(const smk_variant *variant, const smk_dtype *dtype, const int64_t *values,
                        int64_t n, int64_t *n_y, smk_status *status) {
    const smk_geometry geometry = geometry_of(variant, dtype, values, n);
    if (n < geometry.input) {
        return smk_fail(status, SMK_VALUE,
                        "probe variant '%s' with these parameters reads %" PRId64
                        " elements; x has "
                        "%" PRId64,
                        variant->name, geometry.input, n);
    }
    *n_y = geometry.output;
    return SMK_OK;
}

smk_code smk_plan_probe(const smk_variant *variant, const smk_dtype *dtype, const int64_t *values,
                        const smk_probe *problem, smk_plan *plan, smk_status *status) {
    *plan = (smk_plan){
        .args_bytes = sizeof(probe_args),
        .n_parameters = 1,
        .pointers = {{offsetof(probe_args, x), 0}, {offsetof(probe_args, y), 1}},
        .n_pointers = 2,
    };
    probe_args args = {.n_x = problem->n_x};
    int64_t n_y = 0;
    if (smk_probe_size(variant, dtype, values, problem->n_x, &n_y, status)) return status->code;
    args.n_y = n_y;
    size_t n_runtime = 0;
    for (int i = 0; i < variant->n_params; i++)
        if (variant->params[i].runtime && n_runtime < sizeof args.runtime / sizeof args.runtime[0])
            args.runtime[n_runtime++] = values[i];
    const smk_geometry geometry = geometry_of(variant, dtype, values, problem->n_x);
    launch_shape s;
    if (launch_shape_init(variant, dtype, &geometry, 1, n_y, &s, status)) return status->code;
    smk_matrix x = {.offset = problem->offset_x}, y = {0};
    const smk_matrix *operands[] = {&x, &y};
    batch_iterator it = batch_fold(&(smk_batch){0}, operands, 2);
    return plan_launches(plan, &s, &it, operands, &args, status);
}
