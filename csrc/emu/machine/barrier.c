/* Block barriers: bar and barrier, .sync .arrive .red, with barrier number and thread count.
 *
 * Arrivals are recorded per lane. A warp counts as complete when all its live lanes have arrived,
 * and the barrier completes when enough warps are complete. Hardware since Volta does the same:
 * it waits for every thread that has not exited, and counts in whole warps.
 *
 * barrier.cluster is one more barrier of each block, which completes when those of all the
 * cluster's blocks are complete.
 */
#include <string.h>

#include "block.h"
#include "decode.h"
#include "../base/lanes.h"
#include "observe.h"

enum reduction { RED_NONE, RED_POPC, RED_AND, RED_OR };

/* insn.flags */
enum { ARRIVE_ONLY = 4, NEGATED = 8, REDUCTION = 3 };

static bool has_all_warps(const block *b, uint32_t number) {
    const barrier *bar = &b->barriers[number];
    return bar->complete_warps >= (bar->expected_warps ? bar->expected_warps : b->live_warps);
}

static bool is_complete(const block *b, uint32_t number) {
    if (number != CLUSTER_BARRIER) return has_all_warps(b, number);
    for (uint32_t k = 0; k < b->launch->cluster_blocks; k++)
        if (!has_all_warps(b->peers[k], number)) return false;
    return true;
}

static void write_reduction(const barrier *bar, unsigned char *slots, const insn *i,
                            uint32_t lanes) {
    uint32_t value = 0;
    switch (i->flags & REDUCTION) {
    case RED_NONE: return;
    case RED_POPC: value = bar->n_true; break;
    case RED_AND: value = bar->n_true == bar->n_threads ? ~0u : 0; break;
    case RED_OR: value = bar->n_true ? ~0u : 0; break;
    }
    for (; lanes; lanes &= lanes - 1)
        ((uint32_t *)(slots + i->d))[__builtin_ctz(lanes)] = value;
}

/* Resumes the block's waiting splits and resets its barrier. */
static void release_barrier(block *b, uint32_t number) {
    barrier *bar = &b->barriers[number];
    if (!(b->used_barriers >> number & 1)) return;
    observe_event(&b->warps[0], (emu_sync){.kind = EMU_BARRIER_COMPLETE, .object = number});
    for (uint32_t k = 0; k < b->launch->n_warps; k++) {
        warp *w = &b->warps[k];
        for (warp_split *s = w->waiting, *next; s; s = next) {
            next = s->link;
            if (s->wait != WAIT_BARRIER || s->waits_for != number) continue;
            if (number == CLUSTER_BARRIER) observe_sync(w, s->next, EMU_CLUSTER_WAIT, s->active);
            write_reduction(bar, s->frame->slots, s->next, s->active);
            split_resume(w, s, s->next + 1);
        }
    }
    memset(bar, 0, sizeof *bar);
    b->used_barriers &= ~(1u << number);
}

static void complete_barrier(block *b, uint32_t number) {
    if (number != CLUSTER_BARRIER) {
        release_barrier(b, number);
        return;
    }
    for (uint32_t k = 0; k < b->launch->cluster_blocks; k++)
        release_barrier(b->peers[k], number);
}

static bool has_arrived(const warp *w, const barrier *bar) {
    const uint32_t arrived = bar->arrived[w->index];
    return arrived && !(w->alive & ~arrived);
}

static const insn *arrive(warp *w, const insn *i, uint32_t number, uint32_t threads) {
    block *b = w->block;
    barrier *bar = &b->barriers[number];
    bar->expected_warps = threads / LANES;
    if (i->flags & REDUCTION) {
        const uint32_t holds = lanes_bits(PRED(w, i->c)) ^ (i->flags & NEGATED ? ~0u : 0);
        bar->n_true += (uint32_t)__builtin_popcount(holds & w->active);
        bar->n_threads += (uint32_t)__builtin_popcount(w->active);
    }
    const bool before = has_arrived(w, bar);
    bar->arrived[w->index] |= w->active;
    if (!before && has_arrived(w, bar)) bar->complete_warps++;
    b->used_barriers |= 1u << number;
    const bool done = is_complete(b, number);
    const emu_observer *observer = b->observer;
    if (observer && observer->barrier)
        observer->barrier(b->observer_state, i->ptx, w->index, number, done);
    observe_event(w, (emu_sync){.kind = EMU_BARRIER_ARRIVE,
                                .ptx = i->ptx,
                                .lanes = w->active,
                                .object = number,
                                .threads = threads,
                                .arrive_only = i->flags & ARRIVE_ONLY});
    if (done) {
        write_reduction(bar, w->frame, i, w->active);
        complete_barrier(b, number);
        return i + 1;
    }
    return i->flags & ARRIVE_ONLY ? i + 1 : split_wait(w, i, WAIT_BARRIER, number);
}

static const insn *exec_barrier(warp *w, const insn *i) {
    const block *b = w->block;
    const uint32_t lane = (uint32_t)first_lane(w->active);
    const uint32_t number = U32(w, i->a)[lane];
    const uint32_t threads = i->count ? U32(w, i->b)[lane] : 0;
    if (number >= N_NAMED_BARRIERS)
        return warp_fault(w, i, SMK_LAUNCH, w->active,
                          "barrier %u does not exist; a block has barriers 0 to %d", number,
                          N_NAMED_BARRIERS - 1);
    if (threads % LANES || threads > b->launch->n_warps * LANES)
        return warp_fault(
            w, i, SMK_LAUNCH, w->active,
            "barrier %u for %u threads; the count must be a multiple of %d and at most "
            "the %u threads of the block's warps",
            number, threads, LANES, b->launch->n_warps * LANES);
    return arrive(w, i, number, threads);
}

static const insn *exec_cluster_arrive(warp *w, const insn *i) {
    return arrive(w, i, CLUSTER_BARRIER, 0);
}

/* A lane whose arrival is not in the current phase arrived in an earlier one, which is complete. */
static const insn *exec_cluster_wait(warp *w, const insn *i) {
    const uint32_t arrived = w->block->barriers[CLUSTER_BARRIER].arrived[w->index];
    if (arrived & w->active) return split_wait(w, i, WAIT_BARRIER, CLUSTER_BARRIER);
    observe_sync(w, i, EMU_CLUSTER_WAIT, w->active);
    return i + 1;
}

/* The barriers with arrivals, as bits: the block's, and its cluster's. */
static uint32_t barriers_in_use(const block *b) {
    uint32_t used = b->used_barriers;
    for (uint32_t k = 0; k < b->launch->cluster_blocks; k++)
        used |= b->peers[k]->used_barriers & 1u << CLUSTER_BARRIER;
    return used;
}

void barrier_lanes_left(warp *w) {
    block *b = w->block;
    if (!w->alive) b->live_warps--;
    for (uint32_t left = barriers_in_use(b); left; left &= left - 1) {
        const uint32_t number = (uint32_t)__builtin_ctz(left);
        barrier *bar = &b->barriers[number];
        bar->complete_warps = 0;
        /* With an explicit count, warps that arrived and have since exited count as well. */
        for (uint32_t k = 0; k < b->launch->n_warps; k++)
            if (has_arrived(&b->warps[k], bar) && (bar->expected_warps || b->warps[k].alive))
                bar->complete_warps++;
        if (is_complete(b, number)) complete_barrier(b, number);
    }
}

/* ---- decoding ---- */

static exec_fn select_cluster_barrier(decoder *dc, const ptx_instruction *p, insn *out) {
    decode_take(dc, "aligned");
    if (p->n_operands) return NULL;
    if (decode_take(dc, "wait")) {
        decode_take(dc, "acquire");
        return exec_cluster_wait;
    }
    out->flags = ARRIVE_ONLY;
    if (!decode_take(dc, "release")) decode_take(dc, "relaxed");
    return decode_take(dc, "arrive") ? exec_cluster_arrive : NULL;
}

static exec_fn select_barrier(decoder *dc, const ptx_instruction *p, insn *out) {
    static const char *const reductions[] = {
        [RED_POPC] = "popc", [RED_AND] = "and", [RED_OR] = "or"};
    const ptx_operand *o = p->operands;
    uint32_t n = p->n_operands;
    decode_not_predicable(dc);
    if (decode_take(dc, "cluster")) return select_cluster_barrier(dc, p, out);
    decode_take(dc, "cta");
    decode_take(dc, "aligned");
    if (decode_take(dc, "red")) {
        for (int k = RED_POPC; k <= RED_OR; k++)
            if (decode_take(dc, reductions[k])) out->flags = (uint8_t)k;
        const ptx_type type = out->flags == RED_POPC ? PTX_U32 : PTX_PRED;
        if (!out->flags || decode_take_type(dc) != type || n < 3) return NULL;
        const ptx_operand *predicate = &o[n - 1];
        out->d = decode_destination(dc, o++, type);
        out->c = decode_source(dc, predicate, PTX_PRED);
        if (predicate->negated) out->flags |= NEGATED;
        n -= 2;
    } else if (decode_take(dc, "arrive")) {
        out->flags = ARRIVE_ONLY;
        if (n != 2) return NULL;
    } else if (!decode_take(dc, "sync")) {
        return NULL;
    }
    if (n < 1 || n > 2) return NULL;
    out->a = decode_source(dc, &o[0], PTX_U32);
    out->count = n == 2;
    if (out->count) out->b = decode_source(dc, &o[1], PTX_U32);
    return exec_barrier;
}

opcode_table barrier_opcodes = {
    [PTX_OP_bar] = select_barrier,
    [PTX_OP_barrier] = select_barrier,
};
