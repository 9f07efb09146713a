/* The slow path: one access to one granule, checked against the granule's epochs.
 *
 * A granule has the epoch of its last write and the epochs of its readers since. If only whole
 * blocks synchronise, two readers that are different threads suffice: a later write is ordered with
 * all readers since the last barrier or with none, and at most one of the two is the writer itself.
 * With fine-grained synchronisation there are lists of readers, and of writes before the last one
 * (access_list.c). (FastTrack has a read epoch, or a read vector clock if the granule is
 * read-shared.)
 */
#include <stdlib.h>
#include <string.h>

#include "epoch_tests.h"
#include "detector.h"
#include "../base/lanes.h"

/* ---- findings ---- */

/* The place of an access in the program: how many instructions its warp had run since its last
 * barrier. Negative for a cp.async that was issued before the barrier and completed after it. */
static int32_t program_position(const detector *d, epoch e) {
    const uint32_t warp = epoch_thread(e) / LANES;
    return (int32_t)(d->last_run[(size_t)warp * d->hazards->sites.n + epoch_site(e)] -
                     d->barrier_clock[warp]);
}

/* Which of two accesses comes first in the program. The order of this run does not decide it: other
 * warps or blocks could as well have run first. */
static bool comes_first(const detector *d, epoch earlier, epoch now) {
    if (epoch_time(earlier) < d->hb.begin || detector_is_other_member(d, earlier))
        return epoch_site(earlier) <= epoch_site(now);
    if (epoch_thread(earlier) / LANES == epoch_thread(now) / LANES) return true;
    return program_position(d, earlier) <= program_position(d, now);
}

void granule_report(detector *d, const shadow *s, uint64_t granule, smk_hazard_kind kind, epoch op,
                    epoch other) {
    findings_add(&d->found, (finding){.kind = kind,
                                      .op = detector_op(d, op),
                                      .other = detector_op(d, other),
                                      .address = s->base + (granule << s->shift),
                                      .width = 1u << s->shift,
                                      .count = 1,
                                      .of_copy = kind == SMK_HAZARD_UNINITIALISED && other});
}

static void report_race(detector *d, const shadow *s, uint64_t granule, epoch earlier,
                        bool earlier_writes, epoch now, bool now_writes) {
    const bool in_order = comes_first(d, earlier, now);
    const bool first_writes = in_order ? earlier_writes : now_writes;
    const bool last_writes = in_order ? now_writes : earlier_writes;
    granule_report(d, s, granule,
                   !last_writes    ? SMK_HAZARD_RAW
                   : !first_writes ? SMK_HAZARD_WAR
                                   : SMK_HAZARD_WAW,
                   in_order ? now : earlier, in_order ? earlier : now);
}

/* ---- against the last write, and against one reader ---- */

/* Uninitialised reads are reported at the end of the block. If a write races with the read, that
 * race is reported instead (resolve_uninitialised). */
static void record_uninitialised(detector *d, shadow *s, uint64_t granule, epoch now) {
    if (!s->uninitialised_read && !shadow_add_uninitialised(d, s)) return;
    s->has_uninitialised_read = true;
    if (epoch_time(s->uninitialised_read[granule]) < d->hb.begin)
        s->uninitialised_read[granule] = now;
}

void granule_check_value(detector *d, shadow *s, uint64_t granule, epoch now) {
    if (!granule_is_undefined(d, s, granule)) return;
    const epoch copy = undefined_copy(d, s, granule);
    if (!copy && s->is_shared)
        record_uninitialised(d, s, granule, now);
    else
        granule_report(d, s, granule, SMK_HAZARD_UNINITIALISED, now, copy);
}

static bool are_morally_strong(const detector *d, epoch earlier, epoch now) {
    return is_morally_strong(&d->hazards->sites, earlier, now, hb_scope_between(&d->hb, earlier));
}

/* Checks an access against the last write. True: no synchronisation orders them. That is a race
 * unless both write one value (same_value). */
static bool check_write(detector *d, shadow *s, uint64_t granule, epoch now, bool now_writes,
                        bool same_value) {
    const epoch e = s->epochs.write[granule];
    const bool is_shared = s->is_shared;
    if (epoch_time(e) == TIME_IN_FLIGHT) {
        granule_report(d, s, granule, now_writes ? SMK_HAZARD_ASYNC_WRITE : SMK_HAZARD_ASYNC_READ,
                       now, e);
        return false;
    }
    if (!e || (is_shared && epoch_time(e) < d->hb.begin)) return false;
    if (hb_before(&d->hb, e, epoch_thread(now)) || are_morally_strong(d, e, now)) return false;
    if (!same_value) report_race(d, s, granule, e, true, now, now_writes);
    return true;
}

static bool check_reader(detector *d, shadow *s, uint64_t granule, epoch read, epoch now) {
    const bool is_shared = s->is_shared;
    if (!read || (is_shared && epoch_time(read) < d->hb.begin) ||
        hb_before(&d->hb, read, epoch_thread(now)) || are_morally_strong(d, read, now))
        return false;
    if (epoch_time(read) == TIME_IN_FLIGHT)
        granule_report(d, s, granule, SMK_HAZARD_ASYNC_WRITE, now, read);
    else
        report_race(d, s, granule, read, false, now, true);
    return true;
}

/* Whether the access is morally strong with the entry and with all later ones of its list. */
static bool strong_from_here(const detector *d, const access_entry *r, epoch now) {
    return access_strength(d, r->e) == N_STRENGTHS - 1 &&
           access_strength(d, now) == N_STRENGTHS - 1;
}

/* Checks an access against the writes before the last one. */
static void check_displaced(detector *d, shadow *s, uint64_t granule, epoch now, bool now_writes) {
    for (uint32_t k = (uint32_t)s->epochs.read[granule]; k; k = d->entries[k].next) {
        if (strong_from_here(d, &d->entries[k], now)) return;
        for (uint32_t left = d->entries[k].lanes; left; left &= left - 1) {
            const epoch e = entry_epoch(&d->entries[k], (uint32_t)first_lane(left));
            const bool is_past = s->is_shared && epoch_time(e) < d->hb.begin;
            if (is_past || hb_before(&d->hb, e, epoch_thread(now)) || are_morally_strong(d, e, now))
                continue;
            report_race(d, s, granule, e, true, now, now_writes);
            return;
        }
    }
}

static void check_readers(detector *d, shadow *s, uint64_t granule, epoch now) {
    for (uint32_t k = (uint32_t)s->epochs.other_read[granule]; k; k = d->entries[k].next) {
        if (strong_from_here(d, &d->entries[k], now)) return;
        for (uint32_t left = d->entries[k].lanes; left; left &= left - 1)
            if (check_reader(d, s, granule, entry_epoch(&d->entries[k], (uint32_t)first_lane(left)),
                             now))
                return;
    }
}

void granule_check(detector *d, shadow *s, uint64_t granule, epoch now) {
    granule_check_value(d, s, granule, now);
    check_write(d, s, granule, now, false, false);
}

/* ---- reads and writes ---- */

/* Keeps two readers that are different threads. A weak reader replaces a strong one: a weak write
 * races with either, a strong write only with weak readers. */
static void record_two_readers(const detector *d, epoch *first, epoch *other, epoch now) {
    const bool other_is_weak = epoch_time(*other) >= d->hb.floor && epoch_kind(*other) == WEAK;
    const bool strong_first = epoch_time(*first) >= d->hb.floor && epoch_kind(*first) != WEAK;
    if (epoch_kind(now) == WEAK || !other_is_weak) {
        if (strong_first && other_is_weak) *first = *other;
        *other = now;
    } else if (strong_first && epoch_thread(*other) == epoch_thread(*first)) {
        *first = now;
    }
}

void granule_read(detector *d, shadow *s, uint64_t granule, epoch now,
                  const fast_path_limits *write_limits, const fast_path_limits *read_limits) {
    bool recent = false;
    const bool own_value =
        equal_writes_any(s, granule) && equal_writes_by_reader(d, s, granule, now, &recent);
    if (recent && epoch_time(now) != TIME_IN_FLIGHT) return;
    if (!passes_fast_path(s->epochs.write[granule], now, write_limits))
        check_write(d, s, granule, now, false, own_value);
    if (d->hb.fine_grained) {
        if (s->displaced) check_displaced(d, s, granule, now, false);
        access_list_add(d, &s->epochs.other_read[granule], now, now);
        return;
    }
    epoch *first = &s->epochs.read[granule], *other = &s->epochs.other_read[granule];
    if (passes_fast_path(*first, now, read_limits)) {
        *first = now;
        return;
    }
    record_two_readers(d, first, other, now);
    const epoch last = s->epochs.write[granule];
    if (s->shift && epoch_time(*other) >= d->hb.floor &&
        epoch_thread(*first) != epoch_thread(*other) && is_ordered_for_all(last, write_limits))
        s->epochs.read_shared[granule] = read_shared_at(
            detector_floor(d), epoch_kind(*first) != WEAK || epoch_kind(*other) != WEAK);
}

static void resolve_uninitialised(detector *d, shadow *s, uint64_t granule, epoch now) {
    epoch *read = &s->uninitialised_read[granule];
    if (epoch_time(*read) < d->hb.begin) return;
    if (hb_before(&d->hb, *read, epoch_thread(now)))
        granule_report(d, s, granule, SMK_HAZARD_UNINITIALISED, *read, 0);
    *read = 0;
}

/* A write of another value than the granule has, which races with `now`; 0: none. */
static epoch racing_change(const detector *d, const shadow *s, uint64_t granule, epoch now) {
    const epoch e = s->epochs.changed ? s->epochs.changed[granule] : 0;
    const bool is_past = s->is_shared && epoch_time(e) < d->hb.begin;
    if (!e || is_past || hb_before(&d->hb, e, epoch_thread(now)) || are_morally_strong(d, e, now))
        return 0;
    return e;
}

/* The value changes. The last write is kept if it may race with a write of the new value. */
static void note_change(detector *d, shadow *s, uint64_t granule, const fast_path_limits *limits) {
    const epoch last = s->epochs.write[granule];
    if (!s->value || !last || last - limits->begin < limits->settled ||
        (s->is_shared && epoch_time(last) < d->hb.begin) || epoch_time(last) == TIME_IN_FLIGHT ||
        (!s->epochs.changed && !shadow_add_changed(d, s)))
        return;
    s->epochs.changed[granule] = last;
}

/* Checks a write against the writes before it. */
static void check_writes(detector *d, shadow *s, uint64_t granule, epoch now,
                         const fast_path_limits *limits, const unsigned char *value) {
    const epoch last = s->epochs.write[granule];
    const bool same_value = equal_writes_same_value(d, s, granule, value);
    const epoch changed = same_value ? racing_change(d, s, granule, now) : 0;
    bool races = false;
    if (changed) report_race(d, s, granule, changed, true, now, true);
    if (!same_value) note_change(d, s, granule, limits);
    if (epoch_kind(now) == ATOMIC) granule_check_value(d, s, granule, now);
    if (!passes_fast_path(last, now, limits) || epoch_kind(now) == ATOMIC)
        races = check_write(d, s, granule, now, true, same_value);
    if (same_value && (races || equal_writes_any(s, granule))) {
        equal_writes_add(d, s, granule, now);
    } else if (equal_writes_any(s, granule)) {
        const epoch other = races ? 0 : equal_writes_racing(d, s, granule, now);
        if (other) report_race(d, s, granule, other, true, now, true);
        equal_writes_drop(d, s, granule);
    }
}

/* A strong write displaces the last one, which is kept if some access may race with that one
 * only. */
static void displace(detector *d, shadow *s, uint64_t granule, epoch now) {
    const epoch last = s->epochs.write[granule];
    const bool is_past = s->is_shared && epoch_time(last) < d->hb.begin;
    if (!last || is_past || epoch_time(last) == TIME_IN_FLIGHT || access_superseded(d, last, now))
        return;
    if (!s->epochs.read && !shadow_add_readers(d, s)) return;
    access_list_add(d, &s->epochs.read[granule], last, now);
    s->displaced = true;
}

/* The last write's epoch after a strong write in the same interval between barriers. It stays weak
 * after a weak one of the same thread, and has the narrower of two scopes. */
static epoch merge_writes(const detector *d, epoch last, epoch now) {
    const bool own = epoch_thread(last) == epoch_thread(now);
    const epoch time = (epoch)epoch_time(now) << EPOCH_TIME_SHIFT;
    if (own && epoch_kind(last) == WEAK) return (last & 0xffffffffu) | time;
    if (epoch_kind(last) == WEAK) return now;
    const enum access_kind kind =
        epoch_kind(last) == SEVERAL_STRONG || !own ? SEVERAL_STRONG : epoch_kind(now);
    const epoch narrower = access_strength(d, last) < access_strength(d, now) ? last : now;
    return epoch_make(epoch_time(now), epoch_site(narrower), epoch_thread(now), kind);
}

void granule_write(detector *d, shadow *s, uint64_t granule, epoch now,
                   const fast_path_limits *limits, const unsigned char *value) {
    epoch *last = &s->epochs.write[granule];
    check_writes(d, s, granule, now, limits, value);
    if (d->hb.fine_grained) {
        if (s->epochs.other_read) check_readers(d, s, granule, now);
        if (s->displaced) check_displaced(d, s, granule, now, true);
        /* What races with an access before a weak write races with that write, or was reported. */
        if (epoch_kind(now) != WEAK)
            displace(d, s, granule, now);
        else if (s->displaced)
            access_list_free(d, &s->epochs.read[granule]);
    } else if (s->epochs.read && (passes_fast_path(s->epochs.read[granule], now, limits) ||
                                  !check_reader(d, s, granule, s->epochs.read[granule], now))) {
        if (!passes_fast_path(s->epochs.other_read[granule], now, limits))
            check_reader(d, s, granule, s->epochs.other_read[granule], now);
    }
    if (s->has_uninitialised_read) resolve_uninitialised(d, s, granule, now);
    if (s->undefined) s->undefined[granule] = 0;
    if (s->epochs.read_shared) s->epochs.read_shared[granule] = 0;
    const bool recent = epoch_time(*last) >= d->hb.floor && epoch_time(*last) != TIME_IN_FLIGHT;
    const bool merge = recent && !d->hb.fine_grained && epoch_kind(now) != WEAK;
    *last = merge ? merge_writes(d, *last, now) : now;
}
