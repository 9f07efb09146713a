/* An access to one granule against the epochs of earlier ones.
 *
 * A granule has an epoch of its last write, and of its readers since: where only whole blocks synchronise,
 * two different readers are enough (a later write is unordered with all readers of the interval or with
 * none, and one of two is not the writer itself); elsewhere a list of all that are not ordered before one
 * another.
 */
#include <stdlib.h>
#include <string.h>

#include "epoch_tests.h"
#include "detector.h"
#include "../base/lanes.h"

/* ---- findings ---- */

/* Where a warp stood, from its last barrier on; a cp.async that was waited for later: before it. */
static int32_t stood_at(const detector *w, epoch m) {
    const uint32_t warp = epoch_thread(m) / LANES;
    return (int32_t)(w->position[(size_t)warp * w->all->sites.n + epoch_site(m)] - w->start[warp]);
}

/* Which of two accesses comes first in the program. The order of this run says nothing, for other warps
 * or blocks might as well have run first. */
static bool comes_first(const detector *w, epoch earlier, epoch now) {
    if (epoch_time(earlier) < w->hb.begin) return epoch_site(earlier) <= epoch_site(now);
    if (epoch_thread(earlier) / LANES == epoch_thread(now) / LANES) return true;
    return stood_at(w, earlier) <= stood_at(w, now);
}

void granule_report(detector *w, const shadow *s, uint64_t granule, smk_hazard_kind kind,
                    epoch party, epoch other) {
    findings_add(&w->found, (finding){.kind = kind,
                                      .party = detector_party(w, party),
                                      .other = detector_party(w, other),
                                      .address = s->base + (granule << s->shift),
                                      .width = 1u << s->shift,
                                      .count = 1});
}

static void report_race(detector *w, const shadow *s, uint64_t granule, epoch earlier,
                        bool earlier_writes, epoch now, bool now_writes) {
    const bool in_order = comes_first(w, earlier, now);
    const bool first_writes = in_order ? earlier_writes : now_writes;
    const bool last_writes = in_order ? now_writes : earlier_writes;
    granule_report(w, s, granule,
                   !last_writes    ? SMK_HAZARD_RAW
                   : !first_writes ? SMK_HAZARD_WAR
                                   : SMK_HAZARD_WAW,
                   in_order ? now : earlier, in_order ? earlier : now);
}

/* ---- one lane's granule ---- */

/* Uninitialised reads wait for the end of the block: a write that races with one explains it. */
static void note_uninitialised(detector *w, shadow *s, uint64_t granule, epoch now) {
    if (!s->uninitialised && !shadow_add_uninitialised(w, s)) return;
    s->pending = true;
    if (epoch_time(s->uninitialised[granule]) < w->hb.begin) s->uninitialised[granule] = now;
}

/* The last write against an access now. */
static void check_write(detector *w, shadow *s, uint64_t granule, epoch now, bool now_writes,
                        const unsigned char *value) {
    const epoch m = s->epochs.write[granule];
    const bool is_shared = s == &w->shared;
    if (epoch_time(m) == TIME_IN_FLIGHT) {
        granule_report(w, s, granule, now_writes ? SMK_HAZARD_ASYNC_WRITE : SMK_HAZARD_ASYNC_READ,
                       now, m);
        return;
    }
    if (!m || (is_shared && epoch_time(m) < w->hb.begin)) {
        const bool reads = !now_writes || epoch_kind(now) == ATOMIC;
        if (reads && is_shared)
            note_uninitialised(w, s, granule, now);
        else if (reads && s->blank)
            granule_report(w, s, granule, SMK_HAZARD_UNINITIALISED, now, 0);
        return;
    }
    if (hb_before(&w->hb, m, epoch_thread(now)) || is_strong_pair(m, now)) return;
    if (value && s->value && w->all->sites.sites[epoch_site(m)].stores &&
        !memcmp(value, &s->value[granule << s->shift], (size_t)1 << s->shift))
        return;
    report_race(w, s, granule, m, true, now, now_writes);
}

static bool judge_reader(detector *w, shadow *s, uint64_t granule, epoch reader_mark, epoch now) {
    const bool is_shared = s == &w->shared;
    if (!reader_mark || (is_shared && epoch_time(reader_mark) < w->hb.begin) ||
        hb_before(&w->hb, reader_mark, epoch_thread(now)) || is_strong_pair(reader_mark, now))
        return false;
    if (epoch_time(reader_mark) == TIME_IN_FLIGHT)
        granule_report(w, s, granule, SMK_HAZARD_ASYNC_WRITE, now, reader_mark);
    else
        report_race(w, s, granule, reader_mark, false, now, true);
    return true;
}

void granule_check(detector *w, shadow *s, uint64_t granule, epoch now) {
    check_write(w, s, granule, now, false, NULL);
}

/* ---- lists of readers ---- */

static epoch lane_mark(const reader *r, uint32_t lane) {
    const epoch thread = (epoch)(epoch_thread(r->m) / LANES * LANES + lane) << EPOCH_THREAD_AT;
    return (r->m & ~((epoch)EPOCH_THREADS << EPOCH_THREAD_AT)) | thread;
}

static bool all_before(const detector *w, const reader *r, uint32_t thread) {
    for (uint32_t left = r->lanes; left; left &= left - 1)
        if (!hb_before(&w->hb, lane_mark(r, (uint32_t)first_lane(left)), thread)) return false;
    return true;
}

/* Readers that are ordered before this one say nothing that it does not say. Of earlier blocks' one
 * stays. */
static void list_reader(detector *w, shadow *s, uint64_t granule, epoch now) {
    const uint32_t thread = epoch_thread(now), lane = thread % LANES;
    epoch *head = &s->epochs.other[granule];
    uint32_t kept = 0;
    bool found = false, earlier_block = false;
    for (uint32_t k = (uint32_t)*head, next; k; k = next) {
        reader *r = &w->readers[k];
        const bool old = epoch_time(r->m) < w->hb.begin;
        next = r->next;
        if (epoch_time(r->m) == epoch_time(now) && epoch_thread(r->m) / LANES == thread / LANES &&
            epoch_kind(r->m) == epoch_kind(now)) {
            r->lanes |= 1u << lane;
            found = true;
        } else if ((old && earlier_block) || all_before(w, r, thread)) {
            reader_spare(w, k);
            continue;
        }
        earlier_block |= old;
        r->next = kept;
        kept = k;
    }
    if (!found) {
        const uint32_t k = reader_new(w);
        if (k) {
            w->readers[k] = (reader){now, 1u << lane, kept};
            kept = k;
        }
    }
    *head = kept;
}

static void judge_readers(detector *w, shadow *s, uint64_t granule, epoch now) {
    for (uint32_t k = (uint32_t)s->epochs.other[granule]; k; k = w->readers[k].next)
        for (uint32_t left = w->readers[k].lanes; left; left &= left - 1)
            if (judge_reader(w, s, granule, lane_mark(&w->readers[k], (uint32_t)first_lane(left)),
                             now))
                return;
}

/* ---- reads and writes ---- */

/* Two readers of different threads say all that a later write must know, and of weak ones only weak
 * ones: a strong write does not race with strong readers. So weak readers go before strong ones. */
static void note_reader(const detector *w, epoch *first, epoch *other, epoch now) {
    const bool other_is_weak = epoch_time(*other) >= w->hb.floor && epoch_kind(*other) == WEAK;
    const bool strong_first = epoch_time(*first) >= w->hb.floor && epoch_kind(*first) != WEAK;
    if (epoch_kind(now) == WEAK || !other_is_weak) {
        if (strong_first && other_is_weak) *first = *other;
        *other = now;
    } else if (strong_first && epoch_thread(*other) == epoch_thread(*first)) {
        *first = now;
    }
}

void granule_read(detector *w, shadow *s, uint64_t granule, epoch now, const row_limits *writes,
                  const row_limits *rest) {
    if (!is_usual(s->epochs.write[granule], now, writes))
        check_write(w, s, granule, now, false, NULL);
    if (w->hb.fine) {
        list_reader(w, s, granule, now);
        return;
    }
    epoch *first = &s->epochs.read[granule], *other = &s->epochs.other[granule];
    if (is_usual(*first, now, rest)) {
        *first = now;
        return;
    }
    note_reader(w, first, other, now);
    const epoch last = s->epochs.write[granule];
    if (s->shift && epoch_time(*other) >= w->hb.floor &&
        epoch_thread(*first) != epoch_thread(*other) && is_ordered_for_all(last, writes))
        s->epochs.read_shared[granule] = read_shared_at(
            detector_floor(w), epoch_kind(*first) != WEAK || epoch_kind(*other) != WEAK);
}

static void settle_uninitialised(detector *w, shadow *s, uint64_t granule, epoch now) {
    epoch *read = &s->uninitialised[granule];
    if (epoch_time(*read) < w->hb.begin) return;
    if (hb_before(&w->hb, *read, epoch_thread(now)))
        granule_report(w, s, granule, SMK_HAZARD_UNINITIALISED, *read, 0);
    *read = 0;
}

void granule_write(detector *w, shadow *s, uint64_t granule, epoch now, const row_limits *rest,
                   const unsigned char *value) {
    epoch *last = &s->epochs.write[granule];
    if (!is_usual(*last, now, rest) || epoch_kind(now) == ATOMIC)
        check_write(w, s, granule, now, true, value);
    if (w->hb.fine) {
        if (s->epochs.other) judge_readers(w, s, granule, now);
    } else if (s->epochs.read && (is_usual(s->epochs.read[granule], now, rest) ||
                                  !judge_reader(w, s, granule, s->epochs.read[granule], now))) {
        if (!is_usual(s->epochs.other[granule], now, rest))
            judge_reader(w, s, granule, s->epochs.other[granule], now);
    }
    if (s->pending) settle_uninitialised(w, s, granule, now);
    if (s->epochs.read_shared) s->epochs.read_shared[granule] = 0;
    const bool recent = epoch_time(*last) >= w->hb.floor && epoch_time(*last) != TIME_IN_FLIGHT;
    const bool own = epoch_thread(*last) == epoch_thread(now);
    if (recent && own && epoch_kind(*last) == WEAK && epoch_kind(now) != WEAK)
        *last = (*last & 0xffffffffu) | (epoch)epoch_time(now)
                                            << EPOCH_TIME_AT; /* still not strong */
    else if (recent && epoch_kind(now) != WEAK &&
             (epoch_kind(*last) == SEVERAL_STRONG || (epoch_kind(*last) != WEAK && !own)))
        *last = now | SEVERAL_STRONG;
    else
        *last = now;
}
