/* Chooses the columns of a tile, and the number of K ranges, for kernels of 16-bit matrices
 * (kernels/include/wgmma_16bit.cuh). Their blocks are persistent and take tiles in turn: first the
 * full ones, then narrow ones at the right edge. A step of a tile of `rows` x `columns` takes the
 * longer of
 *
 *     its products       rows * columns / 32 clocks
 *     its bytes          128 (rows + columns) / PORT, what a multiprocessor receives per clock
 *
 * but at least LATENCY / stages in flight; where two blocks share a multiprocessor, SHARE times as
 * long. Rows of a matrix that do not begin at whole lines of 128 bytes count as (1 + UNALIGNED)
 * times their bytes. A launch takes the sum over its waves of
 *
 *     TILE + PER_ELEMENT * rows * columns + steps per range * step
 *
 * clocks, and no less than all bytes take at L2_RATE; split-K adds REDUCE and the bytes of partial
 * sums at SUM_RATE. All widths are tried, each with the numbers of ranges that fill up to two
 * waves. The constants were fitted to half of 2890 random calls on an H200, each with all widths
 * and up to 9 numbers of ranges. In the other half the choice takes 2.9 % longer than the fastest
 * of some 100 measured, of which the least of as many noisy times explains a part.
 */
#include "plan_parts.h"

#include <math.h>

#include "../kernels/args.h"

enum { MOST_STAGES = 16, BUFFER_BYTES = 8192 };

static const double PORT = 88, L2_RATE = 54; /* bytes per clock per multiprocessor */
static const double LATENCY = 2000, AT_LEAST = 11, TILE = 8500, PER_ELEMENT = 90.0 / 32768;
static const double SHARE = 2.42, UNALIGNED = 0.3, REDUCE = 2700, SUM_RATE = 33;

int64_t ring_stages(const int64_t tile[2], int64_t shared_bytes) {
    const int64_t out = tile[0] / 64 * WGMMA_OUT_BUFFERS(tile[0]) * BUFFER_BYTES;
    const int64_t stages = (shared_bytes - out) / ((tile[0] + tile[1]) * STEP_BYTES + 16);
    return stages < MOST_STAGES ? stages : MOST_STAGES;
}

int64_t ring_blocks(int64_t rows, int64_t tiles, int64_t multiprocessors) {
    return rows == 64 && tiles > multiprocessors ? 2 : 1;
}

bool ring_is_narrow(int64_t n, int64_t columns) {
    return n > columns && n % columns > 0 && 2 * (n % columns) <= columns;
}

/* A product whose tiles have `rows` x `columns`, and its K ranges. */
typedef struct candidate {
    double m, n, steps, batch, multiprocessors;
    double rows, columns, ranges;
    double weight[2]; /* of a byte of A, of B */
    double box;       /* columns of B are copied in multiples of this */
} candidate;

static double round_to(double x, double step) {
    return ceil(x / step) * step;
}

/* Weighted bytes that a step of a tile copies from L2: of its rows and columns that exist. */
static double step_bytes(const candidate *c, double columns) {
    return STEP_BYTES * (least(c->m, c->rows) * c->weight[0] + columns * c->weight[1]);
}

/* Clocks of a wave of tiles of `columns`, of which `copied` are C's. */
static double wave_clocks(const candidate *c, double columns, double copied, double stages,
                          double share) {
    const double arrive = step_bytes(c, copied) / PORT, multiply = c->rows * columns / 32;
    const double step = most(most(multiply, arrive) * share, LATENCY / (stages - 1) + AT_LEAST);
    return TILE + PER_ELEMENT * c->rows * columns + ceil(c->steps / c->ranges) * step;
}

static double clocks_of(const candidate *c) {
    const double down = ceil(c->m / c->rows), across = ceil(c->n / c->columns);
    const double rest = fmod(c->n, c->columns), all = down * across * c->ranges * c->batch;
    const bool has_narrow = ring_is_narrow((int64_t)c->n, (int64_t)c->columns);
    const double narrow = has_narrow ? down * c->ranges * c->batch : 0, full = all - narrow;
    const double resident =
        (double)ring_blocks((int64_t)c->rows, (int64_t)all, (int64_t)c->multiprocessors);
    const double room = c->multiprocessors * resident, share = resident > 1 ? SHARE : 1;
    const double blocks = full <= room ? least(all, room) : ceil(full / ceil(full / room));
    const double waves = ceil(full / blocks), free = blocks * waves - full;
    const double last = narrow > free ? ceil((narrow - free) / blocks) : 0;
    const double boxes = round_to(c->columns, c->box), copied = least(c->n, boxes);
    const double stages = (double)ring_stages((int64_t[]){(int64_t)c->rows, (int64_t)boxes},
                                              resident > 1 ? RING_BYTES_OF_TWO : RING_BYTES);
    double clocks = waves * wave_clocks(c, c->columns, copied, stages, share);
    if (last > 0) clocks += last * wave_clocks(c, round_to(rest, 32), rest, stages, share);
    const double bytes =
        ceil(c->steps / c->ranges) * (full * step_bytes(c, copied) + narrow * step_bytes(c, rest));
    clocks = most(clocks, bytes / (L2_RATE * c->multiprocessors) + TILE);
    const double sums = 2 * 4 * c->ranges * c->m * c->n * c->batch;
    return c->ranges == 1 ? clocks : clocks + REDUCE + sums / (SUM_RATE * c->multiprocessors);
}

/* Numbers of ranges to try: 1, 2, 3, 4, 6, 9, 13, ..., and the one that fills a wave. */
static int64_t next_ranges(int64_t ranges, int64_t fill) {
    const int64_t next = ranges < 4 ? ranges + 1 : ranges + ranges / 2;
    return ranges < fill && fill < next ? fill : next;
}

double ring_choose(const smk_variant *variant, const smk_dtype *dtype, int64_t *values,
                   const int64_t sizes[3], int64_t batch, const ring_operand operands[2],
                   int64_t multiprocessors) {
    if (!variant->wgmma.columns) return 0;
    int64_t *columns = &values[smk_variant_param(variant, "block_n")];
    int64_t *split = &values[smk_variant_param(variant, "split")];
    const int64_t rows = values[smk_variant_param(variant, "block_m")];
    const int64_t steps = ceil_div(sizes[2] * dtype->itemsize, STEP_BYTES);
    const int64_t first = *columns ? *columns : 32;
    const int64_t widest = WGMMA_MOST_COLUMNS(rows), exist = round_up(sizes[1], 32);
    const int64_t last = *columns ? *columns : widest < exist ? widest : exist > 32 ? exist : 32;
    const int64_t given = *split < steps ? *split : steps;
    double shortest = INFINITY;
    candidate c = {.m = (double)sizes[0],
                   .n = (double)sizes[1],
                   .steps = (double)steps,
                   .batch = (double)batch,
                   .multiprocessors = (double)multiprocessors,
                   .rows = (double)rows,
                   .weight = {operands[0].whole_lines ? 1 : 1 + UNALIGNED,
                              operands[1].whole_lines ? 1 : 1 + UNALIGNED},
                   .box = operands[1].mn_major ? 64 : 1};
    *columns = last;
    *split = given > 1 ? given : 1;
    if (c.m * c.n * c.steps * c.batch == 0) return 0;
    const bool chosen = given > 0;
    for (int64_t n = first; n <= last; n += 32) {
        const double tiles = ceil(c.m / c.rows) * ceil(c.n / (double)n) * c.batch;
        const double most_ranges = least(2 * c.multiprocessors / tiles, c.steps / 2);
        const int64_t fill = (int64_t)(c.multiprocessors / tiles);
        c.columns = (double)n;
        for (int64_t ranges = chosen ? *split : 1;; ranges = next_ranges(ranges, fill)) {
            c.ranges = chosen ? (double)ranges : ceil(c.steps / ceil(c.steps / (double)ranges));
            const double clocks = clocks_of(&c);
            if (clocks <= shortest) {
                shortest = clocks;
                *columns = n;
                if (!chosen) *split = (int64_t)c.ranges;
            }
            if (chosen || (double)next_ranges(ranges, fill) > most_ranges) break;
        }
    }
    return shortest;
}
