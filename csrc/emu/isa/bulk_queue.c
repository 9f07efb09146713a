/* The queue of bulk copies in flight, and their groups. bulk.c and tensor_copy.c issue copies.
 *
 * A copy takes effect as late as PTX allows, so that a missing wait always shows:
 *
 *   load    Reads its source at issue, as cp.async does here, so that faults are reported on the
 *           right line. Writes shared memory when the phase of its mbarrier completes (mbarrier.c).
 *   store   Does nothing until a wait covers its group: wait_group.read reads shared memory,
 *           wait_group writes global memory. The end of the block performs all remaining stores.
 *
 * Bulk groups are per thread. A copy is in the queue of the block whose shared memory it accesses,
 * which may be another block of the cluster than the one that issued it.
 */
#include "bulk.h"

#include <stdlib.h>
#include <string.h>

#include "../base/lanes.h"
#include "../machine/machine.h"
#include "copy_async.h"
#include "mbarrier.h"

/* ---- the queue ---- */

static void unlink_copy(block *b, bulk_copy **link) {
    bulk_copy *copy = *link;
    *link = copy->next;
    if (!*link) b->bulk_end = link;
    block_uncharge(b, sizeof *copy + copy->bytes);
    free(copy);
}

void bulk_clear(block *b) {
    for (bulk_copy *copy = b->bulk, *next; copy; copy = next) {
        next = copy->next;
        block_uncharge(b, sizeof *copy + copy->bytes);
        free(copy);
    }
    b->bulk = NULL;
    b->bulk_end = &b->bulk;
}

bulk_copy *bulk_append(warp *w, const insn *i, int lane, const bulk_copy *spec) {
    block *b = spec->owner;
    if (!block_goes_on(b)) return NULL;
    const size_t size = sizeof(bulk_copy) + spec->bytes;
    bulk_copy *copy = block_charge(b, size) ? malloc(size) : NULL;
    if (!copy) {
        warp_fault(w, i, SMK_MEMORY, 1u << lane, "out of memory: a pending bulk copy");
        return NULL;
    }
    *copy = *spec;
    copy->next = NULL;
    copy->warp = w;
    copy->instruction = i;
    copy->lane = lane;
    copy->clock = w->clock;
    copy->group = w->copies->bulk_committed[lane];
    *b->bulk_end = copy;
    b->bulk_end = &copy->next;
    return copy;
}

/* Bounds-checks the copy's shared memory, one 16-byte chunk at a time. */
static bool check_shared(warp *w, const insn *i, int lane, const bulk_place *place,
                         const bulk_copy *spec) {
    const bool write = spec->kind == BULK_LOAD;
    for (uint32_t at = 0, n; at < spec->bytes; at += n) {
        n = spec->bytes - at < TILE_CHUNK ? spec->bytes - at : TILE_CHUNK;
        const uint64_t chunk = tile_chunk(&spec->tile, place->shared, at);
        if (!lane_reach(w, i, place->space, lane, chunk, n, write)) return false;
    }
    return true;
}

static bool check_mask(warp *w, const insn *i, int lane, const bulk_place *place) {
    const uint32_t n = w->block->launch->cluster_blocks;
    if (!(place->ranks >> n)) return true;
    warp_fault(
        w, i, SMK_LAUNCH, 1u << lane,
        "a multicast with block mask 0x%x; the cluster has %u blocks, so the mask must be at "
        "most 0x%x",
        place->ranks, n, (1u << n) - 1);
    return false;
}

/* As on an H200, a multicast to no block copies nothing. */
static bool is_empty(const bulk_place *place) {
    return place->multicast && !place->ranks;
}

static uint64_t in_window(int rank, uint64_t address) {
    return WINDOW_BASE(rank) + WINDOW_OFFSET(address);
}

bool bulk_locate(warp *w, const insn *i, int lane, bulk_place place, bulk_copy *spec) {
    const bool load = spec->kind == BULK_LOAD;
    if (!check_mask(w, i, lane, &place)) return false;
    if (is_empty(&place)) return true;
    if (place.multicast) {
        place.shared = in_window(first_lane(place.ranks), place.shared);
        place.barrier = in_window(first_lane(place.ranks), place.barrier);
    }
    if ((load && !mbarrier_check(w, i, lane, place.space, place.barrier)) ||
        !check_shared(w, i, lane, &place, spec))
        return false;
    spec->shared = WINDOW_OFFSET(place.shared);
    spec->barrier = WINDOW_OFFSET(place.barrier);
    spec->owner = load ? shared_owner(w, place.space, place.barrier) : w->block;
    const block *to = spec->bytes ? shared_owner(w, place.space, place.shared) : spec->owner;
    if (spec->owner == to) return true;
    warp_fault(w, i, SMK_LAUNCH, 1u << lane,
               "an asynchronous copy to block %u of the cluster completes on an mbarrier of block "
               "%u; both must be in the same block's shared memory",
               to->rank, spec->owner->rank);
    return false;
}

static void report_shared(const warp *w, const insn *i, int lane, const bulk_copy *spec) {
    const bool load = spec->kind == BULK_LOAD;
    tile_report_shared(w, i, lane, &spec->tile, spec->owner->window + spec->shared, spec->bytes,
                       load ? EMU_BULK_WRITE : EMU_BULK_READ);
}

/* The other copies of a multicast, whose first one is `first`. */
static bool issue_to_others(warp *w, const insn *i, int lane, const bulk_place *place,
                            const bulk_copy *first) {
    const uint32_t others = place->ranks & (place->ranks - 1);
    for (uint32_t left = place->multicast ? others : 0; left; left &= left - 1) {
        bulk_copy spec = *first;
        const bulk_place there = {.space = place->space,
                                  .shared = in_window(first_lane(left), place->shared),
                                  .barrier = in_window(first_lane(left), place->barrier)};
        if (!bulk_locate(w, i, lane, there, &spec)) return false;
        bulk_copy *copy = bulk_append(w, i, lane, &spec);
        if (!copy) return false;
        memcpy(copy->data, first->data, first->bytes);
        report_shared(w, i, lane, &spec);
    }
    return true;
}

bool bulk_issue(warp *w, const insn *i, int lane, const bulk_place *place, const bulk_copy *spec) {
    if (is_empty(place)) return true;
    bulk_copy *copy = bulk_append(w, i, lane, spec);
    if (!copy) return false;
    const bool load = spec->kind == BULK_LOAD;
    const uint32_t receivers = place->multicast ? count_lanes(place->ranks) : 0;
    tile_report(w, i, lane, &spec->tile, spec->shared, load ? EMU_BULK_READ : EMU_BULK_WRITE,
                receivers);
    report_shared(w, i, lane, spec);
    if (load && !tile_read(w, i, lane, &spec->tile, copy->data)) return false;
    return issue_to_others(w, i, lane, place, copy);
}

/* ---- loads ---- */

static void complete_copy(block *b, const bulk_copy *copy) {
    if (copy->kind == BULK_ARRIVAL) {
        copy_async_complete(copy->warp, copy->instruction, copy->lane, copy->clock);
        return;
    }
    for (uint32_t at = 0; at < copy->bytes; at += TILE_CHUNK) {
        unsigned char *to = b->shared + tile_chunk(&copy->tile, copy->shared, at);
        const uint32_t left = copy->bytes - at, n = left < TILE_CHUNK ? left : TILE_CHUNK;
        if (!copy->reduction.combine) {
            memcpy(to, copy->data + at, n);
            continue;
        }
        for (uint32_t k = 0; k < n; k += copy->reduction.width) {
            uint64_t value = 0;
            memcpy(&value, copy->data + at + k, copy->reduction.width);
            atomic_reduce(&copy->reduction, to + k, value);
        }
    }
}

void bulk_in_flight(const block *b, uint64_t barrier, uint32_t *arrivals, int64_t *bytes) {
    *arrivals = 0, *bytes = 0;
    for (const bulk_copy *copy = b->bulk; copy; copy = copy->next) {
        if (copy->kind == BULK_STORE || copy->barrier != barrier) continue;
        *arrivals += copy->kind == BULK_ARRIVAL;
        *bytes += copy->bytes;
    }
}

/* Bytes of shared memory from the copy's first to its last. */
static uint64_t extent_of(const block *b, const bulk_copy *copy) {
    const uint64_t extent = tile_extent(&copy->tile, copy->bytes);
    const uint64_t room = b->launch->shared_bytes - copy->shared;
    return extent < room ? extent : room;
}

/* A copy from shared memory has read its source. */
static void report_source(const bulk_copy *copy) {
    const uint64_t offset = WINDOW_OFFSET(copy->tile.address);
    observe_event(copy->warp, (emu_sync){.kind = EMU_BULK_SOURCE,
                                         .ptx = copy->instruction->ptx,
                                         .lanes = 1u << copy->lane,
                                         .owner = copy->warp->block->member,
                                         .address = &offset,
                                         .width = copy->bytes});
}

bool bulk_complete_one(block *b, uint64_t barrier, uint32_t *arrivals, int64_t *bytes) {
    for (bulk_copy **link = &b->bulk; *link; link = &(*link)->next) {
        const bulk_copy *copy = *link;
        if (copy->kind == BULK_STORE || copy->barrier != barrier) continue;
        *arrivals = copy->kind == BULK_ARRIVAL;
        *bytes = copy->bytes;
        complete_copy(b, copy);
        const bool load = copy->kind == BULK_LOAD;
        if (load && copy->tile.space == PTX_SHARED) report_source(copy);
        observe_event(copy->warp, (emu_sync){.kind = EMU_MBARRIER_ARRIVE,
                                             .ptx = copy->instruction->ptx,
                                             .lanes = 1u << copy->lane,
                                             .owner = b->member,
                                             .object = (uint32_t)copy->barrier,
                                             .address = load ? &copy->shared : NULL,
                                             .width = (uint32_t)extent_of(b, copy)});
        unlink_copy(b, link);
        return true;
    }
    return false;
}

/* ---- stores ---- */

static void read_source(const block *b, bulk_copy *copy) {
    if (copy->source_read) return;
    for (uint32_t at = 0; at < copy->bytes; at += TILE_CHUNK)
        memcpy(copy->data + at, b->shared + tile_chunk(&copy->tile, copy->shared, at), TILE_CHUNK);
    copy->source_read = true;
}

static bool write_destination(const block *b, bulk_copy *copy) {
    read_source(b, copy);
    return tile_write(copy->warp, copy->instruction, copy->lane, &copy->tile, copy->data,
                      &copy->reduction);
}

/* Performs the active lanes' stores, except those of each lane's last insn.imm groups. flags:
 * .read, only reads their sources. */
static const insn *exec_wait(warp *w, const insn *i) {
    block *b = w->block;
    if (!block_goes_on(b)) return NULL;
    for (bulk_copy **link = &b->bulk; *link;) {
        bulk_copy *copy = *link;
        const uint64_t last = (uint64_t)copy->group + (uint64_t)i->imm;
        if (copy->kind != BULK_STORE || copy->warp != w || !(w->active >> copy->lane & 1) ||
            last >= w->copies->bulk_committed[copy->lane]) {
            link = &copy->next;
            continue;
        }
        if (!copy->source_read)
            observe_event(w, (emu_sync){.kind = EMU_BULK_SOURCE,
                                        .ptx = copy->instruction->ptx,
                                        .lanes = 1u << copy->lane,
                                        .owner = b->member,
                                        .address = &copy->shared,
                                        .width = (uint32_t)extent_of(b, copy)});
        if (i->flags) {
            read_source(b, copy);
            link = &copy->next;
        } else {
            if (!write_destination(b, copy)) return NULL;
            unlink_copy(b, link);
        }
    }
    return i + 1;
}

static const insn *exec_commit(warp *w, const insn *i) {
    for (int l = 0; l < LANES; l++)
        w->copies->bulk_committed[l] += w->mask[l] & 1;
    return i + 1;
}

/* Other blocks' copies into shared memory that is no more. */
static bool fault_if_foreign(const block *b, const bulk_copy *copy) {
    if (copy->warp->block == b || atomic_load(&b->launch->stop)) return false;
    warp_fault(copy->warp, copy->instruction, SMK_LAUNCH, 1u << copy->lane,
               "block %u of the cluster has exited before this copy into its shared memory has "
               "completed; it must wait for the copy's mbarrier",
               b->rank);
    return true;
}

void bulk_end_block(block *b) {
    while (b->bulk) {
        if (fault_if_foreign(b, b->bulk)) break;
        if (b->bulk->kind == BULK_STORE && !write_destination(b, b->bulk)) break;
        unlink_copy(b, &b->bulk);
    }
    bulk_clear(b);
}

exec_fn bulk_select_group(decoder *dc, const ptx_instruction *p, insn *out) {
    if (decode_take(dc, "commit_group")) return p->n_operands ? NULL : exec_commit;
    if (!decode_take(dc, "wait_group") || p->n_operands != 1 ||
        p->operands[0].kind != PTX_IMMEDIATE || p->operands[0].bits > INT32_MAX)
        return NULL;
    out->flags = decode_take(dc, "read");
    out->imm = (int64_t)p->operands[0].bits;
    return exec_wait;
}
