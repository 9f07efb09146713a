/* Launches of a job that may begin before the one before them has ended (programmatic dependent launch).
 *
 *     launch 0   reads and writes                    what it touched is noted, a byte for 4 of memory
 *     launch 1   | accesses    | griddepcontrol.wait | accesses      reads of what 0 wrote, and writes of what 0
 *                 here: hazards                                      touched, are ordered after the wait only
 *     launch 2   | ...         | griddepcontrol.wait | ...           waits for 1; that covers 0 if 1 waited, too
 *
 * Here launches run one after the other, so nothing goes wrong; on a GPU it may. A thread's accesses are
 * ordered by its own wait, not by another thread's and a barrier: a rule that is easily kept.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "detector.h"
#include "../base/lanes.h"

/* What a word of memory has seen: of this launch, of the one before, of those that nobody has waited for. */
enum { READ = 1, WRITTEN = 2, BEFORE = 2, EARLIER = 4, GRANULE_SHIFT = 2 };

typedef struct touched {
    _Atomic unsigned char *words;
    uint64_t n;
} touched;

typedef struct overlap {
    touched *regions;
    uint32_t n_regions;
    bool overlapped;    /* the launch before did ... */
    atomic_bool waited; /* ... and a thread of it has waited */
} overlap;

void overlap_free(overlap *o) {
    for (uint32_t k = 0; o && k < o->n_regions; k++)
        free(o->regions[k].words);
    if (o) free(o->regions);
    free(o);
}

static bool start(hazards *h, const launch *l) {
    overlap *o = h->overlap = calloc(1, sizeof *o);
    if (!o || !(o->regions = calloc(l->n_regions, sizeof *o->regions))) return false;
    o->n_regions = l->n_regions;
    for (uint32_t k = REGION_GLOBAL; k < l->n_regions; k++) {
        touched *t = &o->regions[k];
        t->n = (l->regions[k].size >> GRANULE_SHIFT) + 1;
        t->words = calloc(t->n, sizeof *t->words);
        if (!t->words) return false;
    }
    return true;
}

bool overlap_begin(hazards *h, const launch *l) {
    if (!l->overlaps && !l->followed && !h->overlap) return true;
    if (!h->overlap) return start(h, l);
    overlap *o = h->overlap;
    const bool skipped = o->overlapped && !atomic_load(&o->waited);
    for (uint32_t k = REGION_GLOBAL; k < o->n_regions; k++)
        for (uint64_t i = 0; i < o->regions[k].n; i++) {
            const unsigned seen = o->regions[k].words[i], now = seen & (READ | WRITTEN);
            const unsigned earlier = (seen >> BEFORE | seen >> EARLIER) & (READ | WRITTEN);
            o->regions[k].words[i] =
                (unsigned char)(l->overlaps ? now << BEFORE | (skipped ? earlier << EARLIER : 0)
                                            : 0);
        }
    o->overlapped = l->overlaps;
    atomic_store(&o->waited, false);
    return true;
}

void overlap_wait(detector *w, uint32_t warp, uint32_t lanes) {
    w->waited[warp] |= lanes;
    if (w->all->overlap) atomic_store(&w->all->overlap->waited, true);
}

static void report(detector *w, uint32_t site, uint32_t thread, uint64_t address, uint32_t width) {
    const epoch m = epoch_make(w->hb.time, site, thread, WEAK);
    findings_add(&w->found, (finding){.kind = SMK_HAZARD_OVERLAP,
                                      .party = detector_party(w, m),
                                      .address = address,
                                      .width = width,
                                      .count = 1});
}

void overlap_request(detector *w, const emu_request *r, uint32_t site) {
    const overlap *o = w->all->overlap;
    const bool pieces = r->operation == EMU_BULK_READ || r->operation == EMU_BULK_WRITE;
    const bool atomic = r->operation == EMU_ATOMIC;
    const bool write = atomic || r->operation == EMU_STORE || r->operation == EMU_BULK_WRITE;
    const unsigned now = (write ? WRITTEN : 0) | (!write || atomic ? READ : 0);
    const unsigned against = write ? READ | WRITTEN : WRITTEN;
    for (uint32_t left = r->active; left; left &= left - 1) {
        const int lane = first_lane(left);
        const uint64_t id = REGION_OF(r->address[lane]);
        if (id < REGION_GLOBAL || id >= o->n_regions) continue;
        const touched *t = &o->regions[id];
        const uint64_t first = REGION_OFFSET(r->address[lane]) >> GRANULE_SHIFT;
        const uint64_t last = (REGION_OFFSET(r->address[lane]) + r->width - 1) >> GRANULE_SHIFT;
        const uint32_t asking = pieces ? r->bulk_lane : (uint32_t)lane;
        const bool waited = w->waited[r->warp] >> asking & 1;
        for (uint64_t word = first; word <= last && word < t->n; word++) {
            const unsigned seen = t->words[word];
            if ((!waited && seen >> BEFORE & against) || seen >> EARLIER & against)
                report(w, site, r->warp * LANES + asking, r->address[lane], r->width);
            if ((seen & now) != now) atomic_fetch_or(&t->words[word], (unsigned char)now);
        }
    }
}
