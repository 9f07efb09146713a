/* Races between blocks that ran on different host threads.
 *
 * Each host thread has its own shadow memory and has compared the blocks that it ran itself. When
 * all are done, this file compares the shadow memory of different host threads. No two blocks are
 * ordered here: a launch whose blocks synchronise with each other runs on one host thread.
 */
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "detector.h"

/* After a launch is interrupted, its comparison goes on for at most this long. */
enum { GRACE_SECONDS = 1, GRANULES_PER_LOOK = 1 << 16 };

static bool has_equal_values(const detector *a, const detector *b, uint64_t region, uint64_t offset,
                             uint32_t bytes) {
    const unsigned char *of_a = a->regions[region].value, *of_b = b->regions[region].value;
    return of_a && of_b && !memcmp(of_a + offset, of_b + offset, bytes);
}

static epoch epoch_at(const epoch *epochs, const shadow *s, uint64_t offset) {
    return epochs[offset >> s->shift];
}

static void report(hazards *h, smk_hazard_kind kind, const detector *a, epoch of_a,
                   const detector *b, epoch of_b, uint64_t address, uint32_t width) {
    findings_add(&h->found, (finding){.kind = kind,
                                      .op = detector_op(a, of_a),
                                      .other = detector_op(b, of_b),
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

/* The weakest access of a list. */
static epoch first_of(const detector *d, epoch list) {
    return (uint32_t)list ? d->entries[(uint32_t)list].e : 0;
}

/* A reader of the granule; a weak one if there is any, since that races with strong writes, too. */
static epoch any_reader(const detector *d, const shadow *s, uint64_t offset) {
    if (!s->epochs.read) return 0;
    const epoch other = epoch_at(s->epochs.other_read, s, offset);
    if (!d->hb.fine_grained) {
        const epoch first = epoch_at(s->epochs.read, s, offset);
        return other && epoch_kind(first) != WEAK ? other : first;
    }
    return first_of(d, other);
}

/* Of the writes before the last one, with fine-grained synchronisation, the weakest. */
static epoch displaced_write(const detector *d, const shadow *s, uint64_t offset) {
    return s->displaced ? first_of(d, epoch_at(s->epochs.read, s, offset)) : 0;
}

static void report_writes(hazards *h, const detector *a, epoch of_a, const detector *b, epoch of_b,
                          uint64_t address, uint32_t width) {
    const bool first = epoch_site(of_a) <= epoch_site(of_b);
    if (!of_a || !of_b || is_morally_strong(&h->sites, of_a, of_b, SCOPE_GPU)) return;
    report(h, SMK_HAZARD_WAW, first ? b : a, first ? of_b : of_a, first ? a : b,
           first ? of_a : of_b, address, width);
}

/* The last write of another value than the last one; 0: none. */
static epoch change_at(const detector *d, uint64_t region, uint64_t offset) {
    const shadow *s = &d->regions[region];
    return s->epochs.changed ? epoch_at(s->epochs.changed, s, offset) : 0;
}

static void compare_writes(hazards *h, const detector *a, epoch of_a, const detector *b, epoch of_b,
                           uint64_t region, uint64_t offset, uint32_t bytes) {
    const bool values_known =
        h->sites.sites[epoch_site(of_a)].stores && h->sites.sites[epoch_site(of_b)].stores;
    const uint64_t address = a->regions[region].base + offset;
    if (values_known && has_equal_values(a, b, region, offset, bytes)) {
        report_writes(h, a, change_at(a, region, offset), b, of_b, address, bytes);
        report_writes(h, a, of_a, b, change_at(b, region, offset), address, bytes);
    } else {
        report_writes(h, a, of_a, b, of_b, address, bytes);
    }
}

/* Compares one granule of the first host thread that wrote it with all others'. */
static void compare_granule(hazards *h, const detector *writer, uint64_t region, uint64_t offset,
                            uint32_t bytes) {
    const shadow *s = &writer->regions[region];
    const epoch writes[] = {epoch_at(s->epochs.write, s, offset),
                            displaced_write(writer, s, offset)};
    for (const detector *d = h->joined; d; d = d->next) {
        const shadow *other = &d->regions[region];
        if (d == writer || !other->epochs.write) continue;
        const epoch other_writes[] = {epoch_at(other->epochs.write, other, offset),
                                      displaced_write(d, other, offset)};
        const epoch read = any_reader(d, other, offset);
        for (int k = 0; k < 2; k++) {
            for (int m = 0; m < 2; m++)
                compare_writes(h, writer, writes[k], d, other_writes[m], region, offset, bytes);
            if (writes[k] && read && !is_morally_strong(&h->sites, writes[k], read, SCOPE_GPU))
                report_read(h, writer, writes[k], d, read, s->base + offset, bytes);
        }
    }
}

typedef struct time_limit {
    const launch *launch;
    struct timespec start;
    uint32_t granules; /* since the last look */
} time_limit;

static bool is_over(time_limit *t) {
    struct timespec now;
    const launch *l = t->launch;
    if (++t->granules < GRANULES_PER_LOOK) return false;
    t->granules = 0;
    if (!atomic_load(&l->stop) && !(l->cancel && atomic_load(l->cancel))) return false;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec - t->start.tv_sec > GRACE_SECONDS;
}

/* False: the time is over. */
static bool compare_region(hazards *h, uint64_t region, time_limit *limit) {
    uint32_t bytes = 4;
    uint64_t size = 0;
    bool written = false;
    for (const detector *d = h->joined; d; d = d->next) {
        const shadow *s = &d->regions[region];
        if (!s->epochs.write) continue;
        written |= s->written;
        size = s->bytes;
        if (1u << s->shift < bytes) bytes = 1u << s->shift;
    }
    for (uint64_t offset = 0; written && offset < size; offset += bytes) {
        if (is_over(limit)) return false;
        for (const detector *d = h->joined; d; d = d->next) {
            const shadow *s = &d->regions[region];
            if (!s->written || !epoch_at(s->epochs.write, s, offset)) continue;
            compare_granule(h, d, region, offset, bytes);
            break;
        }
    }
    return true;
}

void blocks_compare(hazards *h) {
    if (!h->joined || !h->joined->next) return;
    time_limit limit = {.launch = h->launch};
    clock_gettime(CLOCK_MONOTONIC, &limit.start);
    for (uint32_t region = REGION_GLOBAL; region < h->launch->n_regions; region++)
        if (h->launch->regions[region].writable && !compare_region(h, region, &limit)) return;
}
