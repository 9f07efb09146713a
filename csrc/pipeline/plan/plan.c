/* From tile tasks to a task graph: copies in, products, copies out, and their dependencies.
 *
 *            B:  0    1    2    3        The device has slots for each operand. A product needs its
 *        A: 0   C00  C01  C02  C03       blocks of A and B in slots. The least recently used block
 *           1   C10  C11  C12  C13       is replaced, once the products that read it have ended.
 *           2   C20  C21  C22  C23
 *
 * The order of the products decides how much of the work is hidden behind the copies. If all blocks
 * fit, A and B are loaded alternately (B0 A0 B1 A1 ...), and each new block is multiplied with all
 * resident ones: after half of the bytes a quarter of the work can be done. Otherwise as many rows
 * of A as fit stay while B is streamed past. With R resident rows there are R / 2 operations per
 * byte of B: 4700 rows of fp32 hide a bus of 55 GB/s behind 130 TFLOP/s.
 *
 * All products use one variant with one set of parameter values, K is never cut between blocks, and
 * each product has as many K ranges as the whole problem would have. So the bits of the result do
 * not depend on the blocks.
 */
#include "blocks.h"

#include <stdlib.h>

/* ---- slots ---- */

/* The slots of an operand. Tasks are numbers in the graph, or NONE. */
typedef struct slot_table {
    int64_t n, bytes;   /* per slot */
    int64_t *block;     /* the block in the slot, or NONE */
    int64_t *copy;      /* the copy that filled it; of the result: that emptied it */
    int64_t *prepacked; /* the task that prepacks it */
    int64_t *last_use;  /* [slot][compute stream]: the last task of the stream that uses it */
    int64_t *used_at;   /* clock, for the least recently used one */
} slot_table;

typedef struct graph_builder {
    const blocking *blocks;
    smk_pipeline_plan *plan;
    slot_table slots[SMK_MAX_OPERANDS];
    int64_t clock;
    size_t n_tile_tasks;
    smk_status *status;
} graph_builder;

static smk_code slot_table_init(slot_table *s, int64_t n, int64_t bytes, smk_status *status) {
    const size_t count = (size_t)n * (4 + SMK_COMPUTE_STREAMS);
    s->n = n;
    s->bytes = bytes;
    s->block = malloc(count * sizeof *s->block);
    if (!s->block) return smk_fail_memory(status, count * sizeof *s->block, "a pipeline's slots");
    for (size_t i = 0; i < count; i++)
        s->block[i] = NONE;
    s->copy = s->block + n;
    s->used_at = s->copy + n;
    s->prepacked = s->used_at + n;
    s->last_use = s->prepacked + n;
    return SMK_OK;
}

/* The slot with the block, or the one to replace. */
static int64_t choose_slot(const slot_table *s, int64_t block) {
    int64_t oldest = 0;
    for (int64_t i = 0; i < s->n; i++) {
        if (s->block[i] == block) return i;
        if (s->used_at[i] < s->used_at[oldest]) oldest = i;
    }
    return oldest;
}

static int64_t panel_slot(const blocking *b, int64_t block) {
    return block % b->grid.count[b->memory.panel] % b->memory.panel_slots;
}

/* Bytes in the operand's buffer. Layouts of a panel's blocks are relative to the whole panel. */
static int64_t slot_offset(const graph_builder *g, int operand, int64_t slot) {
    return operand == g->blocks->memory.panel ? 0 : slot * g->slots[operand].bytes;
}

static int64_t n_slots_used(const graph_builder *g, int operand, const tile_task *t) {
    return operand == g->blocks->memory.panel ? t->panel_blocks : 1;
}

static void set_last_use(graph_builder *g, const tile_task *t, int operand, int64_t slot,
                         int64_t task) {
    const int stream = g->plan->tasks[task].compute_stream;
    for (int64_t i = 0; i < n_slots_used(g, operand, t); i++)
        g->slots[operand].last_use[(slot + i) * SMK_COMPUTE_STREAMS + stream] = task;
}

/* ---- tasks ---- */

/* Returns the task's number, or NONE. */
static int64_t add_task(graph_builder *g, smk_task task) {
    smk_pipeline_plan *plan = g->plan;
    if (plan->n_tasks == plan->capacity) {
        const size_t capacity = 2 * plan->capacity + 64;
        smk_task *tasks = realloc(plan->tasks, capacity * sizeof *tasks);
        if (!tasks) {
            smk_fail_memory(g->status, capacity * sizeof *tasks, "a pipeline's tasks");
            return NONE;
        }
        plan->tasks = tasks;
        plan->capacity = capacity;
    }
    plan->tasks[plan->n_tasks] = task;
    return (int64_t)plan->n_tasks++;
}

static void wait_for(graph_builder *g, int64_t task, int64_t earlier) {
    smk_task *t = &g->plan->tasks[task];
    for (int i = 0; i < t->n_after; i++)
        if (t->after[i] == earlier) return;
    if (earlier != NONE) t->after[t->n_after++] = (uint32_t)earlier;
}

static int64_t add_copy(graph_builder *g, smk_task_kind kind, int operand, int64_t block,
                        int64_t panel_blocks, int64_t slot) {
    smk_task task = {.kind = kind};
    task.rectangle = block_layout_of(g->blocks, operand, block, panel_blocks).rectangle;
    task.rectangle.buffer = (uint32_t)operand;
    task.rectangle.offset += (size_t)slot_offset(g, operand, slot);
    return add_task(g, task);
}

/* The task that fills the slot with the block; added unless the block is there already. */
static int64_t add_copy_in(graph_builder *g, int operand, int64_t block, int64_t panel_blocks,
                           int64_t slot) {
    slot_table *s = &g->slots[operand];
    if (s->block[slot] == block) return s->copy[slot];
    const int64_t task = add_copy(g, SMK_COPY_IN, operand, block, panel_blocks, slot);
    if (task == NONE) return NONE;
    for (int stream = 0; stream < SMK_COMPUTE_STREAMS; stream++)
        wait_for(g, task, s->last_use[slot * SMK_COMPUTE_STREAMS + stream]);
    if (operand == g->blocks->problem.n_operands - 1) wait_for(g, task, s->copy[slot]);
    s->block[slot] = block;
    s->prepacked[slot] = NONE;
    return s->copy[slot] = task;
}

/* Fills the panel's slots that the tile task reads. Returns the last copy: copies in run in order.
 * A prepacked part of the panel is recorded at its first slot, and is made again after any of its
 * slots was refilled, as the first one is then refilled too. */
static int64_t add_panel_copies(graph_builder *g, int operand, const tile_task *t) {
    int64_t last = NONE;
    for (int64_t i = 0; i < t->panel_blocks; i++) {
        const int64_t block = t->blocks[operand] + i;
        last = max_i64(add_copy_in(g, operand, block, 1, panel_slot(g->blocks, block)), last);
    }
    return last;
}

/* NONE: failure, or nothing to prepack. */
static int64_t add_compute(graph_builder *g, const tile_task *t, int stream,
                           const smk_matrix *matrices, const smk_prepack *prepack) {
    smk_pipeline_plan *plan = g->plan;
    smk_plan *own = &plan->plans[plan->n_plans];
    if (block_plan(g->blocks, t, matrices, prepack, own, g->status)) return NONE;
    if (prepack->only && own->n_launches == 0) {
        smk_plan_free(own);
        return NONE;
    }
    plan->n_plans++;
    /* core/plan.h: the buffers after the operands' are the workspace and prepacked A and B. */
    const uint32_t workspace = (uint32_t)g->blocks->problem.n_operands;
    for (size_t i = 0; i < own->n_pointers; i++) {
        uint32_t *buffer = &own->pointers[i].buffer;
        *buffer = *buffer < workspace    ? *buffer
                  : *buffer == workspace ? SMK_PIPELINE_WORKSPACES + (uint32_t)stream
                                         : SMK_PIPELINE_PREPACKED + *buffer - workspace - 1;
    }
    size_t *bytes = &plan->buffers[SMK_PIPELINE_WORKSPACES + stream].bytes;
    if (own->workspace > *bytes) *bytes = own->workspace;
    return add_task(g, (smk_task){.kind = SMK_COMPUTE, .compute_stream = stream});
}

/* Adds a task that prepacks what is not prepacked yet of the tile task's A and B, and says where it
 * is. A task of its own: other products of these blocks then do not wait for this product. */
static smk_code add_prepack(graph_builder *g, const tile_task *t, int stream,
                            const smk_matrix *matrices, const int64_t *slot, const int64_t *copies,
                            smk_prepack *prepack) {
    const int64_t *slot_bytes = g->blocks->memory.prepacked_bytes;
    bool missing = false;
    *prepack = (smk_prepack){.only = true};
    for (int o = 0; o < 2 && t->prepacks; o++) {
        prepack->prepacked[o] = (smk_prepacked){.offset = slot[o] * slot_bytes[o],
                                                .bytes = n_slots_used(g, o, t) * slot_bytes[o],
                                                .made = g->slots[o].prepacked[slot[o]] != NONE};
        missing |= slot_bytes[o] && !prepack->prepacked[o].made;
    }
    if (missing) {
        const int64_t task = add_compute(g, t, stream, matrices, prepack);
        if (g->status->code) return g->status->code;
        for (int o = 0; o < 2 && task != NONE; o++) {
            if (!slot_bytes[o] || prepack->prepacked[o].made) continue;
            wait_for(g, task, copies[o]);
            g->slots[o].prepacked[slot[o]] = task;
            set_last_use(g, t, o, slot[o], task);
            prepack->prepacked[o].made = true;
        }
    }
    prepack->only = false;
    return SMK_OK;
}

static smk_code add_tile_task(graph_builder *g, const tile_task *t) {
    const blocking *b = g->blocks;
    const int result = b->problem.n_operands - 1, panel = b->memory.panel;
    const int stream = (int)(g->n_tile_tasks++ % (size_t)b->memory.compute_streams);
    smk_prepack prepack;
    int64_t copies[SMK_MAX_OPERANDS], slot[SMK_MAX_OPERANDS];
    smk_matrix matrices[SMK_MAX_OPERANDS];

    for (int o = 0; o <= result; o++) {
        slot_table *s = &g->slots[o];
        const int64_t block = t->blocks[o];
        slot[o] = o == panel ? panel_slot(b, block) : choose_slot(s, block);
        s->used_at[slot[o]] = g->clock++;
        copies[o] = o == panel ? add_panel_copies(g, o, t)
                    : o < result || b->problem.reads_result
                        ? add_copy_in(g, o, block, t->panel_blocks, slot[o])
                        : s->copy[slot[o]];
        matrices[o] = block_layout_of(b, o, block, t->panel_blocks).matrix;
        matrices[o].offset += slot_offset(g, o, slot[o]);
        if (g->status->code) return g->status->code;
    }
    if (add_prepack(g, t, stream, matrices, slot, copies, &prepack)) return g->status->code;
    const int64_t product = add_compute(g, t, stream, matrices, &prepack);
    if (product == NONE) return g->status->code;
    for (int o = 0; o <= result; o++) {
        wait_for(g, product, copies[o]);
        set_last_use(g, t, o, slot[o], product);
    }
    for (int o = 0; o < 2 && t->prepacks; o++)
        wait_for(g, product, g->slots[o].prepacked[slot[o]]);

    const int64_t out =
        add_copy(g, SMK_COPY_OUT, result, t->blocks[result], t->panel_blocks, slot[result]);
    if (out == NONE) return g->status->code;
    wait_for(g, out, product);
    g->slots[result].block[slot[result]] = NONE;
    g->slots[result].copy[slot[result]] = out;
    return SMK_OK;
}

/* ---- the whole graph ---- */

static smk_code add_jobs(smk_pipeline_plan *plan, smk_status *status) {
    const size_t bytes = (plan->n_plans + 1) * sizeof *plan->jobs;
    plan->jobs = malloc(bytes);
    if (!plan->jobs) return smk_fail_memory(status, bytes, "a pipeline's jobs");
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

smk_code pipeline_build(const blocking *b, const schedule *order, const int64_t *n_slots,
                        smk_pipeline_plan *out, smk_status *status) {
    graph_builder g = {.blocks = b, .plan = out, .status = status};
    const block_memory *memory = &b->memory;
    smk_code code = SMK_OK;
    const size_t max_plans = 2 * (size_t)order->n + 1; /* a prepack and a product per tile task */
    out->plans = calloc(max_plans, sizeof *out->plans);
    if (!out->plans)
        code = smk_fail_memory(status, max_plans * sizeof *out->plans, "a pipeline's plans");
    for (int o = 0; o < b->problem.n_operands && !code; o++) {
        const int64_t n = n_slots[o], bytes = memory->slot_bytes[o];
        code = slot_table_init(&g.slots[o], n, bytes, status);
        out->buffers[o].bytes = (size_t)((o == memory->panel ? 1 : n) * bytes);
        if (o < 2)
            out->buffers[SMK_PIPELINE_PREPACKED + o].bytes =
                (size_t)(n * memory->prepacked_bytes[o]);
    }
    for (int64_t i = 0; i < order->n && !code; i++)
        code = add_tile_task(&g, &order->tasks[i]);
    if (!code) code = add_jobs(out, status);
    for (int o = 0; o < b->problem.n_operands; o++)
        free(g.slots[o].block);
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
