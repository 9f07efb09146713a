/* Flows of blocks. plan_flow.h says what they are for, flow.h how they run.
 *
 *              B:  0    1    2    3                The device holds slots of each operand. A product of two
 *          A: 0   C00  C01  C02  C03               blocks needs both in a slot; what was used longest ago makes
 *             1   C10  C11  C12  C13               room, once the products that read it have ended.
 *             2   C20  C21  C22  C23
 *
 * The order of the products is what makes a flow good. Where all of B fits, blocks arrive by turns (B0 A0 B1 A1 ...)
 * and each makes a row or a column of products possible: after half of the bytes a quarter of the work can be
 * done. Otherwise as many rows of A as fit stay while B passes by, to and fro. With R rows resident a byte of B
 * makes R / 2 operations: 4700 rows of fp32 hide a bus of 55 GB/s behind 130 TFLOP/s.
 *
 * All products use one row of the table with one set of values, K is never cut between blocks, and parts of K
 * are as many as the whole problem would have: so the bits of the result do not depend on the blocks.
 */
#include "blocks.h"

#include <stdlib.h>

/* ---- the operands' blocks on the device ---- */

typedef struct slots {
    int64_t n, bytes;  /* of them; of each */
    int64_t *block;    /* that is in it, or NONE */
    int64_t *arrived;  /* the task that brought it */
    int64_t *made;     /* the task that makes what products keep of it */
    int64_t *last_use; /* [slot][lane]: the last product on that lane that has to do with it */
    int64_t *touched;
} slots;

typedef struct builder {
    smk_pipeline_plan *plan;
    slots slots[SMK_MAX_OPERANDS];
    int64_t clock;
    size_t n_units;
    smk_status *status;
} builder;

static smk_code make_slots(slots *s, int64_t n, int64_t bytes, smk_status *status) {
    enum { FIELDS = 4 + SMK_COMPUTE_STREAMS };
    const size_t count = (size_t)n;
    s->n = n;
    s->bytes = bytes;
    s->block = malloc(count * FIELDS * sizeof *s->block);
    if (!s->block)
        return smk_fail_memory(status, count * FIELDS * sizeof *s->block, "slots of a flow");
    for (size_t i = 0; i < count * FIELDS; i++)
        s->block[i] = NONE;
    s->arrived = s->block + n;
    s->touched = s->arrived + n;
    s->made = s->touched + n;
    s->last_use = s->made + n;
    return SMK_OK;
}

static smk_task *add_task(builder *b, smk_task_kind kind) {
    smk_pipeline_plan *plan = b->plan;
    if (plan->n_tasks == plan->room) {
        const size_t room = 2 * plan->room + 64;
        smk_task *tasks = realloc(plan->tasks, room * sizeof *tasks);
        if (!tasks) {
            smk_fail_memory(b->status, room * sizeof *tasks, "the tasks of a flow");
            return NULL;
        }
        plan->tasks = tasks;
        plan->room = room;
    }
    smk_task *task = &plan->tasks[plan->n_tasks++];
    *task = (smk_task){.kind = kind};
    return task;
}

static void wait_for(smk_task *task, int64_t earlier) {
    for (int i = 0; i < task->n_after; i++)
        if (task->after[i] == earlier) return;
    if (earlier != NONE) task->after[task->n_after++] = (uint32_t)earlier;
}

/* The slot that has the block, or the one to put it into. */
static int64_t choose_slot(const slots *s, int64_t block) {
    int64_t oldest = 0;
    for (int64_t i = 0; i < s->n; i++) {
        if (s->block[i] == block) return i;
        if (s->touched[i] < s->touched[oldest]) oldest = i;
    }
    return oldest;
}

static void wait_for_users(smk_task *task, const slots *s, int64_t slot) {
    for (int lane = 0; lane < SMK_COMPUTE_STREAMS; lane++)
        wait_for(task, s->last_use[slot * SMK_COMPUTE_STREAMS + lane]);
}

static int64_t place_in_panel(const blocks *all, int64_t block) {
    return block % all->count[all->panel] % all->stay;
}

/* A panel is one slot; the others are one after the other. */
static int64_t slot_offset(const builder *b, const blocks *all, int operand, int64_t slot) {
    return operand == all->panel ? 0 : slot * b->slots[operand].bytes;
}

/* The task that brings the blocks, where they are not there yet. */
static int64_t bring(builder *b, const blocks *all, int operand, int64_t block, int64_t run,
                     int64_t slot) {
    slots *s = &b->slots[operand];
    if (s->block[slot] == block) return s->arrived[slot];
    smk_task *task = add_task(b, SMK_COPY_IN);
    if (!task) return NONE;
    task->rectangle = all->place(all, operand, block, run).rectangle;
    task->rectangle.buffer = (uint32_t)operand;
    task->rectangle.offset += (size_t)slot_offset(b, all, operand, slot);
    wait_for_users(task, s, slot);
    wait_for(task, operand == all->n_operands - 1 ? s->arrived[slot] : NONE);
    s->block[slot] = block;
    s->made[slot] = NONE;
    s->arrived[slot] = (int64_t)b->plan->n_tasks - 1;
    return s->arrived[slot];
}

/* The places of a panel that the unit reads are filled; the last of the tasks that do so stands for all. What was made of
 * a run is made again, as its first place changes whenever one of them does. */
static int64_t bring_run(builder *b, const blocks *all, int operand, const unit *u) {
    int64_t last = NONE;
    for (int64_t i = 0; i < u->run; i++) {
        const int64_t block = u->blocks[operand] + i;
        const int64_t arrived = bring(b, all, operand, block, 1, place_in_panel(all, block));
        last = max_i64(arrived, last);
    }
    return last;
}

/* ---- units ---- */

/* A compute task, planned: its number. NONE: it failed, or there is nothing to make. */
static int64_t add_compute(builder *b, const blocks *all, const unit *u, int lane,
                           const smk_matrix *matrices, const smk_prepack *prepack) {
    smk_pipeline_plan *plan = b->plan;
    smk_plan *own = &plan->plans[plan->n_plans];
    if (all->plan(all, u, matrices, prepack, own, b->status)) return NONE;
    if (prepack->only && own->n_launches == 0) {
        smk_plan_free(own);
        return NONE;
    }
    plan->n_plans++;
    const uint32_t workspace = (uint32_t)all->n_operands; /* its own; behind it what it keeps */
    for (size_t i = 0; i < own->n_pointers; i++) {
        uint32_t *buffer = &own->pointers[i].buffer;
        *buffer = *buffer < workspace    ? *buffer
                  : *buffer == workspace ? SMK_PIPELINE_WORKSPACES + (uint32_t)lane
                                         : SMK_PIPELINE_PREPACKED + *buffer - workspace - 1;
    }
    smk_buffer *own_workspace = &plan->buffers[SMK_PIPELINE_WORKSPACES + lane];
    if (own->workspace > own_workspace->bytes) own_workspace->bytes = own->workspace;
    smk_task *compute = add_task(b, SMK_COMPUTE);
    if (compute) compute->lane = lane;
    return compute ? (int64_t)plan->n_tasks - 1 : NONE;
}

static smk_task *task_at(const builder *b, int64_t index) {
    return &b->plan->tasks[index];
}

static int64_t slots_of_unit(const blocks *all, int operand, const unit *u) {
    return operand == all->panel ? u->run : 1;
}

/* The task has to do with what the unit has of the operand, from that slot on. */
static void use(builder *b, const blocks *all, const unit *u, int operand, int64_t slot, int lane,
                int64_t task) {
    for (int64_t i = 0; i < slots_of_unit(all, operand, u); i++)
        b->slots[operand].last_use[(slot + i) * SMK_COMPUTE_STREAMS + lane] = task;
}

/* Has what products keep of the unit's operands made, where it is not yet, and says where it is. It is a task of its
 * own, so that other products of them wait for no product. */
static smk_code make_kept(builder *b, const blocks *all, const unit *u, int lane,
                          const smk_matrix *matrices, const int64_t *at, const int64_t *needs,
                          smk_prepack *prepack) {
    bool missing = false;
    *prepack = (smk_prepack){.only = true};
    for (int o = 0; o < 2 && u->keeps; o++) {
        prepack->prepacked[o] = (smk_prepacked){.offset = at[o] * all->kept_bytes[o],
                                          .bytes = slots_of_unit(all, o, u) * all->kept_bytes[o],
                                          .made = b->slots[o].made[at[o]] != NONE};
        missing |= all->kept_bytes[o] && !prepack->prepacked[o].made;
    }
    if (missing) {
        const int64_t task = add_compute(b, all, u, lane, matrices, prepack);
        if (b->status->code) return b->status->code;
        for (int o = 0; o < 2 && task != NONE; o++) {
            if (!all->kept_bytes[o] || prepack->prepacked[o].made) continue;
            wait_for(task_at(b, task), needs[o]);
            b->slots[o].made[at[o]] = task;
            use(b, all, u, o, at[o], lane, task);
            prepack->prepacked[o].made = true;
        }
    }
    prepack->only = false;
    return SMK_OK;
}

/* One product: what it needs in, itself, its result out. */
static smk_code add_unit(builder *b, const blocks *all, const unit *u) {
    smk_pipeline_plan *plan = b->plan;
    const int last = all->n_operands - 1, lane = (int)(b->n_units++ % (size_t)all->lanes);
    smk_prepack prepack;
    int64_t needs[SMK_MAX_OPERANDS], at[SMK_MAX_OPERANDS];
    smk_matrix matrices[SMK_MAX_OPERANDS];

    for (int o = 0; o <= last; o++) {
        slots *s = &b->slots[o];
        at[o] = o == all->panel ? place_in_panel(all, u->blocks[o]) : choose_slot(s, u->blocks[o]);
        s->touched[at[o]] = b->clock++;
        needs[o] = o == all->panel                 ? bring_run(b, all, o, u)
                   : o < last || all->reads_result ? bring(b, all, o, u->blocks[o], u->run, at[o])
                                                   : s->arrived[at[o]];
        matrices[o] = all->place(all, o, u->blocks[o], u->run).matrix;
        matrices[o].offset += slot_offset(b, all, o, at[o]);
        if (b->status->code) return b->status->code;
    }
    if (make_kept(b, all, u, lane, matrices, at, needs, &prepack)) return b->status->code;
    const int64_t computed = add_compute(b, all, u, lane, matrices, &prepack);
    if (computed == NONE) return b->status->code;
    for (int o = 0; o <= last; o++)
        wait_for(task_at(b, computed), needs[o]);
    for (int o = 0; o < 2 && u->keeps; o++)
        wait_for(task_at(b, computed), b->slots[o].made[at[o]]);
    for (int o = 0; o <= last; o++)
        use(b, all, u, o, at[o], lane, computed);

    smk_task *leave = add_task(b, SMK_COPY_OUT);
    if (!leave) return b->status->code;
    leave->rectangle = all->place(all, last, u->blocks[last], u->run).rectangle;
    leave->rectangle.buffer = (uint32_t)last;
    leave->rectangle.offset += (size_t)slot_offset(b, all, last, at[last]);
    wait_for(leave, computed);
    b->slots[last].block[at[last]] = NONE;
    b->slots[last].arrived[at[last]] = (int64_t)plan->n_tasks - 1;
    return SMK_OK;
}

/* ---- the whole ---- */

static smk_code make_jobs(smk_pipeline_plan *plan, smk_status *status) {
    plan->jobs = calloc(plan->n_plans + 1, sizeof *plan->jobs);
    if (!plan->jobs)
        return smk_fail_memory(status, plan->n_plans * sizeof *plan->jobs, "a flow's jobs");
    size_t next = 0;
    for (size_t i = 0; i < plan->n_tasks; i++) {
        if (plan->tasks[i].kind != SMK_COMPUTE) continue;
        const smk_plan *own = &plan->plans[next];
        smk_job *job = &plan->jobs[next++];
        *job = (smk_job){.pointers = own->pointers,
                         .n_pointers = own->n_pointers,
                         .tensor_maps = own->maps,
                         .n_tensor_maps = own->n_maps,
                         .args_bytes = own->args_bytes,
                         .parameters = own->parameters,
                         .n_parameters = own->n_parameters,
                         .launches = own->launches,
                         .n_launches = own->n_launches};
        plan->tasks[i].job = job;
    }
    return SMK_OK;
}

smk_code pipeline_build(const blocks *all, const schedule *order, const int64_t *slots_of,
                        smk_pipeline_plan *out, smk_status *status) {
    builder b = {.plan = out, .status = status};
    smk_code code = SMK_OK;
    const size_t most = 2 * (size_t)order->n + 1;
    out->plans = calloc(most, sizeof *out->plans);
    if (!out->plans) code = smk_fail_memory(status, most * sizeof *out->plans, "a flow's plans");
    for (int o = 0; o < all->n_operands && !code; o++) {
        code = make_slots(&b.slots[o], slots_of[o], all->slot_bytes[o], status);
        out->buffers[o].bytes = (size_t)((o == all->panel ? 1 : slots_of[o]) * all->slot_bytes[o]);
        if (o < 2)
            out->buffers[SMK_PIPELINE_PREPACKED + o].bytes =
                (size_t)(slots_of[o] * all->kept_bytes[o]);
    }
    for (int64_t i = 0; i < order->n && !code; i++)
        code = add_unit(&b, all, &order->units[i]);
    if (!code) code = make_jobs(out, status);
    for (int o = 0; o < all->n_operands; o++)
        free(b.slots[o].block);
    return code;
}

void smk_pipeline_plan_free(smk_pipeline_plan *plan) {
    for (size_t i = 0; i < plan->n_plans; i++)
        smk_plan_free(&plan->plans[i]);
    free(plan->plans);
    free(plan->jobs);
    free(plan->tasks);
    *plan = (smk_pipeline_plan){0};
}
