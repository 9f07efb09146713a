/* The queue of bulk copies in flight, and their groups. bulk.c and tensor_copy.c issue copies.
 *
 * A copy takes effect as late as PTX allows, so that a missing wait always shows:
 *
 *   load    Reads its source at issue, as cp.async does here, so that faults are reported on the
 *           right line. Writes shared memory when the phase of its mbarrier completes (mbarrier.c).
 *   store   Does nothing until a wait covers its group: wait_group.read reads shared memory,
 *           wait_group writes global memory. The end of the block performs all remaining stores.
 *
 * Bulk groups are per thread.
 */
#include "bulk.h"

#include <stdlib.h>
#include <string.h>

#include "../base/lanes.h"
#include "../machine/machine.h"
#include "copy_async.h"

/* ---- the queue ---- */

static void unlink_copy(block *b, bulk_copy **link) {
    bulk_copy *copy = *link;
    *link = copy->next;
    if (!*link) b->bulk_end = link;
    b->charged -= sizeof *copy + copy->bytes;
    free(copy);
}

void bulk_clear(block *b) {
    for (bulk_copy *copy = b->bulk, *next; copy; copy = next) {
        next = copy->next;
        b->charged -= sizeof *copy + copy->bytes;
        free(copy);
    }
    b->bulk = NULL;
    b->bulk_end = &b->bulk;
}

bulk_copy *bulk_append(warp *w, const insn *i, int lane, const bulk_copy *spec) {
    block *b = w->block;
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

bool bulk_check_shared(warp *w, const insn *i, int lane, const tile *t, uint64_t shared,
                       uint32_t bytes, bool write) {
    for (uint32_t at = 0; at < bytes; at += TILE_CHUNK)
        if (!lane_reach(w, i, PTX_SHARED, lane, tile_chunk(t, shared, at), TILE_CHUNK, write))
            return false;
    return true;
}

bool bulk_issue(warp *w, const insn *i, int lane, const bulk_copy *spec) {
    bulk_copy *copy = bulk_append(w, i, lane, spec);
    if (!copy) return false;
    const bool load = spec->kind == BULK_LOAD;
    tile_report(w, i, lane, &spec->tile, spec->shared, load ? EMU_BULK_READ : EMU_BULK_WRITE);
    tile_report_shared(w, i, lane, spec->shared, spec->bytes,
                       load ? EMU_BULK_WRITE : EMU_BULK_READ);
    return !load || tile_read(w, i, lane, &spec->tile, copy->data);
}

/* ---- loads ---- */

static void complete_copy(block *b, const bulk_copy *copy) {
    if (copy->kind == BULK_ARRIVAL) {
        copy_async_complete(copy->warp, copy->instruction, copy->lane, copy->clock);
        return;
    }
    for (uint32_t at = 0; at < copy->bytes; at += TILE_CHUNK) {
        unsigned char *to = b->shared + tile_chunk(&copy->tile, copy->shared, at);
        if (!copy->reduction.combine) {
            memcpy(to, copy->data + at, TILE_CHUNK);
            continue;
        }
        for (uint32_t k = 0; k < TILE_CHUNK; k += copy->reduction.width) {
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

bool bulk_complete_one(block *b, uint64_t barrier, uint32_t *arrivals, int64_t *bytes) {
    for (bulk_copy **link = &b->bulk; *link; link = &(*link)->next) {
        const bulk_copy *copy = *link;
        if (copy->kind == BULK_STORE || copy->barrier != barrier) continue;
        *arrivals = copy->kind == BULK_ARRIVAL;
        *bytes = copy->bytes;
        complete_copy(b, copy);
        const bool load = copy->kind == BULK_LOAD;
        observe_event(copy->warp, (emu_sync){.kind = EMU_MBARRIER_ARRIVE,
                                             .ptx = copy->instruction->ptx,
                                             .lanes = 1u << copy->lane,
                                             .object = (uint32_t)copy->barrier,
                                             .address = load ? &copy->shared : NULL,
                                             .width = copy->bytes});
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
                                        .address = &copy->shared,
                                        .width = copy->bytes});
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

void bulk_end_block(block *b) {
    while (b->bulk) {
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
