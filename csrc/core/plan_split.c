/* Split-K: chooses the number of K ranges. With more than one, the plan has room for partial sums
 * in the workspace and a launch that adds them up (layout: kernels/include/split_k.cuh).
 *
 * Multiprocessors take blocks as evenly as they can: with 140 blocks some have two, and 264 blocks
 * take no longer. A few small blocks share a multiprocessor and hide each other's latency, but they
 * share its tensor cores. With `blocks` on the most loaded multiprocessor, in `waves` of as many as
 * fit on one, the time of a product is about
 *
 *     waves * BLOCK_OVERHEAD + steps per range * clocks per step * max(blocks, ALONE * waves)
 *         + REDUCE_LAUNCH + bytes of partial sums / bandwidth
 *
 * clocks; the last line is 0 without split-K. The clocks per step follow from the variant's rate.
 * Candidates are the numbers of ranges that fill all multiprocessors, and smaller ones for problems
 * where partial sums cost more than steps. Measured on an H200 with up to 132 ranges, 12 rows and
 * 60 shapes (docs/performance.md).
 */
#include "plan_parts.h"

#include <inttypes.h>
#include <stddef.h>

#include "../kernels/args.h"

enum {
    BLOCK_OVERHEAD = 8000,  /* clocks of a block before its first step and after its last */
    REDUCE_LAUNCH = 7000,   /* clocks from the end of a launch to the end of a small one after it */
    BANDWIDTH = 20,         /* bytes per clock per multiprocessor, written and read */
    RESIDENT_THREADS = 384, /* per multiprocessor, by the registers of kernels with small blocks */
    MAX_BLOCKS = 4,         /* tried per multiprocessor: as many balance the load well enough */
    WORKSPACE = 3,          /* buffer */
    WORKSPACE_ALIGN = 256
};

/* Factors on the clocks of a step: if each block has a multiprocessor to itself; if operands are
 * copied element by element. */
static const double ALONE = 1.3;
static const double UNALIGNED = 1.45;

static double clocks_of(const split_query *q, int64_t split) {
    const int64_t blocks = ceil_div(q->tiles * split, q->multiprocessors);
    const double waves = (double)ceil_div(blocks, q->resident);
    const double steps = (double)ceil_div(q->steps, split) * q->step_clocks;
    const double shared = (double)blocks, alone = waves * ALONE;
    const double product = waves * BLOCK_OVERHEAD + steps * (shared > alone ? shared : alone);
    const double bytes = 2.0 * (double)split * q->range_bytes;
    return split == 1 ? product
                      : product + REDUCE_LAUNCH + bytes / (double)(BANDWIDTH * q->multiprocessors);
}

int64_t split_choose(const split_query *q) {
    int64_t best = 1;
    double min_clocks = clocks_of(q, best);
    for (int64_t blocks = 1; blocks <= MAX_BLOCKS; blocks++) {
        const int64_t fewer = (blocks - 1) * q->multiprocessors / q->tiles;
        int64_t split = blocks * q->multiprocessors / q->tiles;
        split = split < q->steps ? split : q->steps;
        for (; split > 1 && split > fewer; split = split * 3 / 4) {
            /* The fewest ranges with the same max steps per range. */
            const int64_t even = ceil_div(q->steps, ceil_div(q->steps, split));
            const double clocks = clocks_of(q, even);
            if (clocks < min_clocks) {
                min_clocks = clocks;
                best = even;
            }
        }
    }
    return best;
}

/* Elements per row of partial sums: whole 16-byte vectors. */
static int64_t pitch_of(const smk_dtype *dtype, int64_t n) {
    const int64_t wide = dtype->itemsize == 8 ? 2 : 4;
    return ceil_div(n, wide) * wide;
}

split_query split_query_of(const smk_variant *variant, const smk_dtype *dtype,
                           const int64_t *values, const int64_t sizes[3], int64_t batch,
                           int64_t step, bool aligned, int64_t multiprocessors) {
    const int64_t m = sizes[0], n = sizes[1], sum = dtype->itemsize == 8 ? 8 : 4;
    const smk_geometry g = geometry_of(variant, dtype, values, 0);
    const double clocks =
        (double)(g.output_tile[0] * g.output_tile[1] * step) / variant->split.rate;
    const bool copies = variant->wgmma.terms == 0; /* else TMA, which reads packed operands */
    return (split_query){
        .tiles = ceil_div(m, g.output_tile[0]) * ceil_div(n, g.output_tile[1]) * batch,
        .steps = ceil_div(sizes[2], step),
        .step_clocks = copies && !aligned ? clocks * UNALIGNED : clocks,
        .range_bytes = (double)m * (double)pitch_of(dtype, n) * (double)(batch * sum),
        .resident = g.threads[0] < RESIDENT_THREADS ? RESIDENT_THREADS / g.threads[0] : 1,
        .multiprocessors = multiprocessors};
}

/* Whether all rows, or columns if it is column-major, begin and end at multiples of 16 bytes. */
static bool is_aligned(const smk_matrix *x, int64_t rows, int64_t columns, int64_t itemsize) {
    const bool column_major = columns > 1 ? x->step != 1 : rows > 1 && x->ld == 1;
    const int64_t pitch = column_major ? x->step : x->ld, extent = column_major ? rows : columns;
    return (x->offset | pitch * itemsize | extent * itemsize) % 16 == 0;
}

smk_code split_plan(const smk_variant *variant, const smk_dtype *dtype, const int64_t *values,
                    const smk_gemm *p, const batch_iterator *it, int64_t step, split_output out,
                    launch_shape *s, smk_status *status) {
    if (variant->split.rate == 0 || s->n_kernels == 0 || it->total == 0) return SMK_OK;
    const int64_t z = batch_z_size(it) < MAX_GRID_Z ? batch_z_size(it) : MAX_GRID_Z;
    const bool aligned = is_aligned(&p->a, p->M, p->K, dtype->itemsize) &&
                         is_aligned(&p->b, p->K, p->N, dtype->itemsize);
    const split_query query = split_query_of(variant, dtype, values, (int64_t[]){p->M, p->N, p->K},
                                             z, step, aligned, p->multiprocessors);
    int64_t split = values[smk_variant_param(variant, "split")];
    split = split == 0 ? split_choose(&query) : split < query.steps ? split : query.steps;
    out.plan->split = split > 1 ? split : 1;
    if (split <= 1) return SMK_OK;

    /* The kernels count tiles and vectors of sums in 32 bits. */
    const double tiles = (double)s->kernels[0].blocks * (double)split;
    const int64_t pitch = pitch_of(dtype, p->N), sum = dtype->itemsize == 8 ? 8 : 4;
    const double vectors = (double)p->M * (double)(pitch * sum / 16);
    if (tiles > MAX_GRID_X || vectors > MAX_GRID_X ||
        query.range_bytes * (double)split > (double)INT64_MAX / 2)
        return smk_fail(status, SMK_VALUE,
                        "gemm variant '%s': split = %" PRId64 " of a result of %" PRId64
                        " x %" PRId64 " is too much; leave it at 0",
                        variant->name, split, p->M, p->N);
    smk_plan *plan = out.plan;
    s->kernels[0].blocks *= (uint32_t)split;
    out.args->split = split;
    out.args->part_pitch = pitch;
    out.args->parts = (int64_t)plan->workspace;
    plan->pointers[plan->n_pointers++] =
        (smk_pointer){(uint32_t)(out.args_offset + offsetof(gemm_args, parts)), WORKSPACE};
    plan->workspace +=
        (size_t)(ceil_div(split * z * p->M * pitch * sum, WORKSPACE_ALIGN) * WORKSPACE_ALIGN);
    return SMK_OK;
}

void split_add_reduce(const smk_variant *variant, const smk_dtype *dtype, const gemm_args *args,
                      launch_shape *s) {
    if (args->split == 1) return;
    const int64_t vectors = args->M * (args->part_pitch / (dtype->itemsize == 8 ? 2 : 4));
    uint32_t groups = 1; /* threads per vector of sums, each with 4 or more K ranges */
    while (groups < 32 && args->split >= 8 * groups)
        groups *= 2;
    const uint32_t vectors_per_block = REDUCE_THREADS / groups;
    s->kernels[s->n_kernels++] = (kernel){.entry = variant->split.reduce,
                                          .blocks = (uint32_t)ceil_div(vectors, vectors_per_block),
                                          .threads = {vectors_per_block, groups, 1}};
}
