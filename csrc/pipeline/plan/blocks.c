/* Blocks: which host memory they cover, how they are laid out in a slot of device memory, how large
 * slots, workspaces and prepacked operands are, and how kernels on them are planned. */
#include <inttypes.h>
#include <stdlib.h>

#include "blocks.h"

enum {
    SLOT_ALIGNMENT = 256,  /* that of device allocations */
    PITCH_ALIGNMENT = 16,  /* required by TMA and by 16-byte copies */
    MIN_PADDED_WIDTH = 128 /* padding shorter rows costs more than it gains */
};

typedef struct range {
    int64_t first, n;
} range;

typedef struct submatrix {
    range rows, columns;
} submatrix;

/* ---- which part of an operand a block is ---- */

/* The dimension of problem.size along each operand's rows and columns; NONE: K. */
static const int gemm_dimensions[][2] = {{0, NONE}, {NONE, 1}, {0, 1}};
static const int transpose_dimensions[][2] = {{0, 1}, {1, 0}};

static const int *dimensions_of(const block_problem *p, int operand) {
    return p->gemm ? gemm_dimensions[operand] : transpose_dimensions[operand];
}

static bool is_cut_both_ways(const blocking *b, int operand) {
    const int *d = dimensions_of(&b->problem, operand);
    return d[0] != NONE && d[1] != NONE;
}

static int64_t blocks_per_matrix(const blocking *b, int operand) {
    const int64_t *count = b->grid.count;
    return is_cut_both_ways(b, operand) ? count[0] * count[1] : count[operand];
}

static range range_of(const blocking *b, int dimension, int64_t index, int64_t panel_blocks) {
    if (dimension == NONE) return (range){0, b->problem.gemm->K};
    const int64_t size = b->grid.size[dimension], first = index * size;
    const int64_t n = size * (dimension == b->memory.panel ? panel_blocks : 1);
    return (range){first, min_i64(n, b->problem.size[dimension] - first)};
}

static submatrix submatrix_of(const blocking *b, int operand, int64_t block, int64_t panel_blocks) {
    const int *d = dimensions_of(&b->problem, operand);
    const bool both = is_cut_both_ways(b, operand);
    block %= blocks_per_matrix(b, operand);
    const int64_t index[2] = {both ? block / b->grid.count[1] : block,
                              both ? block % b->grid.count[1] : block};
    return (submatrix){range_of(b, d[0], d[0] == NONE ? 0 : index[d[0]], panel_blocks),
                       range_of(b, d[1], d[1] == NONE ? 0 : index[d[1]], panel_blocks)};
}

/* All blocks that are in the panel together with this one. */
static submatrix panel_of(const blocking *b, int operand, int64_t block) {
    const int64_t slots = b->memory.panel_slots;
    submatrix s = submatrix_of(b, operand, 0, slots);
    block %= blocks_per_matrix(b, operand);
    (operand ? &s.columns : &s.rows)->first = (block - block % slots) * b->grid.size[operand];
    return s;
}

/* Matrices of the batch that the block has along its first dimension. */
static int64_t group_size(const blocking *b, int64_t block) {
    return min_i64(b->grid.group, b->problem.batch->size[0] - block * b->grid.group);
}

/* ---- layout ---- */

/* The rectangle's rows are rows or columns of the matrix, whichever are contiguous. */
static block_layout layout_submatrix(const smk_matrix *m, char *host, int itemsize, submatrix s,
                                     submatrix slot) {
    const bool by_columns = m->ld == 1 && (m->step != 1 || slot.columns.n == 1);
    const bool steps = by_columns && slot.columns.n > 1;
    const range inner = by_columns ? s.rows : s.columns;
    const range outer = by_columns ? s.columns : s.rows;
    const range slot_inner = by_columns ? slot.rows : slot.columns;
    const range slot_outer = by_columns ? slot.columns : slot.rows;
    const int64_t slot_width = slot_inner.n * itemsize;
    const int64_t pitch =
        slot_width < MIN_PADDED_WIDTH ? slot_width : round_up(slot_width, PITCH_ALIGNMENT);
    const int64_t stride = pitch > itemsize ? pitch / itemsize : 1;
    const int64_t offset =
        (outer.first - slot_outer.first) * pitch + (inner.first - slot_inner.first) * itemsize;
    return (block_layout){
        .rectangle = {.host = host + (s.rows.first * m->ld + s.columns.first * m->step) * itemsize,
                      .host_pitch = (ptrdiff_t)((steps ? m->step : m->ld) * itemsize),
                      .offset = (size_t)offset,
                      .pitch = (size_t)pitch,
                      .width = (size_t)(inner.n * itemsize),
                      .height = (size_t)outer.n},
        .matrix = {.offset = offset, .ld = by_columns ? 1 : stride, .step = steps ? stride : 1}};
}

/* All bytes from the lowest to the highest element of n matrices from `first` on. Strides stay. */
static block_layout layout_group(const smk_matrix *m, const smk_batch *batch, char *host,
                                 int itemsize, submatrix matrix, int64_t first, int64_t n) {
    int64_t low = 0, high = 0;
    const int64_t sizes[2] = {matrix.rows.n, matrix.columns.n}, strides[2] = {m->ld, m->step};
    for (int d = 0; d < batch->n + 2; d++) {
        const int64_t size = d == 0 ? n : d < batch->n ? batch->size[d] : sizes[d - batch->n];
        const int64_t stride = d < batch->n ? m->batch[d] : strides[d - batch->n];
        if (size == 0) return (block_layout){.matrix = *m};
        *((size - 1) * stride < 0 ? &low : &high) += (size - 1) * stride;
    }
    const size_t width = (size_t)((high - low + 1) * itemsize);
    block_layout result = {.rectangle = {.host = host + (first * m->batch[0] + low) * itemsize,
                                         .pitch = width,
                                         .width = width,
                                         .height = 1},
                           .matrix = *m};
    result.matrix.offset = -low * itemsize;
    return result;
}

/* Bytes from the operand's first matrix of the batch to the one that the block is in. */
static int64_t matrix_offset(const blocking *b, int operand, int64_t block) {
    const smk_batch *batch = b->problem.batch;
    int64_t index = block / blocks_per_matrix(b, operand), offset = 0;
    for (int d = batch->n - 1; d >= 0 && index; d--) {
        offset += index % batch->size[d] * b->problem.operands[operand]->batch[d];
        index /= batch->size[d];
    }
    return offset * b->problem.query->dtype->itemsize;
}

block_layout block_layout_of(const blocking *b, int operand, int64_t block, int64_t panel_blocks) {
    const block_problem *p = &b->problem;
    const smk_matrix *m = p->operands[operand];
    const int itemsize = p->query->dtype->itemsize;
    char *host = p->query->host[operand];
    const submatrix s = submatrix_of(b, operand, block, panel_blocks);
    if (b->grid.group)
        return layout_group(m, p->batch, host, itemsize, s, block * b->grid.group,
                            group_size(b, block));
    const submatrix slot = operand == b->memory.panel ? panel_of(b, operand, block) : s;
    return layout_submatrix(m, host + matrix_offset(b, operand, block), itemsize, s, slot);
}

smk_code block_plan(const blocking *b, const tile_task *t, const smk_matrix *matrices,
                    const smk_prepack *prepack, smk_plan *out, smk_status *status) {
    const block_problem *p = &b->problem;
    const smk_pipeline_query *q = p->query;
    const int result = p->n_operands - 1;
    const int64_t block = t->blocks[result];
    const submatrix s = submatrix_of(b, result, block, t->panel_blocks);
    smk_batch batch = {.n = 0};
    if (b->grid.group) {
        batch = *p->batch;
        batch.size[0] = group_size(b, block);
    }
    if (p->transpose) {
        smk_transpose part = *p->transpose;
        part.batch = batch;
        part.rows = s.columns.n;
        part.cols = s.rows.n;
        part.x = matrices[0];
        part.y = matrices[1];
        return smk_plan_transpose(q->variant, q->dtype, q->values, &part, out, status);
    }
    smk_gemm part = *p->gemm;
    part.batch = batch;
    part.M = s.rows.n;
    part.N = s.columns.n;
    part.a = matrices[0];
    part.b = matrices[1];
    part.c = matrices[2];
    part.prepack = *prepack;
    part.prepack.for_blocks = true;
    return smk_plan_gemm(q->variant, q->dtype, q->values, &part, out, status);
}

/* ---- sizes ---- */

void block_size_slots(blocking *b, int64_t panel_blocks) {
    for (int o = 0; o < b->problem.n_operands; o++) {
        const int64_t n = o == b->memory.panel ? b->memory.panel_slots : panel_blocks;
        const smk_rectangle r = block_layout_of(b, o, 0, n).rectangle;
        b->memory.slot_bytes[o] = round_up((int64_t)(r.pitch * r.height), SLOT_ALIGNMENT);
    }
}

int64_t smk_pipeline_part(const smk_variant *variant, int64_t m, int64_t n, int64_t extent,
                          int64_t part) {
    const int64_t thin = min_i64(m, n);
    if (!variant->skinny.rows[0] || thin >= MIN_BLOCK_ROWS) return part;
    while (part < extent && extent % part && extent % part <= thin)
        part += MIN_BLOCK_ROWS;
    return part;
}

void block_cut(blocking *b, int64_t rows, int64_t columns) {
    const smk_variant *variant = b->problem.query->variant;
    const int64_t *size = b->problem.size, wanted[2] = {rows, columns};
    for (int d = 0; d < 2; d++) {
        const int64_t part = smk_pipeline_part(variant, size[0], size[1], size[d], wanted[d]);
        b->grid.size[d] = min_i64(part, size[d]);
        b->grid.count[d] = ceil_div(size[d], b->grid.size[d]);
    }
    block_size_slots(b, 1);
}

/* Raises *workspace and prepacked[0], prepacked[1] to what the tile task needs. */
static smk_code size_tile_task(const blocking *b, const tile_task *t, const int64_t max[2],
                               int64_t *workspace, int64_t prepacked[2], smk_status *status) {
    smk_plan plan;
    smk_matrix matrices[SMK_MAX_OPERANDS];
    const smk_prepack prepack = {.prepacked = {{.bytes = max[0]}, {.bytes = max[1]}}};
    for (int o = 0; o < b->problem.n_operands; o++)
        matrices[o] = block_layout_of(b, o, t->blocks[o], t->panel_blocks).matrix;
    const smk_code code = block_plan(b, t, matrices, &prepack, &plan, status);
    if (code) return code;
    int64_t bytes_needed = (int64_t)plan.workspace;
    for (int o = 0; o < 2; o++) {
        const bool panel = o == b->memory.panel;
        const int64_t bytes = (int64_t)plan.prepacked_bytes[o];
        prepacked[o] = max_i64(prepacked[o], ceil_div(bytes, panel ? t->panel_blocks : 1));
        /* Tile tasks that do not use the prepacked panel prepack in their workspace. */
        bytes_needed += panel ? bytes : 0;
    }
    *workspace = max_i64(bytes_needed, *workspace);
    smk_plan_free(&plan);
    return SMK_OK;
}

/* Whether the last block along this dimension of a product is smaller: its layout may differ. */
static bool has_edge(const blocking *b, int dimension) {
    return b->problem.gemm && !b->grid.group && b->grid.count[dimension] > 1 &&
           b->problem.size[dimension] % b->grid.size[dimension];
}

/* The first tile task is the largest, but one with blocks at an edge may have to pack an operand
 * that the others read in place. */
smk_code block_size_scratch(blocking *b, int64_t panel_blocks, const int64_t max[2],
                            int64_t *workspace, smk_status *status) {
    int64_t prepacked[2] = {0, 0};
    *workspace = 0;
    for (int edges = 0; edges < 4; edges++) {
        tile_task t = {.panel_blocks = panel_blocks, .prepacks = true};
        bool exists = true;
        for (int d = 0; d < 2; d++) {
            if (!(edges >> d & 1)) continue;
            exists &= has_edge(b, d);
            t.blocks[d] = b->grid.count[d] - 1;
            t.panel_blocks = d == b->memory.panel ? 1 : t.panel_blocks;
        }
        if (!exists) continue;
        t.blocks[2] = t.blocks[0] * b->grid.count[1] + t.blocks[1];
        if (size_tile_task(b, &t, max, workspace, prepacked, status)) return status->code;
    }
    *workspace *= b->memory.compute_streams;
    for (int o = 0; o < 2; o++)
        b->memory.prepacked_bytes[o] = round_up(prepacked[o], SLOT_ALIGNMENT);
    return SMK_OK;
}

smk_code block_refuse_memory(const blocking *b, int64_t needed, smk_status *status) {
    const smk_pipeline_query *q = b->problem.query;
    return smk_fail(status, SMK_MEMORY,
                    "%s variant '%s': the smallest blocks of this problem take %" PRId64
                    " bytes of the GPU's memory, and %zu may be used; split the problem, or allow "
                    "more",
                    smk_op_names[q->variant->op], q->variant->name, needed, q->memory);
}

/* ---- schedules ---- */

int64_t schedule_n_tasks(const blocking *b) {
    const block_grid *g = &b->grid;
    return g->group ? ceil_div(b->problem.batch->size[0], g->group)
                    : g->matrices * g->count[0] * g->count[1];
}

smk_code schedule_init(schedule *s, const blocking *b, smk_status *status) {
    const size_t bytes = (size_t)schedule_n_tasks(b) * sizeof *s->tasks;
    s->n = 0;
    s->tasks = malloc(bytes);
    return s->tasks ? SMK_OK : smk_fail_memory(status, bytes, "the order of a pipeline's blocks");
}

void schedule_product(schedule *s, const blocking *b, int64_t matrix, int64_t i, int64_t j,
                      int64_t panel_blocks, bool prepacks) {
    const int64_t *count = b->grid.count;
    const int64_t a_matrix = b->grid.broadcast[0] ? 0 : matrix;
    const int64_t b_matrix = b->grid.broadcast[1] ? 0 : matrix;
    s->tasks[s->n++] = (tile_task){.blocks = {a_matrix * count[0] + i, b_matrix * count[1] + j,
                                              (matrix * count[0] + i) * count[1] + j},
                                   .panel_blocks = panel_blocks,
                                   .prepacks = prepacks};
}
