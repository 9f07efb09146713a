/* Describes a deadlock: which threads wait, where, and for what. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "block_group.h"
#include "../base/lanes.h"
#include "instruction_set.h"

/* The message so far. Beyond `ROOM` from its end no further threads are described. */
typedef struct text {
    char bytes[sizeof((smk_status *)0)->message];
    size_t n;
} text;

enum { ROOM = 500 };

static void add(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(text *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(t->bytes + t->n, sizeof t->bytes - t->n, format, arguments);
    va_end(arguments);
    t->n += strlen(t->bytes + t->n);
}

static void add_thread(text *t, const warp *w, uint32_t lane, const insn *i, const char *what) {
    char position[256];
    const block *b = w->block;
    const uint32_t *shape = b->launch->block;
    const uint32_t thread = w->index * LANES + lane;
    source_position(i, position, sizeof position);
    add(t, "\n  ");
    if (b->launch->group_blocks > 1)
        add(t, "block (%u, %u, %u), ", b->index[0], b->index[1], b->index[2]);
    add(t, "warp %u, thread (%u, %u, %u): %s at %s `%.80s`", w->index, thread % shape[0],
        thread / shape[0] % shape[1], thread / shape[0] / shape[1], what, position, i->ptx->text);
}

/* The blocks of the cluster that have threads which have not arrived at its barrier. */
static void name_missing_blocks(const block *b, char *out, size_t size) {
    const launch *l = b->launch;
    size_t n = 0;
    *out = 0;
    for (uint32_t rank = 0; rank < l->cluster_blocks && n < size; rank++) {
        const block *peer = b->peers[rank];
        if (peer->barriers[CLUSTER_BARRIER].complete_warps >= peer->live_warps) continue;
        n += (size_t)snprintf(out + n, size - n, "%s(%u, %u, %u)", n ? ", " : "", peer->index[0],
                              peer->index[1], peer->index[2]);
    }
}

static bool at_cluster_barrier(const warp_split *s) {
    return s->wait == WAIT_BARRIER && s->waits_for == CLUSTER_BARRIER;
}

static void add_wait(text *t, const warp *w, const warp_split *s) {
    char what[256], blocks[160];
    const int lanes = __builtin_popcount(s->active);
    if (s->wait == WAIT_REGISTERS) {
        snprintf(what, sizeof what,
                 "waits for %u registers per thread; it has %u, and %u are free for one warp",
                 s->waits_for, w->registers, w->block->free_registers);
    } else if (at_cluster_barrier(s) && w->block->launch->cluster_blocks > 1) {
        name_missing_blocks(w->block, blocks, sizeof blocks);
        snprintf(what, sizeof what,
                 "%d lanes wait at the cluster's barrier for threads of block %s", lanes, blocks);
    } else
        snprintf(what, sizeof what, "%d lanes wait for %s", lanes,
                 s->wait == WAIT_BARRIER ? "the block's other threads" : "other lanes");
    add_thread(t, w, (uint32_t)first_lane(s->active), s->next, what);
}

static void add_failed_try_wait(text *t, const warp *w) {
    char missing[128], what[256];
    w->block->launch->module->isa->describe_failed_wait(w, missing, sizeof missing);
    snprintf(what, sizeof what, "waits for the mbarrier at 0x%llx of shared memory (%s)",
             (unsigned long long)w->failed_wait.offset, missing);
    add_thread(t, w, (uint32_t)w->failed_wait.lane, w->failed_wait.at, what);
}

static void set_fault(emu_fault *fault, const warp *w, const insn *i, int lane) {
    if (fault->ptx) return;
    fault->ptx = i->ptx;
    fault->block = w->block->index;
    fault->thread = w->index * LANES + (uint32_t)lane;
}

/* What the first wait needs in order to end. */
static void explain(text *t, const warp *w, const warp_split *s) {
    const launch *l = w->block->launch;
    if (s->wait == WAIT_REGISTERS)
        add(t,
            " setmaxnreg.inc waits until other warps have given registers back. The block was "
            "launched with %u registers for each of its %u threads (.maxnreg, or .maxntid and "
            ".minnctapersm); its warps cannot have more together.",
            l->registers, l->n_warps * LANES);
    else
        add(t,
            " A barrier needs all threads of the %s, or all lanes it names, to arrive; "
            "look for one inside a divergent branch.",
            at_cluster_barrier(s) ? "cluster" : "block");
}

/* Waits for registers come first: they are often why others wait. */
static void add_register_waits(text *t, const warp *w, emu_fault *fault) {
    for (const warp_split *s = w->waiting; s; s = s->link) {
        if (s->wait != WAIT_REGISTERS) continue;
        if (!fault->ptx) explain(t, w, s);
        set_fault(fault, w, s->next, first_lane(s->active));
        if (t->n + ROOM < sizeof t->bytes) add_wait(t, w, s);
    }
}

static void add_warp(text *t, const warp *w, emu_fault *fault) {
    for (const warp_split *s = w->waiting; s; s = s->link) {
        if (s->wait == WAIT_REGISTERS) continue;
        if (!fault->ptx) explain(t, w, s);
        set_fault(fault, w, s->next, first_lane(s->active));
        if (t->n + ROOM < sizeof t->bytes) add_wait(t, w, s);
    }
    if (!w->yielded || !w->failed_wait.at) return;
    set_fault(fault, w, w->failed_wait.at, w->failed_wait.lane);
    if (t->n + ROOM < sizeof t->bytes) add_failed_try_wait(t, w);
}

void fail_deadlock(const block_group *g) {
    const launch *l = g->launch;
    text t = {.n = 0};
    emu_fault fault = {.kind = EMU_DEADLOCK, .message = t.bytes};
    const block *first = NULL;
    for (uint32_t k = 0; k < g->begun && !first; k++)
        if (block_is_live(g->blocks[k])) first = g->blocks[k];
    if (!first) return;
    fault.block = first->index;
    add(&t, "deadlock: kernel %s, %sblock (%u, %u, %u): no thread can go on.",
        l->program->function->name, g->n_blocks > 1 && !l->one_by_one ? "the cluster of " : "",
        first->index[0], first->index[1], first->index[2]);
    for (int registers = 1; registers >= 0; registers--)
        for (uint32_t k = 0; k < g->begun; k++)
            for (uint32_t n = 0; block_is_live(g->blocks[k]) && n < l->n_warps; n++)
                (registers ? add_register_waits : add_warp)(&t, &g->blocks[k]->warps[n], &fault);
    launch_fail_at(g->launch, SMK_LAUNCH, &fault);
}
