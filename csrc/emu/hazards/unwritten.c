/* Results that are not completely written: an element that no launch of the job writes has
 * unspecified contents.
 *
 * Only buffers that start uninitialised are checked, and only if the run leaves out no blocks and
 * does not stop early. Shadow memory belongs to one launch, so written bytes are collected at the
 * end of each.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../base/size.h"
#include "detector.h"

enum { WORD_BYTES = 4 }; /* bytes that count as one: a word, or what is left of the last one */

static void collect_region(const shadow *s, unsigned char *written) {
    for (uint64_t at = 0; s->epochs.write && at < s->bytes; at++)
        written[at] |= s->epochs.write[at >> s->shift] != 0;
}

unsigned char *unwritten_words(const hazards *h, uint64_t region) {
    return region >= REGION_BUFFERS && h->job->written &&
                   region - REGION_BUFFERS < h->job->n_buffers
               ? h->job->written[region - REGION_BUFFERS]
               : NULL;
}

unsigned char *unwritten_words_to_set(const hazards *h, uint64_t region) {
    unsigned char *words = unwritten_words(h, region);
    if (words || region < REGION_BUFFERS || !h->job->begin_written) return words;
    return h->job->begin_written((size_t)(region - REGION_BUFFERS));
}

/* Sets the words that this launch has written, or all if that is not known. */
static void set_words(const hazards *h, uint32_t k, unsigned char *words) {
    const uint64_t bytes = h->launch->regions[k].size;
    for (const detector *d = h->joined; d; d = d->next) {
        const shadow *s = &d->regions[k];
        if (d->epochs_cleared) memset(words, 1, size_from((bytes + WORD_BYTES - 1) / WORD_BYTES));
        for (uint64_t at = 0; s->epochs.write && at < bytes; at += 1u << s->shift)
            if (s->epochs.write[at >> s->shift]) words[at / WORD_BYTES] = 1;
    }
}

void unwritten_note(hazards *h) {
    const launch *l = h->launch;
    if (!h->written) {
        h->written = calloc(l->n_regions, sizeof *h->written);
        h->out_of_memory |= !h->written;
        h->n_written = h->written ? l->n_regions : 0;
    }
    const bool stopped = atomic_load(&l->stop);
    h->incomplete |= l->blocks != NULL || stopped || h->full;
    if (stopped || h->full)
        return; /* nothing runs after it, and to collect gigabytes takes a minute */
    for (uint32_t k = 0; k < h->n_written; k++) {
        const region *r = &l->regions[k];
        unsigned char *words = unwritten_words(h, k);
        if (words) set_words(h, k, words);
        if (!r->blank || !r->size || words) continue;
        written_bytes *tracked = &h->written[k];
        if (!tracked->written) *tracked = (written_bytes){calloc(size_from(r->size), 1), r->size};
        h->out_of_memory |= !tracked->written;
        for (const detector *d = h->joined; tracked->written && d; d = d->next) {
            collect_region(&d->regions[k], tracked->written);
            h->incomplete |= d->epochs_cleared;
        }
    }
}

void unwritten_report(hazards *h) {
    for (uint32_t k = 0; k < h->n_written && !h->incomplete && !h->stopped; k++) {
        const written_bytes *tracked = &h->written[k];
        uint64_t first = 0, words = 0;
        for (uint64_t at = 0; tracked->written && at < tracked->bytes; at += WORD_BYTES) {
            const uint64_t n = tracked->bytes - at < WORD_BYTES ? tracked->bytes - at : WORD_BYTES;
            const unsigned char *missing = memchr(tracked->written + at, 0, (size_t)n);
            if (missing && !words++) first = (uint64_t)(missing - tracked->written);
        }
        if (words)
            findings_add(&h->found, (finding){.kind = SMK_HAZARD_UNWRITTEN,
                                              .address = REGION_BASE(k) + first,
                                              .width = WORD_BYTES,
                                              .count = words});
    }
}

void unwritten_free(hazards *h) {
    for (uint32_t k = 0; k < h->n_written; k++)
        free(h->written[k].written);
    free(h->written);
}
