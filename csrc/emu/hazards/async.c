/* What runs beside the threads: mbarriers, copies in flight, and the asynchronous proxy.
 *
 * An mbarrier is memory: who makes it writes it, and all that anybody does with it comes after. A copy's
 * accesses have no time until it is done. Bulk copies and wgmma look at shared memory through a proxy of their
 * own, which sees a thread's writes only if it, or the thread that asks, has had a fence to it since (PTX ISA,
 * "Async proxy"). A third thread's fence would do, too, but nobody keeps account of whose: with one such a
 * program is reported that need not be.
 */
#include <stdlib.h>
#include <string.h>

#include "detector.h"
#include "../base/lanes.h"

/* 0: not known. */
static uint32_t site_of(const detector *w, const ptx_instruction *ptx) {
    const site_table *t = &w->all->sites;
    for (uint32_t k = 0; ptx && k < t->n_functions; k++) {
        const ptx_function *f = t->functions[k];
        const uintptr_t at = (uintptr_t)ptx - (uintptr_t)f->instructions;
        if (at < f->n_instructions * sizeof *ptx) return t->base[k] + (uint32_t)(at / sizeof *ptx);
    }
    return 0;
}

/* ---- the proxy ---- */

void async_fence(detector *w, const emu_sync *event) {
    for (uint32_t left = event->lanes; left; left &= left - 1)
        w->proxied[event->warp * LANES + (uint32_t)first_lane(left)] = w->hb.time;
}

void async_check(detector *w, const shadow *s, uint64_t granule, epoch now) {
    const epoch m = s->epochs.write[granule];
    const uint32_t time = epoch_time(m);
    if (!m || time == TIME_IN_FLIGHT || time < w->hb.begin ||
        w->all->sites.sites[epoch_site(m)].bulk || w->proxied[epoch_thread(m)] >= time ||
        w->proxied[epoch_thread(now)] >= time)
        return;
    granule_report(w, s, granule, SMK_HAZARD_PROXY, now, m);
}

/* ---- mbarriers ---- */

/* A bulk copy that arrives finds what the thread that asked for it finds, by way of the proxy. */
static void touch_object(detector *w, const emu_sync *event, uint32_t thread) {
    enum { OBJECT_BYTES = 8 };
    shadow *s = &w->shared;
    if (!s->epochs.read && !shadow_add_readers(w, s)) return;
    const bool makes = event->kind == EMU_MBARRIER_INIT;
    const uint32_t site = site_of(w, event->ptx);
    const epoch mine = epoch_make(w->hb.time, site, thread, makes ? WEAK : ATOMIC);
    const uint64_t first = event->object >> s->shift, n = OBJECT_BYTES >> s->shift;
    w->position[(size_t)event->warp * w->all->sites.n + site] = event->clock;
    for (uint64_t k = first; k < first + n; k++) {
        if (makes)
            granule_write(w, s, k, mine, &w->shared_rest, NULL);
        else if (event->address)
            async_check(w, s, k, mine);
        else
            granule_check(w, s, k, mine);
    }
    s->written |= makes;
}

static void land(detector *w, uint32_t thread, uint64_t offset, uint64_t bytes) {
    shadow *s = &w->shared;
    const uint64_t first = offset >> s->shift, n = bytes >> s->shift;
    for (uint64_t k = first; k < first + n; k++) {
        epoch *m = &s->epochs.write[k];
        if (epoch_time(*m) == TIME_IN_FLIGHT && epoch_thread(*m) == thread)
            *m = (*m & 0xffffffffu) | (epoch)w->hb.time << EPOCH_TIME_AT;
    }
}

/* A bulk copy is an access of the thread that asked for it, and arrives for it at the mbarrier. */
void async_mbarrier(detector *w, const emu_sync *event) {
    const uint64_t object = REGION_BASE(REGION_SHARED) + event->object;
    for (uint32_t left = event->lanes; left; left &= left - 1) {
        const uint32_t thread = event->warp * LANES + (uint32_t)first_lane(left);
        touch_object(w, event, thread);
        if (event->kind == EMU_MBARRIER_INIT) continue;
        if (event->kind == EMU_MBARRIER_WAIT) {
            hb_acquire(&w->hb, object, thread);
            continue;
        }
        if (event->address) land(w, thread, event->address[0], event->width);
        hb_fence(&w->hb, event->warp, left & -left);
        hb_release(&w->hb, object, thread);
    }
    detector_set_limits(w);
}

/* ---- copies ---- */

void async_copy_done(detector *w, const emu_sync *event) {
    for (uint32_t left = event->lanes; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)first_lane(left);
        land(w, event->warp * LANES + lane, event->address[lane], event->width);
    }
}

/* What a thread's copies or products have been reading there has been read. */
static void end_reads(detector *w, uint32_t thread, uint64_t offset, uint64_t bytes) {
    shadow *s = &w->shared;
    const uint64_t first = offset >> s->shift, n = bytes >> s->shift;
    for (uint64_t k = first; s->epochs.other && k < first + n; k++)
        for (uint32_t at = (uint32_t)s->epochs.other[k]; at; at = w->readers[at].next) {
            epoch *m = &w->readers[at].m;
            if (epoch_time(*m) == TIME_IN_FLIGHT && epoch_thread(*m) == thread)
                *m = (*m & 0xffffffffu) | (epoch)w->hb.time << EPOCH_TIME_AT;
        }
}

void async_source_read(detector *w, const emu_sync *event) {
    const uint32_t thread = event->warp * LANES + (uint32_t)first_lane(event->lanes);
    end_reads(w, thread, event->address[0], event->width);
}

/* ---- wgmma ---- */

static void note_read(detector *w, matrix_reads *reads, uint32_t at) {
    if (reads->n == reads->room) {
        enum { MAX_READS = 1 << 22 }; /* of a warp: 16 MiB */
        const size_t room = reads->room ? 2 * reads->room : 1024;
        uint32_t *more = room <= MAX_READS ? realloc(reads->at, room * sizeof *more) : NULL;
        if (!more) {
            w->out_of_memory = true;
            return;
        }
        reads->at = more;
        reads->room = room;
    }
    reads->at[reads->n++] = at;
}

void async_matrix_read(detector *w, uint32_t warp, uint64_t offset) {
    note_read(w, &w->matrix_reads[warp], (uint32_t)offset);
}

void async_matrix_group(detector *w, const emu_sync *event) {
    enum { PIECE = 16 };
    matrix_reads *reads = &w->matrix_reads[event->warp];
    if (event->kind == EMU_MATRIX_COMMIT) {
        note_read(w, reads, MATRIX_COMMIT);
        return;
    }
    size_t groups = 0, k = 0;
    for (size_t at = 0; at < reads->n; at++)
        groups += reads->at[at] == MATRIX_COMMIT;
    for (; groups > event->object; k++)
        if (reads->at[k] == MATRIX_COMMIT)
            groups--;
        else
            end_reads(w, event->warp * LANES, reads->at[k], PIECE);
    reads->n -= k;
    if (k) memmove(reads->at, reads->at + k, reads->n * sizeof *reads->at);
}
