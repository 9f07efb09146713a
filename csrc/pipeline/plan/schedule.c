/* How large blocks are, and the order in which they are computed, where the device's memory holds
 * all of them. plan.c has the picture and the reasons.
 *
 * A batch of small matrices is cut along its first dimension into groups. If matrices are large, or
 * groups do not fit, the matrices are computed one after another, each cut into blocks. */
#include <stdlib.h>
#include <string.h>

#include "blocks.h"

enum {
    IN_FLIGHT = 4,         /* slots per operand, if each block is used once */
    TRANSPOSE_COLUMNS = 16 /* blocks of x have a multiple of this many */
};

/* ---- order ---- */

/* Loads blocks of A and B alternately, so that as many rows of A as columns of B are on the device.
 * A new block is multiplied with all resident blocks of the other operand. */
static void schedule_alternating(schedule *s, const blocking *b, int64_t matrix) {
    const int64_t *count = b->grid.count, *size = b->grid.size;
    for (int64_t i = 0, j = 0; i < count[0] || j < count[1];) {
        const bool more_of_b = j * size[1] > i * size[0];
        if (j < count[1] && (i == count[0] || !more_of_b)) {
            for (int64_t k = 0; k < i; k++)
                schedule_product(s, b, matrix, k, j, 1, true);
            j++;
        } else {
            for (int64_t k = 0; k < j; k++)
                schedule_product(s, b, matrix, i, k, 1, true);
            i++;
        }
    }
}

/* ---- products ---- */

/* The size of blocks of n rows: at least `rows`, and at most max_count blocks. */
static int64_t block_rows(int64_t n, int64_t rows, int64_t max_count) {
    const int64_t count = min_i64(n / rows, max_count);
    return round_up(ceil_div(n, max_i64(count, 1)), MIN_BLOCK_ROWS);
}

/* If the smaller operand is a single block, and is copied first, the blocks of the larger operand
 * and of the result can have whole rows, and the copy engine moves long rows faster. But products
 * then start late. So only transfer-bound products (rates.h) are cut so; others load as much of A
 * as of B. */
static void cut_products(blocking *b) {
    const transfer_rates *rates = b->problem.rates;
    const smk_gemm *p = b->problem.gemm;
    const double itemsize = b->problem.query->dtype->itemsize;
    const double m = (double)p->M, n = (double)p->N, k = (double)p->K;
    const bool by_rows = p->M >= p->N;
    const double larger = (by_rows ? m : n) * k * itemsize, bytes = larger + m * n * itemsize;
    const double seconds = b->problem.query->seconds / (double)b->grid.matrices;
    const bool transfer_bound =
        seconds > 0 && seconds < rates->transfer_bound * seconds_on_bus(rates, larger);
    int64_t rows = block_rows(p->M, rates->block_rows, rates->max_blocks);
    int64_t columns = block_rows(p->N, rates->block_rows, rates->max_blocks);
    if (transfer_bound && by_rows) {
        const double max_count = bytes / (double)rates->thin_block_bytes;
        rows = block_rows(p->M, rates->thin_rows,
                          max_count < (double)rates->max_thin_blocks ? (int64_t)max_count
                                                                     : rates->max_thin_blocks);
        columns = p->N;
    } else if (transfer_bound) {
        rows = p->M;
    }
    block_cut(b, rows, columns);
}

/* *bytes: device memory with these slots. */
static smk_code memory_of_slots(blocking *b, const int64_t *slots, bool prepacks, double *bytes,
                                smk_status *status) {
    const block_memory *memory = &b->memory;
    int64_t workspace;
    /* Blocks that are used once are not kept prepacked. */
    const int64_t max[2] = {prepacks && b->grid.count[1] > 1 ? INT64_MAX : 0,
                            prepacks && b->grid.count[0] > 1 ? INT64_MAX : 0};
    const smk_code code = block_size_scratch(b, 1, max, &workspace, status);
    if (code) return code;
    *bytes = (double)workspace;
    for (int o = 0; o < 3; o++)
        *bytes += (double)slots[o] *
                  (double)(memory->slot_bytes[o] + (o < 2 ? memory->prepacked_bytes[o] : 0));
    return SMK_OK;
}

static smk_code plan_products(blocking *b, smk_pipeline_plan *out, smk_status *status) {
    schedule order = {0};
    const double memory = (double)b->problem.query->memory;
    double bytes;
    cut_products(b);
    const int64_t *count = b->grid.count;
    int64_t slots[] = {count[0], count[1], count[0] * count[1]};
    for (int o = 0; o < 2; o++)
        if (b->grid.matrices > 1 && !b->grid.broadcast[o])
            slots[o] *= 2; /* those of the next matrix, too */
    smk_code code = memory_of_slots(b, slots, true, &bytes, status);
    if (!code && bytes > memory) code = memory_of_slots(b, slots, false, &bytes, status);
    if (code) return code;
    if (bytes > memory) return out_of_core_gemm(b, out, status);
    out->resident = b->grid.matrices == 1;
    code = schedule_init(&order, b, status);
    for (int64_t matrix = 0; !code && matrix < b->grid.matrices; matrix++)
        schedule_alternating(&order, b, matrix);
    if (!code) code = pipeline_build(b, &order, slots, out, status);
    free(order.tasks);
    return code;
}

/* ---- blocks that are used once: groups of a batch, blocks of a transpose ---- */

/* The number of slots per operand. SMK_MEMORY if they do not fit. */
static smk_code size_sequence(blocking *b, int64_t *slots, smk_status *status) {
    const int64_t n = schedule_n_tasks(b);
    int64_t bytes;
    const smk_code code = block_size_scratch(b, 1, (int64_t[]){0, 0}, &bytes, status);
    if (code) return code;
    for (int o = 0; o < b->problem.n_operands; o++) {
        slots[o] = b->grid.broadcast[o] ? 1 : min_i64(n, IN_FLIGHT);
        bytes += slots[o] * b->memory.slot_bytes[o];
    }
    const bool fits = (size_t)bytes <= b->problem.query->memory;
    return fits ? SMK_OK : block_refuse_memory(b, bytes, status);
}

static smk_code plan_sequence(const blocking *b, const int64_t *slots, smk_pipeline_plan *out,
                              smk_status *status) {
    schedule order;
    const int64_t n = schedule_n_tasks(b);
    if (schedule_init(&order, b, status)) return status->code;
    for (; order.n < n; order.n++) {
        tile_task *t = &order.tasks[order.n];
        *t = (tile_task){.panel_blocks = 1};
        for (int o = 0; o < b->problem.n_operands; o++)
            t->blocks[o] = b->grid.broadcast[o] ? 0 : order.n;
    }
    const smk_code code = pipeline_build(b, &order, slots, out, status);
    free(order.tasks);
    return code;
}

/* Chooses the size of groups: some MiB, less if memory is short, the whole batch if the bytes of
 * its matrices are interleaved. */
static void cut_batch(blocking *b) {
    const double interleaved = 1.25; /* bytes of all matrices / bytes that they span together */
    const block_problem *p = &b->problem;
    const int64_t n = p->batch->size[0];
    double whole = 0, one = 0; /* bytes of the batch, of one matrix, without ... */
    double fixed = 0;          /* ... broadcast operands */
    b->grid = (block_grid){.group = n, .size = {p->size[0], p->size[1]}, .count = {1, 1}};
    for (int o = 0; o < p->n_operands - 1; o++)
        b->grid.broadcast[o] = p->operands[o]->batch[0] == 0;
    for (int o = 0; o < p->n_operands; o++)
        *(b->grid.broadcast[o] ? &fixed : &whole) +=
            (double)block_layout_of(b, o, 0, 1).rectangle.width;
    b->grid.group = 1;
    for (int o = 0; o < p->n_operands; o++)
        one += b->grid.broadcast[o] ? 0 : (double)block_layout_of(b, o, 0, 1).rectangle.width;
    const double slots = 2 * IN_FLIGHT, min_bytes = (double)p->rates->min_group_bytes;
    const double room = ((double)p->query->memory - fixed) / slots;
    double wanted = whole / slots > min_bytes ? whole / slots : min_bytes;
    wanted = wanted < room ? wanted : room;
    const int64_t size = one > 0 && wanted > one ? (int64_t)(wanted / one) : 1;
    b->grid.group = one * (double)n > interleaved * whole ? n : min_i64(size, n);
    block_size_slots(b, 1);
}

/* True: the batch is cut into groups, with these slots. False: each matrix has to be cut, as they
 * are large or groups do not fit. `bytes`: of one matrix, all operands. */
static bool use_groups(blocking *b, double bytes, int64_t *slots) {
    const block_problem *p = &b->problem;
    smk_status ignored = {0};
    if (p->batch->n == 0 || bytes > (double)p->rates->max_group_matrix_bytes) return false;
    cut_batch(b);
    return size_sequence(b, slots, &ignored) == SMK_OK;
}

/* Prepares to cut each matrix of the batch, or the only one. */
static void use_matrices(blocking *b) {
    const block_problem *p = &b->problem;
    b->grid = (block_grid){.matrices = 1};
    for (int d = 0; d < p->batch->n; d++)
        b->grid.matrices *= p->batch->size[d];
    for (int o = 0; o < 2 && p->gemm; o++) {
        b->grid.broadcast[o] = true;
        for (int d = 0; d < p->batch->n; d++)
            b->grid.broadcast[o] &= p->batch->size[d] == 1 || p->operands[o]->batch[d] == 0;
    }
}

/* Rows of y are as long as useful, which makes rows of x short. */
static void cut_transpose(blocking *b) {
    const transfer_rates *rates = b->problem.rates;
    const int64_t *size = b->problem.size, itemsize = b->problem.query->dtype->itemsize;
    const double bytes = (double)size[0] * (double)size[1] * (double)itemsize;
    const double part = bytes / (double)rates->transpose_blocks;
    const int64_t wanted = part < (double)rates->min_transpose_bytes   ? rates->min_transpose_bytes
                           : part < (double)rates->max_transpose_bytes ? (int64_t)part
                                                                       : rates->max_transpose_bytes;
    const int64_t room = (int64_t)b->problem.query->memory / (2 * IN_FLIGHT);
    const int64_t padded = room / 8 * 7; /* rows begin at multiples of 16 bytes */
    const int64_t area = min_i64(wanted, padded) / itemsize;
    const int64_t row =
        min_i64(rates->transpose_row_out / itemsize, area / (rates->transpose_row_in / itemsize));
    int64_t rows = min_i64(size[0], max_i64(row, MIN_BLOCK_ROWS));
    const int64_t columns =
        max_i64(area / rows / TRANSPOSE_COLUMNS * TRANSPOSE_COLUMNS, MIN_BLOCK_ROWS);
    if (size[1] < columns) rows = max_i64(rows, area / size[1]);
    block_cut(b, rows, columns);
}

/* ---- entry points ---- */

static blocking blocking_init(const smk_pipeline_query *query, block_problem problem) {
    problem.query = query;
    problem.rates = query->rates ? query->rates : &chip_rates[0];
    return (blocking){.problem = problem,
                      .memory = {.compute_streams = SMK_COMPUTE_STREAMS, .panel = NONE}};
}

smk_code smk_pipeline_plan_gemm(const smk_pipeline_query *query, const smk_gemm *problem,
                                smk_pipeline_plan *out, smk_status *status) {
    int64_t values[SMK_MAX_PARAMS], slots[SMK_MAX_OPERANDS];
    smk_pipeline_query q = *query;
    const int split = smk_variant_param(q.variant, "split");
    *out = (smk_pipeline_plan){0};
    memcpy(values, q.values, sizeof values[0] * (size_t)q.variant->n_params);
    /* Each block has as many K ranges as the whole product. */
    if (split >= 0) values[split] = q.split;
    q.values = values;
    blocking b =
        blocking_init(&q, (block_problem){.gemm = problem,
                                          .batch = &problem->batch,
                                          .operands = {&problem->a, &problem->b, &problem->c},
                                          .n_operands = 3,
                                          .size = {problem->M, problem->N},
                                          .reads_result = problem->beta != 0.0});
    const double m = (double)problem->M, n = (double)problem->N, k = (double)problem->K;
    if (use_groups(&b, (m * k + k * n + m * n) * q.dtype->itemsize, slots))
        return plan_sequence(&b, slots, out, status);
    use_matrices(&b);
    return plan_products(&b, out, status);
}

smk_code smk_pipeline_plan_transpose(const smk_pipeline_query *query, const smk_transpose *problem,
                                     smk_pipeline_plan *out, smk_status *status) {
    int64_t slots[SMK_MAX_OPERANDS];
    *out = (smk_pipeline_plan){0};
    blocking b = blocking_init(query, (block_problem){.transpose = problem,
                                                      .batch = &problem->batch,
                                                      .operands = {&problem->x, &problem->y},
                                                      .n_operands = 2,
                                                      .size = {problem->rows, problem->cols}});
    const double rows = (double)problem->rows, columns = (double)problem->cols;
    if (!use_groups(&b, 2.0 * rows * columns * query->dtype->itemsize, slots)) {
        use_matrices(&b);
        cut_transpose(&b);
        if (size_sequence(&b, slots, status)) return status->code;
    }
    return plan_sequence(&b, slots, out, status);
}
