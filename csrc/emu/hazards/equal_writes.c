/* Writes that do not change a granule's value, and reads by the threads that made them.
 *
 * If several threads write one value without synchronisation, either may write last: the value is
 * the same. A thread that has written that value itself reads it, whichever write came last. So
 * neither is a race. A list per granule has the threads that have written its value since the value
 * changed: made at the first such write, dropped when the value changes. A write of another value
 * races with all of them. The last write of another value is kept, too (`changed`): a write that it
 * is not ordered with races with it, although the value is the same again.
 *
 * Such a read need not be recorded if its thread has written the value since the last
 * synchronisation: a write that races with the read races with the thread's write, too. A read
 * before the thread's own write is recorded as any other, and races with equal writes.
 */
#include <string.h>

#include "detector.h"
#include "../base/lanes.h"

bool equal_writes_same_value(const detector *d, const shadow *s, uint64_t granule,
                             const unsigned char *value) {
    const epoch last = s->epochs.write[granule];
    return value && s->value && last && d->hazards->sites.sites[epoch_site(last)].stores &&
           !memcmp(value, &s->value[granule << s->shift], (size_t)1 << s->shift);
}

static bool has_thread(const access_entry *w, uint32_t thread) {
    return epoch_thread(w->e) / LANES == thread / LANES && w->lanes >> thread % LANES & 1;
}

bool equal_writes_by_reader(const detector *d, const shadow *s, uint64_t granule, epoch read,
                            bool *recent) {
    for (uint32_t k = (uint32_t)s->equal_writers[granule]; k; k = d->entries[k].next) {
        const access_entry *w = &d->entries[k];
        if (!has_thread(w, epoch_thread(read)) || !detector_same_member(d, w->e, read) ||
            epoch_time(w->e) < d->hb.begin)
            continue;
        *recent = epoch_time(w->e) == d->hb.time;
        return true;
    }
    return false;
}

/* Adds the thread to the list, in place of its earlier write. Of earlier blocks one entry is
 * kept. */
static void add(detector *d, epoch *list, epoch write) {
    const uint32_t thread = epoch_thread(write), lane = 1u << thread % LANES;
    uint32_t kept = 0, entry = 0;
    bool kept_earlier_block = false;
    for (uint32_t k = (uint32_t)*list, next; k; k = next) {
        access_entry *w = &d->entries[k];
        const bool same_warp =
            epoch_thread(w->e) / LANES == thread / LANES && detector_same_member(d, w->e, write);
        const bool in_earlier_block = epoch_time(w->e) < d->hb.begin;
        next = w->next;
        if (same_warp && !in_earlier_block) w->lanes &= ~lane;
        if (same_warp && epoch_time(w->e) == epoch_time(write)) entry = k;
        if ((in_earlier_block && kept_earlier_block) || (!w->lanes && k != entry)) {
            entry_free(d, k);
            continue;
        }
        kept_earlier_block |= in_earlier_block;
        w->next = kept;
        kept = k;
    }
    if (entry) {
        d->entries[entry].lanes |= lane;
    } else if ((entry = entry_new(d))) {
        d->entries[entry] = (access_entry){.e = write, .lanes = lane, .next = kept};
        kept = entry;
    }
    *list = kept;
}

void equal_writes_add(detector *d, shadow *s, uint64_t granule, epoch now) {
    if (!s->equal_writers && !shadow_add_equal_writers(d, s)) return;
    epoch *list = &s->equal_writers[granule];
    if (!*list) add(d, list, s->epochs.write[granule]);
    add(d, list, now);
}

epoch equal_writes_racing(const detector *d, const shadow *s, uint64_t granule, epoch now) {
    for (uint32_t k = (uint32_t)s->equal_writers[granule]; k; k = d->entries[k].next)
        for (uint32_t left = d->entries[k].lanes; left; left &= left - 1) {
            const epoch write = entry_epoch(&d->entries[k], (uint32_t)first_lane(left));
            if (!hb_before(&d->hb, write, epoch_thread(now)) &&
                !is_morally_strong(&d->hazards->sites, write, now, hb_scope_between(&d->hb, write)))
                return write;
        }
    return 0;
}

void equal_writes_drop(detector *d, shadow *s, uint64_t granule) {
    for (uint32_t k = (uint32_t)s->equal_writers[granule], next; k; k = next) {
        next = d->entries[k].next;
        entry_free(d, k);
    }
    s->equal_writers[granule] = 0;
}
