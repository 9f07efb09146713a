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

/* The logical clock has restarted: epochs from before would look recent. */
static void clear_epochs(detector *d) {
    shadow_free(&d->shared);
    for (uint32_t k = 0; k < d->launch->n_regions; k++)
        shadow_free(&d->regions[k]);
    d->epochs_cleared = true;
    d->n_blocks = 0;
    memset(d->proxy_fence, 0, d->launch->n_warps * LANES * sizeof *d->proxy_fence);
    d->out_of_memory |=
        !shadow_init(&d->shared, REGION_BASE(REGION_SHARED), d->launch->shared_region_bytes,
                     !(d->hazards->flags & SMK_EQUAL_WRITES));
}

static void on_block(void *state, const uint32_t block[3], bool begin) {
    detector *d = state;
    const launch *l = d->launch;
    if (!begin) {
        access_end_block(d);
        cas_reads_end_block(d);
        return;
    }
    memcpy(d->block, block, sizeof d->block);
    const uint64_t linear =
        block[0] + (uint64_t)l->grid[0] * (block[1] + (uint64_t)l->grid[1] * block[2]);
    if (!hb_begin_block(&d->hb, linear)) clear_epochs(d);
    for (uint32_t k = 0; k < l->n_warps; k++) {
        const uint32_t threads = d->hb.n_threads - k * LANES;
        d->initial_lanes[k] = d->alive[k] = threads >= LANES ? FULL : (1u << threads) - 1;
        d->barrier_clock[k] = d->launch_waited[k] = d->last_access[k] = 0;
        d->matrix_reads[k].n = 0;
    }
    memset(d->barriers, 0, sizeof d->barriers);
    detector_add_block(d, block);
    detector_set_limits(d);
}

/* ---- events ---- */

static void on_memory(void *state, const emu_request *request) {
    access_request(state, request);
}

static void on_sync(void *state, const emu_sync *event) {
    detector *d = state;
    switch (event->kind) {
    case EMU_BARRIER_ARRIVE:
    case EMU_BARRIER_COMPLETE: barrier_event(d, event); break;
    case EMU_WARP_SYNC: hb_sync_lanes(&d->hb, event->warp, event->lanes); break;
    case EMU_FENCE: hb_fence(&d->hb, event->warp, event->lanes, site_ordering(event->ptx)); break;
    case EMU_LAUNCH_WAIT: overlap_wait(d, event->warp, event->lanes); break;
    case EMU_EXIT:
        d->alive[event->warp] &= ~event->lanes;
        hb_exit(&d->hb, event->warp, event->lanes, d->last_access[event->warp]);
        break;
    case EMU_MBARRIER_INIT:
    case EMU_MBARRIER_ARRIVE:
    case EMU_MBARRIER_WAIT: async_mbarrier(d, event); break;
    case EMU_COPY_DONE: async_copy_done(d, event); break;
    case EMU_BULK_SOURCE: async_source_read(d, event); break;
    case EMU_PROXY_FENCE: async_fence(d, event); break;
    case EMU_MATRIX_COMMIT:
    case EMU_MATRIX_WAIT: async_matrix_group(d, event); break;
    }
}

static bool on_exhausted(void *state) {
    const detector *d = state;
    return d->out_of_memory || d->hb.out_of_memory || d->found.out_of_memory;
}

static void on_fault(void *self, const emu_fault *fault) {
    static const smk_hazard_kind kinds[] = {[EMU_OUT_OF_BOUNDS] = SMK_HAZARD_OUT_OF_BOUNDS,
                                            [EMU_MISALIGNED] = SMK_HAZARD_MISALIGNED,
                                            [EMU_DEADLOCK] = SMK_HAZARD_DEADLOCK,
                                            [EMU_SHARED_LIMIT] = SMK_HAZARD_SHARED_LIMIT};
    hazards *h = self;
    finding f = {.kind = kinds[fault->kind],
                 .op = {.ptx = fault->ptx, .thread = fault->thread},
                 .address = fault->address,
                 .width = fault->width,
                 .count = 1,
                 .message = strdup(fault->message)};
    if (fault->block) memcpy(f.op.block, fault->block, sizeof f.op.block);
    findings_add(&h->found, f);
    h->stopped = true;
}

/* ---- host threads ---- */

static void detector_free(detector *d) {
    if (!d) return;
    hb_free(&d->hb);
    shadow_free(&d->shared);
    for (uint32_t k = 0; d->regions && k < d->launch->n_regions; k++)
        shadow_free(&d->regions[k]);
    findings_free(&d->found);
    free(d->regions);
    free(d->readers);
    free(d->last_run);
    free(d->proxy_fence);
    for (uint32_t k = 0; d->matrix_reads && k < d->launch->n_warps; k++)
        free(d->matrix_reads[k].offsets);
    free(d->matrix_reads);
    cas_reads_free(d);
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
    d->row = row_functions_for_cpu();
    d->lanes = lane_functions_for_cpu();
    d->regions = calloc(l->n_regions, sizeof *d->regions);
    d->last_run = calloc((size_t)l->n_warps * h->sites.n, sizeof *d->last_run);
    d->proxy_fence = calloc((size_t)l->n_warps * LANES, sizeof *d->proxy_fence);
    d->matrix_reads = calloc(l->n_warps, sizeof *d->matrix_reads);
    const bool started = hb_init(&d->hb, l, h->sites.fine_grained, h->sites.sequential) &&
                         shadow_init(&d->shared, REGION_BASE(REGION_SHARED), l->shared_region_bytes,
                                     !(h->flags & SMK_EQUAL_WRITES));
    if (started && cas_reads_init(d) && d->regions && d->last_run && d->proxy_fence &&
        d->matrix_reads)
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
    h->out_of_memory |= on_exhausted(d);
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
    *sequential |= h->sites.sequential;
    return true;
}

static void on_finish(void *self) {
    hazards *h = self;
    blocks_compare(h);
    cas_reads_classify(h);
    unwritten_note(h);
    for (detector *d = h->joined, *next; d; d = next) {
        next = d->next;
        detector_free(d);
    }
    h->joined = NULL;
}

hazards *hazards_new(unsigned flags) {
    hazards *h = calloc(1, sizeof *h);
    if (h) h->flags = flags;
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
                          .sync = on_sync,
                          .block = on_block,
                          .exhausted = on_exhausted,
                          .fault = on_fault};
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
    out->incomplete = h->stopped;
    return SMK_OK;
}
