/* Iteration over a box of a tensor. Every run of bytes is bounds-checked before it is accessed,
 * because the tensor map comes from the kernel's memory and may hold anything.
 */
#include "tile.h"

#include <string.h>

#include "../machine/machine.h"

uint32_t tile_bytes(const tile *t) {
    uint64_t bytes = t->element_bytes;
    for (uint32_t d = 0; d < t->rank; d++) {
        bytes *= t->count[d];
        if (bytes > MAX_SHARED_BYTES) return MAX_SHARED_BYTES + 1;
    }
    return (uint32_t)bytes;
}

/* A contiguous run of the tensor's bytes; `at` is its byte offset in the dense box. */
typedef bool (*run_fn)(void *context, uint64_t address, uint64_t bytes, uint64_t at);
/* A run of the box that lies outside the tensor. */
typedef void (*gap_fn)(void *context, uint64_t bytes, uint64_t at);

static void visit_gap(gap_fn gap, void *context, uint64_t bytes, uint64_t at) {
    if (gap && bytes) gap(context, bytes, at);
}

/* Elements of a row that are within the tensor from the box's begin on. A store writes whole chunks
 * of 16 bytes: what follows the row in its last one is overwritten. Source: measured on an H200
 * (driver 580); Triton, issue 11583. Reductions were not measured, and are taken to do so too. */
static int64_t elements_left(const tile *t, bool stores) {
    const int64_t left = (int64_t)t->size[0] - t->start[0];
    const int64_t chunk = TILE_CHUNK / t->element_bytes;
    return stores ? (left + chunk - 1) / chunk * chunk : left;
}

static bool for_each_run(const tile *t, bool stores, run_fn run, gap_fn gap, void *context) {
    const int64_t count = (int64_t)t->count[0], left = elements_left(t, stores);
    const int64_t first = t->start[0] < 0 ? -t->start[0] : 0;
    const int64_t last = left < count ? left : count;
    const uint64_t element = t->element_bytes;
    uint32_t index[TILE_RANK] = {0};
    for (uint64_t at = 0;; at += t->count[0] * element) {
        bool inside = first < last; /* else the whole row is a gap */
        uint64_t address = t->address + (uint64_t)(t->start[0] + first) * element;
        uint32_t d;
        for (d = 1; d < t->rank; d++) {
            const int64_t x = t->start[d] + (int64_t)index[d] * t->step[d];
            inside &= x >= 0 && (uint64_t)x < t->size[d];
            address += (uint64_t)x * t->stride[d];
        }
        const uint64_t begin = inside ? (uint64_t)first * element : t->count[0] * element;
        const uint64_t end = inside ? (uint64_t)last * element : begin;
        visit_gap(gap, context, begin, at);
        if (inside && !run(context, address, end - begin, at + begin)) return false;
        visit_gap(gap, context, t->count[0] * element - end, at + end);
        for (d = 1; d < t->rank && ++index[d] == t->count[d]; d++)
            index[d] = 0;
        if (d >= t->rank) return true;
    }
}

typedef struct transfer {
    warp *w;
    const insn *i;
    int lane;
    const tile *tile;
    unsigned char *into;
    const unsigned char *from;
    const atomic_reduction *reduction;
    emu_operation operation;
    uint64_t shared; /* the box's offset in shared memory */
    uint32_t receivers;
} transfer;

/* Host pointer to a run; NULL after a fault. If both ends are in one region, all of it is. */
static unsigned char *reach_run(const transfer *x, uint64_t address, uint64_t bytes, bool write) {
    const ptx_space space = x->tile->space;
    unsigned char *first = lane_reach(x->w, x->i, space, x->lane, address, 1, write);
    unsigned char *last =
        first ? lane_reach(x->w, x->i, space, x->lane, address + bytes - 1, 1, write) : NULL;
    if (last && last - first != (ptrdiff_t)(bytes - 1)) {
        warp_fault(x->w, x->i, SMK_LAUNCH, 1u << x->lane,
                   "out of bounds: a bulk copy's row begins in one buffer and ends in another");
        return NULL;
    }
    return last ? first : NULL;
}

static bool read_run(void *context, uint64_t address, uint64_t bytes, uint64_t at) {
    const transfer *x = context;
    const unsigned char *from = reach_run(x, address, bytes, false);
    if (from) memcpy(x->into + at, from, (size_t)bytes);
    return from != NULL;
}

static bool write_run(void *context, uint64_t address, uint64_t bytes, uint64_t at) {
    const transfer *x = context;
    unsigned char *to = reach_run(x, address, bytes, true);
    if (!to) return false;
    if (!x->reduction->combine) {
        memcpy(to, x->from + at, (size_t)bytes);
        return true;
    }
    for (uint64_t k = 0; k < bytes; k += x->reduction->width) {
        uint64_t value = 0;
        memcpy(&value, x->from + at + k, x->reduction->width);
        atomic_reduce(x->reduction, to + k, value);
    }
    return true;
}

static void report_bytes(const transfer *x, uint64_t address, uint64_t bytes,
                         emu_multicast multicast) {
    const uint64_t begin = address & ~(uint64_t)(TILE_CHUNK - 1), end = address + bytes;
    const uint32_t excess = (uint32_t)(-end % TILE_CHUNK); /* of the last chunk */
    for (uint64_t from = begin; from < end; from += LANES * TILE_CHUNK) {
        const uint64_t pieces = (end - from + TILE_CHUNK - 1) / TILE_CHUNK;
        lanes_u64 piece;
        for (uint64_t l = 0; l < LANES; l++)
            piece[l] = from + (l < pieces ? l : 0) * TILE_CHUNK;
        observe_bulk(x->w, x->i, x->lane, x->tile->space, x->operation, TILE_CHUNK, piece,
                     pieces >= LANES ? FULL : (1u << pieces) - 1, pieces > LANES ? 0 : excess,
                     multicast);
    }
}

/* Of a request whose chunks in shared memory are all of the tensor, or partly zeros. As measured in
 * boxes of any width and alignment. */
static emu_multicast multicast_of(const transfer *x, bool zeros) {
    return (emu_multicast){x->receivers, zeros ? 3 : 2};
}

/* The copy engine moves one 128-byte line of shared memory at a time. A sector whose bytes go to
 * two lines is therefore read twice. */
static uint64_t bytes_in_line(const transfer *x, uint64_t bytes, uint64_t at) {
    const uint64_t room = TILE_LINE - (x->shared + tile_offset(x->tile, at)) % TILE_LINE;
    return bytes < room ? bytes : room;
}

/* A multicast's requests are of one line of global memory, too. */
static uint64_t bytes_from_line(const transfer *x, uint64_t bytes, uint64_t address) {
    const uint64_t room = x->receivers ? TILE_LINE - address % TILE_LINE : bytes;
    return bytes < room ? bytes : room;
}

static bool report_run(void *context, uint64_t address, uint64_t bytes, uint64_t at) {
    const transfer *x = context;
    const uint64_t to = x->shared + tile_offset(x->tile, at);
    for (uint64_t done = 0, step; done < bytes; done += step) {
        step = bytes_from_line(x, bytes_in_line(x, bytes - done, at + done), address + done);
        const bool first = done == 0, last = done + step == bytes;
        const bool zeros = (first && to % TILE_CHUNK) || (last && (to + bytes) % TILE_CHUNK);
        report_bytes(x, address + done, step, multicast_of(x, zeros));
    }
    return true;
}

/* Zero fill is counted in sectors of shared memory. A 16-byte chunk that holds any of the tensor's
 * bytes is not zero fill. */
static void report_gap(void *context, uint64_t bytes, uint64_t at) {
    const transfer *x = context;
    const uint64_t from = x->shared + tile_offset(x->tile, at), chunk = TILE_CHUNK - 1;
    const uint64_t begin = (from + chunk) & ~chunk, end = (from + bytes) & ~chunk;
    for (uint64_t first = begin, step; first < end; first += step) {
        step = bytes_in_line(x, end - first, at + (first - from));
        const uint64_t last = first + step - 1;
        observe_filled(x->w, x->i, x->lane,
                       (uint32_t)(last / TILE_SECTOR - first / TILE_SECTOR) + 1,
                       multicast_of(x, true));
    }
}

bool tile_read(warp *w, const insn *i, int lane, const tile *t, unsigned char *data) {
    transfer x = {.w = w, .i = i, .lane = lane, .tile = t, .into = data};
    const uint32_t bytes = tile_bytes(t);
    for (uint32_t at = 0; t->fill && at < bytes; at += t->element_bytes)
        memcpy(data + at, &t->fill, t->element_bytes);
    if (!t->fill) memset(data, 0, bytes);
    if (!for_each_run(t, false, read_run, NULL, &x)) return false;
    if (t->after_load) t->after_load(data, bytes);
    return true;
}

bool tile_write(warp *w, const insn *i, int lane, const tile *t, const unsigned char *data,
                const atomic_reduction *reduction) {
    transfer x = {.w = w, .i = i, .lane = lane, .tile = t, .from = data, .reduction = reduction};
    return for_each_run(t, true, write_run, NULL, &x);
}

void tile_report(const warp *w, const insn *i, int lane, const tile *t, uint64_t shared,
                 emu_operation operation, uint32_t receivers) {
    if (!w->block->observer) return;
    transfer x = {.w = (warp *)w,
                  .i = i,
                  .lane = lane,
                  .tile = t,
                  .operation = operation,
                  .shared = shared,
                  .receivers = receivers};
    const bool reads = operation == EMU_BULK_READ, fills = t->space == PTX_GLOBAL && reads;
    for_each_run(t, !reads, report_run, fills ? report_gap : NULL, &x);
}

void tile_report_shared(const warp *w, const insn *i, int lane, const tile *t, uint64_t shared,
                        uint32_t bytes, emu_operation operation) {
    if (!w->block->observer || !bytes) return;
    const tile dense = {.space = PTX_SHARED};
    transfer x = {.w = (warp *)w, .i = i, .lane = lane, .tile = &dense, .operation = operation};
    const uint64_t row = t->count[0] * t->element_bytes;
    if (t->span <= row) {
        report_bytes(&x, shared, bytes, (emu_multicast){0});
        return;
    }
    for (uint32_t at = 0; at < bytes; at += TILE_CHUNK)
        report_bytes(&x, tile_chunk(t, shared, at), TILE_CHUNK, (emu_multicast){0});
}
