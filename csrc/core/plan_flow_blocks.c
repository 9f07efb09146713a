/* How large the blocks of a product and of a transpose are, and in which order they go (plan_flow.c has the picture
 * and the reasons). A batch is cut along its first dimension into groups of small matrices. Where a matrix is large,
 * or a group of them more than there is memory for, its matrices go one after the other, cut into blocks each. */
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
    RESULTS = 2,               /* slots a lane: one being computed and one leaving */
    ALL_OUTPUTS = 4 << 20,     /* elements of a result that keep all of a large GPU busy */
    UNITS = 4,                 /* slots of what moves as much as it computes */
    LITTLE = 8,                /* what is kept may be this part of what it was made of */
    STREAMED = 2,              /* slots of an operand that passes by: one in use, one on its way */
    TRANSPOSE_UNIT = 16,       /* columns of a transpose's blocks are multiples of this */
    TRANSPOSE_LEAST = 4 << 20, /* bytes of such a block: its copies take 80 us each way ... */
    TRANSPOSE_MOST = 16 << 20, /* ... and here its lines are long enough for any bus */
    TRANSPOSE_COUNT = 8,       /* blocks there should be */
    GROUP_BYTES = 16 << 20,    /* of an operand's part of a batch */
    MATRIX_BYTES = 128 << 20   /* a batch's matrix, all operands, that is worth blocks of its own */
};

static int64_t bytes_of(const block_place *p) {
    return flow_round_up((int64_t)(p->rectangle.pitch * p->rectangle.lines), PLACE);
}

/* ---- sizes ---- */

/* Slots are as large as their largest place, which is the first. */
static void size_slots(blocks *all, int64_t run) {
    for (int o = 0; o < all->n_operands; o++) {
        const block_place first = all->place(all, o, 0, o == all->panel ? all->stay : run);
        all->slot_bytes[o] = bytes_of(&first);
    }
}

int64_t smk_flow_part(const smk_row *row, int64_t m, int64_t n, int64_t along, int64_t part) {
    const int64_t thin = flow_least(m, n);
    if (!row->skinny.rows[0] || thin >= LEAST_ROWS) return part;
    while (part < along && along % part && along % part <= thin)
        part += LEAST_ROWS;
    return part;
}

static void count_blocks(blocks *all, int64_t rows, int64_t columns, int64_t block_rows,
                         int64_t block_columns) {
    const smk_row *row = all->question->row;
    all->size[0] = flow_least(smk_flow_part(row, rows, columns, rows, block_rows), rows);
    all->size[1] = flow_least(smk_flow_part(row, rows, columns, columns, block_columns), columns);
    all->count[0] = ceil_div(rows, all->size[0]);
    all->count[1] = ceil_div(columns, all->size[1]);
    size_slots(all, 1);
}

/* What a unit makes: raises bytes of the workspace, and of what is kept of each slot, to what it needs. */
static smk_code size_unit(blocks *all, const unit *u, const int64_t most[2], int64_t *workspace,
                          int64_t kept[2], smk_status *status) {
    smk_plan plan;
    smk_matrix matrices[SMK_MAX_OPERANDS];
    const smk_making making = {.kept = {{.bytes = most[0]}, {.bytes = most[1]}}};
    for (int o = 0; o < all->n_operands; o++)
        matrices[o] = all->place(all, o, u->blocks[o], u->run).matrix;
    const smk_code code = all->plan(all, u, matrices, &making, &plan, status);
    if (code) return code;
    int64_t own = (int64_t)plan.workspace;
    for (int o = 0; o < 2; o++) {
        const bool panel = o == all->panel;
        const int64_t slot = ceil_div((int64_t)plan.kept[o], panel ? u->run : 1);
        kept[o] = slot > kept[o] ? slot : kept[o];
        own += panel ? (int64_t)plan.kept[o] : 0; /* some units of a panel keep nothing */
    }
    *workspace = own > *workspace ? own : *workspace;
    smk_plan_free(&plan);
    return SMK_OK;
}

/* Blocks at an edge of the result, that are smaller than others, and so may lie otherwise. */
static bool has_edge(const blocks *all, int operand) {
    const smk_gemm *p = all->problem;
    return all->matrices && all->n_operands == SMK_MAX_OPERANDS && all->count[operand] > 1 &&
           (operand ? p->N : p->M) % all->size[operand];
}

/* Bytes of the workspaces of such units; and of what is kept of each slot of A and B, where it is no more than `most`. The
 * first unit is as large as any; those at the edges may have to make what others find as it should be. */
static smk_code size_made(blocks *all, int64_t run, const int64_t most[2], int64_t *workspace,
                          smk_status *status) {
    int64_t kept[2] = {0, 0};
    *workspace = 0;
    for (int edges = 0; edges < 4; edges++) {
        unit u = {.run = run, .keeps = true};
        bool is_one = true;
        for (int o = 0; o < 2; o++) {
            if (!(edges >> o & 1)) continue;
            is_one &= has_edge(all, o);
            u.blocks[o] = all->count[o] - 1;
            u.run = o == all->panel ? 1 : u.run;
        }
        if (!is_one) continue;
        u.blocks[2] = u.blocks[0] * all->count[1] + u.blocks[1];
        if (size_unit(all, &u, most, workspace, kept, status)) return status->code;
    }
    *workspace *= all->lanes;
    for (int o = 0; o < 2; o++)
        all->kept_bytes[o] = flow_round_up(kept[o], PLACE);
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

static void append(flow_order *order, unit u) {
    order->units[order->n++] = u;
}

static smk_code make_order(flow_order *order, int64_t most, smk_status *status) {
    order->units = malloc((size_t)most * sizeof *order->units);
    return order->units ? SMK_OK
                        : smk_fail_memory(status, (size_t)most * sizeof *order->units,
                                          "the order of a flow");
}

/* Of the batch's matrix of that number. */
static void append_product(flow_order *order, const blocks *all, int64_t matrix, int64_t i,
                           int64_t j, int64_t run, bool keeps) {
    const int64_t of_a = all->repeats[0] ? 0 : matrix, of_b = all->repeats[1] ? 0 : matrix;
    append(order, (unit){{of_a * all->count[0] + i, of_b * all->count[1] + j,
                          (matrix * all->count[0] + i) * all->count[1] + j},
                         run,
                         keeps});
}

static int64_t n_products(const blocks *all) {
    return all->matrices * all->count[0] * all->count[1];
}

/* Where all fits blocks arrive by turns, and a new one meets all that are there. */
static void order_all(const blocks *all, int64_t matrix, flow_order *order) {
    const int64_t rows = all->count[0], columns = all->count[1];
    for (int64_t step = 0; step < rows || step < columns; step++) {
        for (int64_t i = 0; step < columns && i < flow_least(step, rows); i++)
            append_product(order, all, matrix, i, step, 1, true);
        for (int64_t j = 0; step < rows && j <= flow_least(step, columns - 1); j++)
            append_product(order, all, matrix, step, j, 1, true);
    }
}

/* ---- flows ---- */

/* How a product goes through less memory than it takes: blocks of the outer operand stay, side by side in a panel, while
 * those of the inner one pass by, to and fro; then the next ones stay. A unit has a run of outer blocks, once they
 * have arrived, so that it fills the GPU. */
typedef struct residence {
    int outer; /* operand */
    int lanes;
    int64_t size[2]; /* of the blocks, along M and N */
    int64_t stay, inner, run;
    int64_t begin;  /* inner blocks that an outer one meets alone, as it arrives */
    int64_t kept;   /* bytes of each place, of what the runs make */
    double seconds; /* expected; 0: it does not fit */
} residence;

static void append_turn(flow_order *order, const blocks *all, const residence *r, int64_t matrix,
                        int64_t outer, int64_t inner, int64_t run, bool keeps) {
    append_product(order, all, matrix, r->outer ? inner : outer, r->outer ? outer : inner, run,
                   keeps);
}

static void order_turns(const blocks *all, const residence *r, int64_t matrix, flow_order *order) {
    const int64_t n_outer = all->count[r->outer], n_inner = all->count[!r->outer];
    for (int64_t first = 0, turn = 0; first < n_outer; first += r->stay, turn++) {
        const int64_t n = flow_least(r->stay, n_outer - first);
        for (int64_t k = 0; k < n; k++) /* they arrive one by one */
            for (int64_t step = 0; step < r->begin; step++)
                append_turn(order, all, r, matrix, first + k, turn % 2 ? n_inner - 1 - step : step,
                            1, false);
        for (int64_t step = r->begin; step < n_inner; step++)
            for (int64_t k = 0; k < n; k += r->run)
                append_turn(order, all, r, matrix, first + k, turn % 2 ? n_inner - 1 - step : step,
                            flow_least(r->run, n - k), true);
    }
}

static double most_of(double a, double b) {
    return a > b ? a : b;
}

/* About how long it takes. At the beginning of each turn outer blocks arrive and meet the first inner ones, as many as
 * that leaves time for. Then it waits for the bus or for units: these take as long as one does alone, divided by how many
 * go at the same time, which lanes limit, and slots of inner blocks, where nothing goes while the next block arrives.
 *
 * The rates are what such products took on an H200, 80 ways to cut them: it is within 9 % of these times (in the mean), and
 * what it chose took at most 6 % longer than the fastest. Those of other element types differ, but what is compared are
 * ways to cut one problem. */
static void expect(const blocks *all, const smk_gemm *p, residence *r, int64_t outer_bytes) {
    const double bus = 54e9, products = 58e12, start = 60e-6;
    const double half_full = ALL_OUTPUTS / 2.0; /* a unit of fewer takes as long */
    const double late = 1.5; /* an inner block's arrival takes longer, as others come first */
    const double n_outer = (double)all->count[r->outer], n_inner = (double)all->count[!r->outer];
    const double turns = (double)ceil_div(all->count[r->outer], r->stay);
    const double runs = (double)ceil_div(all->count[r->outer], r->run), lanes = r->lanes;
    const double arriving = (double)outer_bytes / bus;
    const double passing = (double)all->slot_bytes[!r->outer] / bus;
    const double each = (double)p->K / products; /* seconds of an output */
    const double outputs = (double)all->size[0] * (double)all->size[1];
    const double first = each * most_of(outputs, half_full) + start;
    const double work = each * outputs * (double)r->run;
    const double alone = most_of(work, each * half_full) + start;
    r->begin = (int64_t)(lanes * arriving / first);
    r->begin = r->begin < 1 ? 1 : flow_least(r->begin, r->inner);
    const double begins = n_outer * most_of((double)r->begin * first / lanes, arriving);
    const double slots = (alone + late * passing) / (double)r->inner;
    const double unit = most_of(work, most_of(alone / lanes, slots));
    const double moved = n_outer * arriving + turns * n_inner * passing;
    r->seconds = begins + most_of(moved, runs * (n_inner - (double)r->begin) * unit);
}

/* Fills in what follows from the sizes, the lanes and the slots of the inner operand. `needed` falls to the memory that
 * would do. What products make of a run is kept where that is little, as the largest of each column: the memory is for
 * blocks. */
static smk_code reside(blocks *all, const smk_gemm *p, residence *r, int64_t *needed,
                       smk_status *status) {
    int64_t workspace;
    all->panel = FLOW_NONE;
    all->lanes = r->lanes;
    count_blocks(all, p->M, p->N, r->size[0], r->size[1]);
    const int64_t outer_bytes = all->slot_bytes[r->outer], count = all->count[r->outer];
    r->run = ALL_OUTPUTS / (all->size[0] * all->size[1]);
    r->run = r->run < 1 ? 1 : flow_least(r->run, count);
    r->inner = flow_least(r->inner, all->count[!r->outer]);
    r->seconds = 0;
    all->panel = r->outer;
    for (;; r->run /= 2) {
        all->stay = r->run;
        size_slots(all, r->run);
        int64_t most[2] = {0, 0};
        most[r->outer] = r->run * outer_bytes / LITTLE;
        if (size_made(all, r->run, most, &workspace, status)) return status->code;
        r->kept = all->kept_bytes[r->outer];
        const int64_t each = outer_bytes + r->kept;
        const int64_t fixed = workspace + r->inner * all->slot_bytes[!r->outer] +
                              RESULTS * r->lanes * all->slot_bytes[2];
        const int64_t least = flow_least(2, count);
        *needed = flow_least(*needed, fixed + least * each);
        const int64_t room = ((int64_t)all->question->memory - fixed) / (each + !each);
        if (room >= least && room >= r->run) {
            r->stay = ceil_div(count, ceil_div(count, flow_least(room, count)));
            r->run = flow_least(r->run, r->stay);
            expect(all, p, r, outer_bytes);
            return SMK_OK;
        }
        if (r->run == 1) return SMK_OK;
    }
}

/* The residence that is expected to be the fastest of those that fit. */
static smk_code choose_residence(blocks *all, const smk_gemm *p, residence *best,
                                 smk_status *status) {
    enum { LARGEST = 2048, THINNEST = 4, MOST_STREAMED = STREAMED + 1 };
    int64_t needed = INT64_MAX;
    *best = (residence){0};
    for (int64_t size = LARGEST; size >= LEAST_ROWS; size /= 2) {
        for (int64_t thin = size / THINNEST; thin <= size; thin *= 2) {
            const int64_t inner = thin > LEAST_ROWS ? thin : LEAST_ROWS;
            for (int choice = 0; choice < 12; choice++) {
                const int outer = choice & 1;
                residence r = {.outer = outer,
                               .lanes = SMK_LANES >> choice / 4, /* down to one */
                               .size = {outer ? inner : size, outer ? size : inner},
                               .inner = choice & 2 ? STREAMED : MOST_STREAMED};
                if (reside(all, p, &r, &needed, status)) return status->code;
                if (r.seconds > 0 && (best->seconds == 0 || r.seconds < best->seconds)) *best = r;
            }
        }
    }
    return best->seconds > 0 ? SMK_OK : refuse(all, needed, status);
}

static smk_code flow_in_turns(blocks *all, const smk_gemm *p, smk_flow_plan *out,
                              smk_status *status) {
    flow_order order = {0};
    residence r;
    if (choose_residence(all, p, &r, status)) return status->code;
    all->panel = r.outer;
    all->stay = r.stay;
    all->lanes = r.lanes;
    count_blocks(all, p->M, p->N, r.size[0], r.size[1]);
    size_slots(all, r.run);
    all->kept_bytes[r.outer] = r.kept;
    all->kept_bytes[!r.outer] = 0;
    int64_t slots[3] = {r.inner, r.inner, RESULTS * r.lanes};
    slots[r.outer] = r.stay;
    smk_code code = make_order(&order, n_products(all), status);
    for (int64_t matrix = 0; !code && matrix < all->matrices; matrix++)
        order_turns(all, &r, matrix, &order);
    if (!code) code = flow_build(all, &order, slots, out, status);
    free(order.units);
    return code;
}

static int64_t side(int64_t n) {
    const int64_t count = n < UNIT_ROWS ? 1 : flow_least(n / UNIT_ROWS, MOST_COUNT);
    return flow_round_up(ceil_div(n, count), LEAST_ROWS);
}

/* Bytes of the device's memory with so many slots. */
static smk_code memory_of_slots(blocks *all, const int64_t *slots, bool keeps, double *bytes,
                                smk_status *status) {
    int64_t workspace;
    const int64_t most[2] = {keeps && all->count[1] > 1 ? INT64_MAX : 0,
                             keeps && all->count[0] > 1 ? INT64_MAX : 0};
    const smk_code code = size_made(all, 1, most, &workspace, status);
    if (code) return code;
    *bytes = (double)workspace;
    for (int o = 0; o < 3; o++)
        *bytes +=
            (double)slots[o] * (double)(all->slot_bytes[o] + (o < 2 ? all->kept_bytes[o] : 0));
    return SMK_OK;
}

static smk_code flow_of_matrices(blocks *all, const smk_gemm *p, smk_flow_plan *out,
                                 smk_status *status) {
    flow_order order = {0};
    const double memory = (double)all->question->memory;
    double bytes;
    count_blocks(all, p->M, p->N, side(p->M), side(p->N));
    int64_t slots[] = {all->count[0], all->count[1], all->count[0] * all->count[1]};
    for (int o = 0; o < 2; o++)
        if (all->matrices > 1 && !all->repeats[o]) slots[o] *= 2; /* the next one's, too */
    smk_code code = memory_of_slots(all, slots, true, &bytes, status);
    if (!code && bytes > memory) code = memory_of_slots(all, slots, false, &bytes, status);
    if (code) return code;
    if (bytes > memory) return flow_in_turns(all, p, out, status);
    out->resident = all->matrices == 1;
    code = make_order(&order, n_products(all), status);
    for (int64_t matrix = 0; !code && matrix < all->matrices; matrix++)
        order_all(all, matrix, &order);
    if (!code) code = flow_build(all, &order, slots, out, status);
    free(order.units);
    return code;
}

/* The slots of units that go one after the other, and the bytes that these take. */
static smk_code slots_of_units(blocks *all, int64_t n, const bool *stays, int64_t *slots,
                               int64_t *bytes, smk_status *status) {
    const smk_code code = size_made(all, 1, (int64_t[]){0, 0}, bytes, status);
    for (int o = 0; o < all->n_operands && !code; o++) {
        slots[o] = stays[o] ? 1 : flow_least(n, UNITS);
        *bytes += slots[o] * all->slot_bytes[o];
    }
    return code;
}

/* Groups of a batch, or blocks of transposes. What is broadcast stays. */
static smk_code flow_of_units(blocks *all, int64_t n, const bool *stays, smk_flow_plan *out,
                              smk_status *status) {
    flow_order order = {0};
    int64_t slots[SMK_MAX_OPERANDS], bytes;
    if (make_order(&order, n, status)) return status->code;
    smk_code code = slots_of_units(all, n, stays, slots, &bytes, status);
    if (!code && (size_t)bytes > all->question->memory) code = refuse(all, bytes, status);
    for (int64_t i = 0; i < n; i++)
        append(&order, (unit){{stays[0] ? 0 : i, stays[1] ? 0 : i, i}, 1, false});
    if (!code) code = flow_build(all, &order, slots, out, status);
    free(order.units);
    return code;
}

/* Groups of a batch: some MiB each, fewer where memory is short, all of it where their bytes lie mixed. */
static void size_groups(blocks *all, const smk_batch *batch, const bool *stays) {
    double whole = 0, one = 0, fixed = 0;
    all->size[0] = batch->size[0];
    for (int o = 0; o < all->n_operands; o++) {
        const block_place p = all->place(all, o, 0, 1);
        *(stays[o] ? &fixed : &whole) += (double)p.rectangle.width;
    }
    all->size[0] = 1;
    for (int o = 0; o < all->n_operands; o++) {
        const block_place p = all->place(all, o, 0, 1);
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
        const block_place p = all->place(all, o, 0, 1);
        all->slot_bytes[o] = bytes_of(&p);
    }
}

/* Whether the batch goes through in groups of matrices; otherwise each of those is cut. `bytes`: of one. */
static bool goes_in_groups(blocks *all, const smk_batch *batch, const bool *stays, double bytes) {
    smk_status unused = {0};
    int64_t slots[SMK_MAX_OPERANDS], needed;
    if (batch->n == 0 || bytes > MATRIX_BYTES) return false;
    size_groups(all, batch, stays);
    return slots_of_units(all, all->count[0], stays, slots, &needed, &unused) == SMK_OK &&
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
                  .lanes = SMK_LANES,
                  .panel = FLOW_NONE,
                  .place = flow_place_gemm,
                  .plan = flow_plan_gemm};
    const double m = (double)problem->M, n = (double)problem->N, k = (double)problem->K;
    const bool stays[] = {problem->a.batch[0] == 0, problem->b.batch[0] == 0, false};
    if (goes_in_groups(&all, &problem->batch, stays, (m * k + k * n + m * n) * q.dtype->itemsize))
        return flow_of_units(&all, all.count[0], stays, out, status);
    cut_matrices(&all, &problem->batch,
                 (const smk_matrix *[]){&problem->a, &problem->b, &problem->c});
    return flow_of_matrices(&all, problem, out, status);
}

smk_code smk_plan_flow_transpose(const smk_flow_question *question, const smk_transpose *problem,
                                 smk_flow_plan *out, smk_status *status) {
    const int64_t itemsize = question->dtype->itemsize;
    blocks all = {.question = question,
                  .problem = problem,
                  .n_operands = 2,
                  .lanes = SMK_LANES,
                  .panel = FLOW_NONE,
                  .place = flow_place_transpose,
                  .plan = flow_plan_transpose};
    *out = (smk_flow_plan){0};
    const double bytes = 2.0 * (double)problem->rows * (double)problem->cols * (double)itemsize;
    const bool moves[] = {false, false}, stays[] = {problem->x.batch[0] == 0, false};
    if (goes_in_groups(&all, &problem->batch, stays, bytes))
        return flow_of_units(&all, all.count[0], stays, out, status);
    cut_matrices(&all, &problem->batch, (const smk_matrix *[]){&problem->x, &problem->y});
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
    return flow_of_units(&all, n_products(&all), moves, out, status);
}
