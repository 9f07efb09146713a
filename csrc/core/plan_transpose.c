/* Plans transposes. Most rows have one kernel, which reads rows and writes rows.
 *
 * A row that takes any strides (kernels/transpose_sectors.cu) moves elements between two arrays of the same
 * sizes and any strides. Of the dimensions, batches and all, the one with the shortest step in x is read along, and
 * the one with the shortest step in y is written along:
 *
 *     two dimensions        a transpose of matrices that these span, whatever they were called: a view whose axes
 *                           were permuted before is no other problem
 *     the same one          a copy of rows: what is asked for undoes an earlier transpose
 *
 * Where both steps are 1 and the matrices are large, the row's own kernel does it, otherwise <entry>_any, whose
 * tile is shaped here. A square matrix that is its own result is done by <entry>_in_place.
 */
#include "plan_parts.h"

#include <stddef.h>

#include "../kernels/args.h"
#include "../kernels/transpose_tiles.h"

enum { X, Y, OPERANDS };

/* A dimension of the elements: how many, and how far apart in x and y. */
typedef struct line {
    int64_t size, apart[OPERANDS];
} line;

static int64_t magnitude(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

static int log2_up(int64_t n, int most) {
    int log = 0;
    while (log < most && INT64_C(1) << log < n)
        log++;
    return log;
}

/* The problem with matrices of other dimensions, which `rows` and `cols` name: y[cols][rows] = x[rows][cols]. */
typedef struct view {
    line rows, cols;
    bool copy; /* y[cols] = x[cols] of each row, rather */
    smk_batch batch;
    smk_matrix operand[OPERANDS];
} view;

static int list_lines(const smk_transpose *p, line *out) {
    int n = 0;
    out[n++] = (line){p->rows, {p->x.ld, p->y.step}};
    out[n++] = (line){p->cols, {p->x.step, p->y.ld}};
    for (int d = 0; d < p->batch.n; d++)
        out[n++] = (line){p->batch.size[d], {p->x.batch[d], p->y.batch[d]}};
    return n;
}

/* The dimension other than `but` that has the shortest step in x or y; of one element none has a step. Repeated
 * elements (step 0) are no neighbours. The dimensions that the caller calls rows and columns come first. */
static int nearest(const line *lines, int n, int operand, int but) {
    int best = -1;
    for (int d = 0; d < n; d++) {
        const int64_t apart = magnitude(lines[d].apart[operand]);
        if (d != but && lines[d].size > 1 && apart &&
            (best < 0 || apart < magnitude(lines[best].apart[operand])))
            best = d;
    }
    for (int d = 0; best < 0; d++)
        if (d != but) best = d;
    return best;
}

/* In place the matrix stays what it is, by rows or by columns. */
static view look(const smk_transpose *p) {
    line lines[SMK_MAX_BATCH + 2];
    const int n = list_lines(p, lines);
    const bool by_columns = magnitude(p->x.ld) < magnitude(p->x.step);
    const int cols = p->in_place ? !by_columns : nearest(lines, n, X, -1);
    const int across = p->in_place ? by_columns : nearest(lines, n, Y, -1);
    const int rows = across != cols ? across : nearest(lines, n, Y, cols);
    view v = {.rows = lines[rows], .cols = lines[cols], .copy = across == cols};
    v.operand[X].offset = p->x.offset;
    v.operand[Y].offset = p->y.offset;
    for (int d = 0; d < n; d++) {
        if (d == rows || d == cols) continue;
        const int at = v.batch.n++;
        v.batch.size[at] = lines[d].size;
        for (int o = 0; o < OPERANDS; o++)
            v.operand[o].batch[at] = lines[d].apart[o];
    }
    return v;
}

/* ---- the kernels of a row that takes any strides ---- */

/* What a kernel of them takes: its block's tile, and how many matrices. */
typedef struct choice {
    const char *entry;
    int64_t tile_rows, tile_cols; /* of the view */
    int64_t shared_bytes;
    int threads; /* 0: the row's */
} choice;

static int log2_down(int64_t n) {
    return 63 - __builtin_clzll((unsigned long long)(n > 1 ? n : 1));
}

/* Sides that are powers of 2, as long as the matrix where that is narrow; small matrices share a block. A copy
 * goes along rows. */
static choice choose_any(const smk_row *row, const view *v, int64_t batches, int itemsize,
                         transpose_args *args) {
    const int most = ANY_LOG(itemsize), side = v->copy ? most : most / 2;
    int log_rows = log2_up(v->rows.size, side), log_cols = log2_up(v->cols.size, side);
    if (log_cols < side || v->copy)
        log_rows = log2_up(v->rows.size, most - log_cols);
    else
        log_cols = log2_up(v->cols.size, most - log_rows);
    args->log_rows = log_rows;
    args->log_cols = log_cols;
    args->matrices = 1 << log2_up(batches, most - log_rows - log_cols);
    const int64_t lines = (int64_t)args->matrices << log_rows;
    return (choice){row->movers.any, INT64_C(1) << log_rows, INT64_C(1) << log_cols,
                    v->copy ? 0 : lines * ANY_PITCH(log_cols) * itemsize, 0};
}

/* A side is short, and the elements of x, of y, or of all matrices in both, lie in one line. */
static bool choose_narrow(const smk_row *row, const view *v, const walk *w, int itemsize,
                          transpose_args *args, choice *out) {
    const int64_t rows = v->rows.size, cols = v->cols.size, most = NARROW_ELEMENTS(itemsize);
    const bool x_line = rows == 1 || v->rows.apart[X] == cols;
    const bool y_line = cols == 1 || v->cols.apart[Y] == rows;
    const bool short_rows = rows < WIDE_FROM, short_cols = cols < WIDE_FROM;
    const bool batch_line = walk_z_size(w) == 1 || (walk_z_stride(w, X) == rows * cols &&
                                                    walk_z_stride(w, Y) == rows * cols);
    *out = (choice){.tile_rows = rows,
                    .tile_cols = cols,
                    .shared_bytes = NARROW_SKEWED(most) * (int64_t)itemsize};
    if ((short_rows || short_cols) && x_line && y_line && batch_line && rows <= most / cols) {
        out->entry = row->movers.small;
        args->matrices = (int)(most / (rows * cols));
    } else if (short_cols && x_line) {
        out->entry = row->movers.tall;
        args->log_rows = log2_down(most / cols);
        out->tile_rows = INT64_C(1) << args->log_rows;
    } else if (short_rows && y_line) {
        out->entry = row->movers.flat;
        out->threads = FLAT_THREADS;
        args->log_cols = log2_down(most / rows);
        out->tile_cols = INT64_C(1) << args->log_cols;
    }
    return out->entry;
}

/* Whether all rows of an operand begin at multiples of so many bytes. */
static bool begins_at(const view *v, const walk *w, int operand, int itemsize, int64_t bytes) {
    const int64_t row = operand == X ? v->rows.apart[X] : v->cols.apart[Y];
    int64_t bits = v->operand[operand].offset | row * itemsize;
    for (int d = 0; d < w->n; d++)
        bits |= w->stride[operand][d] * itemsize;
    return bits % bytes == 0;
}

/* All rows begin at 16 bytes, and have whole chunks of them, of x and y. */
static bool has_chunks(const view *v, const walk *w, int itemsize) {
    enum { CHUNK = 16 };
    return v->rows.size * itemsize % CHUNK == 0 && v->cols.size * itemsize % CHUNK == 0 &&
           begins_at(v, w, X, itemsize, CHUNK) && begins_at(v, w, Y, itemsize, CHUNK);
}

static bool choose_vectors(const smk_row *row, const view *v, const walk *w, int itemsize,
                           choice *out) {
    enum { FEW = 1024 };
    const int64_t rows = v->rows.size, cols = v->cols.size;
    if (rows < LITTLE_TILE || cols < VECTORS_LITTLE_J(itemsize) || !has_chunks(v, w, itemsize))
        return false;
    const int64_t side_i = VECTORS_TILE_I(itemsize), side_j = VECTORS_TILE_J(itemsize);
    const double tiles =
        (double)ceil_div(rows, side_i) * (double)ceil_div(cols, side_j) * (double)w->total;
    if (tiles > FEW && itemsize >= 8 && !begins_at(v, w, Y, itemsize, WIDE_UNIT(itemsize)))
        return false; /* which begin in the middle of a sector too often */
    const bool large = tiles > FEW && rows >= side_i && cols >= side_j;
    if (large && !HAS_VECTORS(itemsize)) return false;
    if (large)
        *out = (choice){row->movers.vectors, side_i, side_j, 0, VECTORS_THREADS};
    else
        *out = (choice){row->movers.vectors_little, VECTORS_LITTLE_I(itemsize),
                        VECTORS_LITTLE_J(itemsize), 0, VECTORS_LITTLE_THREADS_OF(itemsize)};
    return true;
}

/* Strips of x, as wide as a tile, that are read in turns with those before them. */
static int pairs_of_strips(const view *v, int itemsize, int64_t tile_cols) {
    enum { CROWDED = 128 << 10, APART = 16 << 10 };
    const bool crowded = HAS_PAIRS(itemsize) && v->rows.apart[X] * itemsize % CROWDED == 0;
    return crowded ? (int)(APART / (tile_cols * itemsize)) : 0;
}

/* Elements of all tiles, the empty ones too. */
static double in_tiles(const view *v, int lead, int64_t tile_rows, int64_t tile_cols) {
    return (double)(ceil_div(v->rows.size + lead, tile_rows) * tile_rows) *
           (double)(ceil_div(v->cols.size, tile_cols) * tile_cols);
}

/* Where rows of y do not all begin with a sector, their tiles do, and so need some rows of x more; not where a tile
 * has all of a row, if no word of it has two elements. Large tiles need fewer of those, unless they stay empty. */
static void choose_wide(const smk_row *row, const smk_geometry *g, const view *v, const walk *w,
                        int itemsize, transpose_args *args, choice *out) {
    *out = (choice){row->movers.even, g->output_tile[1], g->output_tile[0], 0, 0};
    const bool alone = v->rows.size <= out->tile_rows && itemsize >= 4;
    if (!alone && !begins_at(v, w, Y, itemsize, WIDE_UNIT(itemsize))) {
        const int64_t large = LARGE_TILE(itemsize);
        args->lead = WIDE_LEAD(itemsize);
        out->entry = row->entry;
        if (HAS_LARGE(itemsize) &&
            in_tiles(v, args->lead, large, large) <=
                1.06 * in_tiles(v, args->lead, out->tile_rows, out->tile_cols))
            *out = (choice){row->movers.large, large, large, 0, 32 * LARGE_WARPS};
    }
}

/* Rows and columns are neighbours, as they are written and read. */
static bool choose_from_rows_to_rows(const smk_row *row, const smk_geometry *g, const view *v,
                                     const walk *w, int itemsize, transpose_args *args,
                                     choice *out) {
    enum { LEAST = 1 << 16, LITTLE = 1 << 18, LITTLE_UNALIGNED = 1 << 21 };
    const int64_t rows = v->rows.size, cols = v->cols.size;
    const bool narrow = rows < WIDE_FROM || cols < WIDE_FROM;
    const double elements = (double)rows * (double)cols * (double)w->total;
    if (!narrow && elements <= LITTLE) {
        const int side = elements <= LEAST ? LEAST_TILE : LITTLE_TILE;
        *out = (choice){elements <= LEAST ? row->movers.least : row->movers.little, side, side, 0,
                        LITTLE_THREADS};
        return true;
    }
    if (!choose_vectors(row, v, w, itemsize, out)) {
        if (narrow) return choose_narrow(row, v, w, itemsize, args, out);
        if (elements <= LITTLE_UNALIGNED) {
            *out = (choice){row->movers.little, LITTLE_TILE, LITTLE_TILE, 0, LITTLE_THREADS};
            return true;
        }
        choose_wide(row, g, v, w, itemsize, args, out);
    }
    args->pairs = pairs_of_strips(v, itemsize, out->tile_cols);
    return true;
}

static choice choose(const smk_row *row, const smk_geometry *g, const view *v, const walk *w,
                     int itemsize, bool in_place, transpose_args *args) {
    const bool neighbours = v->cols.apart[X] == 1 && v->rows.apart[Y] == 1 &&
                            v->rows.apart[X] >= v->cols.size; /* on both sides */
    choice c = {0};
    args->matrices = 1;
    if (in_place) {
        const int64_t side = IN_PLACE_TILE(itemsize), wide = IN_PLACE_VECTORS_TILE(itemsize);
        return v->cols.apart[X] == 1 && has_chunks(v, w, itemsize)
                   ? (choice){row->movers.in_place_vectors, wide, wide, 0,
                              IN_PLACE_VECTORS_THREADS(itemsize)}
                   : (choice){row->movers.in_place, side, side, 0, 0};
    }
    if (v->copy && v->cols.apart[X] == 1 && v->cols.apart[Y] == 1) {
        return (choice){row->movers.copy, 1, COPY_ELEMENTS(itemsize), 0, 0};
    }
    if (v->copy || !neighbours || !choose_from_rows_to_rows(row, g, v, w, itemsize, args, &c)) {
        return choose_any(row, v, walk_z_size(w), itemsize, args);
    }
    return c;
}

static smk_code plan_any_strides(const smk_row *row, const smk_dtype *dtype, const int64_t *values,
                                 const smk_transpose *problem, smk_plan *plan, smk_status *status) {
    const view v = look(problem);
    const smk_matrix *operands[] = {&v.operand[X], &v.operand[Y]};
    const walk w = walk_fold(&v.batch, operands, OPERANDS);
    transpose_args args = {.rows = v.rows.size,
                           .cols = v.cols.size,
                           .ldx = v.rows.apart[X],
                           .step_x = v.cols.apart[X],
                           .ldy = v.cols.apart[Y],
                           .step_y = v.rows.apart[Y],
                           .batch_x = walk_z_stride(&w, X),
                           .batch_y = walk_z_stride(&w, Y),
                           .copy = v.copy};
    smk_geometry geometry = geometry_of(row, dtype, values, 0);
    const choice c = v.rows.size && v.cols.size && w.total
                         ? choose(row, &geometry, &v, &w, dtype->itemsize, problem->in_place, &args)
                         : (choice){row->entry, 1, 1, 0, 0};
    geometry.output_tile[0] = c.tile_cols;
    geometry.output_tile[1] = c.tile_rows;
    geometry.shared_bytes = c.shared_bytes;
    shape s;
    if (shape_make(row, dtype, &geometry, v.cols.size, v.rows.size + args.lead, &s, status))
        return status->code;
    s.kernels[0].entry = c.entry;
    if (c.threads) s.kernels[0].threads[0] = (uint32_t)c.threads;
    if (problem->in_place) {
        const int64_t tiles = ceil_div(v.rows.size, c.tile_rows);
        s.kernels[0].blocks = (uint32_t)(tiles * (tiles + 1) / 2);
    }
    if (args.matrices > 0) s.batches_of_block = args.matrices;
    s.batches_at = offsetof(transpose_args, batches);
    return plan_launches(plan, &s, &w, operands, &args, status);
}

/* ---- a row that reads x by TMA ---- */

typedef struct arguments {
    transpose_args transpose;
    _Alignas(SMK_TENSOR_MAP_ALIGN) unsigned char map[SMK_TENSOR_MAP_BYTES];
} arguments;

/* Every row of x, in every batch, begins at a multiple of 16 bytes. */
static bool boxes_reach(const smk_transpose *p, const walk *w, int itemsize) {
    enum { TMA_ALIGN = 16 };
    int64_t bits = p->x.offset | (p->rows > 1 ? p->x.ld * itemsize : 0);
    for (int d = 0; d < w->n; d++)
        bits |= w->stride[X][d] * itemsize;
    return bits % TMA_ALIGN == 0 && p->cols > 0 && p->rows > 0 && w->total > 0 &&
           walk_z_stride(w, X) >= 0 && p->cols * itemsize <= UINT32_MAX && p->rows <= INT32_MAX;
}

static smk_tensor_map map_of(const smk_transpose *p, const walk *w, int itemsize) {
    static const smk_tensor_type types[] = {
        [1] = SMK_TENSOR_UINT8, [2] = SMK_TENSOR_UINT16, [4] = SMK_TENSOR_UINT32};
    const int unit = itemsize < 4 ? itemsize : 4; /* larger elements are words */
    const int64_t z = walk_z_size(w) < MAX_GRID_Z ? walk_z_size(w) : MAX_GRID_Z;
    const int64_t pitch = p->rows > 1 ? p->x.ld * itemsize : 16;
    const int64_t batch = walk_z_stride(w, X) * itemsize;
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

/* ---- rows from rows to rows ---- */

static smk_code plan_rows(const smk_row *row, const smk_dtype *dtype, const int64_t *values,
                          const smk_transpose *problem, smk_plan *plan, smk_status *status) {
    enum { BLOCKS = 3 }; /* on a multiprocessor, of those that stay */
    const smk_geometry geometry = geometry_of(row, dtype, values, 0);
    shape s;
    if (shape_make(row, dtype, &geometry, problem->cols, problem->rows, &s, status))
        return status->code;
    const smk_matrix *operands[] = {&problem->x, &problem->y};
    const walk w = walk_fold(&problem->batch, operands, OPERANDS);
    arguments args = {.transpose = {.rows = problem->rows,
                                    .cols = problem->cols,
                                    .ldx = problem->x.ld,
                                    .step_x = 1,
                                    .ldy = problem->y.ld,
                                    .step_y = 1,
                                    .batch_x = walk_z_stride(&w, X),
                                    .batch_y = walk_z_stride(&w, Y)}};
    if (row->movers.boxes) {
        const uint32_t stay = (uint32_t)(BLOCKS * problem->multiprocessors);
        s.kernels[0].blocks = s.kernels[0].blocks < stay ? s.kernels[0].blocks : stay;
        plan->args_bytes = sizeof args;
        plan->parameters[plan->n_parameters++] = offsetof(arguments, map);
        args.transpose.boxes = boxes_reach(problem, &w, dtype->itemsize);
    }
    if (args.transpose.boxes) {
        plan->pointers[plan->n_pointers++] = (smk_pointer){offsetof(arguments, map), X};
        plan->maps[plan->n_maps++] = map_of(problem, &w, dtype->itemsize);
    }
    return plan_launches(plan, &s, &w, operands, &args, status);
}

smk_code smk_plan_transpose(const smk_row *row, const smk_dtype *dtype, const int64_t *values,
                            const smk_transpose *problem, smk_plan *plan, smk_status *status) {
    *plan = (smk_plan){
        .args_bytes = sizeof(transpose_args),
        .n_parameters = 1,
        .pointers = {{offsetof(transpose_args, x), X}, {offsetof(transpose_args, y), Y}},
        .n_pointers = 2,
    };
    return row->movers.any ? plan_any_strides(row, dtype, values, problem, plan, status)
                           : plan_rows(row, dtype, values, problem, plan, status);
}
