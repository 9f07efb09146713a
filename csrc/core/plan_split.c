/* How many parts K is cut into, and what that adds to a plan: room for the parts' sums in the workspace,
 * and a launch that adds them up (kernels/split_k.cuh has the picture).
 *
 * Multiprocessors take blocks as equally as they can: of 140 some have two, and 264 take no longer. A few small
 * blocks share one and hide each other's waiting; what they share are the tensor cores. So the time of a product
 * cut into parts, with `blocks` on the busiest multiprocessor in `waves` of as many as share one, is about
 *
 *     waves * EDGE + steps of a part * clocks of a step * max (blocks, ALONE waves)
 *         + SECOND + bytes of sums / bandwidth
 *
 * clocks, and the last line is nothing where K stays whole. A step's clocks follow from the row's rate. Parts that
 * fill up all multiprocessors are the ones worth a look, and fewer of them where the sums weigh more than the steps.
 * Measured on an H200 with up to 132 parts of 12 rows and 60 shapes (docs/performance.md).
 */
#include "plan_parts.h"

#include <inttypes.h>
#include <stddef.h>

#include "../kernels/args.h"

enum {
    EDGE = 8000,     /* clocks of a block before its first step and after its last */
    SECOND = 7000,   /* clocks from the end of a launch to the end of a small one behind it */
    BANDWIDTH = 20,  /* bytes a clock and multiprocessor, written and read */
    RESIDENT = 384,  /* threads that kernels of small blocks have registers for */
    MOST_BLOCKS = 4, /* on a multiprocessor: more of them are even enough */
    WORKSPACE = 3,   /* buffer */
    PLACE = 256      /* where a part of the workspace may begin */
};
static const double ALONE = 1.3;      /* a step's clocks if nobody shares the multiprocessor */
static const double UNALIGNED = 1.45; /* where elements are copied one by one */

static double clocks_of(const split_question *q, int64_t split) {
    const int64_t blocks = ceil_div(q->tiles * split, q->multiprocessors);
    const double waves = (double)ceil_div(blocks, q->resident);
    const double steps = (double)ceil_div(q->steps, split) * q->step_clocks;
    const double shared = (double)blocks, alone = waves * ALONE;
    const double product = waves * EDGE + steps * (shared > alone ? shared : alone);
    const double bytes = 2.0 * (double)split * q->part_bytes;
    return split == 1 ? product
                      : product + SECOND + bytes / (double)(BANDWIDTH * q->multiprocessors);
}

int64_t split_choose(const split_question *q) {
    int64_t best = 1;
    double least = clocks_of(q, best);
    for (int64_t blocks = 1; blocks <= MOST_BLOCKS; blocks++) {
        const int64_t fewer = (blocks - 1) * q->multiprocessors / q->tiles;
        int64_t split = blocks * q->multiprocessors / q->tiles;
        split = split < q->steps ? split : q->steps;
        for (; split > 1 && split > fewer; split = split * 3 / 4) {
            /* As few as have no more steps than these. */
            const int64_t even = ceil_div(q->steps, ceil_div(q->steps, split));
            const double clocks = clocks_of(q, even);
            if (clocks < least) {
                least = clocks;
                best = even;
            }
        }
    }
    return best;
}

/* Elements of a row of a part's sums. */
static int64_t pitch_of(const smk_dtype *dtype, int64_t n) {
    const int64_t wide = dtype->itemsize == 8 ? 2 : 4;
    return ceil_div(n, wide) * wide;
}

split_question split_ask(const smk_row *row, const smk_dtype *dtype, const int64_t *values,
                         const int64_t sizes[3], int64_t batch, int64_t step, bool aligned,
                         int64_t multiprocessors) {
    const int64_t m = sizes[0], n = sizes[1], sum = dtype->itemsize == 8 ? 8 : 4;
    const smk_geometry g = geometry_of(row, dtype, values, 0);
    const double clocks = (double)(g.output_tile[0] * g.output_tile[1] * step) / row->split.rate;
    const bool copies = row->wgmma.parts == 0; /* else by TMA, if need be of a packed operand */
    return (split_question){
        .tiles = ceil_div(m, g.output_tile[0]) * ceil_div(n, g.output_tile[1]) * batch,
        .steps = ceil_div(sizes[2], step),
        .step_clocks = copies && !aligned ? clocks * UNALIGNED : clocks,
        .part_bytes = (double)m * (double)pitch_of(dtype, n) * (double)(batch * sum),
        .resident = g.threads[0] < RESIDENT ? RESIDENT / g.threads[0] : 1,
        .multiprocessors = multiprocessors};
}

/* Whether a matrix's rows, or columns, begin and end on 16-byte boundaries. */
static bool is_chunks(const smk_matrix *x, int64_t rows, int64_t columns, int64_t itemsize) {
    const bool by_columns = columns > 1 ? x->step != 1 : rows > 1 && x->ld == 1;
    const int64_t pitch = by_columns ? x->step : x->ld, extent = by_columns ? rows : columns;
    return (x->offset | pitch * itemsize | extent * itemsize) % 16 == 0;
}

smk_code split_plan(const smk_row *row, const smk_dtype *dtype, const int64_t *values,
                    const smk_gemm *p, const walk *w, int64_t step, split_place place, shape *s,
                    smk_status *status) {
    if (row->split.rate == 0 || s->n_kernels == 0 || w->total == 0) return SMK_OK;
    const int64_t z = walk_z_size(w) < MAX_GRID_Z ? walk_z_size(w) : MAX_GRID_Z;
    const bool aligned = is_chunks(&p->a, p->M, p->K, dtype->itemsize) &&
                         is_chunks(&p->b, p->K, p->N, dtype->itemsize);
    const split_question question = split_ask(row, dtype, values, (int64_t[]){p->M, p->N, p->K}, z,
                                              step, aligned, p->multiprocessors);
    int64_t split = values[smk_row_param(row, "split")];
    split = split == 0 ? split_choose(&question) : split < question.steps ? split : question.steps;
    place.plan->split = split > 1 ? split : 1;
    if (split <= 1) return SMK_OK;

    /* The kernels count tiles and vectors of sums in 32 bits. */
    const double tiles = (double)s->kernels[0].blocks * (double)split;
    const int64_t pitch = pitch_of(dtype, p->N), sum = dtype->itemsize == 8 ? 8 : 4;
    const double vectors = (double)p->M * (double)(pitch * sum / 16);
    if (tiles > MAX_GRID_X || vectors > MAX_GRID_X ||
        question.part_bytes * (double)split > (double)INT64_MAX / 2)
        return smk_fail(status, SMK_VALUE,
                        "gemm variant '%s': split = %" PRId64 " of a result of %" PRId64
                        " x %" PRId64 " is too much; leave it at 0",
                        row->name, split, p->M, p->N);
    smk_plan *plan = place.plan;
    s->kernels[0].blocks *= (uint32_t)split;
    place.args->split = split;
    place.args->part_pitch = pitch;
    place.args->parts = (int64_t)plan->workspace;
    plan->pointers[plan->n_pointers++] =
        (smk_pointer){(uint32_t)(place.at + offsetof(gemm_args, parts)), WORKSPACE};
    plan->workspace += (size_t)(ceil_div(split * z * p->M * pitch * sum, PLACE) * PLACE);
    return SMK_OK;
}

void split_add_reduce(const smk_row *row, const smk_dtype *dtype, const gemm_args *args, shape *s) {
    if (args->split == 1) return;
    const int64_t vectors = args->M * (args->part_pitch / (dtype->itemsize == 8 ? 2 : 4));
    uint32_t groups = 1; /* of threads that share the parts of a vector: 4 of them or more each */
    while (groups < 32 && args->split >= 8 * groups)
        groups *= 2;
    const uint32_t across = REDUCE_THREADS / groups;
    s->kernels[s->n_kernels++] = (kernel){.entry = row->split.reduce,
                                          .blocks = (uint32_t)ceil_div(vectors, across),
                                          .threads = {across, groups, 1}};
}
