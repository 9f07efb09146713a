/* Records a window of a run: each instruction of the recorded warps is a step.
 *
 * The launch runs on one host thread, so that steps have one order; in slices of the same length
 * as without a recording, so that it finds the same hazards. The hooks of accesses and events come
 * while an instruction runs and are kept; the hook after it turns them into columns. Before the
 * window only the state is followed that its start needs: registers, shared memory and its writers.
 * After it steps are only counted. */
#include "recorder.h"

#include <stdlib.h>
#include <string.h>

/* ---- the window ---- */

static bool is_out_of_memory(const recorder *r) {
    return r->out_of_memory || r->columns.out_of_memory;
}

static void begin_window(recorder *r) {
    r->phase = IN_WINDOW;
    PUSH(r, first_delta, 0);
    PUSH(r, first_access, 0);
    PUSH(r, first_write, 0);
    PUSH(r, first_event, 0);
    registers_snapshot(r);
    memory_snapshot(r);
}

static void end_window(recorder *r, const char *truncated) {
    r->phase = AFTER_WINDOW;
    r->truncated = truncated;
}

static void close_step(recorder *r) {
    PUSH(r, first_delta, COUNT(r, delta_kind));
    PUSH(r, first_access, COUNT(r, access_kind));
    PUSH(r, first_write, COUNT(r, write_value));
    PUSH(r, first_event, COUNT(r, event_kind));
}

/* Counts of the columns before a step, which is removed if it exceeds the limit. */
typedef struct mark {
    size_t n[N_COLUMNS], clocks;
} mark;

static mark mark_columns(const recorder *r) {
    mark m = {.clocks = r->clocks.n};
    for (int k = 0; k < N_COLUMNS; k++)
        m.n[k] = r->columns.column[k].n;
    return m;
}

static void rewind_columns(recorder *r, const mark *m) {
    r->clocks.n = m->clocks;
    for (int k = 0; k < N_COLUMNS; k++)
        r->columns.column[k].n = m->n[k];
}

static bool exceeds_limit(const recorder *r) {
    enum { PER_WARP = 100, PER_MEMORY = 120 };
    const size_t tables = r->warps.n * PER_WARP + (r->blocks.n + r->memories.n) * PER_MEMORY;
    const size_t bytes = columns_size(&r->columns) + r->clocks.n * sizeof(uint32_t);
    return bytes + r->live_bytes + r->header_bytes + tables > r->out->max_bytes;
}

/* ---- steps ---- */

/* The hidden instruction that takes the results of the call before it. */
static bool takes_results(const insn *i) {
    return !i->ptx && i->extra && i[-1].ptx && i[-1].ptx->op == PTX_OP_call;
}

static uint32_t executed_lanes(const emu_step *s) {
    const insn *i = s->insn;
    if (!i->ptx || !i->ptx->guarded || i->exec == exec_guarded) return s->executed;
    /* a branch: its guard has not changed */
    const uint32_t holds = lanes_bits((const uint32_t *)(s->frame->slots + i->guard));
    return (i->guard_negated ? ~holds : holds) & s->active;
}

static void push_step(recorder *r, const emu_step *s, uint32_t warp) {
    const insn *i = s->insn;
    const uint32_t f = recorder_function(r, s->frame->program->function);
    if (f == NONE || !LIST_ROOM(r, &r->clocks)) return;
    const uint32_t index = i->ptx ? i->index : i[-1].index;
    PUSH(r, step_warp, warp);
    PUSH(r, step_instruction, r->functions.items[f].first_instruction + index);
    PUSH(r, step_active, s->active);
    PUSH(r, step_executed, executed_lanes(s));
    r->clocks.items[r->clocks.n++] = (uint32_t)s->warp->clock;
}

/* A step of the window. Returns false if the recording has no room for it. */
static bool record_step(recorder *r, const emu_step *s) {
    const warp *w = s->warp;
    const mark before = mark_columns(r);
    const uint32_t id = recorder_warp(r, w->block->member, w->index);
    if (id == NONE) return false;
    push_step(r, s, id);
    registers_step(r, w, s->insn, s->frame);
    accesses_step(r, w, s->insn, true);
    close_step(r);
    if (!exceeds_limit(r)) return true;
    rewind_columns(r, &before);
    return false;
}

/* Addresses of shared memory: of the warp's block, and of the others of its cluster. */
static void note_blocks(recorder *r, const block *b) {
    if (r->members.items[b->member].block) return;
    for (uint32_t k = 0; k < r->launch->cluster_blocks; k++)
        r->members.items[b->peers[k]->member].block = b->peers[k];
}

static bool is_recorded(const recorder *r, const warp *w) {
    const live_block *b = &r->members.items[w->block->member];
    return b->recorded && b->warps[w->index].recorded;
}

static void note_fault(recorder *r, const warp *w) {
    if (!r->fault || r->fault_step != UINT64_MAX) return;
    (void)w;
    r->fault_step = r->step;
}

static void on_step(void *state, const emu_step *s) {
    recorder *r = state;
    const warp *w = s->warp;
    note_blocks(r, w->block);
    if (!s->insn->ptx && !takes_results(s->insn)) return;
    const bool recorded = is_recorded(r, w);
    if (r->phase == AFTER_WINDOW) {
        r->requests.n = r->events.n = 0;
    } else if (!recorded) {
        accesses_step(r, w, s->insn, false);
    } else if (r->phase == BEFORE_WINDOW) {
        registers_step(r, w, s->insn, s->frame);
        accesses_step(r, w, s->insn, true);
    } else if (!record_step(r, s)) {
        end_window(r, "bytes");
    }
    if (!recorded) return;
    note_fault(r, w);
    r->step++;
    if (r->phase == BEFORE_WINDOW && r->step == r->out->first) begin_window(r);
    if (r->phase == IN_WINDOW && r->step - r->out->first >= r->out->steps) end_window(r, "steps");
}

/* ---- the other hooks ---- */

static bool note_launch(recorder *r, const launch *l) {
    if (!LIST_ROOM(r, &r->launches)) return false;
    recorded_launch *to = &r->launches.items[r->launches.n];
    *to = (recorded_launch){.entry = strdup(l->program->function->name),
                            .shared_bytes = l->shared_bytes,
                            .dynamic_at = l->dynamic_shared_at,
                            .dynamic_bytes = l->dynamic_shared_bytes,
                            .function = l->program->function,
                            .module = l->module->ptx};
    memcpy(to->grid, l->grid, sizeof to->grid);
    memcpy(to->block, l->block, sizeof to->block);
    memcpy(to->cluster, l->cluster, sizeof to->cluster);
    r->launches.n++;
    return to->entry != NULL;
}

static void free_members(recorder *r) {
    for (size_t k = 0; k < r->members.n; k++)
        live_block_end(r, &r->members.items[k]);
    free(r->members.items);
    r->members.items = NULL;
    r->members.n = r->members.capacity = 0;
}

static bool on_launch(void *self, const launch *l, bool *sequential) {
    recorder *r = self;
    *sequential = true;
    free_members(r);
    r->launch = l;
    r->members.items = calloc(l->group_blocks, sizeof *r->members.items);
    if (!r->members.items || !note_launch(r, l)) return false;
    r->members.n = r->members.capacity = l->group_blocks;
    if (r->launches.n == 1 && !recorder_start_memories(r)) return false;
    if (r->launches.n == 1 && r->out->first == 0) begin_window(r);
    return !is_out_of_memory(r);
}

static void *on_fork(void *self) {
    return self;
}

static void on_join(void *self, void *state) {
    (void)self, (void)state;
}

static void on_finish(void *self) {
    free_members(self);
}

static void on_memory(void *state, const emu_request *request) {
    recorder *r = state;
    if (r->phase == AFTER_WINDOW || !LIST_ROOM(r, &r->requests)) return;
    pending_request *p = &r->requests.items[r->requests.n++];
    p->request = *request;
    if (request->active) memcpy(p->address, request->address, sizeof p->address);
    if (request->source) memcpy(p->source, request->source, sizeof p->source);
}

static void on_sync(void *state, const emu_sync *event) {
    recorder *r = state;
    if (r->phase == AFTER_WINDOW || event->kind == EMU_PRINTED || !LIST_ROOM(r, &r->events)) return;
    pending_event *p = &r->events.items[r->events.n++];
    p->sync = *event;
    if (!event->address) return;
    if (event->kind == EMU_COPY_DONE)
        memcpy(p->address, event->address, sizeof p->address);
    else
        p->address[0] = event->address[0];
}

static void on_block(void *state, const uint32_t block[3], uint32_t member, bool begin) {
    recorder *r = state;
    live_block *b = &r->members.items[member];
    if (begin) {
        if (!live_block_begin(r, b, block)) r->out_of_memory = true;
        return;
    }
    accesses_end_block(r, member);
    live_block_end(r, b);
}

static bool on_exhausted(void *state) {
    return is_out_of_memory(state);
}

static void on_fault(void *self, const emu_fault *fault) {
    recorder *r = self;
    if (r->fault) return;
    r->fault = true;
    r->fault_step = UINT64_MAX;
    r->fault_message = strdup(fault->message);
}

emu_observer recorder_observer(recorder *r) {
    return (emu_observer){.self = r,
                          .launch = on_launch,
                          .fork = on_fork,
                          .join = on_join,
                          .finish = on_finish,
                          .memory = on_memory,
                          .sync = on_sync,
                          .block = on_block,
                          .step = on_step,
                          .exhausted = on_exhausted,
                          .fault = on_fault};
}

/* ---- life ---- */

recorder *recorder_new(const smk_job *job) {
    recorder *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->job = job;
    r->out = job->recording;
    if (!r->out->max_bytes) r->out->max_bytes = SMK_RECORDING_BYTES;
    return r;
}

void recorder_free(recorder *r) {
    if (!r) return;
    free_members(r);
    columns_free(&r->columns);
    for (size_t k = 0; k < r->functions.n; k++) {
        free(r->functions.items[k].writes);
        free(r->functions.items[k].first_write);
    }
    for (size_t k = 0; k < r->launches.n; k++)
        free(r->launches.items[k].entry);
    for (size_t k = 0; k < r->variables.n; k++)
        free(r->variables.items[k].layout);
    for (size_t k = 0; k < r->explanations.n; k++)
        free(r->explanations.items[k].text);
    free(r->variables.items);
    free(r->explanations.items);
    free(r->functions.items);
    free(r->blocks.items);
    free(r->warps.items);
    free(r->memories.items);
    free(r->launches.items);
    free(r->requests.items);
    free(r->events.items);
    free(r->stores.items);
    free(r->clocks.items);
    free(r->fault_message);
    free(r);
}

const uint64_t *recorder_now(const recorder *r) {
    return &r->step;
}
