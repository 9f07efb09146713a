/* Chooses the columns of a tile, the number of K ranges, whether to compute the product of the
 * transposes, and how many blocks share tiles, for kernels with any number of columns
 * (kernels/include/wgmma_tiles.cuh). Their blocks are persistent and take tiles in turn: first the
 * full ones, then narrow ones at the right edge. All widths are tried, each with the numbers of
 * ranges that fill up to two waves. The predicted time is a sum of terms, which are counted here,
 * times their costs. There is a row of costs per kernel, width, size of the clusters that share
 * tiles, and load of the device (ring_costs.def): a width has instructions of its own, and a ring
 * of its own depth; few blocks have more of L2 each. What takes least is compared once more, with
 * corrections (plan_ring_trees.c). A launch before it may pack operands (pack_costs.def).
 * benchmarks/columns.py fits costs and corrections to random calls, each timed with all widths and
 * several numbers of ranges; benchmarks/packing.py the costs of the launch before.
 */
#include "plan_parts.h"

#include <string.h>

#include "../kernels/args.h"

enum { BUFFER_BYTES = 8192, THIN_WIDTHS = THIN_COLUMNS / 32, WIDTHS = 20, SIZES = 4 };

/* Microseconds per unit of each term, by rows of a tile, of 16-bit matrices and then of tf32; by
 * blocks of a cluster that share tiles, 1, 2, 4 and 8; by load; and by columns / width_step():
 * first of thin ones, or of ONLY_COLUMNS. */
static const float COSTS[][SIZES][RING_LOADS][THIN_WIDTHS + WIDTHS][RING_TERMS] = {
#include "ring_costs.def"
};

static const float PACK_COSTS[PACK_TERMS] = {
#include "pack_costs.def"
};

/* ONLY_COLUMNS: of a tile of a tf32 product that has all its columns. SHARED_COLUMNS: a block
 * copies multiples of so many of those that are shared. */
enum { ONLY_COLUMNS = 16, SHARED_COLUMNS = 8 };

/* From one number of columns of a tile to the next. */
static int width_step(int64_t itemsize) {
    return itemsize == 4 ? 32 : 16;
}

static bool is_thin(const smk_variant *variant, int64_t m, int64_t n) {
    return variant->wgmma.thin[0][0] && m > 0 && n > 0 && (m <= THIN_COLUMNS || n <= THIN_COLUMNS);
}

int64_t ring_thin_columns(int64_t n) {
    return round_up(n, n <= 32 ? 8 : 16);
}

ring_form ring_form_of(const smk_variant *variant, const int64_t *values) {
    if (!variant->wgmma.columns) return (ring_form){.multicast = 1, .multicast_a = 1};
    return (ring_form){.multicast = values[smk_variant_param(variant, "multicast")],
                       .multicast_a = values[smk_variant_param(variant, "multicast_a")],
                       .swapped = values[smk_variant_param(variant, "swapped")] == RING_TRANSPOSES,
                       .thin = values[smk_variant_param(variant, "block_n")] == THIN_UNIT};
}

/* ceil of what is not negative: without SSE4.1 that of libm takes most of the planner's time. */
static double up(double x) {
    if (!(x < 0x1p53)) return x;
    const double whole = (double)(int64_t)x;
    return whole < x ? whole + 1 : whole;
}

static double round_to(double x, double step) {
    return up(x / step) * step;
}

/* Whether a kernel of wgmma_thin.cuh has such tiles. */
static bool can_add(bool thin, int64_t rows, int64_t columns) {
    return thin ? rows * columns * (int64_t)sizeof(float) <= CLUSTER_BYTES
                : rows <= SUMMED_ROWS && columns <= SUMMED_COLUMNS;
}

/* Whether blocks that share operands as rectangles of 16-bit tiles, so many of them, and add ranges
 * of K, are clusters. */
static bool in_cluster(bool thin, int64_t rows, int64_t columns, int64_t ranges, int64_t sharing,
                       double rectangles, double multiprocessors) {
    return ranges > 1 && ranges * sharing <= MAX_CLUSTER && can_add(thin, rows, columns) &&
           split_clusters_fit(ranges * sharing, rectangles, multiprocessors);
}

/* Columns of a tile; THIN_UNIT: all of n. */
static int64_t columns_of(int64_t columns, int64_t n) {
    return columns == THIN_UNIT ? ring_thin_columns(n) : columns;
}

bool ring_in_cluster(const smk_variant *variant, const int64_t *values, const int64_t sizes[3],
                     int64_t batch, int64_t multiprocessors) {
    if (!variant->wgmma.thin[0][0]) return false; /* others have not all of these parameters */
    const ring_form form = ring_form_of(variant, values);
    const int64_t split = values[smk_variant_param(variant, "split")];
    const int64_t rows = values[smk_variant_param(variant, "block_m")];
    const int64_t m = sizes[form.swapped], n = sizes[!form.swapped];
    const int64_t columns = columns_of(values[smk_variant_param(variant, "block_n")], n);
    const int64_t rectangles =
        ceil_div(m, rows * form.multicast) * ceil_div(n, columns * form.multicast_a) * batch;
    return in_cluster(form.thin, rows, columns, split, ring_sharing(form), (double)rectangles,
                      (double)multiprocessors);
}

int64_t ring_stages(ring_form form, const int64_t tile[2], int64_t share, int64_t parts,
                    int64_t shared_bytes) {
    const int64_t pitch = SUM_PITCH(tile[1], form.swapped), summed = form.swapped ? tile[1] : 64;
    const bool small = ring_is_small(form), in_ring = small && !form.thin;
    const int64_t buffers = small ? summed * pitch + (parts - 1) * share * pitch
                                  : WGMMA_OUT_BUFFERS(tile[0]) * BUFFER_BYTES;
    const int64_t out = in_ring ? 0 : tile[0] / 64 * buffers;
    const int64_t room = shared_bytes - RING_BARRIERS - out;
    const int64_t stages = room / ((tile[0] + tile[1]) * STEP_BYTES);
    return stages < RING_STAGES ? stages : RING_STAGES;
}

int64_t ring_blocks(int64_t rows, int64_t tiles, int64_t multiprocessors) {
    return rows == 64 && tiles > multiprocessors ? 2 : 1;
}

double ring_room(double sharing, double resident, double multiprocessors) {
    return sharing > 1 ? resident * split_most_clusters((int64_t)sharing, multiprocessors)
                       : resident * multiprocessors;
}

bool ring_is_narrow(int64_t itemsize, int64_t n, int64_t columns) {
    return itemsize == 2 && n > columns && n % columns > 0 && 2 * (n % columns) <= columns;
}

/* A packed copy begins at whole lines. */
static const ring_operand PACKED = {.packed = true, .alignment = LINE_BYTES};

ring_operand ring_operand_of(bool mn_major, int64_t pitch) {
    ring_operand found = pitch % TMA_ALIGN ? PACKED : (ring_operand){.alignment = pitch};
    found.mn_major = mn_major;
    return found;
}

void ring_operands(const int64_t sizes[3], const bool k_major[2], int64_t itemsize, bool aligned,
                   ring_operand out[2]) {
    bool says = false; /* a size, which one TMA cannot read */
    for (int i = 0; i < 2; i++) {
        const int64_t pitch = (k_major[i] ? sizes[2] : sizes[i]) * itemsize;
        out[i] = ring_operand_of(!k_major[i], aligned ? round_up(pitch, TMA_ALIGN) : pitch);
        says |= out[i].packed;
    }
    for (int i = 0; i < 2 && !aligned && !says; i++)
        out[i] = ring_operand_of(!k_major[i], 1);
}

/* Whether rows do not begin at whole sectors of global memory. */
static bool is_odd(const ring_operand *x) {
    return x->alignment % SECTOR_BYTES > 0;
}

/* How much longer rows take that do not begin at whole lines, or sectors. */
static double weight_of(const ring_operand *x) {
    return x->alignment % LINE_BYTES == 0 ? 1 : is_odd(x) ? 1.3 : 1.05;
}

void ring_swap(ring_work *c) {
    const double m = c->m;
    const ring_operand a = c->operands[0];
    c->m = c->n;
    c->n = m;
    c->operands[0] = c->operands[1];
    c->operands[1] = a;
    c->swapped = !c->swapped;
}

/* How TMA reads the operands. A 32-bit second one has to be K-major. */
static void operands_of(const ring_work *c, ring_operand out[2]) {
    out[0] = c->operands[0];
    out[1] = c->operands[1].mn_major && c->itemsize == 4 ? PACKED : c->operands[1];
}

ring_load ring_terms(const ring_work *c, double out[RING_TERMS]) {
    ring_operand x[2];
    operands_of(c, x);
    const bool thin = c->columns == THIN_UNIT;
    const double columns = (double)columns_of((int64_t)c->columns, (int64_t)c->n);
    /* The tiles of blocks that share some are a rectangle, and count as one. */
    const double sharing = c->multicast * c->multicast_a;
    const double down = up(c->m / (c->rows * c->multicast));
    const double across = up(c->n / (columns * c->multicast_a));
    const double rest = c->n - (across - 1) * columns; /* columns of the last tile */
    const double all = down * across * c->ranges * c->batch;
    const bool cluster = c->itemsize == 2 &&
                         in_cluster(thin, (int64_t)c->rows, (int64_t)columns, (int64_t)c->ranges,
                                    (int64_t)sharing, down * across * c->batch, c->multiprocessors);
    const bool has_narrow = !cluster && c->multicast_a == 1 &&
                            ring_is_narrow(c->itemsize, (int64_t)c->n, (int64_t)columns);
    const double narrow = has_narrow ? down * c->ranges * c->batch : 0, full = all - narrow;
    const double every = all * sharing;
    const double resident =
        (double)ring_blocks((int64_t)c->rows, (int64_t)every, (int64_t)c->multiprocessors);
    const double room = ring_room(sharing, resident, c->multiprocessors);
    const double blocks = full <= room ? least(all, room) : up(full / up(full / room));
    const double waves = up(full / blocks), free = blocks * waves - full;
    const double last = narrow > free ? up((narrow - free) / blocks) : 0;
    const double each = up(c->steps / c->ranges);
    const double rows = least(c->m, c->rows);
    /* A narrow tile has fewer products, but needs all of A's bytes. */
    const double share = (rows + round_to(rest, width_step(c->itemsize))) / (rows + columns);
    const double steps = each * (waves + last * share);
    const double box = x[1].mn_major && !thin ? round_to(columns, 64) : columns;
    const double copied = least(c->n, box);
    const double bytes_a = STEP_BYTES * weight_of(&x[0]);
    const double bytes_b = STEP_BYTES * weight_of(&x[1]);
    const double missing = c->rows - rows + box - copied;
    const double odd = (is_odd(&x[0]) ? rows : 0) + (is_odd(&x[1]) ? copied : 0);
    const double elements = c->m * c->n * c->batch;
    const bool parts = c->ranges > 1 && !cluster;
    out[RING_CALL] = 1;
    out[RING_TILES] = waves + last;
    out[RING_STEPS] = steps / 10;
    out[RING_BYTES_IN] = steps * resident * (rows * bytes_a + copied * bytes_b) * 1e-6;
    out[RING_BYTES_OUT] =
        each *
        (every / c->multicast_a * rows * bytes_a + down * c->ranges * c->batch * c->n * bytes_b) *
        1e-6 / c->multiprocessors;
    out[RING_PARTS] = parts;
    out[RING_SUMS] = parts ? 8 * c->ranges * elements * 1e-5 / c->multiprocessors : 0;
    out[RING_CLUSTER] = cluster;
    out[RING_OPERANDS] = (c->m + c->n) * c->steps * STEP_BYTES * c->batch * 1e-7;
    out[RING_SHARE] = least(every, c->multiprocessors) / c->multiprocessors;
    out[RING_LONGER] = most(0.75 * out[RING_BYTES_IN], out[RING_BYTES_OUT]);
    out[RING_RESULT] = elements * (double)c->itemsize * 1e-7;
    out[RING_FAR] = most(0, out[RING_OPERANDS] + out[RING_RESULT] - IN_L2 / 10.0);
    out[RING_SWAPPED] = c->swapped && !thin && !cluster;
    out[RING_ZEROS] = steps * resident * missing * STEP_BYTES * 1e-6;
    out[RING_ODD] = steps * resident * odd * STEP_BYTES * 1e-6;
    out[RING_BUSY] = out[RING_BYTES_IN] * out[RING_SHARE];
    const double row_of_c = (c->swapped ? c->m : c->n) * (double)c->itemsize;
    out[RING_ODD_C] = (int64_t)row_of_c % SECTOR_BYTES ? out[RING_RESULT] : 0;
    return 2 * every <= c->multiprocessors ? RING_HALF
           : every <= c->multiprocessors   ? RING_WHOLE
                                           : RING_WAVES;
}

/* Of 128 bytes of a row that begin anywhere in it, the lines that they are in. */
static double lines_of(const ring_operand *x) {
    const int64_t lowest = x->alignment & -x->alignment;
    return 2 - least((double)lowest, LINE_BYTES) / LINE_BYTES;
}

void ring_other_facts(const ring_work *c, double out[RING_FACTS]) {
    ring_operand x[2];
    operands_of(c, x);
    const double columns = (double)columns_of((int64_t)c->columns, (int64_t)c->n);
    const double rows = c->rows * c->multicast, wide = columns * c->multicast_a;
    const double down = up(c->m / rows), across = up(c->n / wide);
    const double blocks = down * across * c->ranges * c->batch * c->multicast * c->multicast_a;
    out[RING_ROWS] = c->rows;
    out[RING_COLUMNS] = columns;
    out[RING_RANGES] = c->ranges;
    out[RING_MULTICAST] = c->multicast;
    out[RING_MULTICAST_A] = c->multicast_a;
    out[RING_ACROSS_A] = c->operands[0].mn_major;
    out[RING_ACROSS_B] = c->operands[1].mn_major;
    out[RING_M] = c->m;
    out[RING_N] = c->n;
    out[RING_K] = c->k;
    out[RING_BATCH] = c->batch;
    out[RING_BLOCKS] = blocks / c->multiprocessors;
    out[RING_DEPTH] = up(c->steps / c->ranges);
    out[RING_ROWS_FILL] = down * rows / c->m;
    out[RING_COLUMNS_FILL] = across * wide / c->n;
    out[RING_LINES_A] = lines_of(&x[0]);
    out[RING_LINES_B] = lines_of(&x[1]);
}

void ring_pack_terms(const ring_work *c, double out[PACK_TERMS]) {
    ring_operand x[2];
    operands_of(c, x);
    for (int i = 0; i < PACK_TERMS; i++)
        out[i] = 0;
    for (int i = 0; i < 2; i++) {
        if (!x[i].packed) continue;
        const bool mn_major = c->operands[i].mn_major, keeps = i == 0 || c->itemsize == 2;
        const double rows = i ? c->n : c->m, lines = (mn_major ? c->k : rows) * c->batch * 1e-3;
        const double bytes = (mn_major ? rows : c->k) * (double)c->itemsize; /* of a line */
        out[PACK_CALL] = 1;
        if (mn_major && (!keeps || rows < PACK_TILE)) {
            out[PACK_TILES] += up(rows / PACK_TILE) * up(c->k / PACK_TILE) * c->batch * 1e-3;
            out[PACK_TILE_BYTES] += lines * bytes * 1e-3;
            continue;
        }
        out[bytes <= PACK_SHORT ? PACK_SHORT_LINES : PACK_LINES] += lines;
        out[PACK_LINE_BYTES] += lines * bytes * 1e-3;
    }
}

static double pack_predicts(const ring_work *c) {
    double terms[PACK_TERMS], sum = 0;
    ring_pack_terms(c, terms);
    for (int i = 0; i < PACK_TERMS; i++)
        sum += terms[i] * (double)PACK_COSTS[i];
    return sum;
}

/* Microseconds, without packing: the sum of the terms. */
static double sum_of_terms(const ring_work *c, double terms[RING_TERMS]) {
    const int kernel = (c->rows < 256 ? (int)c->rows / 64 - 1 : 3) + (c->itemsize == 4 ? 4 : 0);
    const int width = c->columns == THIN_UNIT ? ((int)c->n - 1) / 32
                      : c->columns == ONLY_COLUMNS
                          ? 0
                          : THIN_WIDTHS - 1 + (int)c->columns / width_step(c->itemsize);
    const double sharing = c->multicast * c->multicast_a;
    const int size = sharing < 8 ? (int)sharing / 2 : SIZES - 1;
    const float *costs = COSTS[kernel][size][ring_terms(c, terms)][width];
    double sum = 0;
    for (int i = 0; i < RING_TERMS; i++)
        sum += terms[i] * (double)costs[i];
    return sum;
}

/* Numbers of ranges to try: 1 to `dense`, then each half as many more than the last, what fills one
 * wave, and the most. */
static int64_t next_ranges(int64_t ranges, int64_t dense, int64_t wave, int64_t most_ranges) {
    int64_t next = ranges + 1;
    if (next > dense)
        for (next = dense; next <= ranges;)
            next += next / 2;
    if (ranges < wave && wave < next) next = wave;
    return next < most_ranges ? next : most_ranges;
}

/* What has been tried and takes least by the sum of its terms; the first takes least. */
typedef struct ring_choice {
    double time; /* microseconds, with packing */
    int64_t columns, ranges, multicast, multicast_a;
    bool swapped;
} ring_choice;
typedef struct ring_choices {
    ring_choice near[RING_NEAR];
    int n;
} ring_choices;

static const double MOST_GAIN = 1.5; /* of copies that blocks share, in time */

static void keep(ring_choices *found, ring_choice tried) {
    int at = found->n < RING_NEAR ? found->n++ : RING_NEAR;
    for (; at > 0 && tried.time <= found->near[at - 1].time; at--)
        if (at < RING_NEAR) found->near[at] = found->near[at - 1];
    if (at < RING_NEAR) found->near[at] = tried;
}

/* Tries one form of sharing, and returns its time. */
static double try_sharing(ring_work *c, int64_t multicast, int64_t multicast_a,
                          ring_choices *found) {
    double terms[RING_TERMS];
    c->multicast = (double)multicast;
    c->multicast_a = (double)multicast_a;
    const double time = c->packing + sum_of_terms(c, terms);
    keep(found, (ring_choice){.time = time,
                              .columns = (int64_t)c->columns,
                              .ranges = (int64_t)c->ranges,
                              .multicast = multicast,
                              .multicast_a = multicast_a,
                              .swapped = c->swapped});
    return time;
}

/* Whether so many blocks may share tiles of which more than half exist; if asked for, they may. */
static bool may_share(int64_t blocks, int64_t given, double size, double tile) {
    return given ? blocks == given : blocks == 1 || 2 * size > tile * (double)blocks;
}

/* Tries so many blocks that share A's tiles, and B's, or where it is 0 one, two and four. */
static void try_multicast(ring_work *c, const int64_t given[2], ring_choices *found) {
    for (int64_t a = 1; a <= RING_MOST_MULTICAST; a *= 2) {
        if (!may_share(a, given[0], c->n, c->columns)) continue;
        for (int64_t b = 1; b <= RING_MOST_MULTICAST && a * b <= RING_MOST_SHARING; b *= 2) {
            if (b > 1 && (int64_t)c->columns % (SHARED_COLUMNS * b)) break;
            if (!may_share(b, given[1], c->m, c->rows)) continue;
            const double time = try_sharing(c, b, a, found);
            if (a * b == 1 && time > MOST_GAIN * found->near[0].time) return;
        }
    }
}

/* Tries `ranges` of K, or if it is 0 those that are worth it, with tiles of so many columns. */
static void try_columns(ring_work *c, int64_t columns, int64_t ranges, const int64_t sharing[2],
                        ring_choices *found) {
    c->columns = (double)columns;
    const bool thin = columns == THIN_UNIT, given = ranges > 0;
    const bool clusters = thin || (c->itemsize == 2 && can_add(false, (int64_t)c->rows, columns));
    const double tiles = up(c->m / c->rows) * (thin ? 1 : up(c->n / c->columns)) * c->batch;
    const double wave = c->multiprocessors / tiles;
    const int64_t most_ranges = (int64_t)least(2 * wave, c->steps / 2);
    for (int64_t tried = given ? ranges : 1;;
         tried = next_ranges(tried, clusters ? MAX_CLUSTER : 4, (int64_t)wave, most_ranges)) {
        c->ranges = given ? (double)tried : up(c->steps / up(c->steps / (double)tried));
        try_multicast(c, thin ? (int64_t[]){1, 1} : sharing, found);
        if (given || tried >= most_ranges) return;
    }
}

/* The one of them that takes least by its terms and the trees, which correct their sum. */
static ring_choice best_of(ring_work *c, const ring_choices *found) {
    float facts[RING_FACTS][RING_NEAR] = {0};
    double sums[RING_NEAR], factors[RING_NEAR];
    for (int i = 0; i < found->n; i++) {
        const ring_choice *tried = &found->near[i];
        double of_one[RING_FACTS];
        if (tried->swapped != c->swapped) ring_swap(c);
        c->columns = (double)tried->columns;
        c->ranges = (double)tried->ranges;
        c->multicast = (double)tried->multicast;
        c->multicast_a = (double)tried->multicast_a;
        sums[i] = sum_of_terms(c, of_one);
        ring_other_facts(c, of_one);
        for (int fact = 0; fact < RING_FACTS; fact++)
            facts[fact][i] = (float)of_one[fact];
    }
    ring_trees(c->itemsize, facts, factors);
    ring_choice best = {0};
    for (int i = 0; i < found->n; i++) {
        ring_choice tried = found->near[i];
        tried.time += sums[i] * (factors[i] - 1);
        if (i == 0 || tried.time < best.time) best = tried;
    }
    return best;
}

static double choose(const smk_variant *variant, const smk_dtype *dtype, int64_t *values,
                     const int64_t sizes[3], int64_t batch, const ring_operand operands[2],
                     int64_t multiprocessors) {
    int64_t *columns = &values[smk_variant_param(variant, "block_n")];
    int64_t *split = &values[smk_variant_param(variant, "split")];
    int64_t *swapped = &values[smk_variant_param(variant, "swapped")];
    int64_t *multicast = &values[smk_variant_param(variant, "multicast")];
    int64_t *multicast_a = &values[smk_variant_param(variant, "multicast_a")];
    const int64_t sharing[] = {*multicast_a, *multicast};
    const int64_t rows = values[smk_variant_param(variant, "block_m")];
    const int64_t steps = ceil_div(sizes[2] * dtype->itemsize, STEP_BYTES);
    const bool thin = is_thin(variant, sizes[0], sizes[1]), thin_rows = thin && sizes[0] < sizes[1];
    const int64_t given = *columns == THIN_UNIT && !thin ? 0 : *columns;
    const int64_t widest = dtype->itemsize == 4 ? 2 * rows : WGMMA_MOST_COLUMNS(rows);
    const int64_t ranges = *split < steps ? *split : steps;
    ring_work c = {.itemsize = dtype->itemsize,
                   .m = (double)sizes[0],
                   .n = (double)sizes[1],
                   .k = (double)sizes[2],
                   .steps = (double)steps,
                   .batch = (double)batch,
                   .multiprocessors = (double)multiprocessors,
                   .rows = (double)rows,
                   .operands = {operands[0], operands[1]}};
    ring_choices found = {.n = 0};
    const bool empty = c.m * c.n * c.steps * c.batch == 0;
    for (int form = RING_AS_GIVEN; !empty && form <= RING_TRANSPOSES; form++) {
        if (form == RING_TRANSPOSES) ring_swap(&c);
        c.packing = pack_predicts(&c);
        const bool asked = *swapped == RING_CHOOSES || *swapped == form;
        if (thin && c.swapped == thin_rows && (given == THIN_UNIT || (given == 0 && asked)))
            try_columns(&c, THIN_UNIT, ranges, sharing, &found);
        if (given == THIN_UNIT || !asked) continue;
        const int64_t narrowest = dtype->itemsize == 4 && rows > 64 ? 64 : 32;
        const int64_t step = width_step(dtype->itemsize);
        const bool only = dtype->itemsize == 4 && rows == 64 && c.n <= ONLY_COLUMNS;
        const int64_t first = only ? ONLY_COLUMNS : narrowest;
        const int64_t last = only ? 0 : (int64_t)least(round_to(c.n, (double)step), (double)widest);
        try_columns(&c, given > first ? given : first, ranges, sharing, &found);
        for (int64_t n = first + step; !given && n <= last; n += step)
            try_columns(&c, n, ranges, sharing, &found);
    }
    const bool asks_thin = given == THIN_UNIT;
    const ring_choice best =
        found.n ? best_of(&c, &found)
                : (ring_choice){.columns = given == ONLY_COLUMNS ? 32
                                           : given               ? given
                                                                 : widest,
                                .ranges = ranges > 1 ? ranges : 1,
                                .multicast = *multicast && !asks_thin ? *multicast : 1,
                                .multicast_a = *multicast_a && !asks_thin ? *multicast_a : 1,
                                .swapped = asks_thin ? thin_rows : *swapped == RING_TRANSPOSES};
    *columns = best.columns;
    *split = best.ranges;
    *multicast = best.multicast;
    *multicast_a = best.multicast_a;
    *swapped = best.swapped ? RING_TRANSPOSES : RING_AS_GIVEN;
    return best.time;
}

double ring_choose(const smk_variant *variant, const smk_dtype *dtype, int64_t *values,
                   const int64_t sizes[3], int64_t batch, const ring_operand operands[2],
                   int64_t multiprocessors) {
    if (!variant->wgmma.columns) return 0;
    const size_t bytes = sizeof values[0] * (size_t)variant->n_params;
    int64_t key[LATELY_WORDS] = {(int64_t)(variant - smk_variants) + 1,
                                 sizes[0],
                                 sizes[1],
                                 sizes[2],
                                 batch,
                                 multiprocessors};
    for (int i = 0; i < 2; i++) {
        key[6 + 2 * i] = operands[i].alignment;
        key[7 + 2 * i] = operands[i].mn_major | operands[i].packed << 1;
    }
    memcpy(key + LATELY_WORDS - SMK_MAX_PARAMS, values, bytes);
    bool known;
    chosen_lately *at = lately(key, &known);
    if (!known) {
        at->time = choose(variant, dtype, values, sizes, batch, operands, multiprocessors);
        memcpy(at->values, values, bytes);
    }
    memcpy(values, at->values, bytes);
    return at->time;
}
