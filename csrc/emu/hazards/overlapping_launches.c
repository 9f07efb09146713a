/* Launches of a job that overlap (programmatic dependent launch).
 *
 *     launch 0   accesses
 *     launch 1   accesses (1) | griddepcontrol.wait | accesses (2)
 *     launch 2   accesses     | griddepcontrol.wait | accesses
 *
 * Launch 1 may begin before launch 0 has ended. Its accesses (2) are ordered after launch 0,
 * accesses (1) are not: there, a read of what launch 0 writes and a write of what launch 0 accesses
 * are hazards. The wait of launch 2 is for launch 1, and covers launch 0 only if launch 1 has
 * waited, too. Accesses are recorded in one byte per 4 bytes of memory.
 *
 * The emulator runs launches one after the other, so its results are right; on a GPU they may be
 * wrong. Only a thread's own wait orders its accesses, not another thread's wait followed by a
 * barrier. This is stricter than necessary, but easy for kernels to follow.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "../base/size.h"
#include "detector.h"
#include "../base/lanes.h"

/* Flags of a word: bits 0-1 for accesses by this launch, bits 2-3 by the previous one, bits 4-5 by
 * earlier ones that have not been waited for. */
enum { READ = 1, WRITTEN = 2, PREVIOUS_SHIFT = 2, EARLIER_SHIFT = 4, WORD_SHIFT = 2 };

typedef struct accessed_words {
    _Atomic unsigned char *words;
    uint64_t n;
} accessed_words;

typedef struct overlap {
    accessed_words *regions;
    uint32_t n_regions;
    bool overlapped;    /* the last launch begun overlaps the one before it ... */
    atomic_bool waited; /* ... and one of its threads has waited */
} overlap;

void overlap_free(overlap *o) {
    for (uint32_t k = 0; o && k < o->n_regions; k++)
        free(o->regions[k].words);
    if (o) free(o->regions);
    free(o);
}

static bool overlap_new(hazards *h, const launch *l) {
    overlap *o = h->overlap = calloc(1, sizeof *o);
    if (!o || !(o->regions = calloc(l->n_regions, sizeof *o->regions))) return false;
    o->n_regions = l->n_regions;
    for (uint32_t k = REGION_GLOBAL; k < l->n_regions; k++) {
        accessed_words *t = &o->regions[k];
        t->n = (l->regions[k].size >> WORD_SHIFT) + 1;
        t->words = calloc(size_from(t->n), sizeof *t->words);
        if (!t->words) return false;
    }
    return true;
}

bool overlap_begin(hazards *h, const launch *l) {
    if (!l->overlaps && !l->followed && !h->overlap) return true;
    if (!h->overlap) return overlap_new(h, l);
    overlap *o = h->overlap;
    const bool previous_has_not_waited = o->overlapped && !atomic_load(&o->waited);
    for (uint32_t k = REGION_GLOBAL; k < o->n_regions; k++)
        for (uint64_t i = 0; i < o->regions[k].n; i++) {
            const unsigned flags = o->regions[k].words[i], now = flags & (READ | WRITTEN);
            const unsigned earlier =
                (flags >> PREVIOUS_SHIFT | flags >> EARLIER_SHIFT) & (READ | WRITTEN);
            o->regions[k].words[i] =
                (unsigned char)(l->overlaps
                                    ? now << PREVIOUS_SHIFT |
                                          (previous_has_not_waited ? earlier << EARLIER_SHIFT : 0)
                                    : 0);
        }
    o->overlapped = l->overlaps;
    atomic_store(&o->waited, false);
    return true;
}

void overlap_wait(detector *d, uint32_t warp, uint32_t lanes) {
    d->launch_waited[warp] |= lanes;
    if (d->hazards->overlap) atomic_store(&d->hazards->overlap->waited, true);
}

static void report(detector *d, uint32_t site, uint32_t thread, uint64_t address, uint32_t width) {
    const epoch e = epoch_make(d->hb.time, site, thread, WEAK);
    findings_add(&d->found, (finding){.kind = SMK_HAZARD_OVERLAP,
                                      .op = detector_op(d, e),
                                      .address = address,
                                      .width = width,
                                      .count = 1});
}

void overlap_request(detector *d, const emu_request *r, uint32_t site) {
    const overlap *o = d->hazards->overlap;
    const bool chunks = r->operation == EMU_BULK_READ || r->operation == EMU_BULK_WRITE;
    const bool atomic = r->operation == EMU_ATOMIC;
    const bool write = atomic || r->operation == EMU_STORE || r->operation == EMU_BULK_WRITE;
    const unsigned now = (write ? WRITTEN : 0) | (!write || atomic ? READ : 0);
    const unsigned conflicts = write ? READ | WRITTEN : WRITTEN;
    for (uint32_t left = r->active; left; left &= left - 1) {
        const int lane = first_lane(left);
        const uint64_t id = REGION_OF(r->address[lane]);
        if (id < REGION_GLOBAL || id >= o->n_regions) continue;
        const accessed_words *t = &o->regions[id];
        const uint64_t first = REGION_OFFSET(r->address[lane]) >> WORD_SHIFT;
        const uint64_t last = (REGION_OFFSET(r->address[lane]) + r->width - 1) >> WORD_SHIFT;
        const uint32_t issuing_lane = chunks ? r->bulk_lane : (uint32_t)lane;
        const bool waited = d->launch_waited[r->warp] >> issuing_lane & 1;
        for (uint64_t word = first; word <= last && word < t->n; word++) {
            const unsigned flags = t->words[word];
            if ((!waited && flags >> PREVIOUS_SHIFT & conflicts) ||
                flags >> EARLIER_SHIFT & conflicts)
                report(d, site, r->warp * LANES + issuing_lane, r->address[lane], r->width);
            if ((flags & now) != now) atomic_fetch_or(&t->words[word], (unsigned char)now);
        }
    }
}
