/* Plans transposes. Most rows have one kernel, which reads and writes contiguous rows.
 *
 * A variant for any strides (kernels/library/transpose_sector_aligned.cu) copies between two
 * arrays of the same sizes and arbitrary strides. Among all dimensions, batch dimensions included,
 * the one with the shortest stride in x is read contiguously, and the one with the shortest stride
 * in y is written contiguously:
 *
 *     two different dimensions   a transpose of the matrices that these two span, whichever the
 *                                caller calls rows and columns; permuted views are no special case
 *     the same dimension         a copy of rows: the call undoes an earlier transpose
 *
 * If both strides are 1 a kernel is chosen by size and alignment, else <entry>_strided. A
 * square matrix transposed onto itself uses <entry>_in_place or <entry>_in_place_vectors.
 */
#include "plan_parts.h"

#include <stddef.h>

#include "../kernels/args.h"
#include "../kernels/transpose_tiles.h"

enum { X, Y, OPERANDS };

/* A dimension: its size, and its strides in x and y. */
typedef struct dimension {
    int64_t size, stride[OPERANDS];
} dimension;

static int log2_up(int64_t n, int max_log) {
    int log = 0;
    while (log < max_log && INT64_C(1) << log < n)
        log++;
    return log;
}

/* The problem as matrices of two chosen dimensions: y[cols][rows] = x[rows][cols]. */
typedef struct view {
    dimension rows, cols;
    bool copy; /* instead y[rows][cols] = x[rows][cols], contiguous in cols */
    smk_batch batch;
    smk_matrix operand[OPERANDS];
} view;

static int list_dimensions(const smk_transpose *p, dimension *out) {
    int n = 0;
    out[n++] = (dimension){p->rows, {p->x.ld, p->y.step}};
    out[n++] = (dimension){p->cols, {p->x.step, p->y.ld}};
    for (int d = 0; d < p->batch.n; d++)
        out[n++] = (dimension){p->batch.size[d], {p->x.batch[d], p->y.batch[d]}};
    return n;
}

/* The dimension other than `excluded` with the shortest stride in the operand. Dimensions of size 1
 * and of stride 0 do not count. Of equal strides, and if none counts, the first dimension wins:
 * rows and columns of the caller come first. */
static int shortest_stride(const dimension *dims, int n, int operand, int excluded) {
    int best = -1;
    for (int d = 0; d < n; d++) {
        const int64_t stride = magnitude(dims[d].stride[operand]);
        if (d != excluded && dims[d].size > 1 && stride &&
            (best < 0 || stride < magnitude(dims[best].stride[operand])))
            best = d;
    }
    for (int d = 0; best < 0; d++)
        if (d != excluded) best = d;
    return best;
}

/* In place, the two dimensions are the caller's; `cols` is the contiguous one. */
static view make_view(const smk_transpose *p) {
    dimension dims[SMK_MAX_BATCH + 2];
    const int n = list_dimensions(p, dims);
    const bool column_major = magnitude(p->x.ld) < magnitude(p->x.step);
    const int cols = p->in_place ? !column_major : shortest_stride(dims, n, X, -1);
    const int written = p->in_place ? column_major : shortest_stride(dims, n, Y, -1);
    const int rows = written != cols ? written : shortest_stride(dims, n, Y, cols);
    view v = {.rows = dims[rows], .cols = dims[cols], .copy = written == cols};
    v.operand[X].offset = p->x.offset;
    v.operand[Y].offset = p->y.offset;
    for (int d = 0; d < n; d++) {
        if (d == rows || d == cols) continue;
        const int at = v.batch.n++;
        v.batch.size[at] = dims[d].size;
        for (int o = 0; o < OPERANDS; o++)
            v.operand[o].batch[at] = dims[d].stride[o];
    }
    return v;
}

/* ---- kernels of a variant for any strides ---- */

/* A kernel and the tile of a block. */
typedef struct choice {
    const char *entry;
    int64_t tile_rows, tile_cols; /* of the view */
    int64_t shared_bytes;
    int threads; /* per block; 0: the variant's */
} choice;

static int log2_down(int64_t n) {
    return 63 - __builtin_clzll((unsigned long long)(n > 1 ? n : 1));
}

/* The kernel for any strides. Tile sides are powers of 2; for a narrow matrix, one side covers all
 * of it and the other is longer. Small matrices share a block. A copy takes tiles as wide as
 * possible. */
static choice choose_strided(const smk_variant *variant, const view *v, int64_t batches,
                             int itemsize, transpose_args *args) {
    const int log_tile = STRIDED_LOG(itemsize), side = v->copy ? log_tile : log_tile / 2;
    int log_rows = log2_up(v->rows.size, side), log_cols = log2_up(v->cols.size, side);
    if (log_cols < side || v->copy)
        log_rows = log2_up(v->rows.size, log_tile - log_cols);
    else
        log_cols = log2_up(v->cols.size, log_tile - log_rows);
    args->log_rows = log_rows;
    args->log_cols = log_cols;
    args->matrices = 1 << log2_up(batches, log_tile - log_rows - log_cols);
    const int64_t rows = (int64_t)args->matrices << log_rows;
    return (choice){variant->transpose_kernels.strided, INT64_C(1) << log_rows,
                    INT64_C(1) << log_cols, v->copy ? 0 : rows * STRIDED_PITCH(log_cols) * itemsize,
                    0};
}

/* Kernels for narrow matrices: one side is short, and x, y, or both with the whole batch are one
 * contiguous run of elements. False: none applies. */
static bool choose_narrow(const smk_variant *variant, const view *v, const batch_iterator *it,
                          int itemsize, transpose_args *args, choice *out) {
    const int64_t rows = v->rows.size, cols = v->cols.size, tile = NARROW_ELEMENTS(itemsize);
    const bool x_contiguous = rows == 1 || v->rows.stride[X] == cols;
    const bool y_contiguous = cols == 1 || v->cols.stride[Y] == rows;
    const bool short_rows = rows < WIDE_FROM, short_cols = cols < WIDE_FROM;
    const bool batch_contiguous = batch_z_size(it) == 1 || (batch_z_stride(it, X) == rows * cols &&
                                                            batch_z_stride(it, Y) == rows * cols);
    *out = (choice){.tile_rows = rows,
                    .tile_cols = cols,
                    .shared_bytes = NARROW_SKEWED(tile) * (int64_t)itemsize};
    if ((short_rows || short_cols) && x_contiguous && y_contiguous && batch_contiguous &&
        rows <= tile / cols) {
        out->entry = variant->transpose_kernels.small;
        args->matrices = (int)(tile / (rows * cols));
    } else if (short_cols && x_contiguous) {
        out->entry = variant->transpose_kernels.tall_skinny;
        args->log_rows = log2_down(tile / cols);
        out->tile_rows = INT64_C(1) << args->log_rows;
    } else if (short_rows && y_contiguous) {
        out->entry = variant->transpose_kernels.short_wide;
        out->threads = SHORT_WIDE_THREADS;
        args->log_cols = log2_down(tile / rows);
        out->tile_cols = INT64_C(1) << args->log_cols;
    }
    return out->entry;
}

/* Whether all rows of an operand begin at multiples of `bytes`. */
static bool rows_aligned(const view *v, const batch_iterator *it, int operand, int itemsize,
                         int64_t bytes) {
    const int64_t row = operand == X ? v->rows.stride[X] : v->cols.stride[Y];
    int64_t bits = v->operand[operand].offset | row * itemsize;
    for (int d = 0; d < it->n; d++)
        bits |= it->stride[operand][d] * itemsize;
    return bits % bytes == 0;
}

/* Whether all rows of x and y consist of whole, aligned 16-byte vectors. */
static bool has_vectors(const view *v, const batch_iterator *it, int itemsize) {
    enum { VECTOR = 16 };
    return v->rows.size * itemsize % VECTOR == 0 && v->cols.size * itemsize % VECTOR == 0 &&
           rows_aligned(v, it, X, itemsize, VECTOR) && rows_aligned(v, it, Y, itemsize, VECTOR);
}

/* ---- limits fitted to an H100 and an H200 ---- */

enum {
    CACHED = 24 << 20, /* bytes of y that the L2 cache holds until they are complete */
    /* Elements of all matrices: up to 2^16 tile_by2, up to 2^18 tile_by4; then tile_by8, unless all
     * rows are whole vectors, up to 2^20 if a side is short, else up to 2^21. */
    MAX_BY2 = 1 << 16,
    MAX_BY4 = 1 << 18,
    MAX_NARROW = 1 << 20,
    MAX_UNALIGNED = 1 << 21,
    MAX_SMALL_TILES = 4096,
    /* From one to the other, tile_words instead, if elements of 1 and 2 bytes are whole words. */
    MIN_WORDS = 1 << 16,
    MAX_WORDS_B8 = 1 << 21,
    MAX_WORDS_B16 = 1 << 20,
    /* Tiles up to which small tiles of vectors are faster than large ones. */
    MAX_VECTORS = 1024,
    MAX_VECTORS_B8 = 1700
};

/* Whether all rows of x and y consist of whole, aligned words. */
static bool has_words(const view *v, const batch_iterator *it, int itemsize) {
    return v->rows.size * itemsize % 4 == 0 && v->cols.size * itemsize % 4 == 0 &&
           rows_aligned(v, it, X, itemsize, 4) && rows_aligned(v, it, Y, itemsize, 4);
}

/* Small tiles: a square, or all of a short side and more of the other. */
static bool choose_small_tile(const smk_variant *variant, const view *v, const batch_iterator *it,
                              int itemsize, int64_t max_elements, transpose_args *args,
                              choice *out) {
    const smk_transpose_kernels *kernels = &variant->transpose_kernels;
    const struct {
        const char *entry;
        int log, threads;
    } tiles[] = {{kernels->tile_by2, SMALL_LOG_BY2, SMALL_THREADS_BY2},
                 {kernels->tile_by4, SMALL_LOG_BY4, SMALL_THREADS_BY4},
                 {kernels->tile_by8, SMALL_LOG_BY8, SMALL_THREADS_BY8},
                 {kernels->tile_words, SMALL_LOG_WORDS, SMALL_THREADS_WORDS}};
    const double elements = (double)v->rows.size * (double)v->cols.size * (double)it->total;
    const bool words = itemsize < 4 && elements > MIN_WORDS && has_words(v, it, itemsize);
    if (words) max_elements = itemsize == 1 ? MAX_WORDS_B8 : MAX_WORDS_B16;
    if (elements > (double)max_elements) return false;
    const int at = words ? 3 : elements <= MAX_BY2 ? 0 : elements <= MAX_BY4 ? 1 : 2;
    const int64_t square = words ? 4 / itemsize : 1;
    const int64_t rows = v->rows.size / square, cols = v->cols.size / square;
    const int log = tiles[at].log;
    const int log_cols = log2_up(cols, log - log2_up(rows, log / 2)), log_rows = log - log_cols;
    const int64_t across = ceil_div(rows, INT64_C(1) << log_rows);
    const int64_t down = ceil_div(cols, INT64_C(1) << log_cols);
    if ((double)(across * down) * (double)it->total > MAX_SMALL_TILES) return false;
    args->log_rows = log_rows;
    args->log_cols = log_cols;
    args->reciprocal = across > 1 ? (uint32_t)((INT64_C(1) << 32) / across + 1) : 0;
    const int64_t word = words ? 4 : itemsize;
    *out = (choice){tiles[at].entry, square << log_rows, square << log_cols,
                    square * (SMALL_TILE_PITCH(word, log_rows, log_cols) << log_rows) * word,
                    tiles[at].threads};
    return true;
}

static bool choose_vectors(const smk_variant *variant, const view *v, const batch_iterator *it,
                           int itemsize, choice *out) {
    const int few = itemsize == 1 ? MAX_VECTORS_B8 : MAX_VECTORS;
    const int64_t rows = v->rows.size, cols = v->cols.size;
    if (rows < 32 || cols < VECTORS_SMALL_J(itemsize) || !has_vectors(v, it, itemsize))
        return false;
    const int64_t side_i = VECTORS_TILE_I(itemsize), side_j = VECTORS_TILE_J(itemsize);
    const double tiles =
        (double)ceil_div(rows, side_i) * (double)ceil_div(cols, side_j) * (double)it->total;
    if (tiles > few && itemsize >= 8 && !rows_aligned(v, it, Y, itemsize, WIDE_UNIT(itemsize)))
        return false; /* too many vectors would begin in the middle of a sector */
    const bool large = tiles > few && rows >= side_i && cols >= side_j;
    if (large && !HAS_VECTORS(itemsize)) return false;
    if (large)
        *out = (choice){variant->transpose_kernels.vectors, side_i, side_j, 0, VECTORS_THREADS};
    else
        *out = (choice){variant->transpose_kernels.vectors_small, VECTORS_SMALL_I(itemsize),
                        VECTORS_SMALL_J(itemsize), 0, VECTORS_SMALL_THREADS_OF(itemsize)};
    return true;
}

/* How many strips apart two alternately read strips of x are; 0: strips are read one by one. A
 * strip is as wide as a tile. If rows are a multiple of CROWDED bytes apart, the addresses of one
 * strip use only a few memory channels (kernels/include/transpose_order.cuh). */
static int pairs_of_strips(const view *v, int itemsize, int64_t tile_cols) {
    enum { CROWDED = 128 << 10, DISTANCE = 16 << 10 };
    const bool crowded = HAS_PAIRS(itemsize) && v->rows.stride[X] * itemsize % CROWDED == 0;
    return crowded ? (int)(DISTANCE / (tile_cols * itemsize)) : 0;
}

/* Elements of all tiles, including the parts outside the matrix. */
static double elements_of_tiles(const view *v, int lead, int64_t tile_rows, int64_t tile_cols) {
    return (double)(ceil_div(v->rows.size + lead, tile_rows) * tile_rows) *
           (double)(ceil_div(v->cols.size, tile_cols) * tile_cols);
}

/* Tiles for large matrices. If rows of y do not all begin at a sector, tiles begin at one, so a
 * tile needs some extra rows of x (transpose_args.lead). Exception: a tile that covers a whole row
 * of y, and y that stays in the L2 cache; then tiles begin anywhere, those of elements of 1 and 2
 * bytes at a word. Larger tiles need fewer extra rows, so they are used unless too much of them
 * lies outside the matrix. */
static void choose_wide(const smk_variant *variant, const smk_geometry *g, const view *v,
                        const batch_iterator *it, int itemsize, transpose_args *args, choice *out) {
    *out = (choice){variant->transpose_kernels.aligned, g->output_tile[1], g->output_tile[0], 0, 0};
    const double bytes = (double)v->rows.size * (double)v->cols.size * (double)it->total * itemsize;
    const bool cached = v->rows.size <= out->tile_rows || bytes <= CACHED;
    if (cached && rows_aligned(v, it, Y, itemsize, 4)) return;
    if (cached) {
        args->lead = WORD_LEAD(itemsize);
        out->entry = variant->entry;
    } else if (!rows_aligned(v, it, Y, itemsize, WIDE_UNIT(itemsize))) {
        const int64_t large = LARGE_TILE(itemsize);
        args->lead = WIDE_LEAD(itemsize);
        out->entry = variant->entry;
        if (HAS_LARGE(itemsize) &&
            elements_of_tiles(v, args->lead, large, large) <=
                1.06 * elements_of_tiles(v, args->lead, out->tile_rows, out->tile_cols))
            *out = (choice){variant->transpose_kernels.large, large, large, 0, 32 * LARGE_WARPS};
    }
}

/* Both contiguous dimensions have stride 1. */
static bool choose_unit_strides(const smk_variant *variant, const smk_geometry *g, const view *v,
                                const batch_iterator *it, int itemsize, transpose_args *args,
                                choice *out) {
    const bool narrow = v->rows.size < WIDE_FROM || v->cols.size < WIDE_FROM;
    if (choose_small_tile(variant, v, it, itemsize, MAX_BY4, args, out)) return true;
    if (!choose_vectors(variant, v, it, itemsize, out)) {
        const int64_t max_elements = narrow ? MAX_NARROW : MAX_UNALIGNED;
        if (choose_small_tile(variant, v, it, itemsize, max_elements, args, out)) return true;
        if (narrow) return choose_narrow(variant, v, it, itemsize, args, out);
        choose_wide(variant, g, v, it, itemsize, args, out);
    }
    args->pairs = pairs_of_strips(v, itemsize, out->tile_cols);
    return true;
}

static choice choose(const smk_variant *variant, const smk_geometry *g, const view *v,
                     const batch_iterator *it, int itemsize, bool in_place, transpose_args *args) {
    const bool unit_strides =
        v->cols.stride[X] == 1 && v->rows.stride[Y] == 1 && v->rows.stride[X] >= v->cols.size;
    choice c = {0};
    args->matrices = 1;
    if (in_place) {
        const int64_t side = IN_PLACE_TILE(itemsize), wide = IN_PLACE_VECTORS_TILE(itemsize);
        return v->cols.stride[X] == 1 && has_vectors(v, it, itemsize)
                   ? (choice){variant->transpose_kernels.in_place_vectors, wide, wide, 0,
                              IN_PLACE_VECTORS_THREADS(itemsize)}
                   : (choice){variant->transpose_kernels.in_place, side, side, 0, 0};
    }
    if (v->copy && v->cols.stride[X] == 1 && v->cols.stride[Y] == 1)
        return (choice){variant->transpose_kernels.copy, 1, COPY_ELEMENTS(itemsize), 0, 0};
    if (v->copy || !unit_strides || !choose_unit_strides(variant, g, v, it, itemsize, args, &c))
        return choose_strided(variant, v, batch_z_size(it), itemsize, args);
    return c;
}

static smk_code plan_any_strides(const smk_variant *variant, const smk_dtype *dtype,
                                 const int64_t *values, const smk_transpose *problem,
                                 smk_plan *plan, smk_status *status) {
    const view v = make_view(problem);
    const smk_matrix *operands[] = {&v.operand[X], &v.operand[Y]};
    const batch_iterator it = batch_fold(&v.batch, operands, OPERANDS);
    transpose_args args = {.rows = v.rows.size,
                           .cols = v.cols.size,
                           .ldx = v.rows.stride[X],
                           .step_x = v.cols.stride[X],
                           .ldy = v.cols.stride[Y],
                           .step_y = v.rows.stride[Y],
                           .batch_x = batch_z_stride(&it, X),
                           .batch_y = batch_z_stride(&it, Y),
                           .copy = v.copy};
    smk_geometry geometry = geometry_of(variant, dtype, values, 0);
    const choice c =
        v.rows.size && v.cols.size && it.total
            ? choose(variant, &geometry, &v, &it, dtype->itemsize, problem->in_place, &args)
            : (choice){variant->entry, 1, 1, 0, 0};
    geometry.output_tile[0] = c.tile_cols;
    geometry.output_tile[1] = c.tile_rows;
    geometry.shared_bytes = c.shared_bytes;
    launch_shape s;
    if (launch_shape_init(variant, dtype, &geometry, v.cols.size, v.rows.size + args.lead, &s,
                          status))
        return status->code;
    s.kernels[0].entry = c.entry;
    if (c.threads) s.kernels[0].threads[0] = (uint32_t)c.threads;
    if (problem->in_place) {
        const int64_t tiles = ceil_div(v.rows.size, c.tile_rows);
        s.kernels[0].blocks = (uint32_t)(tiles * (tiles + 1) / 2);
    }
    if (args.matrices > 0) s.batches_per_block = args.matrices;
    s.batches_offset = offsetof(transpose_args, batches);
    return plan_launches(plan, &s, &it, operands, &args, status);
}

/* ---- rows that read x by TMA ---- */

typedef struct arguments {
    transpose_args transpose;
    _Alignas(SMK_TENSOR_MAP_ALIGN) unsigned char map[SMK_TENSOR_MAP_BYTES];
} arguments;

/* Whether TMA can read x: every row, in every batch, begins at a multiple of 16 bytes, and sizes
 * fit the map. */
static bool tma_can_read(const smk_transpose *p, const batch_iterator *it, int itemsize) {
    enum { TMA_ALIGN = 16 };
    int64_t bits = p->x.offset | (p->rows > 1 ? p->x.ld * itemsize : 0);
    for (int d = 0; d < it->n; d++)
        bits |= it->stride[X][d] * itemsize;
    return bits % TMA_ALIGN == 0 && p->cols > 0 && p->rows > 0 && it->total > 0 &&
           batch_z_stride(it, X) >= 0 && p->cols * itemsize <= UINT32_MAX && p->rows <= INT32_MAX;
}

static smk_tensor_map map_of(const smk_transpose *p, const batch_iterator *it, int itemsize) {
    static const smk_tensor_type types[] = {
        [1] = SMK_TENSOR_UINT8, [2] = SMK_TENSOR_UINT16, [4] = SMK_TENSOR_UINT32};
    const int unit = itemsize < 4 ? itemsize : 4; /* larger elements are read as words */
    const int64_t z = batch_z_size(it) < MAX_GRID_Z ? batch_z_size(it) : MAX_GRID_Z;
    const int64_t pitch = p->rows > 1 ? p->x.ld * itemsize : 16;
    const int64_t batch = batch_z_stride(it, X) * itemsize;
    return (smk_tensor_map){
        .arg_offset = offsetof(arguments, map),
        .type = types[unit],
        .rank = 3,
        .size = {(uint64_t)(p->cols * itemsize / unit), (uint64_t)p->rows,
                 (uint64_t)(batch ? z : 1)},
        .stride = {(uint64_t)unit, (uint64_t)pitch, (uint64_t)(batch ? batch : pitch)},
        .box = {(uint32_t)(128 / unit), TMA_TILE_I(itemsize), 1},
        .step = {1, 1, 1},
        .swizzle = SMK_SWIZZLE_128B};
}

/* ---- rows of one kernel, for contiguous rows ---- */

static smk_code plan_one_kernel(const smk_variant *variant, const smk_dtype *dtype,
                                const int64_t *values, const smk_transpose *problem, smk_plan *plan,
                                smk_status *status) {
    enum { BLOCKS = 3 }; /* persistent blocks per multiprocessor */
    const smk_geometry geometry = geometry_of(variant, dtype, values, 0);
    launch_shape s;
    if (launch_shape_init(variant, dtype, &geometry, problem->cols, problem->rows, &s, status))
        return status->code;
    const smk_matrix *operands[] = {&problem->x, &problem->y};
    const batch_iterator it = batch_fold(&problem->batch, operands, OPERANDS);
    arguments args = {.transpose = {.rows = problem->rows,
                                    .cols = problem->cols,
                                    .ldx = problem->x.ld,
                                    .step_x = 1,
                                    .ldy = problem->y.ld,
                                    .step_y = 1,
                                    .batch_x = batch_z_stride(&it, X),
                                    .batch_y = batch_z_stride(&it, Y)}};
    if (variant->transpose_kernels.boxes) {
        const uint32_t resident = (uint32_t)(BLOCKS * problem->multiprocessors);
        s.kernels[0].blocks = s.kernels[0].blocks < resident ? s.kernels[0].blocks : resident;
        plan->args_bytes = sizeof args;
        plan->parameters[plan->n_parameters++] = offsetof(arguments, map);
        args.transpose.boxes = tma_can_read(problem, &it, dtype->itemsize);
    }
    if (args.transpose.boxes) {
        plan->pointers[plan->n_pointers++] = (smk_pointer){offsetof(arguments, map), X};
        plan->maps[plan->n_maps++] = map_of(problem, &it, dtype->itemsize);
    }
    return plan_launches(plan, &s, &it, operands, &args, status);
}

smk_code smk_plan_transpose(const smk_variant *variant, const smk_dtype *dtype,
                            const int64_t *values, const smk_transpose *problem, smk_plan *plan,
                            smk_status *status) {
    *plan = (smk_plan){
        .args_bytes = sizeof(transpose_args),
        .n_parameters = 1,
        .pointers = {{offsetof(transpose_args, x), X}, {offsetof(transpose_args, y), Y}},
        .n_pointers = 2,
    };
    return variant->transpose_kernels.strided
               ? plan_any_strides(variant, dtype, values, problem, plan, status)
               : plan_one_kernel(variant, dtype, values, problem, plan, status);
}
