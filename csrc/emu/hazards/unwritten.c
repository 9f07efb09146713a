/* Results that are not all written: an element that no launch of a job has written holds whatever was there.
 *
 * Of buffers whose contents are unspecified until they are written. Marks are a launch's, so what it has
 * written is noted down when it ends. Not of runs that leave blocks out, or stop early.
 */
#include <stdlib.h>
#include <string.h>

#include "detector.h"

enum { PIECE = 4 }; /* bytes that count as one: a word, or what is left of it */

static void note_region(const shadow *s, unsigned char *written) {
    for (uint64_t at = 0; s->epochs.write && at < s->bytes; at++)
        written[at] |= s->epochs.write[at >> s->shift] != 0;
}

void unwritten_note(hazards *h) {
    const launch *l = h->launch;
    if (!h->written) {
        h->written = calloc(l->n_regions, sizeof *h->written);
        h->out_of_memory |= !h->written;
        h->n_written = h->written ? l->n_regions : 0;
    }
    h->some_blocks |= l->blocks != NULL;
    for (uint32_t k = 0; k < h->n_written; k++) {
        const region *r = &l->regions[k];
        if (!r->blank || !r->size) continue;
        written_bytes *of = &h->written[k];
        if (!of->at) *of = (written_bytes){calloc(r->size, 1), r->size};
        h->out_of_memory |= !of->at;
        for (const detector *w = h->joined; of->at && w; w = w->next) {
            note_region(&w->regions[k], of->at);
            h->some_blocks |= w->forgot;
        }
    }
}

void unwritten_report(hazards *h) {
    for (uint32_t k = 0; k < h->n_written && !h->some_blocks && !h->stopped; k++) {
        const written_bytes *of = &h->written[k];
        uint64_t first = 0, pieces = 0;
        for (uint64_t at = 0; of->at && at < of->bytes; at += PIECE) {
            const uint64_t n = of->bytes - at < PIECE ? of->bytes - at : PIECE;
            const unsigned char *missing = memchr(of->at + at, 0, n);
            if (missing && !pieces++) first = (uint64_t)(missing - of->at);
        }
        if (pieces)
            findings_add(&h->found, (finding){.kind = SMK_HAZARD_UNWRITTEN,
                                              .address = REGION_BASE(k) + first,
                                              .width = PIECE,
                                              .count = pieces});
    }
}

void unwritten_free(hazards *h) {
    for (uint32_t k = 0; k < h->n_written; k++)
        free(h->written[k].at);
    free(h->written);
}
