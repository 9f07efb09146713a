/* How large the blocks of a product and of a transpose are, and in which order they go (plan_flow.c has the picture
 * and the reasons). A batch is cut along its first dimension into groups of small matrices. Where a matrix is large,
 * or a group of them more than there is memory for, its matrices go one after the other, cut into blocks each. */
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "../../core/plan_parts.h"

enum {
    UNIT_ROWS = 1024,   /* of a block of a product: tiles for a quarter of a large GPU */
    MOST_COUNT = 8,     /* more blocks along a side would gain nothing where all fit */
    PASSING_ROWS = 512, /* of a block of A that meets all of B */
    PASSING_COUNT = 16,
    PASSING_BYTES = 2 << 20,   /* of such a block and its result */
    UNITS = 4,                 /* slots of what moves as much as it computes */
    TRANSPOSE_UNIT = 16,       /* columns of a transpose's blocks are multiples of this */
    TRANSPOSE_LEAST = 4 << 20, /* bytes of such a block: its copies take 80 us each way ... */
    TRANSPOSE_MOST = 16 << 20,
    TRANSPOSE_COUNT = 8,     /* blocks there should be */
    LINE_IN = 2 << 10,       /* bytes of its lines: threads gather short ones at no cost, ... */
    LINE_OUT = 32 << 10,     /* ... while the engine scatters long ones faster */
    GROUP_BYTES = 16 << 20,  /* of an operand's part of a batch */
    MATRIX_BYTES = 128 << 20 /* a batch's matrix, all operands, that is worth blocks of its own */
};

/* Where all fits blocks arrive by turns, as many rows of A as columns of B, and a new one meets all that are there. */
static void order_all(const blocks *all, int64_t matrix, schedule *order) {
    const int64_t rows = all->count[0], columns = all->count[1];
    for (int64_t i = 0, j = 0; i < rows || j < columns;) {
        const bool enough_of_b = j * all->size[1] > i * all->size[0];
        if (j < columns && (i == rows || !enough_of_b)) {
            for (int64_t k = 0; k < i; k++)
                schedule_product(order, all, matrix, k, j, 1, true);
            j++;
        } else {
            for (int64_t k = 0; k < j; k++)
                schedule_product(order, all, matrix, i, k, 1, true);
            i++;
        }
    }
}

static int64_t side(int64_t n, int64_t unit, int64_t most) {
    const int64_t count = min_i64(n / unit, most);
    return round_up(ceil_div(n, max_i64(count, 1)), MIN_BLOCK_ROWS);
}

/* How large blocks are where all fit. If the smaller operand is one block, and comes first, lines of B and of the result
 * are as long as they can be, and the engine moves long ones faster. But products begin late then, and those that take
 * longer than the other operand's way in would end late: these get as much of A as of B. (On an H200, of products of 1024
 * to 8192 in several types, those of less than 1.4 of that way took up to 16 % less, and the others more.) */
static void size_blocks(blocks *all, const smk_gemm *p) {
    const double longer = 1.4, itemsize = all->question->dtype->itemsize;
    const double m = (double)p->M, n = (double)p->N, k = (double)p->K;
    const bool by_rows = p->M >= p->N;
    const double passing = (by_rows ? m : n) * k * itemsize, bytes = passing + m * n * itemsize;
    const double seconds = all->question->seconds / (double)all->matrices;
    const bool one_is_whole = seconds > 0 && seconds < longer * seconds_on_bus(passing);
    int64_t rows = side(p->M, UNIT_ROWS, MOST_COUNT), columns = side(p->N, UNIT_ROWS, MOST_COUNT);
    if (one_is_whole && by_rows) {
        const double most = bytes / PASSING_BYTES;
        rows = side(p->M, PASSING_ROWS, most < PASSING_COUNT ? (int64_t)most : PASSING_COUNT);
        columns = p->N;
    } else if (one_is_whole) {
        rows = p->M;
    }
    block_count(all, p->M, p->N, rows, columns);
}

/* Lines of y as long as it helps, which makes those of x short. */
static void size_transposed(blocks *all, const smk_transpose *p) {
    const int64_t itemsize = all->question->dtype->itemsize;
    const double share = (double)p->rows * (double)p->cols * (double)itemsize / TRANSPOSE_COUNT;
    const int64_t wanted = share < TRANSPOSE_LEAST  ? TRANSPOSE_LEAST
                           : share < TRANSPOSE_MOST ? (int64_t)share
                                                    : TRANSPOSE_MOST;
    const int64_t room = (int64_t)all->question->memory / (2 * UNITS);
    const int64_t padded = room / 8 * 7; /* lines begin at multiples of 16 bytes */
    const int64_t area = min_i64(wanted, padded) / itemsize;
    const int64_t line = min_i64(LINE_OUT / itemsize, area / (LINE_IN / itemsize));
    int64_t rows = min_i64(p->rows, max_i64(line, MIN_BLOCK_ROWS));
    const int64_t cols = max_i64(area / rows / TRANSPOSE_UNIT * TRANSPOSE_UNIT, MIN_BLOCK_ROWS);
    if (p->cols < cols) rows = max_i64(rows, area / p->cols);
    block_count(all, p->rows, p->cols, rows, cols);
}

/* Bytes of the device's memory with so many slots. */
static smk_code memory_of_slots(blocks *all, const int64_t *slots, bool keeps, double *bytes,
                                smk_status *status) {
    int64_t workspace;
    const int64_t most[2] = {keeps && all->count[1] > 1 ? INT64_MAX : 0,
                             keeps && all->count[0] > 1 ? INT64_MAX : 0};
    const smk_code code = block_size_scratch(all, 1, most, &workspace, status);
    if (code) return code;
    *bytes = (double)workspace;
    for (int o = 0; o < 3; o++)
        *bytes +=
            (double)slots[o] * (double)(all->slot_bytes[o] + (o < 2 ? all->kept_bytes[o] : 0));
    return SMK_OK;
}

static smk_code pipeline_of_matrices(blocks *all, const smk_gemm *p, smk_pipeline_plan *out,
                                     smk_status *status) {
    schedule order = {0};
    const double memory = (double)all->question->memory;
    double bytes;
    size_blocks(all, p);
    int64_t slots[] = {all->count[0], all->count[1], all->count[0] * all->count[1]};
    for (int o = 0; o < 2; o++)
        if (all->matrices > 1 && !all->repeats[o]) slots[o] *= 2; /* the next one's, too */
    smk_code code = memory_of_slots(all, slots, true, &bytes, status);
    if (!code && bytes > memory) code = memory_of_slots(all, slots, false, &bytes, status);
    if (code) return code;
    if (bytes > memory) return out_of_core_gemm(all, p, out, status);
    out->resident = all->matrices == 1;
    code = schedule_init(&order, schedule_n_products(all), status);
    for (int64_t matrix = 0; !code && matrix < all->matrices; matrix++)
        order_all(all, matrix, &order);
    if (!code) code = pipeline_build(all, &order, slots, out, status);
    free(order.units);
    return code;
}

/* The slots of units that go one after the other, and the bytes that these take. */
static smk_code slots_of_groups(blocks *all, int64_t n, const bool *stays, int64_t *slots,
                                int64_t *bytes, smk_status *status) {
    const smk_code code = block_size_scratch(all, 1, (int64_t[]){0, 0}, bytes, status);
    for (int o = 0; o < all->n_operands && !code; o++) {
        slots[o] = stays[o] ? 1 : min_i64(n, UNITS);
        *bytes += slots[o] * all->slot_bytes[o];
    }
    return code;
}

/* Groups of a batch, or blocks of transposes. What is broadcast stays. */
static smk_code pipeline_of_groups(blocks *all, int64_t n, const bool *stays,
                                   smk_pipeline_plan *out, smk_status *status) {
    schedule order = {0};
    int64_t slots[SMK_MAX_OPERANDS], bytes;
    if (schedule_init(&order, n, status)) return status->code;
    smk_code code = slots_of_groups(all, n, stays, slots, &bytes, status);
    if (!code && (size_t)bytes > all->question->memory)
        code = pipeline_refuse_memory(all, bytes, status);
    for (int64_t i = 0; i < n; i++)
        schedule_append(&order, (unit){{stays[0] ? 0 : i, stays[1] ? 0 : i, i}, 1, false});
    if (!code) code = pipeline_build(all, &order, slots, out, status);
    free(order.units);
    return code;
}

/* Groups of a batch: some MiB each, fewer where memory is short, all of it where their bytes lie mixed. */
static void size_groups(blocks *all, const smk_batch *batch, const bool *stays) {
    double whole = 0, one = 0, fixed = 0;
    all->size[0] = batch->size[0];
    for (int o = 0; o < all->n_operands; o++) {
        const block_layout p = all->place(all, o, 0, 1);
        *(stays[o] ? &fixed : &whole) += (double)p.rectangle.width;
    }
    all->size[0] = 1;
    for (int o = 0; o < all->n_operands; o++) {
        const block_layout p = all->place(all, o, 0, 1);
        one += stays[o] ? 0 : (double)p.rectangle.width;
    }
    const bool mixed = one * (double)batch->size[0] > 1.25 * whole;
    const double room = ((double)all->question->memory - fixed) / (2 * UNITS);
    double wanted = whole / (2 * UNITS) > GROUP_BYTES ? whole / (2 * UNITS) : GROUP_BYTES;
    wanted = wanted < room ? wanted : room;
    const int64_t size = one > 0 && wanted > one ? (int64_t)(wanted / one) : 1;
    all->size[0] = mixed ? batch->size[0] : min_i64(size, batch->size[0]);
    all->count[0] = ceil_div(batch->size[0], all->size[0]);
    for (int o = 0; o < all->n_operands; o++) {
        const block_layout p = all->place(all, o, 0, 1);
        all->slot_bytes[o] = block_layout_bytes(&p);
    }
}

/* Whether the batch goes through in groups of matrices; otherwise each of those is cut. `bytes`: of one. */
static bool goes_in_groups(blocks *all, const smk_batch *batch, const bool *stays, double bytes) {
    smk_status unused = {0};
    int64_t slots[SMK_MAX_OPERANDS], needed;
    if (batch->n == 0 || bytes > MATRIX_BYTES) return false;
    size_groups(all, batch, stays);
    return slots_of_groups(all, all->count[0], stays, slots, &needed, &unused) == SMK_OK &&
           (size_t)needed <= all->question->memory;
}

/* Cuts the matrices of a batch, or the only one. */
static void cut_matrices(blocks *all, const smk_batch *batch, const smk_matrix *const *operands) {
    all->matrices = 1;
    for (int d = 0; d < batch->n; d++)
        all->matrices *= batch->size[d];
    for (int o = 0; o < all->n_operands; o++) {
        all->repeats[o] = true;
        for (int d = 0; d < batch->n; d++)
            all->repeats[o] &= batch->size[d] == 1 || operands[o]->batch[d] == 0;
    }
}

smk_code smk_pipeline_plan_gemm(const smk_pipeline_query *question, const smk_gemm *problem,
                                smk_pipeline_plan *out, smk_status *status) {
    int64_t values[SMK_MAX_PARAMS];
    smk_pipeline_query q = *question;
    const int split = smk_row_param(q.row, "split");
    *out = (smk_pipeline_plan){0};
    memcpy(values, q.values, sizeof values[0] * (size_t)q.row->n_params);
    if (split >= 0) values[split] = q.split; /* blocks cut K as all of it is cut */
    q.values = values;
    blocks all = {.question = &q,
                  .problem = problem,
                  .n_operands = 3,
                  .reads_result = problem->beta != 0.0,
                  .lanes = SMK_COMPUTE_STREAMS,
                  .panel = NONE,
                  .place = block_layout_gemm,
                  .plan = block_plan_gemm};
    const double m = (double)problem->M, n = (double)problem->N, k = (double)problem->K;
    const bool stays[] = {problem->a.batch[0] == 0, problem->b.batch[0] == 0, false};
    if (goes_in_groups(&all, &problem->batch, stays, (m * k + k * n + m * n) * q.dtype->itemsize))
        return pipeline_of_groups(&all, all.count[0], stays, out, status);
    cut_matrices(&all, &problem->batch,
                 (const smk_matrix *[]){&problem->a, &problem->b, &problem->c});
    return pipeline_of_matrices(&all, problem, out, status);
}

smk_code smk_pipeline_plan_transpose(const smk_pipeline_query *question,
                                     const smk_transpose *problem, smk_pipeline_plan *out,
                                     smk_status *status) {
    const int64_t itemsize = question->dtype->itemsize;
    blocks all = {.question = question,
                  .problem = problem,
                  .n_operands = 2,
                  .lanes = SMK_COMPUTE_STREAMS,
                  .panel = NONE,
                  .place = block_layout_transpose,
                  .plan = block_plan_transpose};
    *out = (smk_pipeline_plan){0};
    const double bytes = 2.0 * (double)problem->rows * (double)problem->cols * (double)itemsize;
    const bool moves[] = {false, false}, stays[] = {problem->x.batch[0] == 0, false};
    if (goes_in_groups(&all, &problem->batch, stays, bytes))
        return pipeline_of_groups(&all, all.count[0], stays, out, status);
    cut_matrices(&all, &problem->batch, (const smk_matrix *[]){&problem->x, &problem->y});
    size_transposed(&all, problem);
    return pipeline_of_groups(&all, schedule_n_products(&all), moves, out, status);
}
