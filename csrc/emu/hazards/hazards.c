/* The hazard detector as an observer: launches, host threads, blocks and events.
 *
 * It finds data races in shared and global memory, uninitialised reads of shared memory, copies
 * that were not waited for, barriers that some threads do not reach, and the faults that end a
 * launch.
 *
 * A race is two accesses, at least one of them a write, that no synchronisation orders, whichever
 * came first in this run. happens_before.h defines the order; access.c and granule.c check
 * accesses.
 */
#include "hazards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "detector.h"
#include "../base/lanes.h"

/* ---- blocks ---- */

static bool init_shared(detector *d, member *m) {
    return shadow_init(&m->shared, REGION_BASE(REGION_SHARED), d->launch->shared_region_bytes,
                       !(d->hazards->job->hazards & SMK_EQUAL_WRITES));
}

/* The logical clock has restarted: epochs from before would look recent. */
static void clear_epochs(detector *d) {
    for (uint32_t k = 0; k < d->n_members; k++) {
        shadow_free(&d->members[k].shared);
        d->out_of_memory |= !init_shared(d, &d->members[k]);
    }
    for (uint32_t k = 0; k < d->launch->n_regions; k++)
        shadow_free(&d->regions[k]);
    d->epochs_cleared = true;
    d->n_blocks = 0;
}

static void begin_block(detector *d, const uint32_t block[3], uint32_t k) {
    const launch *l = d->launch;
    const uint32_t threads = l->block[0] * l->block[1] * l->block[2];
    member *m = &d->members[k];
    memcpy(m->block, block, sizeof m->block);
    memset(m->barriers, 0, sizeof m->barriers);
    m->exit = (finding_op){.ptx = NULL};
    if (!k && !hb_begin_block(&d->hb, d->n_groups++)) clear_epochs(d);
    d->running = NULL;
    detector_switch(d, k);
    for (uint32_t warp = 0; warp < l->n_warps; warp++) {
        const uint32_t left = threads - warp * LANES;
        d->initial_lanes[warp] = d->alive[warp] = left >= LANES ? FULL : (1u << left) - 1;
        d->barrier_clock[warp] = d->launch_waited[warp] = d->last_access[warp] = 0;
        d->matrix_reads[warp].n = 0;
    }
    undefined_begin_block(d);
    if (d->n_members == 1) detector_add_block(d, d->hb.begin, block);
    detector_set_limits(d);
}

static void on_block(void *state, const uint32_t block[3], uint32_t member, bool begin) {
    detector *d = state;
    if (d->full) return;
    if (begin) {
        begin_block(d, block, member);
        return;
    }
    detector_switch(d, member);
    access_end_block(d);
    cas_reads_end_block(d);
}

/* ---- events ---- */

static void on_memory(void *state, const emu_request *request) {
    detector *d = state;
    if (!d->full) access_request(d, request);
}

static void on_moved(void *state, const emu_move *move) {
    detector *d = state;
    if (d->n_undefined) undefined_moved(d, move);
}

static void cluster_wait(detector *d, const emu_sync *event) {
    if (d->hb.fine_grained) hb_cluster_wait(&d->hb, event->warp, event->lanes);
    detector_set_limits(d);
}

static void on_exit_of(detector *d, const emu_sync *event) {
    finding_op *exit = &d->running->exit;
    d->alive[event->warp] &= ~event->lanes;
    hb_exit(&d->hb, event->warp, event->lanes, d->last_access[event->warp]);
    exit->ptx = event->ptx;
    exit->thread = event->warp * LANES + (uint32_t)first_lane(event->lanes);
    memcpy(exit->block, d->block, sizeof exit->block);
}

static void on_sync(void *state, const emu_sync *event) {
    detector *d = state;
    if (d->full) return;
    detector_switch(d, event->member);
    switch (event->kind) {
    case EMU_BARRIER_ARRIVE:
    case EMU_BARRIER_COMPLETE: barrier_event(d, event); break;
    case EMU_WARP_SYNC: hb_sync_lanes(&d->hb, event->warp, event->lanes); break;
    case EMU_FENCE: hb_fence(&d->hb, event->warp, event->lanes, site_ordering(event->ptx)); break;
    case EMU_LAUNCH_WAIT: overlap_wait(d, event->warp, event->lanes); break;
    case EMU_CLUSTER_WAIT: cluster_wait(d, event); break;
    case EMU_EXIT: on_exit_of(d, event); break;
    case EMU_MBARRIER_INIT:
    case EMU_MBARRIER_ARRIVE:
    case EMU_MBARRIER_WAIT: async_mbarrier(d, event); break;
    case EMU_COPY_DONE: async_copy_done(d, event); break;
    case EMU_BULK_SOURCE: async_source_read(d, event); break;
    case EMU_PROXY_FENCE: hb_proxy_fence(&d->hb, event->warp, event->lanes); break;
    case EMU_MATRIX_COMMIT:
    case EMU_MATRIX_WAIT: async_matrix_group(d, event); break;
    case EMU_PRINTED:
        if (d->n_undefined) undefined_printed(d, event);
        break;
    case EMU_SHUFFLE_ABSENT:
    case EMU_SHUFFLE_OUTSIDE: shuffle_event(d, event); break;
    }
}

static bool is_exhausted(const detector *d) {
    return d->out_of_memory || d->hb.out_of_memory || d->found.out_of_memory;
}

/* At the end of a slice. What an order that could not be recorded has made look like a race is
 * dropped. */
static bool on_exhausted(void *state) {
    detector *d = state;
    const bool exhausted = is_exhausted(d);
    if (!(d->hazards->job->hazards & SMK_UNTIL_FULL)) return exhausted;
    if (exhausted && !d->full) {
        d->hazards->full = true;
        while (d->found.n > d->n_found)
            free(d->found.items[--d->found.n].message);
    }
    d->full |= d->hazards->full;
    d->n_found = d->found.n;
    return false;
}

static void on_fault(void *self, const emu_fault *fault) {
    static const smk_hazard_kind kinds[] = {[EMU_OUT_OF_BOUNDS] = SMK_HAZARD_OUT_OF_BOUNDS,
                                            [EMU_MISALIGNED] = SMK_HAZARD_MISALIGNED,
                                            [EMU_DEADLOCK] = SMK_HAZARD_DEADLOCK,
                                            [EMU_EXITED] = SMK_HAZARD_EXITED,
                                            [EMU_SHARED_LIMIT] = SMK_HAZARD_SHARED_LIMIT};
    hazards *h = self;
    finding f = {.kind = kinds[fault->kind],
                 .op = {.ptx = fault->ptx, .thread = fault->thread},
                 .address = fault->address,
                 .width = fault->width,
                 .count = 1,
                 .step = h->now ? *h->now : 0,
                 .message = strdup(fault->message)};
    if (fault->block) memcpy(f.op.block, fault->block, sizeof f.op.block);
    if (fault->other_ptx) {
        f.other = (finding_op){.ptx = fault->other_ptx, .thread = fault->other_thread};
        memcpy(f.other.block, fault->other_block, sizeof f.other.block);
    }
    findings_add(&h->found, f);
    h->stopped = true;
}

/* ---- host threads ---- */

static void detector_free(detector *d) {
    if (!d) return;
    const size_t n_warps = (size_t)d->n_members * d->launch->n_warps;
    hb_free(&d->hb);
    for (uint32_t k = 0; d->members && k < d->n_members; k++)
        shadow_free(&d->members[k].shared);
    for (uint32_t k = 0; d->regions && k < d->launch->n_regions; k++)
        shadow_free(&d->regions[k]);
    findings_free(&d->found);
    free(d->regions);
    free(d->entries);
    free(d->all_last_runs);
    for (size_t k = 0; d->all_matrix_reads && k < n_warps; k++)
        free(d->all_matrix_reads[k].offsets);
    free(d->all_matrix_reads);
    free(d->members);
    cas_reads_free(d);
    undefined_free(d);
    free(d->block_begins);
    free(d->block_indices);
    free(d);
}

static void *on_fork(void *self) {
    hazards *h = self;
    const launch *l = h->launch;
    detector *d = calloc(1, sizeof *d);
    if (!d) return NULL;
    d->hazards = h;
    d->launch = l;
    d->found.now = h->now;
    d->row = row_functions_for_cpu();
    d->lanes = lane_functions_for_cpu();
    d->regions = calloc(l->n_regions, sizeof *d->regions);
    /* Blocks of one group synchronise within it. */
    const bool between_groups = h->sites.sequential && l->n_groups > 1;
    d->n_members = l->group_blocks;
    const size_t n_warps = (size_t)d->n_members * l->n_warps;
    d->members = calloc(d->n_members, sizeof *d->members);
    d->all_last_runs = calloc(n_warps * h->sites.n, sizeof *d->all_last_runs);
    d->all_matrix_reads = calloc(n_warps, sizeof *d->all_matrix_reads);
    bool started = hb_init(&d->hb, l, h->sites.fine_grained, between_groups) && d->members;
    for (uint32_t k = 0; started && k < d->n_members; k++)
        started = init_shared(d, &d->members[k]);
    if (started && cas_reads_init(d) && undefined_init(d) && d->regions && d->all_last_runs &&
        d->all_matrix_reads)
        return d;
    detector_free(d);
    return NULL;
}

static void on_join(void *self, void *state) {
    hazards *h = self;
    detector *d = state;
    for (size_t k = 0; k < d->found.n; k++) {
        findings_add(&h->found, d->found.items[k]);
        d->found.items[k].message = NULL;
    }
    h->out_of_memory |= is_exhausted(d) && !d->full;
    d->next = h->joined;
    h->joined = d;
}

/* ---- launches ---- */

/* The emulator runs such a kernel, but ptxas rejects it. */
static void check_static_limit(hazards *h, const launch *l) {
    enum { MAX_STATIC_BYTES = 48 * 1024 };
    const ptx_function *f = l->program->function;
    char message[400];
    if (f->shared_bytes <= MAX_STATIC_BYTES) return;
    snprintf(message, sizeof message,
             "kernel %.200s declares %llu bytes of static shared memory; at most %d are possible; "
             "request more as dynamic shared memory at the launch",
             f->name, (unsigned long long)f->shared_bytes, MAX_STATIC_BYTES);
    findings_add(
        &h->found,
        (finding){.kind = SMK_HAZARD_SHARED_LIMIT, .count = 1, .message = strdup(message)});
}

static bool on_launch(void *self, const launch *l, bool *sequential) {
    hazards *h = self;
    sites_free(&h->sites);
    h->launch = l;
    h->n_found_before = h->found.n;
    h->context.dynamic_shared_at = l->dynamic_shared_at;
    h->context.module = l->module->ptx;
    h->context.entry = l->program->function;
    memcpy(h->context.block, l->block, sizeof h->context.block);
    check_static_limit(h, l);
    if (!overlap_begin(h, l)) return false;
    if (!sites_read(&h->sites, l->module->ptx, l->program->function)) return false;
    h->sites.fine_grained |= l->group_blocks > 1;
    *sequential |= h->sites.sequential;
    return true;
}

static void on_finish(void *self) {
    hazards *h = self;
    if (!h->full) blocks_compare(h);
    cas_reads_classify(h);
    unwritten_note(h);
    undefined_note(h);
    for (detector *d = h->joined, *next; d; d = next) {
        next = d->next;
        detector_free(d);
    }
    h->joined = NULL;
}

hazards *hazards_new(const smk_job *job) {
    hazards *h = calloc(1, sizeof *h);
    if (h) h->job = job;
    return h;
}

void hazards_free(hazards *h) {
    if (!h) return;
    findings_free(&h->found);
    unwritten_free(h);
    sites_free(&h->sites);
    overlap_free(h->overlap);
    free(h);
}

emu_observer hazards_observer(hazards *h) {
    return (emu_observer){.self = h,
                          .launch = on_launch,
                          .fork = on_fork,
                          .join = on_join,
                          .finish = on_finish,
                          .memory = on_memory,
                          .moved = on_moved,
                          .sync = on_sync,
                          .block = on_block,
                          .exhausted = on_exhausted,
                          .fault = on_fault};
}

void hazards_set_step(hazards *h, const uint64_t *now) {
    h->now = now;
}

bool hazards_stopped(const hazards *h) {
    return h->stopped;
}

smk_code hazards_report(hazards *h, smk_trace *out, smk_status *status) {
    unwritten_report(h);
    out->hazards = calloc(h->found.n + 1, sizeof *out->hazards);
    if (!out->hazards || h->out_of_memory || h->found.out_of_memory)
        return smk_fail_memory(status, 0, "the state of the hazard detector");
    h->context.trace = out;
    out->n_hazards = findings_report(&h->found, &h->context, out->hazards);
    out->checked = true;
    out->full = h->full;
    out->incomplete = h->stopped;
    return SMK_OK;
}
