/* An access against the marks of earlier ones.
 *
 * A granule has a mark of its last write, and of its readers since: where only whole blocks synchronise,
 * two different readers are enough (a later write is unordered with all readers of the interval or with
 * none, and one of two is not the writer itself); elsewhere a list of all that are not ordered before one
 * another.
 */
#include <stdlib.h>
#include <string.h>

#include "hazards_state.h"
#include "lanes.h"

/* ---- shadows ---- */

static bool marks_init(row_marks *m, uint64_t n) {
    m->write = calloc(n + 1, sizeof(mark)); /* large ones are zero pages until they are touched */
    m->read = calloc(n + 1, sizeof(mark));
    m->other = calloc(n + 1, sizeof(mark));
    m->settled = calloc(n + 1, sizeof(uint32_t));
    return m->write && m->read && m->other && m->settled;
}

static void marks_free(row_marks *m) {
    free(m->write);
    free(m->read);
    free(m->other);
    free(m->settled);
}

bool shadow_init(shadow *s, uint64_t base, uint64_t bytes, bool values) {
    *s = (shadow){.bytes = bytes, .shift = 2, .base = base};
    if (values) s->value = calloc(bytes + 1, 1);
    return marks_init(&s->marks, (bytes >> 2) + 1) && (s->value || !values);
}

void shadow_free(shadow *s) {
    marks_free(&s->marks);
    free(s->uninitialised);
    free(s->value);
    *s = (shadow){0};
}

static uint64_t granules(const shadow *s) {
    return (s->bytes >> s->shift) + 1;
}

/* Each of four bytes gets its word's mark. */
static bool refine_marks(mark **marks, uint64_t words) {
    mark *fine = calloc(4 * words + 1, sizeof *fine);
    if (!fine) return false;
    for (uint64_t k = 0; k < words; k++)
        if ((*marks)[k])
            for (uint64_t b = 0; b < 4; b++)
                fine[4 * k + b] = (*marks)[k];
    free(*marks);
    *marks = fine;
    return true;
}

static uint32_t new_reader(watch *w) {
    const uint32_t spare = w->spare_readers;
    if (spare) {
        w->spare_readers = w->readers[spare].next;
        return spare;
    }
    if (w->n_readers == w->room_readers) {
        const uint32_t room = w->room_readers ? 2 * w->room_readers : 4096;
        reader *larger = realloc(w->readers, room * sizeof *larger);
        if (!larger) {
            w->out_of_memory = true;
            return 0;
        }
        w->readers = larger;
        w->room_readers = room;
        if (!w->n_readers) w->n_readers = 1;
    }
    return w->n_readers++;
}

static void spare_reader(watch *w, uint32_t k) {
    w->readers[k].next = w->spare_readers;
    w->spare_readers = k;
}

static uint32_t copy_readers(watch *w, uint32_t from) {
    uint32_t copy = 0;
    for (; from; from = w->readers[from].next) {
        const uint32_t k = new_reader(w);
        if (!k) break;
        w->readers[k] = (reader){w->readers[from].m, w->readers[from].lanes, copy};
        copy = k;
    }
    return copy;
}

static bool refine(watch *w, shadow *s) {
    const uint64_t n = granules(s);
    if (refine_marks(&s->marks.write, n) && refine_marks(&s->marks.read, n) &&
        refine_marks(&s->marks.other, n) &&
        (!s->uninitialised || refine_marks(&s->uninitialised, n))) {
        free(s->marks.settled); /* looked at by words only */
        s->marks.settled = NULL;
        for (uint64_t k = 0; w->order.fine && k < 4 * n; k++)
            if (k % 4) s->marks.other[k] = copy_readers(w, (uint32_t)s->marks.other[k]);
        s->shift = 0;
        return true;
    }
    w->out_of_memory = true;
    return false;
}

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

static void report(watch *w, const shadow *s, uint64_t granule, smk_hazard_kind kind, mark party,
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
    report(w, s, granule,
           !last_writes    ? SMK_HAZARD_RAW
           : !first_writes ? SMK_HAZARD_WAR
                           : SMK_HAZARD_WAW,
           in_order ? now : earlier, in_order ? earlier : now);
}

static bool is_strong_pair(mark a, mark b) {
    return mark_strength(a) != WEAK && mark_strength(b) != WEAK;
}

static bool is_usual(mark m, mark own, const row_limits *limits) {
    const mark since = m - limits->begin, different = m ^ own;
    return since < limits->ordered ||
           (!(different & ((mark)MARK_THREADS << MARK_THREAD_AT | 3)) && since < limits->own) ||
           (!m && limits->untouched);
}

/* ---- one lane's granule ---- */

/* Uninitialised reads wait for the end of the block: a write that races with one explains it. */
static void note_uninitialised(watch *w, shadow *s, uint64_t granule, mark now) {
    if (!s->uninitialised) s->uninitialised = calloc(granules(s), sizeof(mark));
    if (!s->uninitialised) {
        w->out_of_memory = true;
        return;
    }
    s->pending = true;
    if (mark_time(s->uninitialised[granule]) < w->order.begin) s->uninitialised[granule] = now;
}

/* The last write against an access now. */
static void judge_write(watch *w, shadow *s, uint64_t granule, mark now, bool now_writes,
                        const unsigned char *value) {
    const mark m = s->marks.write[granule];
    const bool is_shared = s == &w->shared;
    if (mark_time(m) == TIME_FLYING) {
        report(w, s, granule, now_writes ? SMK_HAZARD_ASYNC_WRITE : SMK_HAZARD_ASYNC_READ, now, m);
        return;
    }
    if (!m || (is_shared && mark_time(m) < w->order.begin)) {
        const bool reads = !now_writes || mark_strength(now) == ATOMIC;
        if (reads && is_shared)
            note_uninitialised(w, s, granule, now);
        else if (reads && s->blank)
            report(w, s, granule, SMK_HAZARD_UNINITIALISED, now, 0);
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
    report_race(w, s, granule, reader_mark, false, now, true);
    return true;
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
            spare_reader(w, k);
            continue;
        }
        earlier_block |= old;
        r->next = kept;
        kept = k;
    }
    if (!found) {
        const uint32_t k = new_reader(w);
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

static void touch_read(watch *w, shadow *s, uint64_t granule, mark now, const row_limits *writes,
                       const row_limits *rest) {
    if (!is_usual(s->marks.write[granule], now, writes))
        judge_write(w, s, granule, now, false, NULL);
    if (w->order.fine) {
        list_reader(w, s, granule, now);
        return;
    }
    mark *first = &s->marks.read[granule];
    if (is_usual(*first, now, rest)) {
        *first = now;
        return;
    }
    s->marks.other[granule] = now;
    const mark last = s->marks.write[granule];
    if (s->shift && mark_thread(*first) != mark_thread(now) &&
        (last - writes->begin < writes->ordered || (!last && writes->untouched)))
        s->marks.settled[granule] = w->order.floor;
}

static void settle_uninitialised(watch *w, shadow *s, uint64_t granule, mark now) {
    mark *read = &s->uninitialised[granule];
    if (mark_time(*read) < w->order.begin) return;
    if (order_before(&w->order, *read, mark_thread(now)))
        report(w, s, granule, SMK_HAZARD_UNINITIALISED, *read, 0);
    *read = 0;
}

static void touch_write(watch *w, shadow *s, uint64_t granule, mark now, const row_limits *rest,
                        const unsigned char *value) {
    mark *last = &s->marks.write[granule];
    if (!is_usual(*last, now, rest) || mark_strength(now) == ATOMIC)
        judge_write(w, s, granule, now, true, value);
    if (w->order.fine) {
        judge_readers(w, s, granule, now);
    } else if (is_usual(s->marks.read[granule], now, rest) ||
               !judge_reader(w, s, granule, s->marks.read[granule], now)) {
        if (!is_usual(s->marks.other[granule], now, rest))
            judge_reader(w, s, granule, s->marks.other[granule], now);
    }
    if (s->pending) settle_uninitialised(w, s, granule, now);
    if (s->shift) s->marks.settled[granule] = 0;
    const bool recent = mark_time(*last) >= w->order.floor && mark_time(*last) != TIME_FLYING;
    const bool own = mark_thread(*last) == mark_thread(now);
    if (recent && own && mark_strength(*last) == WEAK && mark_strength(now) != WEAK)
        *last = (*last & 0xffffffffu) | (mark)mark_time(now) << MARK_TIME_AT; /* still not strong */
    else if (recent && mark_strength(now) == ATOMIC &&
             (mark_strength(*last) == ATOMICS || (mark_strength(*last) == ATOMIC && !own)))
        *last = now | ATOMICS;
    else
        *last = now;
}

/* ---- requests ---- */

enum { MAX_LANE_BYTES = 32 };

/* What a lane stores, as it lies in memory. */
static void gather_value(const emu_request *r, int lane, unsigned char *out) {
    const uint32_t bytes = r->width / r->elements;
    for (uint32_t k = 0; k < r->elements; k++)
        memcpy(out + k * bytes, r->frame + r->slots[k] + (size_t)lane * r->slot_bytes, bytes);
}

static void note_values(shadow *s, const emu_request *r, uint64_t offset) {
    if (r->elements == 1 && r->slot_bytes == r->width) {
        memcpy(&s->value[offset], r->frame + r->slots[0], (size_t)LANES * r->width);
        return;
    }
    for (int lane = 0; lane < LANES; lane++)
        gather_value(r, lane, &s->value[offset + (uint64_t)lane * r->width]);
}

static bool writes(emu_operation operation) {
    return operation == EMU_STORE || operation == EMU_ATOMIC || operation == EMU_COPY_ASYNC_WRITE ||
           operation == EMU_STMATRIX || operation == EMU_BULK_WRITE;
}

/* Where reads of what nobody has written have to be looked at, and where not. */
static const row_limits *load_limits(const watch *w, const shadow *s) {
    return s == &w->shared || s->blank ? &w->blank_loads : &w->global;
}

/* All lanes' accesses in one row, or of one place; false: look at each. */
static bool touch_row(watch *w, shadow *s, const emu_request *r, mark mine) {
    const uint64_t offset = r->address[0] - (s == &w->shared ? 0 : s->base);
    const bool is_shared = s == &w->shared, stores = r->operation == EMU_STORE;
    if (r->step == 0 || (r->operation != EMU_LOAD && !stores) || w->order.fine || s->shift != 2 ||
        r->width < 4 || mark_strength(mine) != WEAK || offset & 3 ||
        offset + (uint64_t)LANES * r->width > s->bytes)
        return false;
    const uint64_t first = offset >> 2;
    const row_marks m = {s->marks.write + first, s->marks.read + first, s->marks.other + first,
                         s->marks.settled + first};
    const uint32_t n = LANES * r->width / 4, shift = (uint32_t)__builtin_ctz(r->width / 4);
    if (!stores)
        return w->row->row_settled(m.settled, n, w->order.floor) ||
               w->row->read(m, n, shift, mine, load_limits(w, s),
                            is_shared ? &w->shared_rest : &w->global);
    if (s->pending || !w->row->write(m, n, shift, mine, is_shared ? &w->shared_rest : &w->global))
        return false;
    s->written = true;
    if (s->value && r->frame) note_values(s, r, offset);
    return true;
}

static void touch_lane(watch *w, shadow *s, const emu_request *r, int lane, mark now) {
    const bool is_shared = s == &w->shared, write = writes(r->operation);
    const uint64_t offset = r->address[lane] - (is_shared ? 0 : s->base);
    const row_limits *rest = is_shared ? &w->shared_rest : &w->global;
    const row_limits *loads = load_limits(w, s);
    const bool flies =
        r->operation == EMU_COPY_ASYNC_WRITE || (is_shared && r->operation == EMU_BULK_WRITE);
    unsigned char value[MAX_LANE_BYTES];
    if (offset >= s->bytes || r->width > s->bytes - offset) return;
    if (s->shift && ((offset | r->width) & 3) && !refine(w, s)) return;
    const bool known = write && r->frame && s->value;
    if (known) gather_value(r, lane, value);
    const uint64_t first = offset >> s->shift, n = r->width >> s->shift;
    for (uint64_t k = 0; k < n; k++) {
        if (!write) {
            touch_read(w, s, first + k, now, loads, rest);
            continue;
        }
        touch_write(w, s, first + k, now, rest, known ? value + (k << s->shift) : NULL);
        if (flies) s->marks.write[first + k] |= (mark)TIME_FLYING << MARK_TIME_AT;
    }
    if (known) memcpy(&s->value[offset], value, r->width);
    s->written |= write;
    s->flying |= flies;
}

/* What a strong access to the place orders. */
static void synchronise(watch *w, const emu_request *r, const site *at) {
    for (uint32_t left = r->active; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)first_lane(left), thread = r->warp * LANES + lane;
        const uint64_t object =
            r->address[lane] + (r->space == PTX_SHARED ? REGION_BASE(REGION_SHARED) : 0);
        if (at->releases) order_fence(&w->order, r->warp, left & -left);
        if (r->operation != EMU_STORE) order_acquire(&w->order, object, thread);
        if (r->operation != EMU_LOAD) order_release(&w->order, object, thread);
    }
    watch_set_limits(w);
}

static uint32_t site_number(watch *w, const emu_request *r) {
    if (r->function != w->last_function) {
        const site_table *t = &w->all->sites;
        w->last_function = r->function;
        w->last_base = 0;
        for (uint32_t k = 0; k < t->n_functions; k++)
            if (t->functions[k] == r->function) w->last_base = t->base[k];
    }
    return w->last_base ? w->last_base + r->index : 0;
}

static shadow *shadow_at(watch *w, ptx_space space, uint64_t address) {
    if (space == PTX_SHARED) return &w->shared;
    const uint64_t id = REGION_OF(address);
    if (id < REGION_GLOBAL || id >= w->launch->n_regions) return NULL;
    const region *r = &w->launch->regions[id];
    shadow *s = &w->regions[id];
    if (!r->writable) return NULL; /* reads do not race */
    if (!s->marks.write &&
        !shadow_init(s, REGION_BASE(id), r->size, !(w->all->flags & SMK_EQUAL_WRITES))) {
        w->out_of_memory = true;
        return NULL;
    }
    s->blank = r->blank;
    return s;
}

void access_request(watch *w, const emu_request *r) {
    if ((r->space != PTX_SHARED && r->space != PTX_GLOBAL) || !r->active) return;
    /* Lanes that are pieces are all one thread's. */
    const bool pieces = r->operation >= EMU_BULK_READ && r->operation <= EMU_MATRIX_READ;
    const uint32_t number = site_number(w, r);
    const site *at = &w->all->sites.sites[number];
    const mark mine =
        mark_make(w->order.time, number, r->warp * LANES, (enum strength)at->strength);
    w->position[(size_t)r->warp * w->all->sites.n + number] = r->clock;
    if (at->strength != WEAK && w->order.fine && !pieces) synchronise(w, r, at);
    shadow *s = shadow_at(w, r->space, r->address[first_lane(r->active)]);
    const bool plain_load = r->operation == EMU_LOAD && !w->order.fine;
    if (!s && plain_load && r->step != ~(uint64_t)0) return;
    if (s && !pieces && r->step != ~(uint64_t)0 && touch_row(w, s, r, mine)) return;
    uint32_t lanes = r->active;
    if (plain_load) {
        lanes = r->step == 0 ? 3 : w->row->two_of_each(r->address, r->active);
        if (s && s->shift && r->width >= 4 && at->strength == WEAK &&
            w->row->lanes_settled(s->marks.settled, s->bytes, r->address,
                                  s == &w->shared ? 0 : s->base, lanes, r->width, w->order.floor))
            return;
    }
    for (; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        if (r->space == PTX_GLOBAL) s = shadow_at(w, r->space, r->address[lane]);
        const uint32_t thread = pieces ? r->bulk_lane : (uint32_t)lane;
        if (s) touch_lane(w, s, r, lane, mine + ((mark)thread << MARK_THREAD_AT));
    }
}

static void land(watch *w, uint32_t thread, uint64_t offset, uint64_t bytes) {
    shadow *s = &w->shared;
    const uint64_t first = offset >> s->shift, n = bytes >> s->shift;
    for (uint64_t k = first; k < first + n; k++) {
        mark *m = &s->marks.write[k];
        if (mark_time(*m) == TIME_FLYING && mark_thread(*m) == thread)
            *m = (*m & 0xffffffffu) | (mark)w->order.time << MARK_TIME_AT;
    }
}

/* A bulk copy is an access of the thread that asked for it, and arrives for it at the mbarrier. */
void access_mbarrier(watch *w, const emu_sync *event) {
    const uint64_t object = REGION_BASE(REGION_SHARED) + event->object;
    for (uint32_t left = event->lanes; left; left &= left - 1) {
        const uint32_t thread = event->warp * LANES + (uint32_t)first_lane(left);
        if (event->kind == EMU_MBARRIER_WAIT) {
            order_acquire(&w->order, object, thread);
            continue;
        }
        if (event->address) land(w, thread, event->address[0], event->width);
        order_fence(&w->order, event->warp, left & -left);
        order_release(&w->order, object, thread);
    }
    watch_set_limits(w);
}

/* ---- copies in flight ---- */

void access_copy_done(watch *w, const emu_sync *event) {
    for (uint32_t left = event->lanes; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)first_lane(left);
        land(w, event->warp * LANES + lane, event->address[lane], event->width);
    }
}

void access_end_block(watch *w) {
    shadow *s = &w->shared;
    const uint64_t n = granules(s);
    for (uint64_t k = 0; s->pending && k < n; k++)
        if (mark_time(s->uninitialised[k]) >= w->order.begin)
            report(w, s, k, SMK_HAZARD_UNINITIALISED, s->uninitialised[k], 0);
    for (uint64_t k = 0; s->flying && k < n; k++)
        if (mark_time(s->marks.write[k]) == TIME_FLYING) s->marks.write[k] = 0;
    s->pending = s->flying = false;
    for (uint64_t k = 0; w->order.fine && k < n; k++) {
        for (uint32_t r = (uint32_t)s->marks.other[k], next; r; r = next) {
            next = w->readers[r].next;
            spare_reader(w, r);
        }
        s->marks.other[k] = 0;
    }
}
