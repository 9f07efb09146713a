/* Races between blocks of different host threads.
 *
 * Each host thread has epochs of its own, and has compared the blocks that it ran itself. What blocks of
 * different host threads did to one place is compared when all are done: in a launch whose blocks do not
 * synchronise with each other (others run on one host thread) no two blocks are ordered.
 */
#include <string.h>

#include "detector.h"

static bool has_equal_values(const detector *a, const detector *b, uint64_t region, uint64_t offset,
                             uint32_t bytes) {
    const unsigned char *of_a = a->regions[region].value, *of_b = b->regions[region].value;
    return of_a && of_b && !memcmp(of_a + offset, of_b + offset, bytes);
}

static epoch mark_at(const epoch *epochs, const shadow *s, uint64_t offset) {
    return epochs[offset >> s->shift];
}

static void report(hazards *h, smk_hazard_kind kind, const detector *a, epoch of_a,
                   const detector *b, epoch of_b, uint64_t address, uint32_t width) {
    findings_add(&h->found, (finding){.kind = kind,
                                      .party = detector_party(a, of_a),
                                      .other = detector_party(b, of_b),
                                      .address = address,
                                      .width = width,
                                      .count = 1});
}

static void report_read(hazards *h, const detector *writer, epoch write, const detector *reader,
                        epoch read, uint64_t address, uint32_t width) {
    if (epoch_site(write) <= epoch_site(read))
        report(h, SMK_HAZARD_RAW, reader, read, writer, write, address, width);
    else
        report(h, SMK_HAZARD_WAR, writer, write, reader, read, address, width);
}

static epoch any_reader(const detector *w, const shadow *s, uint64_t offset) {
    if (!s->epochs.read) return 0;
    if (!w->hb.fine) return mark_at(s->epochs.read, s, offset);
    const uint32_t k = (uint32_t)mark_at(s->epochs.other, s, offset);
    return k ? w->readers[k].m : 0;
}

/* One place, against the first host thread that wrote it. */
static void compare_place(hazards *h, const detector *writer, uint64_t region, uint64_t offset,
                          uint32_t bytes) {
    const shadow *s = &writer->regions[region];
    const epoch write = mark_at(s->epochs.write, s, offset);
    const uint64_t address = s->base + offset;
    for (const detector *w = h->joined; w; w = w->next) {
        const shadow *other = &w->regions[region];
        if (w == writer || !other->epochs.write) continue;
        const epoch theirs = mark_at(other->epochs.write, other, offset);
        const epoch read = any_reader(w, other, offset);
        const bool values =
            h->sites.sites[epoch_site(write)].stores && h->sites.sites[epoch_site(theirs)].stores;
        if (theirs && !is_strong_pair(write, theirs) &&
            !(values && has_equal_values(writer, w, region, offset, bytes))) {
            const bool first = epoch_site(write) <= epoch_site(theirs);
            report(h, SMK_HAZARD_WAW, first ? w : writer, first ? theirs : write,
                   first ? writer : w, first ? write : theirs, address, bytes);
        }
        if (read && !is_strong_pair(write, read))
            report_read(h, writer, write, w, read, address, bytes);
    }
}

static void compare_region(hazards *h, uint64_t region) {
    uint32_t bytes = 4;
    uint64_t size = 0;
    bool written = false;
    for (const detector *w = h->joined; w; w = w->next) {
        const shadow *s = &w->regions[region];
        if (!s->epochs.write) continue;
        written |= s->written;
        size = s->bytes;
        if (1u << s->shift < bytes) bytes = 1u << s->shift;
    }
    for (uint64_t offset = 0; written && offset < size; offset += bytes)
        for (const detector *w = h->joined; w; w = w->next) {
            const shadow *s = &w->regions[region];
            if (!s->written || !mark_at(s->epochs.write, s, offset)) continue;
            compare_place(h, w, region, offset, bytes);
            break;
        }
}

void blocks_compare(hazards *h) {
    if (!h->joined || !h->joined->next) return;
    for (uint32_t region = REGION_GLOBAL; region < h->launch->n_regions; region++)
        if (h->launch->regions[region].writable) compare_region(h, region);
}
