/* Writes that do not change a granule's value, and reads by the threads that made them.
 *
 * If several threads write one value without synchronisation, either may write last: the value is
 * the same. A thread that has written that value itself reads it, whichever write came last. So
 * neither is a race. A list per granule has the threads that have written its value since the value
 * changed: made at the first such write, dropped when the value changes. A write of another value
 * races with all of them.
 */
#include <string.h>

#include "detector.h"
#include "../base/lanes.h"

static uint32_t *list_of(const shadow *s, uint64_t granule) {
    return s->equal_writers ? (uint32_t *)&s->equal_writers[granule] : NULL;
}

bool equal_writes_same_value(const detector *d, const shadow *s, uint64_t granule,
                             const unsigned char *value) {
    const epoch last = s->epochs.write[granule];
    return value && s->value && last && d->hazards->sites.sites[epoch_site(last)].stores &&
           !memcmp(value, &s->value[granule << s->shift], (size_t)1 << s->shift);
}

bool equal_writes_by_reader(const detector *d, const shadow *s, uint64_t granule, epoch read) {
    const uint32_t thread = epoch_thread(read);
    const uint32_t *list = list_of(s, granule);
    const epoch last = s->epochs.write[granule];
    const uint32_t begin = detector_block_begin(d, read);
    if (epoch_thread(last) == thread && detector_block_begin(d, last) == begin) return true;
    for (uint32_t k = list ? *list : 0; k; k = d->readers[k].next) {
        const reader *w = &d->readers[k];
        if (epoch_thread(w->e) / LANES == thread / LANES && w->lanes >> thread % LANES & 1 &&
            detector_block_begin(d, w->e) == begin)
            return true;
    }
    return false;
}

/* Adds the thread to the list. Of earlier blocks one entry is kept. */
static void add(detector *d, uint32_t *list, epoch write) {
    const uint32_t thread = epoch_thread(write), begin = detector_block_begin(d, write);
    uint32_t kept = 0;
    bool found = false, kept_earlier = false;
    for (uint32_t k = *list, next; k; k = next) {
        reader *w = &d->readers[k];
        const bool same_block = detector_block_begin(d, w->e) == begin;
        next = w->next;
        if (!same_block && kept_earlier) {
            reader_free(d, k);
            continue;
        }
        kept_earlier |= !same_block;
        if (same_block && epoch_thread(w->e) / LANES == thread / LANES) {
            w->lanes |= 1u << thread % LANES;
            found = true;
        }
        w->next = kept;
        kept = k;
    }
    if (!found) {
        const uint32_t k = reader_new(d);
        if (k) {
            d->readers[k] = (reader){write, 1u << thread % LANES, kept};
            kept = k;
        }
    }
    *list = kept;
}

void equal_writes_add(detector *d, shadow *s, uint64_t granule, epoch now) {
    if (!s->equal_writers && !shadow_add_equal_writers(d, s)) return;
    uint32_t *list = list_of(s, granule);
    if (!*list) add(d, list, s->epochs.write[granule]);
    add(d, list, now);
}

epoch equal_writes_racing(const detector *d, const shadow *s, uint64_t granule, epoch now) {
    const uint32_t *list = list_of(s, granule);
    for (uint32_t k = list ? *list : 0; k; k = d->readers[k].next)
        for (uint32_t left = d->readers[k].lanes; left; left &= left - 1) {
            const epoch write = reader_epoch(&d->readers[k], (uint32_t)first_lane(left));
            if (!hb_before(&d->hb, write, epoch_thread(now)) && !is_strong_pair(write, now))
                return write;
        }
    return 0;
}

void equal_writes_drop(detector *d, shadow *s, uint64_t granule) {
    uint32_t *list = list_of(s, granule);
    for (uint32_t k = list ? *list : 0, next; k; k = next) {
        next = d->readers[k].next;
        reader_free(d, k);
    }
    if (list) *list = 0;
}
