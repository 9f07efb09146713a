/* Barriers that some threads do not reach. The detector reports:
 *
 *   - lanes of one warp that arrive by different instructions, if both are .aligned
 *     (__syncthreads);
 *   - a barrier of the whole block that some lanes of an arriving warp never reach, because they
 *     exited;
 *   - warps that arrive at one barrier from different __syncthreads of the source. Compilers of
 *     kernels with specialised warps let these wait at one `barrier.sync`, which is not .aligned,
 *     from different places.
 *
 * The last two are checked when a barrier completes, from all arrivals, so lanes of a warp may
 * arrive in several groups. They exempt warps whose lanes have all exited, and barriers with a
 * thread count.
 */
#include <string.h>

#include "detector.h"
#include "../base/lanes.h"

static bool is_aligned(const ptx_instruction *p) {
    return p->op == PTX_OP_bar || p->has & PTX_HAS_ALIGNED;
}

static bool is_same_line(const ptx_instruction *a, const ptx_instruction *b) {
    return a == b || (a->file && b->file && a->line == b->line && !strcmp(a->file, b->file));
}

/* Whether it may be another instruction in each warp: barrier.cluster (PTX ISA, "barrier.cluster"),
 * and barriers without .aligned. CUDA C++ has no such rule for them as for __syncthreads. */
static bool may_differ(const ptx_instruction *p) {
    return p->has & PTX_HAS_CLUSTER || !is_aligned(p);
}

static finding_op op_of(const detector *d, const ptx_instruction *ptx, uint32_t warp, int lane) {
    finding_op p = {.ptx = ptx, .thread = warp * LANES + (uint32_t)lane};
    memcpy(p.block, d->block, sizeof p.block);
    return p;
}

static void report(detector *d, finding_op op, finding_op other) {
    findings_add(&d->found,
                 (finding){.kind = SMK_HAZARD_BARRIER, .op = op, .other = other, .count = 1});
}

static void arrive(detector *d, const emu_sync *e) {
    barrier_arrivals *b = &d->barriers[e->object];
    const uint32_t warp = e->warp;
    if (b->arrived[warp] && b->arrival_ptx[warp] != e->ptx && is_aligned(e->ptx) &&
        is_aligned(b->arrival_ptx[warp]))
        report(d, op_of(d, e->ptx, warp, first_lane(e->lanes)),
               op_of(d, b->arrival_ptx[warp], warp, b->arrival_lane[warp]));
    if (!b->arrived[warp]) {
        b->arrival_ptx[warp] = e->ptx;
        b->arrival_lane[warp] = (uint8_t)first_lane(e->lanes);
    }
    b->arrived[warp] |= e->lanes;
    /* Lanes that arrive at barrier.cluster count as waiting, because their wait makes no event. */
    if (!e->arrive_only || e->ptx->has & PTX_HAS_CLUSTER) b->waiting[warp] |= e->lanes;
    b->clock[warp] = e->clock;
    b->has_thread_count = e->threads != 0;
    const bool relaxed = e->ptx->has & PTX_HAS_RELAXED; /* barrier.cluster.arrive.relaxed */
    b->has_relaxed |= relaxed;
    if (d->hb.fine_grained) hb_arrive(&d->hb, e->object, warp, e->lanes, relaxed);
}

/* A barrier without the threads that have exited does not order what these did. With fine-grained
 * synchronisation hb_depart orders the others; else hb_before looks at who has exited. */
static bool is_whole_block(const detector *d, const barrier_arrivals *b) {
    const uint32_t *lanes = d->hb.fine_grained ? d->initial_lanes : d->alive;
    for (uint32_t warp = 0; warp < d->launch->n_warps; warp++)
        if (lanes[warp] & ~b->waiting[warp]) return false;
    return true;
}

static void check_complete(detector *d, const barrier_arrivals *b) {
    int first = -1;
    for (uint32_t warp = 0; warp < d->launch->n_warps && !b->has_thread_count; warp++) {
        const uint32_t missing = d->initial_lanes[warp] & ~b->arrived[warp];
        if (!b->arrived[warp]) continue;
        if (missing)
            report(d, op_of(d, b->arrival_ptx[warp], warp, b->arrival_lane[warp]),
                   op_of(d, NULL, warp, first_lane(missing)));
        if (first >= 0 && !may_differ(b->arrival_ptx[first]) && !may_differ(b->arrival_ptx[warp]) &&
            !is_same_line(b->arrival_ptx[first], b->arrival_ptx[warp]))
            report(d, op_of(d, b->arrival_ptx[warp], warp, b->arrival_lane[warp]),
                   op_of(d, b->arrival_ptx[first], (uint32_t)first, b->arrival_lane[first]));
        if (first < 0) first = (int)warp;
    }
}

static void complete(detector *d, uint32_t number) {
    barrier_arrivals *b = &d->barriers[number];
    check_complete(d, b);
    for (uint32_t warp = 0; warp < d->launch->n_warps; warp++)
        if (b->waiting[warp]) d->barrier_clock[warp] = b->clock[warp];
    if (d->hb.fine_grained && number == CLUSTER_BARRIER)
        hb_cluster_complete(&d->hb);
    else if (d->hb.fine_grained)
        hb_depart(&d->hb, number, b->waiting);
    if (is_whole_block(d, b) && !b->has_relaxed) hb_barrier_all(&d->hb);
    memset(b, 0, sizeof *b);
    detector_set_limits(d);
}

void barrier_event(detector *d, const emu_sync *event) {
    if (event->kind == EMU_BARRIER_ARRIVE)
        arrive(d, event);
    else
        complete(d, event->object);
}
