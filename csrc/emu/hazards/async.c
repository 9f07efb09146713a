/* Asynchronous operations: mbarriers, copies in flight, and the asynchronous proxy.
 *
 * An mbarrier is an object in shared memory: mbarrier.init writes it, and every other operation on
 * it must be ordered after that write. An access by a copy or by wgmma has the time TIME_IN_FLIGHT
 * until it completes, and then the time of completion.
 *
 * Bulk copies and wgmma access shared memory through the asynchronous proxy. It sees a thread's
 * write only after a proxy fence, by the writer or by the thread that issues the operation (PTX
 * ISA, "Async proxy"; proxy_fences.c). A fence by a third thread would do, too, but is not tracked:
 * a program that relies on one is reported although it is correct.
 *
 * A bulk copy that completes on an mbarrier finds its initialisation without such a fence in
 * practice: libcu++ and Triton have none after mbarrier.init. So a missing one is a note, not a
 * hazard.
 */
#include <stdlib.h>
#include <string.h>

#include "detector.h"
#include "../base/lanes.h"

/* The instruction's site; 0: unknown. */
static uint32_t find_site(const detector *d, const ptx_instruction *ptx) {
    const site_table *t = &d->hazards->sites;
    for (uint32_t k = 0; ptx && k < t->n_functions; k++) {
        const ptx_function *f = t->functions[k];
        const uintptr_t at = (uintptr_t)ptx - (uintptr_t)f->instructions;
        if (at < f->n_instructions * sizeof *ptx)
            return t->first_site[k] + (uint32_t)(at / sizeof *ptx);
    }
    return 0;
}

/* ---- the proxy ---- */

static void check_proxy(detector *d, const shadow *s, uint64_t granule, epoch now,
                        smk_hazard_kind kind) {
    const epoch e = s->epochs.write[granule];
    const uint32_t time = epoch_time(e), thread = epoch_thread(now);
    if (!e || time == TIME_IN_FLIGHT || time < d->hb.begin ||
        d->hazards->sites.sites[epoch_site(e)].bulk || hb_proxy_fenced(&d->hb, e, thread))
        return;
    if (kind == SMK_HAZARD_PROXY && !hb_before(&d->hb, e, thread)) return; /* a race: reported */
    granule_report(d, s, granule, kind, now, e);
}

void async_check(detector *d, const shadow *s, uint64_t granule, epoch now) {
    check_proxy(d, s, granule, now, SMK_HAZARD_PROXY);
}

/* ---- mbarriers ---- */

enum { OBJECT_BYTES = 8 };

/* An mbarrier.init of an mbarrier that mbarrier.inval has not ended. That is undefined in PTX, but
 * harmless on GPUs if no operation races with it: a note. Only mbarrier.init leaves epochs
 * there. */
static void check_again(detector *d, const shadow *s, uint64_t granule, epoch now) {
    const epoch e = s->epochs.write[granule];
    const ptx_instruction *by = d->hazards->sites.sites[epoch_site(e)].ptx;
    if (e && epoch_time(e) >= d->hb.begin && by && by->op == PTX_OP_mbarrier)
        granule_report(d, s, granule, SMK_HAZARD_INIT_AGAIN, now, e);
}

/* Another block's is recorded, because it must not exit before. */
static void read_object(detector *d, shadow *s, uint64_t granule, epoch now, bool is_other) {
    if (!is_other) {
        granule_check(d, s, granule, now);
        return;
    }
    granule_check_value(d, s, granule, now);
    granule_read(d, s, granule, now, &d->uninitialised_limits, &d->shared_limits);
}

/* A bulk copy reads the object through the asynchronous proxy. Another block's may not have been
 * initialised yet, if nothing orders that before. */
static void check_completion(detector *d, shadow *s, uint64_t granule, epoch now, bool is_other) {
    check_proxy(d, s, granule, now, SMK_HAZARD_PROXY_INIT);
    if (is_other) granule_check(d, s, granule, now);
}

/* Checks an operation on the mbarrier object itself, of a thread or of a copy that completes. */
static void access_object(detector *d, const emu_sync *event, uint32_t thread) {
    shadow *s = &d->members[event->owner].shared;
    if (!s->epochs.read && !shadow_add_readers(d, s)) return;
    const bool initialises = event->kind == EMU_MBARRIER_INIT;
    const uint32_t site = find_site(d, event->ptx);
    const epoch now = epoch_make(d->hb.time, site, thread, initialises ? WEAK : ATOMIC);
    const uint64_t first = event->object >> s->shift, n = OBJECT_BYTES >> s->shift;
    d->last_run[(size_t)event->warp * d->hazards->sites.n + site] = event->clock;
    if (event->again) check_again(d, s, first, now);
    for (uint64_t k = first; k < first + n; k++)
        if (initialises)
            granule_write(d, s, k, now, &d->shared_limits, NULL);
        else if (event->address)
            check_completion(d, s, k, now, event->owner != event->member);
        else
            read_object(d, s, k, now, event->owner != event->member);
    s->written |= initialises;
}

/* The thread's cp.async or bulk copies that are writing these bytes complete. */
static void complete_writes(detector *d, shadow *s, uint32_t thread, uint64_t offset,
                            uint64_t bytes) {
    const uint64_t first = offset >> s->shift, n = bytes >> s->shift;
    for (uint64_t k = first; k < first + n; k++) {
        epoch *e = &s->epochs.write[k];
        if (epoch_time(*e) == TIME_IN_FLIGHT && epoch_thread(*e) == thread)
            *e = (*e & 0xffffffffu) | (epoch)d->hb.time << EPOCH_TIME_SHIFT;
    }
}

/* A bulk copy counts as an access by the thread that issued it, and its completion as an arrival by
 * that thread. Unless they are .relaxed, an arrival is a release operation, and a wait that
 * succeeds an acquire operation. Without a scope they count as .cluster: the default is .cta, but
 * programs use it for other blocks' mbarriers, too. All of them observe all arrivals. */
void async_mbarrier(detector *d, const emu_sync *event) {
    const uint64_t object = shared_object(event->owner) + event->object;
    for (uint32_t left = event->lanes; left; left &= left - 1) {
        const uint32_t thread = event->warp * LANES + (uint32_t)first_lane(left);
        access_object(d, event, thread);
        if (event->kind == EMU_MBARRIER_INIT) continue;
        const uint64_t has = event->ptx && !event->address ? event->ptx->has : 0;
        const bool relaxed = has & PTX_HAS_RELAXED;
        const hb_scope scope = has & PTX_HAS_CTA ? SCOPE_CTA : SCOPE_CLUSTER;
        const hb_access access = {object,
                                  OBJECT_BYTES,
                                  d->hb.first + thread,
                                  {scope, !relaxed, !relaxed, false},
                                  SCOPE_CLUSTER};
        if (event->kind == EMU_MBARRIER_WAIT) {
            hb_strong_read(&d->hb, &access);
            continue;
        }
        if (event->address)
            complete_writes(d, &d->members[event->owner].shared, thread, event->address[0],
                            event->width);
        hb_strong_write(&d->hb, &access, true);
    }
    detector_set_limits(d);
}

/* ---- copies ---- */

void async_copy_done(detector *d, const emu_sync *event) {
    for (uint32_t left = event->lanes; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)first_lane(left);
        complete_writes(d, d->shared, event->warp * LANES + lane, event->address[lane],
                        event->width);
    }
}

/* Of the thread's bulk stores and wgmma that are reading these bytes, the first one completes. */
static void complete_reads(detector *d, uint32_t thread, uint64_t offset, uint64_t bytes) {
    shadow *s = d->shared;
    const uint64_t first = offset >> s->shift, n = bytes >> s->shift;
    for (uint64_t k = first; s->epochs.other_read && k < first + n; k++)
        for (uint32_t at = (uint32_t)s->epochs.other_read[k]; at; at = d->entries[at].next) {
            access_entry *r = &d->entries[at];
            if (epoch_time(r->e) != TIME_IN_FLIGHT || epoch_thread(r->e) != thread) continue;
            if (!--r->in_flight)
                r->e = (r->e & 0xffffffffu) | (epoch)d->hb.time << EPOCH_TIME_SHIFT;
        }
}

void async_source_read(detector *d, const emu_sync *event) {
    const uint32_t thread = event->warp * LANES + (uint32_t)first_lane(event->lanes);
    complete_reads(d, thread, event->address[0], event->width);
}

/* ---- wgmma ---- */

static void append_read(detector *d, matrix_reads *reads, uint32_t offset) {
    if (reads->n == reads->capacity) {
        enum { MAX_READS = 1 << 22 }; /* per warp: 16 MiB */
        const size_t capacity = reads->capacity ? 2 * reads->capacity : 1024;
        uint32_t *larger =
            capacity <= MAX_READS ? realloc(reads->offsets, capacity * sizeof *larger) : NULL;
        if (!larger) {
            d->out_of_memory = true;
            return;
        }
        reads->offsets = larger;
        reads->capacity = capacity;
    }
    reads->offsets[reads->n++] = offset;
}

void async_matrix_read(detector *d, uint32_t warp, uint64_t offset) {
    append_read(d, &d->matrix_reads[warp], (uint32_t)offset);
}

void async_matrix_group(detector *d, const emu_sync *event) {
    enum { CHUNK_BYTES = 16 };
    matrix_reads *reads = &d->matrix_reads[event->warp];
    if (event->kind == EMU_MATRIX_COMMIT) {
        append_read(d, reads, MATRIX_COMMIT);
        return;
    }
    size_t groups = 0, k = 0;
    for (size_t at = 0; at < reads->n; at++)
        groups += reads->offsets[at] == MATRIX_COMMIT;
    for (; groups > event->object; k++)
        if (reads->offsets[k] == MATRIX_COMMIT)
            groups--;
        else
            complete_reads(d, event->warp * LANES, reads->offsets[k], CHUNK_BYTES);
    reads->n -= k;
    if (k) memmove(reads->offsets, reads->offsets + k, reads->n * sizeof *reads->offsets);
}
