/* Lists of earlier accesses to a granule, for fine-grained synchronisation: its readers, and the
 * writes before the last one.
 *
 * A list keeps every access with which a later access may race, unless that later access races
 * with another kept one, too. An access is superseded by a newer one that it is ordered before, if
 * the newer one is not stronger (access_strength) and is of the same block, or weak. Between blocks
 * that is not enough: an access of .cta scope in the newer one's block is morally strong with the
 * newer one, but not with the older one. Once the newer one's block has ended there is no such
 * access, so the older one, marked `covered`, can go then.
 *
 * Entries are sorted by strength, weakest first. The upper half of a list's head counts its
 * entries. Superseded entries are searched for only when that number reaches a limit, twice what
 * the last search left. So adding takes constant time, and lists stay short. */
#include "detector.h"
#include "../base/lanes.h"

enum { MIN_LIMIT = 4, MAX_LIMIT = 0xffff, LENGTH_SHIFT = 32, LIMIT_SHIFT = 48 };

/* How many entries of one strength stay of blocks that have ended: the latest ones. Without
 * synchronisation between blocks one suffices: it races with any later access. Of many words, one
 * each finds a race, too; more entries than fit into the cache would take three times as long. */
static uint32_t max_of_ended_blocks(const detector *d) {
    enum { MANY_ENTRIES = 1 << 16 };
    return d->hb.sequential && d->n_entries <= MANY_ENTRIES ? 16 : 1;
}

/* Where one entry suffices, and entry k is of a block that has ended: removes those of its strength
 * after it, which are older. Returns how many. */
static uint32_t drop_older(detector *d, uint32_t k) {
    access_entry *r = &d->entries[k];
    uint32_t dropped = 0;
    if (epoch_time(r->e) >= d->hb.begin || max_of_ended_blocks(d) > 1) return 0;
    for (uint32_t old = r->next;
         old && access_strength(d, d->entries[old].e) == access_strength(d, r->e); old = r->next) {
        r->next = d->entries[old].next;
        entry_free(d, old);
        dropped++;
    }
    return dropped;
}

static uint32_t list_length(epoch list) {
    return (uint32_t)(list >> LENGTH_SHIFT) & MAX_LIMIT;
}

static uint32_t list_limit(epoch list) {
    const uint32_t limit = (uint32_t)(list >> LIMIT_SHIFT);
    return limit ? limit : MIN_LIMIT;
}

static epoch list_make(uint32_t first, uint32_t length, uint32_t limit) {
    const uint32_t n = length < MAX_LIMIT ? length : MAX_LIMIT;
    const uint32_t most = limit < MAX_LIMIT ? limit : MAX_LIMIT;
    return first | (epoch)n << LENGTH_SHIFT | (epoch)most << LIMIT_SHIFT;
}

static bool is_before(const detector *d, const access_entry *r, epoch now) {
    for (uint32_t left = r->lanes; left; left &= left - 1)
        if (!hb_before(&d->hb, entry_epoch(r, (uint32_t)first_lane(left)), epoch_thread(now)))
            return false;
    return true;
}

/* Of an entry that is no stronger than `now` and ordered before it. */
static bool can_go(const detector *d, const access_entry *r, epoch now) {
    return epoch_kind(now) == WEAK ||
           (epoch_time(r->e) >= d->hb.begin && detector_same_member(d, r->e, now));
}

static bool is_superseded(const detector *d, const access_entry *r, epoch now) {
    return access_strength(d, r->e) >= access_strength(d, now) && can_go(d, r, now) &&
           is_before(d, r, now);
}

bool access_superseded(const detector *d, epoch e, epoch now) {
    const access_entry r = {.e = e, .lanes = 1u << epoch_thread(e) % LANES};
    return is_superseded(d, &r, now);
}

/* Whether the entry must stay; n_earlier: entries of ended blocks that stay so far, by strength. */
static bool is_needed(const detector *d, access_entry *r, epoch now, uint32_t *n_earlier) {
    const int strength = access_strength(d, r->e);
    if (epoch_time(r->e) < d->hb.begin) {
        if (r->covered && r->covered < d->hb.begin) return false;
        if (n_earlier[strength]++ >= max_of_ended_blocks(d)) return false;
    }
    if (strength < access_strength(d, now) || !is_before(d, r, now)) return true;
    r->covered = epoch_time(now);
    return !can_go(d, r, now);
}

static void prune(detector *d, epoch *list, epoch now) {
    uint32_t first = 0, last = 0, length = 0, n_earlier[N_STRENGTHS] = {0};
    for (uint32_t k = (uint32_t)*list, next; k; k = next) {
        next = d->entries[k].next;
        if (!is_needed(d, &d->entries[k], now, n_earlier)) {
            entry_free(d, k);
            continue;
        }
        if (last)
            d->entries[last].next = k;
        else
            first = k;
        last = k;
        length++;
    }
    if (last) d->entries[last].next = 0;
    *list = list_make(first, length, 2 * length > MIN_LIMIT ? 2 * length : MIN_LIMIT);
}

static bool same_instant(const detector *d, epoch a, epoch b) {
    return epoch_time(a) == epoch_time(b) && epoch_time(a) != TIME_IN_FLIGHT &&
           epoch_thread(a) / LANES == epoch_thread(b) / LANES && epoch_kind(a) == epoch_kind(b) &&
           access_strength(d, a) == access_strength(d, b);
}

/* Adds an operation in flight to the entry of the thread's others: each completes by itself. */
static bool join_in_flight(detector *d, epoch list, epoch e) {
    for (uint32_t k = (uint32_t)list; k; k = d->entries[k].next) {
        access_entry *r = &d->entries[k];
        if (epoch_time(r->e) != TIME_IN_FLIGHT || epoch_thread(r->e) != epoch_thread(e) ||
            epoch_kind(r->e) != epoch_kind(e))
            continue;
        r->e = e;
        r->in_flight++;
        return true;
    }
    return false;
}

void access_list_add(detector *d, epoch *list, epoch e, epoch now) {
    const bool in_flight = epoch_time(e) == TIME_IN_FLIGHT;
    if (in_flight && join_in_flight(d, *list, e)) return;
    const uint32_t lane = 1u << epoch_thread(e) % LANES;
    const int strength = access_strength(d, e);
    if (list_length(*list) >= list_limit(*list)) prune(d, list, now);
    uint32_t before = 0, k = (uint32_t)*list;
    for (; k && access_strength(d, d->entries[k].e) < strength; k = d->entries[k].next)
        before = k;
    access_entry *r = &d->entries[k];
    if (k && same_instant(d, r->e, e)) {
        r->lanes |= lane;
        return;
    }
    if (k && is_superseded(d, r, now)) {
        *r = (access_entry){.e = e, .lanes = lane, .next = r->next, .in_flight = in_flight};
        return;
    }
    const uint32_t dropped = k ? drop_older(d, k) : 0, added = entry_new(d);
    if (!added) return;
    d->entries[added] = (access_entry){.e = e, .lanes = lane, .next = k, .in_flight = in_flight};
    if (before) d->entries[before].next = added;
    *list = list_make(before ? (uint32_t)*list : added, list_length(*list) + 1 - dropped,
                      list_limit(*list));
}

void access_list_free(detector *d, epoch *list) {
    for (uint32_t k = (uint32_t)*list, next; k; k = next) {
        next = d->entries[k].next;
        entry_free(d, k);
    }
    *list = 0;
}
