/* How large the blocks of a product and of a transpose are, and in which order they go (plan_flow.c has the picture
 * and the reasons). A batch is cut along its first dimension, where there is one, and not within a matrix. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plan_flow_parts.h"
#include "plan_parts.h"

enum {
    PLACE = 256,               /* slots begin at its multiples, as the device's allocations do */
    UNIT_ROWS = 1024,          /* of a block of a product: tiles for a quarter of a large GPU */
    MOST_COUNT = 8,            /* more blocks along a side would gain nothing where all fit */
    LEAST_ROWS = 128,          /* fewer would waste tiles */
    RESULTS = 2 * SMK_LANES,   /* slots: one being computed and one leaving, a lane */
    UNITS = 4,                 /* slots of what moves as much as it computes */
    STREAMED = 2,              /* slots of an operand that passes by: one in use, one on its way */
    TRANSPOSE_UNIT = 16,       /* columns of a transpose's blocks are multiples of this */
    TRANSPOSE_LEAST = 4 << 20, /* bytes of such a block: its copies take 80 us each way ... */
    TRANSPOSE_MOST = 16 << 20, /* ... and here its lines are long enough for any bus */
    TRANSPOSE_COUNT = 8,       /* blocks there should be */
    GROUP_BYTES = 16 << 20     /* of an operand's part of a batch */
};

static int64_t bytes_of(const block_place *p) {
    return flow_round_up((int64_t)(p->rectangle.pitch * p->rectangle.lines), PLACE);
}

/* ---- sizes ---- */

static void count_blocks(blocks *all, int64_t rows, int64_t columns, int64_t block_rows,
                         int64_t block_columns) {
    all->size[0] = flow_least(block_rows, rows);
    all->size[1] = flow_least(block_columns, columns);
    all->count[0] = ceil_div(rows, all->size[0]);
    all->count[1] = ceil_div(columns, all->size[1]);
    for (int o = 0; o < all->n_operands; o++) {
        const block_place first = all->place(all, o, 0); /* none is larger */
        all->slot_bytes[o] = bytes_of(&first);
    }
}

/* Bytes of the workspaces that products of such blocks have. */
static smk_code workspace_of(const blocks *all, int64_t *out, smk_status *status) {
    smk_plan plan;
    smk_matrix matrices[SMK_MAX_OPERANDS];
    const unit first = {{0, 0, 0}};
    for (int o = 0; o < all->n_operands; o++)
        matrices[o] = all->place(all, o, 0).matrix;
    if (all->plan(all, &first, matrices, &plan, status)) return status->code;
    *out = SMK_LANES * (int64_t)plan.workspace;
    smk_plan_free(&plan);
    return SMK_OK;
}

static smk_code refuse(const blocks *all, int64_t needed, smk_status *status) {
    const smk_row *row = all->question->row;
    return smk_fail(status, SMK_MEMORY,
                    "%s variant '%s': the smallest blocks of this problem take %" PRId64
                    " bytes of the GPU's memory, and %zu may be used; split the problem, or allow "
                    "more",
                    smk_op_names[row->op], row->name, needed, all->question->memory);
}

/* ---- orders ---- */

static void append(flow_order *order, int64_t a, int64_t b, int64_t c) {
    order->units[order->n++] = (unit){{a, b, c}};
}

/* Outer and inner operand of a product: the outer one's blocks stay while the inner one's pass by. */
typedef struct residence {
    bool by_rows;         /* A is the outer one */
    int64_t outer, inner; /* slots */
    int64_t stay;         /* outer blocks that stay at a time */
    int64_t size[2];      /* of the blocks, along M and N */
} residence;

static void append_product(flow_order *order, const blocks *all, const residence *r, int64_t outer,
                           int64_t inner) {
    const int64_t i = r->by_rows ? outer : inner, j = r->by_rows ? inner : outer;
    append(order, i, j, i * all->count[1] + j);
}

static smk_code order_products(const blocks *all, const residence *r, flow_order *order,
                               smk_status *status) {
    const int64_t n_outer = all->count[!r->by_rows], n_inner = all->count[r->by_rows];
    order->units = malloc((size_t)(n_outer * n_inner) * sizeof *order->units);
    if (!order->units)
        return smk_fail_memory(status, (size_t)(n_outer * n_inner) * sizeof *order->units,
                               "the order of a flow");
    for (int64_t first = 0, turn = 0; first < n_outer; first += r->stay, turn++) {
        const int64_t n = flow_least(r->stay, n_outer - first);
        const bool by_turns =
            r->inner >= n_inner; /* a new outer block meets all inner ones so far */
        for (int64_t step = 0; step < n_inner || (by_turns && step < n); step++) {
            const int64_t inner = turn % 2 ? n_inner - 1 - step : step;
            for (int64_t k = 0; step < n_inner && k < (by_turns ? flow_least(step, n) : n); k++)
                append_product(order, all, r, first + k, inner);
            for (int64_t k = 0; by_turns && step < n && k <= flow_least(step, n_inner - 1); k++)
                append_product(order, all, r, first + step, turn % 2 ? n_inner - 1 - k : k);
        }
    }
    return SMK_OK;
}

/* ---- flows ---- */

/* As many slots of the outer operand as there is memory for beside some of the inner one's; none: not enough for
 * two. */
static residence reside(const blocks *all, bool by_rows, int64_t inner, int64_t memory) {
    const int outer = by_rows ? 0 : 1;
    const int64_t results = flow_least(RESULTS, all->count[0] * all->count[1]);
    residence r = {
        by_rows, 0, flow_least(inner, all->count[!outer]), 0, {all->size[0], all->size[1]}};
    memory -= results * all->slot_bytes[2] + r.inner * all->slot_bytes[!outer];
    const int64_t slot = all->slot_bytes[outer] ? all->slot_bytes[outer] : 1;
    r.outer = memory < 0 ? 0 : flow_least(memory / slot, all->count[outer]);
    if (r.outer < flow_least(2, all->count[outer])) r.outer = 0;
    if (r.outer == 0) return r;
    /* Turns of equal size; what is left of the memory takes the next turn's first blocks early. */
    r.stay = ceil_div(all->count[outer], ceil_div(all->count[outer], r.outer));
    return r;
}

/* About how long it takes, in seconds: the bus or the kernels, and the beginning of each turn, when outer blocks
 * arrive and there is little to multiply. The rates are those of a large GPU and of float32: what is compared
 * are ways to cut one problem. */
static double seconds_of(const blocks *all, const smk_gemm *p, const residence *r) {
    const double bus = 46e9, products = 60e12, outputs = 4 << 20; /* that fill all units */
    const int outer = r->by_rows ? 0 : 1;
    const double turns = (double)ceil_div(all->count[outer], r->stay);
    const double arriving = (double)(all->count[outer] * all->slot_bytes[outer]);
    const double passing = turns * (double)(all->count[!outer] * all->slot_bytes[!outer]);
    const double busy = (double)SMK_LANES * (double)r->size[0] * (double)r->size[1] / outputs;
    const double moved = (arriving + passing) / bus;
    const double computed =
        (double)p->M * (double)p->N * (double)p->K / products / (busy < 1 ? busy : 1);
    return (moved > computed ? moved : computed) + arriving / bus;
}

/* Blocks that take turns in the memory that there is: of those that fit, the ones that are expected to be the fastest. Inner
 * blocks may be thinner than outer ones, so that there is room for more outer rows. */
static smk_code size_products(blocks *all, const smk_gemm *p, residence *best, smk_status *status) {
    enum { LARGEST = 4096, THINNEST = 4, MOST_STREAMED = STREAMED + 1 };
    int64_t workspace = 0, needed = 0;
    double least = 0;
    *best = (residence){0};
    for (int64_t size = LARGEST; size >= LEAST_ROWS; size /= 2) {
        for (int64_t thin = THINNEST; thin; thin /= 2) {
            const int64_t inner = size / thin > LEAST_ROWS ? size / thin : LEAST_ROWS;
            for (int by_rows = 1; by_rows >= 0; by_rows--) {
                count_blocks(all, p->M, p->N, by_rows ? size : inner, by_rows ? inner : size);
                if (workspace_of(all, &workspace, status)) return status->code;
                needed = workspace + STREAMED * (all->slot_bytes[0] + all->slot_bytes[1]) +
                         RESULTS * all->slot_bytes[2];
                const int64_t memory = (int64_t)all->question->memory - workspace;
                for (int64_t slots = STREAMED; slots <= MOST_STREAMED; slots++) {
                    const residence r = reside(all, by_rows, slots, memory);
                    const double seconds = r.outer ? seconds_of(all, p, &r) : 0;
                    if (!r.outer || (best->outer && seconds > least)) continue;
                    *best = r;
                    least = seconds;
                }
            }
        }
    }
    if (!best->outer) return refuse(all, needed, status);
    count_blocks(all, p->M, p->N, best->size[0], best->size[1]);
    return SMK_OK;
}

static int64_t side(int64_t n) {
    const int64_t count = n < UNIT_ROWS ? 1 : flow_least(n / UNIT_ROWS, MOST_COUNT);
    return flow_round_up(ceil_div(n, count), LEAST_ROWS);
}

static smk_code flow_of_matrices(blocks *all, const smk_gemm *p, smk_flow_plan *out,
                                 smk_status *status) {
    flow_order order = {0};
    int64_t workspace;
    count_blocks(all, p->M, p->N, side(p->M), side(p->N));
    if (workspace_of(all, &workspace, status)) return status->code;
    residence r = {true, all->count[0], all->count[1], all->count[0], {0, 0}};
    int64_t slots[] = {all->count[0], all->count[1], all->count[0] * all->count[1]};
    double bytes = (double)workspace;
    for (int o = 0; o < 3; o++)
        bytes += (double)slots[o] * (double)all->slot_bytes[o];
    if (bytes > (double)all->question->memory) {
        if (size_products(all, p, &r, status)) return status->code;
        slots[!r.by_rows] = r.outer;
        slots[r.by_rows] = r.inner;
        slots[2] = flow_least(RESULTS, all->count[0] * all->count[1]);
    }
    smk_code code = order_products(all, &r, &order, status);
    if (!code) code = flow_build(all, &order, slots, out, status);
    free(order.units);
    return code;
}

/* Units one after the other: groups of a batch, or blocks of a transpose. What is broadcast stays. */
static smk_code flow_of_units(blocks *all, int64_t n, const bool *stays, smk_flow_plan *out,
                              smk_status *status) {
    flow_order order = {.units = malloc((size_t)n * sizeof *order.units)};
    int64_t slots[SMK_MAX_OPERANDS], workspace, bytes = 0;
    if (!order.units)
        return smk_fail_memory(status, (size_t)n * sizeof *order.units, "the order of a flow");
    smk_code code = workspace_of(all, &workspace, status);
    for (int o = 0; o < all->n_operands; o++) {
        slots[o] = stays[o] ? 1 : flow_least(n, UNITS);
        bytes += slots[o] * all->slot_bytes[o];
    }
    if (!code && (size_t)(bytes + workspace) > all->question->memory)
        code = refuse(all, bytes + workspace, status);
    for (int64_t i = 0; i < n; i++)
        append(&order, stays[0] ? 0 : i, stays[1] ? 0 : i, i);
    if (!code) code = flow_build(all, &order, slots, out, status);
    free(order.units);
    return code;
}

/* Groups of a batch: some MiB each, fewer where memory is short, all of it where their bytes lie mixed. */
static smk_code flow_of_batch(blocks *all, const smk_batch *batch, const bool *stays,
                              smk_flow_plan *out, smk_status *status) {
    double whole = 0, one = 0, fixed = 0;
    all->size[0] = batch->size[0];
    for (int o = 0; o < all->n_operands; o++) {
        const block_place p = all->place(all, o, 0);
        *(stays[o] ? &fixed : &whole) += (double)p.rectangle.width;
    }
    all->size[0] = 1;
    for (int o = 0; o < all->n_operands; o++) {
        const block_place p = all->place(all, o, 0);
        one += stays[o] ? 0 : (double)p.rectangle.width;
    }
    const bool mixed = one * (double)batch->size[0] > 1.25 * whole;
    const double room = ((double)all->question->memory - fixed) / (2 * UNITS);
    double wanted = whole / (2 * UNITS) > GROUP_BYTES ? whole / (2 * UNITS) : GROUP_BYTES;
    wanted = wanted < room ? wanted : room;
    const int64_t size = one > 0 && wanted > one ? (int64_t)(wanted / one) : 1;
    all->size[0] = mixed ? batch->size[0] : flow_least(size, batch->size[0]);
    all->count[0] = ceil_div(batch->size[0], all->size[0]);
    for (int o = 0; o < all->n_operands; o++) {
        const block_place p = all->place(all, o, 0);
        all->slot_bytes[o] = bytes_of(&p);
    }
    return flow_of_units(all, all->count[0], stays, out, status);
}

smk_code smk_plan_flow_gemm(const smk_flow_question *question, const smk_gemm *problem,
                            smk_flow_plan *out, smk_status *status) {
    int64_t values[SMK_MAX_PARAMS];
    smk_flow_question q = *question;
    const int split = smk_row_param(q.row, "split");
    *out = (smk_flow_plan){0};
    memcpy(values, q.values, sizeof values[0] * (size_t)q.row->n_params);
    if (split >= 0) values[split] = q.split; /* blocks cut K as all of it is cut */
    q.values = values;
    blocks all = {.question = &q,
                  .problem = problem,
                  .n_operands = 3,
                  .reads_result = problem->beta != 0.0,
                  .place = flow_place_gemm,
                  .plan = flow_plan_gemm};
    if (problem->batch.n == 0) return flow_of_matrices(&all, problem, out, status);
    const bool stays[] = {problem->a.batch[0] == 0, problem->b.batch[0] == 0, false};
    return flow_of_batch(&all, &problem->batch, stays, out, status);
}

smk_code smk_plan_flow_transpose(const smk_flow_question *question, const smk_transpose *problem,
                                 smk_flow_plan *out, smk_status *status) {
    const int64_t itemsize = question->dtype->itemsize;
    blocks all = {.question = question,
                  .problem = problem,
                  .n_operands = 2,
                  .place = flow_place_transpose,
                  .plan = flow_plan_transpose};
    *out = (smk_flow_plan){0};
    if (problem->batch.n) {
        const bool stays[] = {problem->x.batch[0] == 0, false};
        return flow_of_batch(&all, &problem->batch, stays, out, status);
    }
    const double share =
        (double)problem->rows * (double)problem->cols * (double)itemsize / TRANSPOSE_COUNT;
    const int64_t wanted = share < TRANSPOSE_LEAST  ? TRANSPOSE_LEAST
                           : share < TRANSPOSE_MOST ? (int64_t)share
                                                    : TRANSPOSE_MOST;
    int64_t rows = 1;
    while (rows * rows * itemsize < wanted)
        rows *= 2;
    const int64_t room = (int64_t)question->memory / (2 * UNITS);
    while (rows > LEAST_ROWS && rows * rows * itemsize > room)
        rows /= 2;
    const int64_t cols = problem->rows < rows ? rows * rows / problem->rows : rows;
    if (problem->cols < rows) rows = rows * rows / problem->cols;
    count_blocks(&all, problem->rows, problem->cols, rows, flow_round_up(cols, TRANSPOSE_UNIT));
    const bool stays[] = {false, false};
    return flow_of_units(&all, all.count[0] * all.count[1], stays, out, status);
}
