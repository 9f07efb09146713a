/* How large blocks are, and what is made of them; the orders that they go in. */
#include <inttypes.h>
#include <stdlib.h>

#include "blocks.h"
#include "../../core/plan_parts.h"

enum { PLACE = 256 /* slots begin at its multiples, as the device's allocations do */ };

int64_t block_layout_bytes(const block_layout *p) {
    return round_up((int64_t)(p->rectangle.pitch * p->rectangle.lines), PLACE);
}

/* ---- sizes ---- */

void block_size_slots(blocks *all, int64_t run) {
    for (int o = 0; o < all->n_operands; o++) {
        const block_layout first = all->place(all, o, 0, o == all->panel ? all->stay : run);
        all->slot_bytes[o] = block_layout_bytes(&first);
    }
}

int64_t smk_pipeline_part(const smk_row *row, int64_t m, int64_t n, int64_t along, int64_t part) {
    const int64_t thin = min_i64(m, n);
    if (!row->skinny.rows[0] || thin >= MIN_BLOCK_ROWS) return part;
    while (part < along && along % part && along % part <= thin)
        part += MIN_BLOCK_ROWS;
    return part;
}

void block_count(blocks *all, int64_t rows, int64_t columns, int64_t block_rows,
                 int64_t block_columns) {
    const smk_row *row = all->question->row;
    all->size[0] = min_i64(smk_pipeline_part(row, rows, columns, rows, block_rows), rows);
    all->size[1] = min_i64(smk_pipeline_part(row, rows, columns, columns, block_columns), columns);
    all->count[0] = ceil_div(rows, all->size[0]);
    all->count[1] = ceil_div(columns, all->size[1]);
    block_size_slots(all, 1);
}

/* What a unit makes: raises bytes of the workspace, and of what is kept of each slot, to what it needs. */
static smk_code size_unit(blocks *all, const unit *u, const int64_t most[2], int64_t *workspace,
                          int64_t kept[2], smk_status *status) {
    smk_plan plan;
    smk_matrix matrices[SMK_MAX_OPERANDS];
    const smk_prepack prepack = {.prepacked = {{.bytes = most[0]}, {.bytes = most[1]}}};
    for (int o = 0; o < all->n_operands; o++)
        matrices[o] = all->place(all, o, u->blocks[o], u->run).matrix;
    const smk_code code = all->plan(all, u, matrices, &prepack, &plan, status);
    if (code) return code;
    int64_t own = (int64_t)plan.workspace;
    for (int o = 0; o < 2; o++) {
        const bool panel = o == all->panel;
        const int64_t slot = ceil_div((int64_t)plan.prepacked_bytes[o], panel ? u->run : 1);
        kept[o] = max_i64(slot, kept[o]);
        own += panel ? (int64_t)plan.prepacked_bytes[o] : 0; /* some units of a panel keep nothing */
    }
    *workspace = max_i64(own, *workspace);
    smk_plan_free(&plan);
    return SMK_OK;
}

/* Blocks at an edge of the result, that are smaller than others, and so may lie otherwise. */
static bool has_edge(const blocks *all, int operand) {
    const smk_gemm *p = all->problem;
    return all->matrices && all->n_operands == SMK_MAX_OPERANDS && all->count[operand] > 1 &&
           (operand ? p->N : p->M) % all->size[operand];
}

/* The first unit is as large as any; those at the edges may have to make what others find as it should be. */
smk_code block_size_scratch(blocks *all, int64_t run, const int64_t most[2], int64_t *workspace,
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
        all->kept_bytes[o] = round_up(kept[o], PLACE);
    return SMK_OK;
}

smk_code pipeline_refuse_memory(const blocks *all, int64_t needed, smk_status *status) {
    const smk_row *row = all->question->row;
    return smk_fail(status, SMK_MEMORY,
                    "%s variant '%s': the smallest blocks of this problem take %" PRId64
                    " bytes of the GPU's memory, and %zu may be used; split the problem, or allow "
                    "more",
                    smk_op_names[row->op], row->name, needed, all->question->memory);
}

/* ---- orders ---- */

void schedule_append(schedule *order, unit u) {
    order->units[order->n++] = u;
}

smk_code schedule_init(schedule *order, int64_t most, smk_status *status) {
    order->units = malloc((size_t)most * sizeof *order->units);
    return order->units ? SMK_OK
                        : smk_fail_memory(status, (size_t)most * sizeof *order->units,
                                          "the order of a flow");
}

void schedule_product(schedule *order, const blocks *all, int64_t matrix, int64_t i, int64_t j,
                      int64_t run, bool keeps) {
    const int64_t of_a = all->repeats[0] ? 0 : matrix, of_b = all->repeats[1] ? 0 : matrix;
    schedule_append(order, (unit){{of_a * all->count[0] + i, of_b * all->count[1] + j,
                                   (matrix * all->count[0] + i) * all->count[1] + j},
                                  run,
                                  keeps});
}

int64_t schedule_n_products(const blocks *all) {
    return all->matrices * all->count[0] * all->count[1];
}
