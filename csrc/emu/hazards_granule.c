/* An access to one granule against the marks of earlier ones.
 *
 * A granule has a mark of its last write, and of its readers since: where only whole blocks synchronise,
 * two different readers are enough (a later write is unordered with all readers of the interval or with
 * none, and one of two is not the writer itself); elsewhere a list of all that are not ordered before one
 * another.
 */
#include <stdlib.h>
#include <string.h>

#include "hazards_marks.h"
#include "hazards_state.h"
#include "lanes.h"

/* ---- findings ---- */

/* Where a warp stood, from its last barrier on; a cp.async that was waited for later: before it. */
static int32_t stood_at(const watch *w, mark m) {
    const uint32_t warp = mark_thread(m) / LANES;
    return (int32_t)(w->position[(size_t)warp * w->all->sites.n + mark_site(m)] - w->start[warp]);
}

/* Which of two accesses comes first in the program. The order of this run says nothing, for other warps
 * or blocks might as well have run first. */
static bool comes_first(const watch *w, mark earlier, mark now) {
    if (mark_time(earlier) < w->order.begin) return mark_site(earlier) <= mark_site(now);
    if (mark_thread(earlier) / LANES == mark_thread(now) / LANES) return true;
    return stood_at(w, earlier) <= stood_at(w, now);
}

void granule_report(watch *w, const shadow *s, uint64_t granule, smk_hazard_kind kind, mark party,
                    mark other) {
    findings_add(&w->found, (finding){.kind = kind,
                                      .party = watch_party(w, party),
                                      .other = watch_party(w, other),
                                      .address = s->base + (granule << s->shift),
                                      .width = 1u << s->shift,
                                      .count = 1});
}

static void report_race(watch *w, const shadow *s, uint64_t granule, mark earlier,
                        bool earlier_writes, mark now, bool now_writes) {
    const bool in_order = comes_first(w, earlier, now);
    const bool first_writes = in_order ? earlier_writes : now_writes;
    const bool last_writes = in_order ? now_writes : earlier_writes;
    granule_report(w, s, granule,
                   !last_writes    ? SMK_HAZARD_RAW
                   : !first_writes ? SMK_HAZARD_WAR
                                   : SMK_HAZARD_WAW,
                   in_order ? now : earlier, in_order ? earlier : now);
}

static bool is_strong_pair(mark a, mark b) {
    return mark_strength(a) != WEAK && mark_strength(b) != WEAK;
}

/* ---- one lane's granule ---- */

/* Uninitialised reads wait for the end of the block: a write that races with one explains it. */
static void note_uninitialised(watch *w, shadow *s, uint64_t granule, mark now) {
    if (!s->uninitialised && !shadow_add_uninitialised(w, s)) return;
    s->pending = true;
    if (mark_time(s->uninitialised[granule]) < w->order.begin) s->uninitialised[granule] = now;
}

/* The last write against an access now. */
static void judge_write(watch *w, shadow *s, uint64_t granule, mark now, bool now_writes,
                        const unsigned char *value) {
    const mark m = s->marks.write[granule];
    const bool is_shared = s == &w->shared;
    if (mark_time(m) == TIME_FLYING) {
        granule_report(w, s, granule, now_writes ? SMK_HAZARD_ASYNC_WRITE : SMK_HAZARD_ASYNC_READ,
                       now, m);
        return;
    }
    if (!m || (is_shared && mark_time(m) < w->order.begin)) {
        const bool reads = !now_writes || mark_strength(now) == ATOMIC;
        if (reads && is_shared)
            note_uninitialised(w, s, granule, now);
        else if (reads && s->blank)
            granule_report(w, s, granule, SMK_HAZARD_UNINITIALISED, now, 0);
        return;
    }
    if (order_before(&w->order, m, mark_thread(now)) || is_strong_pair(m, now)) return;
    if (value && s->value && w->all->sites.sites[mark_site(m)].stores &&
        !memcmp(value, &s->value[granule << s->shift], (size_t)1 << s->shift))
        return;
    report_race(w, s, granule, m, true, now, now_writes);
}

static bool judge_reader(watch *w, shadow *s, uint64_t granule, mark reader_mark, mark now) {
    const bool is_shared = s == &w->shared;
    if (!reader_mark || (is_shared && mark_time(reader_mark) < w->order.begin) ||
        order_before(&w->order, reader_mark, mark_thread(now)) || is_strong_pair(reader_mark, now))
        return false;
    if (mark_time(reader_mark) == TIME_FLYING)
        granule_report(w, s, granule, SMK_HAZARD_ASYNC_WRITE, now, reader_mark);
    else
        report_race(w, s, granule, reader_mark, false, now, true);
    return true;
}

void granule_look(watch *w, shadow *s, uint64_t granule, mark now) {
    judge_write(w, s, granule, now, false, NULL);
}

/* ---- lists of readers ---- */

static mark lane_mark(const reader *r, uint32_t lane) {
    const mark thread = (mark)(mark_thread(r->m) / LANES * LANES + lane) << MARK_THREAD_AT;
    return (r->m & ~((mark)MARK_THREADS << MARK_THREAD_AT)) | thread;
}

static bool all_before(const watch *w, const reader *r, uint32_t thread) {
    for (uint32_t left = r->lanes; left; left &= left - 1)
        if (!order_before(&w->order, lane_mark(r, (uint32_t)first_lane(left)), thread))
            return false;
    return true;
}

/* Readers that are ordered before this one say nothing that it does not say. Of earlier blocks' one
 * stays. */
static void list_reader(watch *w, shadow *s, uint64_t granule, mark now) {
    const uint32_t thread = mark_thread(now), lane = thread % LANES;
    mark *head = &s->marks.other[granule];
    uint32_t kept = 0;
    bool found = false, earlier_block = false;
    for (uint32_t k = (uint32_t)*head, next; k; k = next) {
        reader *r = &w->readers[k];
        const bool old = mark_time(r->m) < w->order.begin;
        next = r->next;
        if (mark_time(r->m) == mark_time(now) && mark_thread(r->m) / LANES == thread / LANES &&
            mark_strength(r->m) == mark_strength(now)) {
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

static void judge_readers(watch *w, shadow *s, uint64_t granule, mark now) {
    for (uint32_t k = (uint32_t)s->marks.other[granule]; k; k = w->readers[k].next)
        for (uint32_t left = w->readers[k].lanes; left; left &= left - 1)
            if (judge_reader(w, s, granule, lane_mark(&w->readers[k], (uint32_t)first_lane(left)),
                             now))
                return;
}

/* ---- reads and writes ---- */

/* Two readers of different threads say all that a later write must know, and of weak ones only weak
 * ones: a strong write does not race with strong readers. So weak readers go before strong ones. */
static void note_reader(const watch *w, mark *first, mark *other, mark now) {
    const bool other_is_weak = mark_time(*other) >= w->order.floor && mark_strength(*other) == WEAK;
    const bool strong_first = mark_time(*first) >= w->order.floor && mark_strength(*first) != WEAK;
    if (mark_strength(now) == WEAK || !other_is_weak) {
        if (strong_first && other_is_weak) *first = *other;
        *other = now;
    } else if (strong_first && mark_thread(*other) == mark_thread(*first)) {
        *first = now;
    }
}

void granule_read(watch *w, shadow *s, uint64_t granule, mark now, const row_limits *writes,
                  const row_limits *rest) {
    if (!is_usual(s->marks.write[granule], now, writes))
        judge_write(w, s, granule, now, false, NULL);
    if (w->order.fine) {
        list_reader(w, s, granule, now);
        return;
    }
    mark *first = &s->marks.read[granule], *other = &s->marks.other[granule];
    if (is_usual(*first, now, rest)) {
        *first = now;
        return;
    }
    note_reader(w, first, other, now);
    const mark last = s->marks.write[granule];
    if (s->shift && mark_time(*other) >= w->order.floor &&
        mark_thread(*first) != mark_thread(*other) && is_ordered_for_all(last, writes))
        s->marks.settled[granule] = settled_at(watch_floor(w), mark_strength(*first) != WEAK ||
                                                                   mark_strength(*other) != WEAK);
}

static void settle_uninitialised(watch *w, shadow *s, uint64_t granule, mark now) {
    mark *read = &s->uninitialised[granule];
    if (mark_time(*read) < w->order.begin) return;
    if (order_before(&w->order, *read, mark_thread(now)))
        granule_report(w, s, granule, SMK_HAZARD_UNINITIALISED, *read, 0);
    *read = 0;
}

void granule_write(watch *w, shadow *s, uint64_t granule, mark now, const row_limits *rest,
                   const unsigned char *value) {
    mark *last = &s->marks.write[granule];
    if (!is_usual(*last, now, rest) || mark_strength(now) == ATOMIC)
        judge_write(w, s, granule, now, true, value);
    if (w->order.fine) {
        if (s->marks.other) judge_readers(w, s, granule, now);
    } else if (s->marks.read && (is_usual(s->marks.read[granule], now, rest) ||
                                 !judge_reader(w, s, granule, s->marks.read[granule], now))) {
        if (!is_usual(s->marks.other[granule], now, rest))
            judge_reader(w, s, granule, s->marks.other[granule], now);
    }
    if (s->pending) settle_uninitialised(w, s, granule, now);
    if (s->marks.settled) s->marks.settled[granule] = 0;
    const bool recent = mark_time(*last) >= w->order.floor && mark_time(*last) != TIME_FLYING;
    const bool own = mark_thread(*last) == mark_thread(now);
    if (recent && own && mark_strength(*last) == WEAK && mark_strength(now) != WEAK)
        *last = (*last & 0xffffffffu) | (mark)mark_time(now) << MARK_TIME_AT; /* still not strong */
    else if (recent && mark_strength(now) != WEAK &&
             (mark_strength(*last) == SEVERAL || (mark_strength(*last) != WEAK && !own)))
        *last = now | SEVERAL;
    else
        *last = now;
}
