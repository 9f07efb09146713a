/* Copies of what nobody wrote, in shared and global memory: see undefined.c. */
#include <stdatomic.h>

#include "detector.h"

enum { WORD_BYTES = 4 };

/* ---- memory ---- */

undefined_origin undefined_origin_of(const detector *d, const shadow *s, uint64_t granule,
                                     epoch now) {
    const epoch copy = undefined_copy(d, s, granule);
    return copy ? (undefined_origin){copy, s->undefined_from[granule]}
                : (undefined_origin){now, s->base + (granule << s->shift)};
}

void undefined_set(detector *d, shadow *s, uint64_t granule, undefined_origin origin) {
    if (!s->undefined && !shadow_add_undefined(d, s)) return;
    s->undefined[granule] = origin.load;
    s->undefined_from[granule] = origin.address;
}

/* ---- when the launch has ended ---- */

static bool is_race(smk_hazard_kind kind) {
    return kind == SMK_HAZARD_RAW || kind == SMK_HAZARD_WAR || kind == SMK_HAZARD_WAW ||
           kind == SMK_HAZARD_ASYNC_READ || kind == SMK_HAZARD_ASYNC_WRITE;
}

/* Whether the instruction is in a race: it may have read before a write that the program has. */
static bool races(const hazards *h, const ptx_instruction *p) {
    for (size_t k = 0; k < h->found.n; k++) {
        const finding *f = &h->found.items[k];
        if (is_race(f->kind) && (f->op.ptx == p || f->other.ptx == p)) return true;
    }
    return false;
}

/* Findings about values that a race has left undefined. The race is one, too. */
static void drop_races(hazards *h) {
    for (size_t k = 0; k < h->found.n; k++) {
        finding *f = &h->found.items[k];
        if (f->of_copy && (races(h, f->op.ptx) || (f->other.ptx && races(h, f->other.ptx))))
            f->count = 0;
    }
}

/* Whether all bytes of the word are copies. */
static bool is_copied_word(const shadow *s, uint64_t word) {
    const uint64_t first = word * WORD_BYTES;
    for (uint64_t at = first; at < first + WORD_BYTES && at < s->bytes; at++)
        if (!s->undefined[at >> s->shift]) return false;
    return true;
}

/* The words of the buffer hold copies. */
static void note_words(const hazards *h, const shadow *s, unsigned char *words) {
    const ptx_instruction *last = NULL;
    unsigned char number = 0;
    for (uint64_t word = 0; word * WORD_BYTES < s->bytes; word++) {
        if (!is_copied_word(s, word)) continue;
        const epoch load = s->undefined[word * WORD_BYTES >> s->shift];
        const ptx_instruction *p = h->sites.sites[epoch_site(load)].ptx;
        if (p != last)
            number = races(h, p) ? 0 : h->job->copied_by(p->file, p->file ? p->line : p->ptx_line);
        last = p;
        if (number) words[word] = number;
    }
}

static void report_granules(hazards *h, const detector *d, const shadow *s) {
    const ptx_instruction *last = NULL;
    bool last_races = false;
    for (uint64_t k = 0; k < shadow_granules(s); k++) {
        const epoch load = s->undefined[k];
        if (!load) continue;
        const ptx_instruction *p = h->sites.sites[epoch_site(load)].ptx;
        if (p != last) last_races = races(h, p);
        last = p;
        if (last_races) continue;
        findings_add(&h->found, (finding){.kind = SMK_HAZARD_UNINITIALISED,
                                          .op = detector_op(d, load),
                                          .address = s->undefined_from[k],
                                          .width = 1u << s->shift,
                                          .count = 1});
    }
}

void undefined_note(hazards *h) {
    const launch *l = h->launch;
    drop_races(h);
    if (atomic_load(&l->stop) || h->full) return;
    for (const detector *d = h->joined; d; d = d->next)
        for (uint32_t k = REGION_GLOBAL; k < l->n_regions; k++) {
            const shadow *s = &d->regions[k];
            if (!s->undefined || k == REGION_HEAP) continue; /* of malloc: nothing follows it */
            unsigned char *words = unwritten_words_to_set(h, k);
            if (words)
                note_words(h, s, words);
            else
                report_granules(h, d, s);
        }
}
