/* Memory requests against the shadow memory.
 *
 * The fast path checks and records all lanes at once (row.h). If an epoch does not pass, the slow
 * path takes each lane's granules one at a time (granule.c). Bulk copies, wgmma and all requests of
 * kernels with fine-grained synchronisation always take the slow path.
 */
#include <stdlib.h>
#include <string.h>

#include "detector.h"
#include "../base/lanes.h"

enum { MAX_LANE_BYTES = 32 };

/* The bytes that a lane stores, as they lie in memory. */
/* The row of stmatrix whose address the lane has; ldmatrix.c says where its elements are. */
static void gather_row(const emu_request *r, int lane, bool transposed, unsigned char *out) {
    enum { ROWS = 8 };
    const unsigned char *fragment = r->frame + r->slots[lane / ROWS];
    const uint32_t row = (uint32_t)lane % ROWS;
    for (uint32_t column = 0; column < ROWS; column++) {
        const uint32_t of_lane = transposed ? 4 * column + row / 2 : 4 * row + column / 2;
        const uint32_t half = (transposed ? row : column) % 2;
        memcpy(out + 2 * column, fragment + 4 * of_lane + 2 * half, 2);
    }
}

static void gather_value(const emu_request *r, int lane, bool transposed, unsigned char *out) {
    if (r->operation == EMU_STMATRIX) {
        gather_row(r, lane, transposed, out);
        return;
    }
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

/* Limits for the write epoch that a load finds. An epoch of 0 does not pass where a read of
 * uninitialised contents is a hazard. */
static const fast_path_limits *load_write_limits(const detector *d, const shadow *s) {
    return s->is_shared || s->starts_uninitialised ? &d->uninitialised_limits : &d->global_limits;
}

static bool fast_row(detector *d, const shadow *s, uint64_t offset, uint32_t width,
                     epoch lane0_epoch, bool write) {
    const bool is_shared = s->is_shared;
    const uint64_t first = offset >> 2;
    shadow_rows rows = {.write = s->epochs.write + first};
    if (s->epochs.read) {
        rows.read = s->epochs.read + first;
        rows.other_read = s->epochs.other_read + first;
        rows.read_shared = s->epochs.read_shared + first;
    }
    if (s->epochs.changed) rows.changed = s->epochs.changed + first;
    const uint32_t n = LANES * width / 4, shift = (uint32_t)__builtin_ctz(width / 4);
    const fast_path_limits *limits = is_shared ? &d->shared_limits : &d->global_limits;
    if (write) return d->row->write(rows, n, shift, lane0_epoch, limits);
    return d->row->read_shared(rows.read_shared, n, detector_floor(d),
                               epoch_kind(lane0_epoch) != WEAK) ||
           d->row->read(rows, n, shift, lane0_epoch, load_write_limits(d, s), limits);
}

static bool fast_lanes(detector *d, const shadow *s, lane_words *words, epoch lane0_epoch,
                       bool write) {
    const bool is_shared = s->is_shared;
    const fast_path_limits *limits = is_shared ? &d->shared_limits : &d->global_limits;
    if (write) return d->lanes->write(&s->epochs, words, lane0_epoch, limits);
    if (d->lanes->read_shared(s->epochs.read_shared, words, detector_floor(d),
                              epoch_kind(lane0_epoch) != WEAK))
        return true;
    if (words->active == FULL)
        words->active = d->lanes->two_per_address(words->address, words->active);
    return d->lanes->read(&s->epochs, words, lane0_epoch, load_write_limits(d, s), limits);
}

static void store_rows(const detector *d, shadow *s, const emu_request *r, uint64_t base,
                       epoch lane0_epoch) {
    const bool transposed = d->hazards->sites.sites[epoch_site(lane0_epoch)].transposed;
    for (uint32_t left = r->active; left; left &= left - 1) {
        const int lane = first_lane(left);
        const uint64_t offset = r->address[lane] - base;
        if (offset < s->bytes && r->width <= s->bytes - offset)
            gather_row(r, lane, transposed, &s->value[offset]);
    }
}

/* The fast path: all lanes access words of one region. False: take the slow path. */
static bool fast_request(detector *d, shadow *s, const emu_request *r, epoch lane0_epoch) {
    const bool is_shared = s->is_shared, write = writes(r->operation);
    if (s->shift != 2 || r->width < 4 || r->operation == EMU_ATOMIC || s->equal_writers ||
        s->undefined || (write && s->has_uninitialised_read) ||
        (d->n_undefined && undefined_is_stored(d, r)))
        return false;
    const uint64_t base = is_shared ? 0 : s->base, offset = r->address[0] - base;
    const uint64_t row_bytes = (uint64_t)LANES * r->width;
    const bool row = r->step == r->width && !(offset & 3) && row_bytes <= s->bytes &&
                     offset <= s->bytes - row_bytes;
    lane_words words = {r->address, base, s->bytes, r->active, r->width};
    if (!write && r->step == 0) words.active = 3; /* one address: two readers suffice */
    const bool in_flight = is_in_flight(r, is_shared);
    if (in_flight) lane0_epoch |= (epoch)TIME_IN_FLIGHT << EPOCH_TIME_SHIFT;
    if (!(row ? fast_row(d, s, offset, r->width, lane0_epoch, write)
              : fast_lanes(d, s, &words, lane0_epoch, write)))
        return false;
    s->written |= write;
    s->in_flight |= in_flight;
    if (!write || !s->value || !r->frame) return true;
    if (r->operation == EMU_STMATRIX) {
        store_rows(d, s, r, base, lane0_epoch);
        return true;
    }
    if (row && r->elements == 1 && r->slot_bytes == r->width)
        memcpy(&s->value[offset], r->frame + r->slots[0], (size_t)row_bytes);
    else
        d->lanes->store_values(s->value, &words, r->frame, r->slots, r->slot_bytes, r->elements,
                               r->width / r->elements);
    return true;
}

/* A read of global memory whose last write took another path. Without any order this is a race,
 * which is reported as such. */
static void check_path(detector *d, const shadow *s, uint64_t granule, epoch now) {
    const site *sites = d->hazards->sites.sites;
    const epoch e = s->epochs.write[granule];
    if (!e || epoch_time(e) == TIME_IN_FLIGHT) return;
    const uint8_t path = sites[epoch_site(now)].path;
    const bool same_block = epoch_time(e) >= d->hb.begin && !detector_is_other_member(d, e);
    if (path == sites[epoch_site(e)].path && (path != PATH_SURFACE || same_block)) return;
    if (hb_before(&d->hb, e, epoch_thread(now)))
        granule_report(d, s, granule, SMK_HAZARD_PROXY, now, e);
}

/* Whether each word of a lane's bytes has all or none of them. */
static bool is_whole_words(uint32_t bytes) {
    const uint32_t first = bytes & 0x11111111u;
    return bytes == first * 0xf;
}

/* Whether all bytes of a load's granule go to registers whose values are only copied. */
static bool is_only_copied(const site *load, uint64_t first, uint32_t bytes) {
    const uint64_t all = (((uint64_t)1 << bytes) - 1) << first;
    return (load->copied & all) == all;
}

static uint64_t first_granule(const shadow *s, const emu_request *r, int lane) {
    return (r->address[lane] - (s->is_shared ? 0 : s->base)) >> s->shift;
}

/* Whether a lane reads a granule that nobody wrote, and uses some of its bytes only. */
static bool uses_parts(const detector *d, const shadow *s, const emu_request *r, int lane,
                       const site *load) {
    if (!s->shift || is_whole_words(load->copied)) return false;
    const uint64_t first = first_granule(s, r, lane), n = r->width >> s->shift;
    for (uint64_t k = 0; k < n; k++)
        if (granule_is_undefined(d, s, first + k)) return true;
    return false;
}

static void read_granules(detector *d, shadow *s, const emu_request *r, int lane, epoch now,
                          epoch in_flight) {
    const fast_path_limits *limits = s->is_shared ? &d->shared_limits : &d->global_limits;
    const fast_path_limits *write_limits = load_write_limits(d, s);
    const site *accessed_by = &d->hazards->sites.sites[epoch_site(now)];
    const bool by_proxy =
        s->is_shared && (r->operation == EMU_BULK_READ || r->operation == EMU_MATRIX_READ);
    const bool several_paths = !s->is_shared && d->hazards->sites.several_paths;
    if (uses_parts(d, s, r, lane, accessed_by) && !shadow_refine(d, s)) return;
    const uint64_t first = first_granule(s, r, lane);
    const uint32_t n = r->width >> s->shift, bytes = 1u << s->shift;
    undefined_origin origin = {0};
    uint32_t undefined = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (granule_is_undefined(d, s, first + k)) {
            if (!is_only_copied(accessed_by, k << s->shift, bytes)) {
                granule_check_value(d, s, first + k, now | in_flight);
            } else {
                if (!undefined) origin = undefined_origin_of(d, s, first + k, now);
                undefined |= ((1u << bytes) - 1) << (k << s->shift);
            }
        }
        granule_read(d, s, first + k, now | in_flight, write_limits, limits);
        if (by_proxy) async_check(d, s, first + k, now);
        if (several_paths) check_path(d, s, first + k, now);
    }
    if (undefined) undefined_loaded(d, r, (uint32_t)lane, undefined, origin);
}

static void write_granules(detector *d, shadow *s, const emu_request *r, int lane, epoch now,
                           epoch in_flight) {
    const fast_path_limits *limits = s->is_shared ? &d->shared_limits : &d->global_limits;
    const uint64_t offset = r->address[lane] - (s->is_shared ? 0 : s->base);
    const bool transposed = d->hazards->sites.sites[epoch_site(now)].transposed;
    const bool value_known = r->frame && s->value;
    unsigned char value[MAX_LANE_BYTES];
    undefined_origin from = {0};
    uint32_t undefined = 0; /* bytes that are copies of what the load `from` read */
    if (d->n_undefined && undefined_is_copied(r))
        undefined = undefined_stored(d, r, (uint32_t)lane, &from);
    if (s->shift && !is_whole_words(undefined) && !shadow_refine(d, s)) return;
    if (value_known) gather_value(r, lane, transposed, value);
    const uint64_t first = offset >> s->shift, n = r->width >> s->shift;
    for (uint64_t k = 0; k < n; k++) {
        granule_write(d, s, first + k, now, limits, value_known ? value + (k << s->shift) : NULL);
        s->epochs.write[first + k] |= in_flight;
        if (undefined >> (k << s->shift) & 1) undefined_set(d, s, first + k, from);
    }
    if (value_known) memcpy(&s->value[offset], value, r->width);
    s->written = true;
}

static void slow_lane(detector *d, shadow *s, const emu_request *r, int lane, epoch now) {
    const uint64_t offset = r->address[lane] - (s->is_shared ? 0 : s->base);
    const epoch in_flight =
        is_in_flight(r, s->is_shared) ? (epoch)TIME_IN_FLIGHT << EPOCH_TIME_SHIFT : 0;
    if (offset >= s->bytes || r->width > s->bytes - offset) return;
    if (s->shift && ((offset | r->width) & 3) && !shadow_refine(d, s)) return;
    if (writes(r->operation))
        write_granules(d, s, r, lane, now, in_flight);
    else
        read_granules(d, s, r, lane, now, in_flight);
    if (r->operation == EMU_MATRIX_READ) async_matrix_read(d, r->warp, offset);
    s->in_flight |= in_flight;
}

/* The access's effect on the order: a strong one may release or acquire, a weak store ends what
 * strong ones have begun. */
static void synchronise(detector *d, const emu_request *r, const site *accessed_by) {
    const bool strong = accessed_by->access_kind != WEAK;
    const uint32_t width = r->width / accessed_by->elements;
    for (uint32_t left = r->active; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)first_lane(left);
        const uint64_t first =
            r->address[lane] + (r->space == PTX_SHARED ? shared_object(r->owner) : 0);
        for (uint32_t k = 0; k < accessed_by->elements; k++) {
            const hb_access a = {first + k * width, width, d->hb.first + r->warp * LANES + lane,
                                 accessed_by->ordering, accessed_by->ordering.scope};
            if (!strong) hb_weak_write(&d->hb, a.address);
            if (strong && r->operation != EMU_STORE) hb_strong_read(&d->hb, &a);
            if (strong && r->operation != EMU_LOAD)
                hb_strong_write(&d->hb, &a, r->operation == EMU_ATOMIC);
        }
    }
}

static uint32_t site_number(detector *d, const emu_request *r) {
    if (r->function != d->last_function) {
        const site_table *t = &d->hazards->sites;
        d->last_function = r->function;
        d->last_first_site = 0;
        for (uint32_t k = 0; k < t->n_functions; k++)
            if (t->functions[k] == r->function) d->last_first_site = t->first_site[k];
    }
    return d->last_first_site ? d->last_first_site + r->index : 0;
}

static shadow *global_shadow(detector *d, uint64_t address) {
    const uint64_t id = REGION_OF(address);
    if (id < REGION_GLOBAL || id >= d->launch->n_regions) return NULL;
    const region *r = &d->launch->regions[id];
    shadow *s = &d->regions[id];
    if (!r->writable) return NULL; /* read-only: no races */
    if (!s->epochs.write &&
        !shadow_init(s, REGION_BASE(id), r->size, !(d->hazards->job->hazards & SMK_EQUAL_WRITES))) {
        d->out_of_memory = true;
        return NULL;
    }
    s->starts_uninitialised = r->blank;
    s->words = unwritten_words(d->hazards, id);
    return s;
}

/* NULL: no shadow memory there, or out of memory. */
static shadow *shadow_at(detector *d, const emu_request *r, int lane) {
    shadow *s =
        r->space == PTX_SHARED ? &d->members[r->owner].shared : global_shadow(d, r->address[lane]);
    if (s && !s->epochs.read && !writes(r->operation) && !shadow_add_readers(d, s)) return NULL;
    return s;
}

/* A bulk copy that ends within a chunk, as two requests of whole accesses. */
static void access_end_of_copy(detector *d, const emu_request *r) {
    emu_request part = *r;
    const uint32_t last = 1u << (LANES - 1 - __builtin_clz(r->active));
    part.excess = 0;
    part.active &= ~last;
    if (part.active) access_request(d, &part);
    part.active = last;
    part.width -= r->excess;
    access_request(d, &part);
}

/* A cp.async of which lanes read less than it writes, as requests of 16, 8, 4, 2 and 1 bytes. */
static void access_sources(detector *d, const emu_request *r) {
    emu_request part = *r;
    lanes_u64 address;
    uint32_t done[LANES] = {0};
    part.lane_bytes = NULL;
    part.step = ~(uint64_t)0;
    part.address = address;
    for (part.width = r->width; part.width; part.width /= 2) {
        part.active = 0;
        for (uint32_t left = r->active; left; left &= left - 1) {
            const int lane = first_lane(left);
            if (r->lane_bytes[lane] - done[lane] < part.width) continue;
            part.active |= left & -left;
            address[lane] = r->address[lane] + done[lane];
            done[lane] += part.width;
        }
        if (part.active) access_request(d, &part);
    }
}

void access_request(detector *d, const emu_request *r) {
    if (r->excess || r->lane_bytes) {
        (r->excess ? access_end_of_copy : access_sources)(d, r);
        return;
    }
    detector_switch(d, r->member);
    if (d->n_undefined && r->active)
        undefined_request(d, r, &d->hazards->sites.sites[site_number(d, r)]);
    if ((r->space != PTX_SHARED && r->space != PTX_GLOBAL) || !r->active) return;
    if (r->operation == EMU_STORE_ASYNC) return;
    /* Lanes that stand for chunks are accesses by one thread, of lane bulk_lane. */
    const bool chunks = r->operation >= EMU_BULK_READ && r->operation <= EMU_MATRIX_READ;
    const uint32_t number = site_number(d, r);
    if (d->hazards->overlap && r->space == PTX_GLOBAL) overlap_request(d, r, number);
    const site *accessed_by = &d->hazards->sites.sites[number];
    const epoch lane0_epoch =
        epoch_make(d->hb.time, number, r->warp * LANES, (enum access_kind)accessed_by->access_kind);
    cas_reads_request(d, r, number);
    d->last_run[(size_t)r->warp * d->hazards->sites.n + number] = r->clock;
    d->last_access[r->warp] = d->hb.time;
    d->any_strong |= accessed_by->access_kind != WEAK;
    const bool ends_chain = r->operation == EMU_STORE && d->any_strong;
    if (d->hb.fine_grained && !chunks && (accessed_by->access_kind != WEAK || ends_chain))
        synchronise(d, r, accessed_by);
    shadow *s = shadow_at(d, r, first_lane(r->active));
    const bool several_paths = r->space == PTX_GLOBAL && d->hazards->sites.several_paths;
    const bool fast = !chunks && !several_paths && !d->hb.fine_grained;
    if (fast && s && fast_request(d, s, r, lane0_epoch)) return;
    if (fast && !s && !writes(r->operation) && d->lanes->in_one_region(r->address, r->active))
        return;
    uint32_t lanes = r->active;
    if (r->operation == EMU_LOAD && !d->hb.fine_grained && !(s && s->equal_writers) &&
        !accessed_by->copied)
        lanes = d->lanes->two_per_address(r->address, r->active);
    for (; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        if (r->space == PTX_GLOBAL) s = shadow_at(d, r, lane);
        const uint32_t thread = chunks ? r->bulk_lane : (uint32_t)lane;
        if (s) slow_lane(d, s, r, lane, lane0_epoch + ((epoch)thread << EPOCH_THREAD_SHIFT));
    }
}

/* Another member's access that no thread of this block has waited for may come after its exit. */
static void check_exit(detector *d, const shadow *s, uint64_t granule, const vector_clock *known,
                       epoch e) {
    if (epoch_time(e) < d->hb.begin || !detector_is_other_member(d, e) ||
        hb_covers(&d->hb, known, e))
        return;
    findings_add(&d->found, (finding){.kind = SMK_HAZARD_EXITED,
                                      .op = detector_op(d, e),
                                      .other = d->running->exit,
                                      .address = s->base + (granule << s->shift),
                                      .width = 1u << s->shift,
                                      .count = 1});
}

/* The block has exited, and with it its shared memory. */
static void check_exits(detector *d) {
    const shadow *s = d->shared;
    if (d->n_members == 1 || atomic_load(&d->launch->stop)) return;
    vector_clock *known = hb_block_clock(&d->hb);
    for (uint64_t k = 0; k < shadow_granules(s); k++) {
        const epoch lists[] = {s->epochs.read ? s->epochs.read[k] : 0,
                               s->epochs.other_read ? s->epochs.other_read[k] : 0};
        check_exit(d, s, k, known, s->epochs.write[k]);
        for (int list = 0; list < 2; list++)
            for (uint32_t r = (uint32_t)lists[list]; r; r = d->entries[r].next)
                check_exit(d, s, k, known, d->entries[r].e);
    }
    clock_unref(&d->hb, known);
}

void access_end_block(detector *d) {
    shadow *s = d->shared;
    const uint64_t n = shadow_granules(s);
    check_exits(d);
    for (uint64_t k = 0; s->has_uninitialised_read && k < n; k++)
        if (epoch_time(s->uninitialised_read[k]) >= d->hb.begin)
            granule_report(d, s, k, SMK_HAZARD_UNINITIALISED, s->uninitialised_read[k], 0);
    for (uint64_t k = 0; s->in_flight && k < n; k++)
        if (epoch_time(s->epochs.write[k]) == TIME_IN_FLIGHT) s->epochs.write[k] = 0;
    s->has_uninitialised_read = s->in_flight = false;
    for (uint64_t k = 0; s->equal_writers && k < n; k++)
        if (s->equal_writers[k]) equal_writes_drop(d, s, k);
    for (uint64_t k = 0; d->hb.fine_grained && s->epochs.other_read && k < n; k++) {
        for (uint32_t r = (uint32_t)s->epochs.other_read[k]; r; r = d->entries[r].next) {
            const epoch e = d->entries[r].e;
            if (epoch_time(e) == TIME_IN_FLIGHT && d->hazards->sites.sites[epoch_site(e)].bulk)
                granule_report(d, s, k, SMK_HAZARD_ASYNC_READ, e, 0);
        }
        access_list_free(d, &s->epochs.other_read[k]);
        access_list_free(d, &s->epochs.read[k]);
    }
}
