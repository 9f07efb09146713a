/* Split-K: chooses the number of K ranges. With more than one, the plan has room for partial sums
 * in the workspace and a launch that adds them up (layout: kernels/include/split_k.cuh).
 *
 * Multiprocessors take blocks as evenly as they can: with 140 blocks some have two, and 264 blocks
 * take no longer. A few small blocks share a multiprocessor and hide each other's latency, but they
 * share its tensor cores. With `blocks` on the most loaded multiprocessor, in `waves` of as many as
 * fit on one, a step of all of them takes the longest of
 *
 *     clocks of its products * most(blocks, ALONE * waves)
 *     bytes of its tiles * blocks / LOAD_RATE
 *     latency of its tiles * waves      (what passes until they arrive, over the tiles in flight)
 *
 * and a product about
 *
 *     waves * BLOCK_OVERHEAD + steps per range * clocks of a step
 *         + REDUCE_LAUNCH + bytes of partial sums / SUM_RATE
 *      or + CLUSTER_SUM + bytes of a tile's sums / CLUSTER_RATE * waves
 *
 * clocks; the last lines are 0 without split-K. The clocks of products follow from the variant's
 * rate. Candidates are the numbers of ranges that fill all multiprocessors, smaller ones for
 * problems where partial sums cost more than steps, and all that a cluster can add. The constants
 * were fitted to 324 random calls on an H200, each with up to 12 numbers of ranges for each variant
 * (docs/performance.md): the choice takes on average 0.7 % longer than the best of them.
 */
#include "plan_parts.h"

#include <inttypes.h>
#include <stddef.h>

#include "../kernels/args.h"

enum {
    BLOCK_OVERHEAD = 4000, /* clocks of a block before its first step and after its last */
    REDUCE_LAUNCH = 5000,  /* clocks from the end of a launch to the end of a small one after it */
    CLUSTER_SUM = 600, /* clocks until the blocks of a cluster have the sums of all others ... */
    CLUSTER_RATE = 20, /* ... and bytes of them per clock */
    SUM_RATE = 10,     /* bytes of partial sums per clock per multiprocessor */
    LOAD_RATE = 40,    /* bytes of tiles per clock per multiprocessor, mostly from L2 */
    LATENCY = 1200,    /* clocks from the start of a copy to its arrival */
    LATENCY_PASSED = 3700,  /* of a tile whose elements pass through registers, one after another */
    RESIDENT_THREADS = 384, /* per multiprocessor, by the registers of kernels with small blocks */
    MAX_BLOCKS = 4,         /* tried per multiprocessor: as many balance the load well enough */
    WORKSPACE = 3,          /* buffer */
    WORKSPACE_ALIGN = 256
};

/* Factors on the clocks of products: if each block has a multiprocessor to itself; if operands are
 * copied element by element. */
static const double ALONE = 1.7;
static const double UNALIGNED = 1.45;

/* The blocks of a cluster run on the multiprocessors of one GPC, which they may not fill. By blocks
 * of a cluster: the most clusters that an H200, of 132 multiprocessors, runs at once. With one more
 * products took 1.3 times as long (docs/history.md). */
static const double CLUSTERS[MAX_CLUSTER + 1] = {0, 132, 66, 39, 30, 22, 17, 15, 15};

double split_most_clusters(int64_t blocks, double multiprocessors) {
    return blocks <= MAX_CLUSTER ? CLUSTERS[blocks] * multiprocessors / 132 : 0;
}

bool split_clusters_fit(int64_t blocks, double clusters, double multiprocessors) {
    return clusters <= split_most_clusters(blocks, multiprocessors);
}

int64_t split_cluster_bytes(const smk_dtype *dtype, const smk_geometry *g, int64_t split) {
    const int64_t row_bytes = g->output_tile[1] * (dtype->itemsize == 8 ? 8 : 4);
    return CLUSTER_SUM_BYTES(g->output_tile[0], row_bytes, split);
}

bool split_in_cluster(const split_query *q, int64_t split) {
    return q->clusters && split > 1 &&
           split_clusters_fit(split, (double)q->tiles, (double)q->multiprocessors);
}

static double clocks_of(const split_query *q, int64_t split) {
    const double blocks = (double)ceil_div(q->tiles * split, q->multiprocessors);
    const double waves = (double)ceil_div((int64_t)blocks, q->resident);
    const double busy = most(q->step_clocks * most(blocks, ALONE * waves),
                             most(q->step_bytes * blocks / LOAD_RATE, q->step_latency * waves));
    const double product = waves * BLOCK_OVERHEAD + (double)ceil_div(q->steps, split) * busy;
    if (split_in_cluster(q, split))
        return product + CLUSTER_SUM + waves * q->tile_bytes / CLUSTER_RATE;
    const double bytes = 2.0 * (double)split * q->range_bytes;
    return split == 1 ? product
                      : product + REDUCE_LAUNCH + bytes / (double)(SUM_RATE * q->multiprocessors);
}

/* Takes `split` if it is expected to be faster than *best. */
static void try_split(const split_query *q, int64_t split, int64_t *best, double *min_clocks) {
    const double clocks = clocks_of(q, split);
    if (clocks >= *min_clocks) return;
    *min_clocks = clocks;
    *best = split;
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
            try_split(q, ceil_div(q->steps, ceil_div(q->steps, split)), &best, &min_clocks);
        }
    }
    for (int64_t split = 2; split <= MAX_CLUSTER && split <= q->steps; split++)
        if (split_in_cluster(q, split)) try_split(q, split, &best, &min_clocks);
    return best;
}

/* Elements per row of partial sums: whole 16-byte vectors. */
static int64_t pitch_of(const smk_dtype *dtype, int64_t n) {
    const int64_t wide = dtype->itemsize == 8 ? 2 : 4;
    return ceil_div(n, wide) * wide;
}

/* Tiles that are on their way while one is multiplied. */
static double tiles_in_flight(const smk_variant *variant, const int64_t *values) {
    const int stages = smk_variant_param(variant, "stages");
    return stages < 0 ? 1 : (double)(values[stages] - 1);
}

split_query split_query_of(const smk_variant *variant, const smk_dtype *dtype,
                           const smk_geometry *geometry, const int64_t *values,
                           const int64_t sizes[3], int64_t batch, int64_t step, bool aligned,
                           int64_t multiprocessors, bool clusters) {
    const int64_t m = sizes[0], n = sizes[1], sum = dtype->itemsize == 8 ? 8 : 4;
    const int64_t rows = geometry->output_tile[0], columns = geometry->output_tile[1];
    const double clocks = (double)(rows * columns * step) / variant->split.rate;
    const double tile_bytes = (double)(rows * columns * sum);
    const int64_t lines = (m < rows ? m : rows) + (n < columns ? n : columns);
    const bool copies = variant->wgmma.terms == 0; /* else TMA, which reads packed operands */
    const bool has_room =
        !copies ||
        geometry->shared_bytes + split_cluster_bytes(dtype, geometry, MAX_CLUSTER) <= MOST_SHARED;
    const bool passed = copies && !aligned && dtype->itemsize < 4; /* less than cp.async copies */
    return (split_query){
        .tiles = ceil_div(m, rows) * ceil_div(n, columns) * batch,
        .steps = ceil_div(sizes[2], step),
        .step_clocks = copies && !aligned ? clocks * UNALIGNED : clocks,
        .step_bytes = (double)(lines * STEP_BYTES * (copies ? 1 : variant->wgmma.terms)),
        .step_latency = passed ? LATENCY_PASSED : LATENCY / tiles_in_flight(variant, values),
        .range_bytes = (double)m * (double)pitch_of(dtype, n) * (double)(batch * sum),
        .tile_bytes = tile_bytes,
        .resident =
            geometry->threads[0] < RESIDENT_THREADS ? RESIDENT_THREADS / geometry->threads[0] : 1,
        .multiprocessors = multiprocessors,
        .clusters = clusters && variant->split.clusters &&
                    (variant->wgmma.columns || (tile_bytes <= CLUSTER_BYTES && has_room &&
                                                tile_bytes <= (double)geometry->shared_bytes))};
}

/* Whether all rows, or columns if it is column-major, begin and end at multiples of 16 bytes. */
static bool is_aligned(const smk_matrix *x, int64_t rows, int64_t columns, int64_t itemsize) {
    const bool column_major = columns > 1 ? x->step != 1 : rows > 1 && x->ld == 1;
    const int64_t pitch = column_major ? x->step : x->ld, extent = column_major ? rows : columns;
    return (x->offset | pitch * itemsize | extent * itemsize) % 16 == 0;
}

smk_code split_plan(const smk_variant *variant, const smk_dtype *dtype, const smk_geometry *g,
                    const int64_t *values, const smk_gemm *p, const batch_iterator *it,
                    int64_t step, split_output out, launch_shape *s, smk_status *status) {
    if (variant->split.rate == 0 || s->n_kernels == 0 || it->total == 0) return SMK_OK;
    const int64_t z = batch_z_size(it) < MAX_GRID_Z ? batch_z_size(it) : MAX_GRID_Z;
    const bool aligned = is_aligned(&p->a, p->M, p->K, dtype->itemsize) &&
                         is_aligned(&p->b, p->K, p->N, dtype->itemsize);
    const split_query query =
        split_query_of(variant, dtype, g, values, (int64_t[]){p->M, p->N, p->K}, z, step, aligned,
                       p->multiprocessors, p->clusters);
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
    if (split_in_cluster(&query, split)) {
        s->kernels[0].cluster = (uint32_t)split;
        return SMK_OK;
    }
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
    if (args->part_pitch == 0) return; /* no partial sums in the workspace */
    const int64_t vectors = args->M * (args->part_pitch / (dtype->itemsize == 8 ? 2 : 4));
    uint32_t groups = 1; /* threads per vector of sums, each with 4 or more K ranges */
    while (groups < 32 && args->split >= 8 * groups)
        groups *= 2;
    const uint32_t vectors_per_block = REDUCE_THREADS / groups;
    s->kernels[s->n_kernels++] = (kernel){.entry = variant->split.reduce,
                                          .blocks = (uint32_t)ceil_div(vectors, vectors_per_block),
                                          .threads = {vectors_per_block, groups, 1}};
}
