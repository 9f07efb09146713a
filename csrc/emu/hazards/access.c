/* Requests against the epochs of earlier ones: all lanes at once where nothing about them is unusual
 * (hazards_row.h), else each lane's granules by themselves. */
#include <stdlib.h>
#include <string.h>

#include "detector.h"
#include "../base/lanes.h"

enum { MAX_LANE_BYTES = 32 };

/* What a lane stores, as it lies in memory. */
static void gather_value(const emu_request *r, int lane, unsigned char *out) {
    const uint32_t bytes = r->width / r->elements;
    for (uint32_t k = 0; k < r->elements; k++)
        memcpy(out + k * bytes, r->frame + r->slots[k] + (size_t)lane * r->slot_bytes, bytes);
}

static bool writes(emu_operation operation) {
    return operation == EMU_STORE || operation == EMU_ATOMIC || operation == EMU_COPY_ASYNC_WRITE ||
           operation == EMU_STMATRIX || operation == EMU_BULK_WRITE;
}

static bool is_in_flight(const emu_request *r, bool is_shared) {
    return r->operation == EMU_COPY_ASYNC_WRITE ||
           (is_shared && r->operation >= EMU_BULK_READ && r->operation <= EMU_MATRIX_READ);
}

/* Where reads of what nobody has written have to be looked at, and where not. */
static const row_limits *load_limits(const detector *w, const shadow *s) {
    return s == &w->shared || s->blank ? &w->blank_loads : &w->global;
}

static bool touch_row(detector *w, const shadow *s, uint64_t offset, uint32_t width, epoch mine,
                      bool write) {
    const bool is_shared = s == &w->shared;
    const uint64_t first = offset >> 2;
    epoch_rows m = {.write = s->epochs.write + first};
    if (s->epochs.read) {
        m.read = s->epochs.read + first;
        m.other = s->epochs.other + first;
        m.read_shared = s->epochs.read_shared + first;
    }
    const uint32_t n = LANES * width / 4, shift = (uint32_t)__builtin_ctz(width / 4);
    const row_limits *rest = is_shared ? &w->shared_rest : &w->global;
    if (write) return w->row->write(m, n, shift, mine, rest);
    return w->row->read_shared(m.read_shared, n, detector_floor(w), epoch_kind(mine) != WEAK) ||
           w->row->read(m, n, shift, mine, load_limits(w, s), rest);
}

static bool touch_lanes(detector *w, const shadow *s, lane_words *words, epoch mine, bool write) {
    const bool is_shared = s == &w->shared;
    const row_limits *rest = is_shared ? &w->shared_rest : &w->global;
    if (write) return w->lanes->write(s->epochs, words, mine, rest);
    if (w->lanes->read_shared(s->epochs.read_shared, words, detector_floor(w),
                              epoch_kind(mine) != WEAK))
        return true;
    if (words->active == FULL) words->active = w->lanes->two_of_each(words->address, words->active);
    return w->lanes->read(s->epochs, words, mine, load_limits(w, s), rest);
}

/* All lanes' accesses at once, words of one region; false: look at each. */
static bool touch_all(detector *w, shadow *s, const emu_request *r, epoch mine) {
    const bool is_shared = s == &w->shared, write = writes(r->operation);
    if (s->shift != 2 || r->width < 4 || r->operation == EMU_ATOMIC || (write && s->pending))
        return false;
    const uint64_t base = is_shared ? 0 : s->base, offset = r->address[0] - base;
    const uint64_t row_bytes = (uint64_t)LANES * r->width;
    const bool row = r->step == r->width && !(offset & 3) && row_bytes <= s->bytes &&
                     offset <= s->bytes - row_bytes;
    lane_words words = {r->address, base, s->bytes, r->active, r->width};
    if (!write && r->step == 0) words.active = 3; /* one place: two lanes say what all say */
    const bool in_flight = is_in_flight(r, is_shared);
    if (in_flight) mine |= (epoch)TIME_IN_FLIGHT << EPOCH_TIME_AT;
    if (!(row ? touch_row(w, s, offset, r->width, mine, write)
              : touch_lanes(w, s, &words, mine, write)))
        return false;
    s->written |= write;
    s->in_flight |= in_flight;
    if (!write || !s->value || !r->frame) return true;
    if (row && r->elements == 1 && r->slot_bytes == r->width)
        memcpy(&s->value[offset], r->frame + r->slots[0], row_bytes);
    else
        w->lanes->note_values(s->value, &words, r->frame, r->slots, r->slot_bytes, r->elements,
                              r->width / r->elements);
    return true;
}

static void touch_lane(detector *w, shadow *s, const emu_request *r, int lane, epoch now) {
    const bool is_shared = s == &w->shared, write = writes(r->operation);
    const uint64_t offset = r->address[lane] - (is_shared ? 0 : s->base);
    const row_limits *rest = is_shared ? &w->shared_rest : &w->global;
    const row_limits *loads = load_limits(w, s);
    unsigned char value[MAX_LANE_BYTES];
    if (offset >= s->bytes || r->width > s->bytes - offset) return;
    if (s->shift && ((offset | r->width) & 3) && !shadow_refine(w, s)) return;
    const bool known = write && r->frame && s->value;
    const bool proxy = r->operation == EMU_BULK_READ || r->operation == EMU_MATRIX_READ;
    const epoch in_flight = is_in_flight(r, is_shared) ? (epoch)TIME_IN_FLIGHT << EPOCH_TIME_AT : 0;
    if (known) gather_value(r, lane, value);
    const uint64_t first = offset >> s->shift, n = r->width >> s->shift;
    for (uint64_t k = 0; k < n; k++) {
        if (!write) {
            granule_read(w, s, first + k, now | in_flight, loads, rest);
            if (proxy && is_shared) async_check(w, s, first + k, now);
            continue;
        }
        granule_write(w, s, first + k, now, rest, known ? value + (k << s->shift) : NULL);
        s->epochs.write[first + k] |= in_flight;
    }
    if (known) memcpy(&s->value[offset], value, r->width);
    if (r->operation == EMU_MATRIX_READ) async_matrix_read(w, r->warp, offset);
    s->written |= write;
    s->in_flight |= in_flight;
}

/* What a strong access to the place orders. */
static void synchronise(detector *w, const emu_request *r, const site *at) {
    for (uint32_t left = r->active; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)first_lane(left), thread = r->warp * LANES + lane;
        const uint64_t object =
            r->address[lane] + (r->space == PTX_SHARED ? REGION_BASE(REGION_SHARED) : 0);
        if (at->releases) hb_fence(&w->hb, r->warp, left & -left);
        if (r->operation != EMU_STORE) hb_acquire(&w->hb, object, thread);
        if (r->operation != EMU_LOAD) hb_release(&w->hb, object, thread);
    }
}

static uint32_t site_number(detector *w, const emu_request *r) {
    if (r->function != w->last_function) {
        const site_table *t = &w->all->sites;
        w->last_function = r->function;
        w->last_base = 0;
        for (uint32_t k = 0; k < t->n_functions; k++)
            if (t->functions[k] == r->function) w->last_base = t->base[k];
    }
    return w->last_base ? w->last_base + r->index : 0;
}

static shadow *global_shadow(detector *w, uint64_t address) {
    const uint64_t id = REGION_OF(address);
    if (id < REGION_GLOBAL || id >= w->launch->n_regions) return NULL;
    const region *r = &w->launch->regions[id];
    shadow *s = &w->regions[id];
    if (!r->writable) return NULL; /* reads do not race */
    if (!s->epochs.write &&
        !shadow_init(s, REGION_BASE(id), r->size, !(w->all->flags & SMK_EQUAL_WRITES))) {
        w->out_of_memory = true;
        return NULL;
    }
    s->blank = r->blank;
    return s;
}

/* NULL: nothing to note there. */
static shadow *shadow_at(detector *w, const emu_request *r, int lane) {
    shadow *s = r->space == PTX_SHARED ? &w->shared : global_shadow(w, r->address[lane]);
    if (s && !s->epochs.read && !writes(r->operation) && !shadow_add_readers(w, s)) return NULL;
    return s;
}

void access_request(detector *w, const emu_request *r) {
    if ((r->space != PTX_SHARED && r->space != PTX_GLOBAL) || !r->active) return;
    /* Lanes that are pieces are all one thread's. */
    const bool pieces = r->operation >= EMU_BULK_READ && r->operation <= EMU_MATRIX_READ;
    const uint32_t number = site_number(w, r);
    if (w->all->overlap && r->space == PTX_GLOBAL) overlap_request(w, r, number);
    const site *at = &w->all->sites.sites[number];
    const epoch mine =
        epoch_make(w->hb.time, number, r->warp * LANES, (enum access_kind)at->access_kind);
    w->position[(size_t)r->warp * w->all->sites.n + number] = r->clock;
    if (at->access_kind != WEAK && w->hb.fine && !pieces) synchronise(w, r, at);
    shadow *s = shadow_at(w, r, first_lane(r->active));
    const bool at_once = !pieces && !w->hb.fine;
    if (at_once && s && touch_all(w, s, r, mine)) return;
    if (at_once && !s && !writes(r->operation) && w->lanes->in_one_region(r->address, r->active))
        return;
    uint32_t lanes = r->active;
    if (r->operation == EMU_LOAD && !w->hb.fine)
        lanes = w->lanes->two_of_each(r->address, r->active);
    for (; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        if (r->space == PTX_GLOBAL) s = shadow_at(w, r, lane);
        const uint32_t thread = pieces ? r->bulk_lane : (uint32_t)lane;
        if (s) touch_lane(w, s, r, lane, mine + ((epoch)thread << EPOCH_THREAD_AT));
    }
}

void access_end_block(detector *w) {
    shadow *s = &w->shared;
    const uint64_t n = shadow_granules(s);
    for (uint64_t k = 0; s->pending && k < n; k++)
        if (epoch_time(s->uninitialised[k]) >= w->hb.begin)
            granule_report(w, s, k, SMK_HAZARD_UNINITIALISED, s->uninitialised[k], 0);
    for (uint64_t k = 0; s->in_flight && k < n; k++)
        if (epoch_time(s->epochs.write[k]) == TIME_IN_FLIGHT) s->epochs.write[k] = 0;
    s->pending = s->in_flight = false;
    for (uint64_t k = 0; w->hb.fine && s->epochs.other && k < n; k++) {
        for (uint32_t r = (uint32_t)s->epochs.other[k], next; r; r = next) {
            const epoch m = w->readers[r].m;
            if (epoch_time(m) == TIME_IN_FLIGHT && w->all->sites.sites[epoch_site(m)].bulk)
                granule_report(w, s, k, SMK_HAZARD_ASYNC_READ, m, 0);
            next = w->readers[r].next;
            reader_spare(w, r);
        }
        s->epochs.other[k] = 0;
    }
}
