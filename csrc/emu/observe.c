/* What an observer sees of memory. In a program decoded for a watched launch this wrapper stands before
 * each memory instruction's handler (insn.observed); an unwatched program does not have it, and the
 * handlers know nothing of observers.
 *
 * Addresses are noted before the handler runs, since a load may overwrite them, and reported after it,
 * so an observer never sees an access that was refused. */
#include "observe.h"

#include "block.h"
#include "copy_async.h"

static void note_addresses(const warp *w, uint32_t slot, bool wide, int64_t imm, lanes_u64 out) {
    if (wide)
        for (int l = 0; l < LANES; l++)
            out[l] = U64(w, slot)[l] + (uint64_t)imm;
    else
        for (int l = 0; l < LANES; l++)
            out[l] = (uint32_t)(U32(w, slot)[l] + (uint32_t)imm);
}

/* source and reading: of the writes of cp.async; else NULL and 0. */
static void report_copy(warp *w, const insn *i, ptx_space space, emu_operation operation,
                        uint32_t active, const uint64_t *address, const uint64_t *source,
                        uint32_t reading) {
    const block *b = w->block;
    const emu_request request = {
        .ptx = i->ptx,
        .index = i->index,
        .function = w->fragment->frame->program->function,
        .space = space,
        .operation = operation,
        .width = (uint32_t)i->width * i->count,
        .active = active,
        .address = address,
        .source = source,
        .reading = reading,
        .block = {b->index[0], b->index[1], b->index[2]},
        .warp = w->index,
    };
    b->launch->observer->memory(b->observer_state, &request);
}

static void report(warp *w, const insn *i, ptx_space space, emu_operation operation,
                   uint32_t active, const uint64_t *address) {
    report_copy(w, i, space, operation, active, address, NULL, 0);
}

static ptx_space space_of(const block *b, uint64_t address) {
    const uint64_t id = REGION_OF(address);
    if (id == REGION_LOCAL) return PTX_LOCAL;
    return id < b->launch->n_regions ? b->regions[id].space : PTX_GLOBAL;
}

/* A request for each space that the lanes hit. Shared and local addresses become offsets. */
static void report_by_space(warp *w, const insn *i, emu_operation operation, lanes_u64 address,
                            uint32_t active) {
    while (active) {
        const ptx_space space = space_of(w->block, address[first_lane(active)]);
        uint32_t here = 0;
        for (uint32_t left = active; left; left &= left - 1)
            if (space_of(w->block, address[first_lane(left)]) == space) here |= left & -left;
        lanes_u64 offset;
        const uint64_t bits = space == PTX_GLOBAL ? ~(uint64_t)0 : REGION_BASE(1) - 1;
        for (int l = 0; l < LANES; l++)
            offset[l] = address[l] & bits;
        report(w, i, space, operation, here, offset);
        active &= ~here;
    }
}

static void report_access(warp *w, const insn *i, ptx_space space, emu_operation operation,
                          lanes_u64 address, uint32_t active) {
    if (space == PTX_SHARED || space == PTX_GLOBAL) {
        report(w, i, space, operation, active, address);
        return;
    }
    for (int l = 0; l < LANES; l++)
        address[l] = space_address(space, address[l]);
    report_by_space(w, i, operation, address, active);
}

const insn *exec_observed(warp *w, const insn *i) {
    lanes_u64 address, source;
    const bool copy = i->operation == EMU_COPY_ASYNC_WRITE;
    uint32_t reading = w->active;
    note_addresses(w, i->a, i->wide, i->imm, address);
    if (copy) reading = copy_async_source(w, i, source);
    const insn *next = i->observed(w, i);
    if (!next) return NULL;
    if (copy && reading) report_access(w, i, PTX_GLOBAL, EMU_COPY_ASYNC_READ, source, reading);
    if (copy)
        report_copy(w, i, PTX_SHARED, EMU_COPY_ASYNC_WRITE, w->active, address, source, reading);
    else
        report_access(w, i, (ptx_space)i->space, (emu_operation)i->operation, address, w->active);
    return next;
}
