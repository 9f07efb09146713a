/* Branches, exit, return, fences, and instructions without an effect here. Calls are in call.c. */
#include "control.h"

#include <string.h>

#include "block.h"
#include "decode.h"
#include "observe.h"

/* ---- hidden instructions ---- */

const insn *exec_reconverge(warp *w, const insn *i) {
    return w->split->reconverge == i ? split_end(w) : i + 1;
}

/* ---- branches ---- */

static const insn *exec_jump(warp *w, const insn *i) {
    (void)w;
    return i->target;
}

const insn *exec_branch(warp *w, const insn *i) {
    const uint32_t taken = guard_lanes(w, i);
    if (taken == w->active) return i->target;
    if (!taken) return i + 1;
    return split_at_branch(w, i, taken);
}

static exec_fn select_bra(decoder *dc, const ptx_instruction *p, insn *out) {
    decode_take(dc, "uni");
    if (p->n_operands != 1 || p->operands[0].kind != PTX_LABEL) return NULL;
    decode_own_guard(dc);
    out->target = decode_target(dc, p->operands[0].target);
    if (!p->guarded) return exec_jump;
    out->reconverge = decode_reconvergence_point(dc);
    return exec_branch;
}

/* brx.idx */
typedef struct branch_table {
    uint32_t n;
    const insn **targets;
} branch_table;

static const insn *exec_branch_table(warp *w, const insn *i) {
    const branch_table *table = i->extra;
    const uint32_t *index = U32(w, i->a);
    uint32_t rest = w->active;
    const insn *target = NULL;
    for (uint32_t left = rest; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        if (index[lane] >= table->n)
            return warp_fault(w, i, SMK_LAUNCH, 1u << lane,
                              "branch index %u is outside the table of %u targets", index[lane],
                              table->n);
    }
    /* Handles one target at a time: the lanes with the first lane's target diverge from the
     * others, which execute this instruction again. */
    const uint32_t chosen = index[__builtin_ctz(rest)];
    uint32_t taken = 0;
    for (; rest; rest &= rest - 1)
        if (index[__builtin_ctz(rest)] == chosen) taken |= rest & -rest;
    target = table->targets[chosen];
    if (taken == w->active) return target;
    return split_two_ways(w, i, taken, target, i);
}

static exec_fn select_brx(decoder *dc, const ptx_instruction *p, insn *out) {
    if (!decode_take(dc, "idx") || p->n_operands != 2 || p->operands[1].kind != PTX_TARGETS)
        return NULL;
    decode_take(dc, "uni");
    decode_not_predicable(dc);
    const ptx_targets *labels = p->operands[1].targets;
    branch_table *table = decode_alloc(dc, sizeof *table);
    table->n = labels->n_items;
    table->targets = decode_targets(dc, labels->n_items);
    if (!table->targets) return NULL;
    for (uint32_t k = 0; k < labels->n_items; k++) {
        if (labels->items[k].kind != PTX_LABEL) return NULL;
        table->targets[k] = decode_target(dc, labels->items[k].target);
    }
    out->a = decode_source(dc, &p->operands[0], PTX_U32);
    out->extra = table;
    out->reconverge = decode_reconvergence_point(dc);
    return exec_branch_table;
}

/* ---- exit and return ---- */

static uint32_t leaving_lanes(const warp *w, const insn *i) {
    return i->ptx && i->ptx->guarded ? guard_lanes(w, i) : w->active;
}

const insn *exec_exit(warp *w, const insn *i) {
    return split_leave(w, i, leaving_lanes(w, i), true);
}

static const insn *exec_return(warp *w, const insn *i) {
    return split_leave(w, i, leaving_lanes(w, i), false);
}

static exec_fn select_exit(decoder *dc, const ptx_instruction *p, insn *out) {
    (void)p, (void)out;
    decode_own_guard(dc);
    return exec_exit;
}

static exec_fn select_ret(decoder *dc, const ptx_instruction *p, insn *out) {
    (void)p, (void)out;
    decode_take(dc, "uni");
    decode_own_guard(dc);
    return decode_caller(dc)->is_entry ? exec_exit : exec_return;
}

static const insn *exec_trap(warp *w, const insn *i) {
    return warp_fault(w, i, SMK_LAUNCH, w->active, "the kernel executed a trap");
}

static exec_fn select_trap(decoder *dc, const ptx_instruction *p, insn *out) {
    (void)p, (void)out;
    decode_not_predicable(dc);
    return exec_trap;
}

/* ---- no effect ---- */

static const insn *exec_nop(warp *w, const insn *i) {
    (void)w;
    return i + 1;
}

/* Hints, and a breakpoint without a debugger. All modifiers are accepted. */
static exec_fn select_nop(decoder *dc, const ptx_instruction *p, insn *out) {
    (void)out;
    for (uint32_t k = 0; k < p->n_modifiers; k++)
        decode_take(dc, p->modifiers[k]);
    return exec_nop;
}

/* The block's time goes on by the longest sleep of the warp's lanes. */
static const insn *exec_sleep(warp *w, const insn *i) {
    enum { LONGEST_SLEEP = 1000000 }; /* 1 ms, says the PTX ISA */
    const uint32_t *nanoseconds = U32(w, i->a);
    uint32_t longest = 0;
    for (uint32_t left = w->active; left; left &= left - 1)
        if (nanoseconds[first_lane(left)] > longest) longest = nanoseconds[first_lane(left)];
    w->block->time += longest < LONGEST_SLEEP ? longest : LONGEST_SLEEP;
    w->polled = true; /* a thread sleeps to wait for another one, usually in a polling loop */
    return i + 1;
}

static exec_fn select_nanosleep(decoder *dc, const ptx_instruction *p, insn *out) {
    if (!decode_take(dc, "u32") || p->n_operands != 1) return NULL;
    out->a = decode_source(dc, &p->operands[0], PTX_U32);
    return exec_sleep;
}

/* Launches run one after the other, so there is nothing to wait for. Observers need the event. */
static const insn *exec_launch_wait(warp *w, const insn *i) {
    observe_sync(w, i, EMU_LAUNCH_WAIT, w->active);
    return i + 1;
}

static exec_fn select_griddepcontrol(decoder *dc, const ptx_instruction *p, insn *out) {
    (void)p, (void)out;
    if (decode_take(dc, "wait")) return exec_launch_wait;
    return decode_take(dc, "launch_dependents") ? exec_nop : NULL;
}

/* Orders the memory accesses of different host threads. A fence that orders proxies, too, releases
 * that. */
static const insn *exec_fence(warp *w, const insn *i) {
    if (i->flags) observe_sync(w, i, EMU_PROXY_FENCE, w->active);
    observe_sync(w, i, EMU_FENCE, w->active);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return i + 1;
}

static exec_fn select_fence(decoder *dc, const ptx_instruction *p, insn *out) {
    (void)p;
    out->flags = decode_take(dc, "async") | decode_take(dc, "mbarrier_init");
    static const char *const supported[] = {"sc",
                                            "acq_rel",
                                            "acquire",
                                            "release",
                                            "cta",
                                            "gpu",
                                            "sys",
                                            "gl",
                                            "cluster",
                                            "proxy",
                                            "alias",
                                            "global",
                                            "shared::cta",
                                            "shared::cluster",
                                            "tensormap::generic",
                                            "async::generic"};
    for (size_t k = 0; k < sizeof supported / sizeof *supported; k++)
        decode_take(dc, supported[k]);
    return exec_fence;
}

opcode_table control_opcodes = {
    [PTX_OP_bra] = select_bra,
    [PTX_OP_brx] = select_brx,
    [PTX_OP_exit] = select_exit,
    [PTX_OP_ret] = select_ret,
    [PTX_OP_trap] = select_trap,
    [PTX_OP_brkpt] = select_nop,
    [PTX_OP_pmevent] = select_nop,
    [PTX_OP_griddepcontrol] = select_griddepcontrol,
    [PTX_OP_prefetch] = select_nop,
    [PTX_OP_prefetchu] = select_nop,
    [PTX_OP_applypriority] = select_nop,
    [PTX_OP_discard] = select_nop,
    [PTX_OP_nanosleep] = select_nanosleep,
    [PTX_OP_membar] = select_fence,
    [PTX_OP_fence] = select_fence,
};
