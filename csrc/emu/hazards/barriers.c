/* Barriers that not everybody reaches.
 *
 * Judged when a barrier lets its threads go, from who had arrived and where, so that lanes which
 * come to one barrier in several groups are no finding. Wrong are: lanes of one warp at different
 * barriers, which .aligned ones (__syncthreads) forbid; a barrier of the whole block that lanes of a
 * warp never reached, for they had ended; and warps that meet at different __syncthreads of the source.
 * Warps that have ended altogether are not missed, and barriers with a thread count are for those who
 * come.
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

static finding_party party(const detector *w, const ptx_instruction *ptx, uint32_t warp, int lane) {
    finding_party p = {.ptx = ptx, .thread = warp * LANES + (uint32_t)lane};
    memcpy(p.block, w->block, sizeof p.block);
    return p;
}

static void report(detector *w, finding_party at, finding_party other) {
    findings_add(&w->found,
                 (finding){.kind = SMK_HAZARD_BARRIER, .party = at, .other = other, .count = 1});
}

static void arrive(detector *w, const emu_sync *e) {
    barrier_state *b = &w->barriers[e->object];
    const uint32_t warp = e->warp;
    if (b->arrived[warp] && b->at[warp] != e->ptx && is_aligned(e->ptx) && is_aligned(b->at[warp]))
        report(w, party(w, e->ptx, warp, first_lane(e->lanes)),
               party(w, b->at[warp], warp, b->lane[warp]));
    if (!b->arrived[warp]) {
        b->at[warp] = e->ptx;
        b->lane[warp] = (uint8_t)first_lane(e->lanes);
    }
    b->arrived[warp] |= e->lanes;
    if (!e->arrive_only) b->waits[warp] |= e->lanes;
    b->clock[warp] = e->clock;
    b->counted = e->threads != 0;
    b->arrive_only |= e->arrive_only;
    if (w->hb.fine) hb_arrive(&w->hb, e->object, warp, e->lanes);
}

static bool is_of_all(const detector *w, const barrier_state *b) {
    for (uint32_t warp = 0; warp < w->launch->n_warps; warp++)
        if (w->alive[warp] & ~b->waits[warp]) return false;
    return true;
}

static void judge(detector *w, const barrier_state *b) {
    int first = -1;
    for (uint32_t warp = 0; warp < w->launch->n_warps && !b->counted; warp++) {
        const uint32_t missing = w->born[warp] & ~b->arrived[warp];
        if (!b->arrived[warp]) continue;
        if (missing)
            report(w, party(w, b->at[warp], warp, b->lane[warp]),
                   party(w, NULL, warp, first_lane(missing)));
        if (first >= 0 && !is_same_line(b->at[first], b->at[warp]))
            report(w, party(w, b->at[warp], warp, b->lane[warp]),
                   party(w, b->at[first], (uint32_t)first, b->lane[first]));
        if (first < 0) first = (int)warp;
    }
}

static void complete(detector *w, uint32_t number) {
    barrier_state *b = &w->barriers[number];
    judge(w, b);
    for (uint32_t warp = 0; warp < w->launch->n_warps; warp++)
        if (b->waits[warp]) w->start[warp] = b->clock[warp];
    if (w->hb.fine) hb_depart(&w->hb, number, b->waits);
    if (is_of_all(w, b)) hb_barrier_all(&w->hb);
    memset(b, 0, sizeof *b);
    detector_set_limits(w);
}

void barrier_event(detector *w, const emu_sync *event) {
    if (event->kind == EMU_BARRIER_ARRIVE)
        arrive(w, event);
    else
        complete(w, event->object);
}
