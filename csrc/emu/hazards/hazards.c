/* Finds hazards while a launch runs: data races in shared and global memory, reads of shared memory that
 * nobody has written, copies that nobody waited for, barriers that not everybody reaches, and the faults
 * that end a launch.
 *
 * A race is two accesses that nothing orders, whichever happened first in this run; hazards_order.h says
 * what orders them, hazards_access.c has the epochs that accesses leave.
 */
#include "hazards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "detector.h"
#include "../base/lanes.h"

/* ---- limits of the fast paths ---- */

void detector_set_limits(detector *w) {
    const epoch begin = (epoch)w->hb.begin << EPOCH_TIME_AT;
    const epoch floor = (epoch)w->hb.floor << EPOCH_TIME_AT;
    const epoch in_flight = (epoch)TIME_IN_FLIGHT << EPOCH_TIME_AT;
    w->blank_loads = (row_limits){begin, floor - begin, in_flight - begin, 0};
    w->shared_rest = (row_limits){0, floor, in_flight, 0};
    w->global = (row_limits){begin, floor - begin, in_flight - begin, ~(epoch)0};
}

/* ---- blocks ---- */

static void note_block(detector *w, const uint32_t block[3]) {
    if (w->n_blocks == w->room_blocks) {
        const size_t room = w->room_blocks ? 2 * w->room_blocks : 64;
        uint32_t *starts = realloc(w->starts, room * sizeof *starts);
        if (starts) w->starts = starts;
        uint32_t (*blocks)[3] = realloc(w->blocks, room * sizeof *blocks);
        if (blocks) w->blocks = blocks;
        if (!starts || !blocks) {
            w->out_of_memory = true;
            return;
        }
        w->room_blocks = room;
    }
    w->starts[w->n_blocks] = w->hb.begin;
    memcpy(w->blocks[w->n_blocks++], block, sizeof w->blocks[0]);
}

finding_party detector_party(const detector *w, epoch m) {
    finding_party p = {.ptx = w->all->sites.sites[epoch_site(m)].ptx, .thread = epoch_thread(m)};
    memcpy(p.block, w->block, sizeof p.block);
    size_t low = 0, high = w->n_blocks;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (w->starts[middle] <= epoch_time(m))
            low = middle;
        else
            high = middle;
    }
    if (m && high) memcpy(p.block, w->blocks[low], sizeof p.block);
    return p;
}

/* Time began anew: what is left of before would look new. */
static void forget_marks(detector *w) {
    shadow_free(&w->shared);
    for (uint32_t k = 0; k < w->launch->n_regions; k++)
        shadow_free(&w->regions[k]);
    w->forgot = true;
    w->n_blocks = 0;
    memset(w->proxied, 0, w->launch->n_warps * LANES * sizeof *w->proxied);
    w->out_of_memory |= !shadow_init(&w->shared, REGION_BASE(REGION_SHARED),
                                     w->launch->shared_bytes, !(w->all->flags & SMK_EQUAL_WRITES));
}

static void on_block(void *state, const uint32_t block[3], bool begin) {
    detector *w = state;
    const launch *l = w->launch;
    if (!begin) {
        access_end_block(w);
        return;
    }
    memcpy(w->block, block, sizeof w->block);
    const uint64_t linear =
        block[0] + (uint64_t)l->grid[0] * (block[1] + (uint64_t)l->grid[1] * block[2]);
    if (!hb_begin_block(&w->hb, linear)) forget_marks(w);
    for (uint32_t k = 0; k < l->n_warps; k++) {
        const uint32_t rest = w->hb.n_threads - k * LANES;
        w->born[k] = w->alive[k] = rest >= LANES ? FULL : (1u << rest) - 1;
        w->start[k] = w->waited[k] = 0;
        w->matrix_reads[k].n = 0;
    }
    memset(w->barriers, 0, sizeof w->barriers);
    note_block(w, block);
    detector_set_limits(w);
}

/* ---- events ---- */

static void on_memory(void *state, const emu_request *request) {
    access_request(state, request);
}

static void on_sync(void *state, const emu_sync *event) {
    detector *w = state;
    switch (event->kind) {
    case EMU_BARRIER_ARRIVE:
    case EMU_BARRIER_COMPLETE: barrier_event(w, event); break;
    case EMU_WARP_SYNC: hb_sync_lanes(&w->hb, event->warp, event->lanes); break;
    case EMU_FENCE: hb_fence(&w->hb, event->warp, event->lanes); break;
    case EMU_LAUNCH_WAIT: overlap_wait(w, event->warp, event->lanes); break;
    case EMU_EXIT: w->alive[event->warp] &= ~event->lanes; break;
    case EMU_MBARRIER_INIT:
    case EMU_MBARRIER_ARRIVE:
    case EMU_MBARRIER_WAIT: async_mbarrier(w, event); break;
    case EMU_COPY_DONE: async_copy_done(w, event); break;
    case EMU_BULK_SOURCE: async_source_read(w, event); break;
    case EMU_PROXY_FENCE: async_fence(w, event); break;
    case EMU_MATRIX_COMMIT:
    case EMU_MATRIX_WAIT: async_matrix_group(w, event); break;
    }
}

static bool on_exhausted(void *state) {
    const detector *w = state;
    return w->out_of_memory || w->hb.out_of_memory || w->found.out_of_memory;
}

static void on_fault(void *self, const emu_fault *fault) {
    static const smk_hazard_kind kinds[] = {[EMU_OUT_OF_BOUNDS] = SMK_HAZARD_OUT_OF_BOUNDS,
                                            [EMU_MISALIGNED] = SMK_HAZARD_MISALIGNED,
                                            [EMU_DEADLOCK] = SMK_HAZARD_DEADLOCK,
                                            [EMU_SHARED_LIMIT] = SMK_HAZARD_SHARED_LIMIT};
    hazards *h = self;
    finding f = {.kind = kinds[fault->kind],
                 .party = {.ptx = fault->ptx, .thread = fault->thread},
                 .address = fault->address,
                 .width = fault->width,
                 .count = 1,
                 .message = strdup(fault->message)};
    if (fault->block) memcpy(f.party.block, fault->block, sizeof f.party.block);
    findings_add(&h->found, f);
    h->stopped = true;
}

/* ---- host threads ---- */

static void watch_free(detector *w) {
    if (!w) return;
    hb_free(&w->hb);
    shadow_free(&w->shared);
    for (uint32_t k = 0; w->regions && k < w->launch->n_regions; k++)
        shadow_free(&w->regions[k]);
    findings_free(&w->found);
    free(w->regions);
    free(w->readers);
    free(w->position);
    free(w->proxied);
    for (uint32_t k = 0; w->matrix_reads && k < w->launch->n_warps; k++)
        free(w->matrix_reads[k].at);
    free(w->matrix_reads);
    free(w->starts);
    free(w->blocks);
    free(w);
}

static void *on_fork(void *self) {
    hazards *h = self;
    const launch *l = h->launch;
    detector *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->all = h;
    w->launch = l;
    w->row = row_functions_for_cpu();
    w->lanes = lane_functions_for_cpu();
    w->regions = calloc(l->n_regions, sizeof *w->regions);
    w->position = calloc((size_t)l->n_warps * h->sites.n, sizeof *w->position);
    w->proxied = calloc((size_t)l->n_warps * LANES, sizeof *w->proxied);
    w->matrix_reads = calloc(l->n_warps, sizeof *w->matrix_reads);
    const bool started = hb_init(&w->hb, l, h->sites.fine, h->sites.sequential) &&
                         shadow_init(&w->shared, REGION_BASE(REGION_SHARED), l->shared_bytes,
                                     !(h->flags & SMK_EQUAL_WRITES));
    if (started && w->regions && w->position && w->proxied && w->matrix_reads) return w;
    watch_free(w);
    return NULL;
}

static void on_join(void *self, void *state) {
    hazards *h = self;
    detector *w = state;
    for (size_t k = 0; k < w->found.n; k++) {
        findings_add(&h->found, w->found.items[k]);
        w->found.items[k].message = NULL;
    }
    h->out_of_memory |= on_exhausted(w);
    w->next = h->joined;
    h->joined = w;
}

/* ---- launches ---- */

/* The emulator runs it all the same; no assembler makes code of it. */
static void note_static_limit(hazards *h, const launch *l) {
    enum { MAX_STATIC_BYTES = 48 * 1024 };
    const ptx_function *f = l->program->function;
    char message[400];
    if (f->shared_bytes <= MAX_STATIC_BYTES) return;
    snprintf(
        message, sizeof message,
        "kernel %.200s declares %llu bytes of shared memory; %d are possible without asking for "
        "dynamic shared memory at the launch",
        f->name, (unsigned long long)f->shared_bytes, MAX_STATIC_BYTES);
    findings_add(
        &h->found,
        (finding){.kind = SMK_HAZARD_SHARED_LIMIT, .count = 1, .message = strdup(message)});
}

static bool on_launch(void *self, const launch *l, bool *sequential) {
    hazards *h = self;
    sites_free(&h->sites);
    h->launch = l;
    h->scene.dynamic_shared_at = l->dynamic_shared_at;
    h->scene.module = l->module->ptx;
    h->scene.entry = l->program->function;
    memcpy(h->scene.block, l->block, sizeof h->scene.block);
    note_static_limit(h, l);
    if (!overlap_begin(h, l)) return false;
    if (!sites_read(&h->sites, l->module->ptx, l->program->function)) return false;
    *sequential |= h->sites.sequential;
    return true;
}

static void on_finish(void *self) {
    hazards *h = self;
    blocks_compare(h);
    unwritten_note(h);
    for (detector *w = h->joined, *next; w; w = next) {
        next = w->next;
        watch_free(w);
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
        return smk_fail_memory(status, 0, "what a search for hazards remembers");
    h->scene.trace = out;
    out->n_hazards = findings_tell(&h->found, &h->scene, out->hazards);
    out->checked = true;
    out->incomplete = h->stopped;
    return SMK_OK;
}
