/* Reports memory accesses to the launch's observer.
 *
 * In a program decoded for an observed launch, exec_observed or a similar wrapper replaces each
 * memory instruction's handler, and calls it (insn.unobserved). Other programs have no wrappers,
 * so they have no overhead, and handlers do not depend on observers.
 *
 * A wrapper reads the addresses before the handler runs, because a load may overwrite them. It
 * reports them afterwards, so that an observer does not see an access that faulted. */
#include "observe.h"

#include "block.h"
#include "../base/lanes.h"
#include "../base/cpu.h"
#include "observe_lanes.h"
#include "../cost/ptxas_vectorize.h"

const observe_functions *observe_functions_for_cpu(void) {
    static const observe_functions *const functions[] = ON_EACH_CPU(&observe_lanes);
    return functions[cpu_level()];
}

static emu_request request_of(const warp *w, const insn *i, ptx_space space,
                              emu_operation operation, uint32_t width, uint32_t active,
                              const uint64_t *address) {
    const block *b = w->block;
    const program *p = w->split->frame->program;
    const bool stores = operation == EMU_STORE || operation == EMU_STMATRIX;
    return (emu_request){
        .ptx = i->ptx,
        .index = i->index,
        .function = p->function,
        .machine = &p->vectorized[i->index],
        .space = space,
        .operation = operation,
        .width = width,
        .active = active,
        .address = address,
        .step = b->observing->step(active, width, address),
        .block = {b->index[0], b->index[1], b->index[2]},
        .member = b->member,
        .owner = b->member,
        .warp = w->index,
        .clock = (uint32_t)w->clock,
        .frame = stores && i->unobserved ? w->frame : NULL,
        .slots = i->list,
        .elements = i->count,
        .slot_bytes = i->c,
        .registers = w->frame,
    };
}

static void notify(const warp *w, const emu_request *request) {
    w->block->observer->memory(w->block->observer_state, request);
}

static void report(const warp *w, const insn *i, ptx_space space, emu_operation operation,
                   uint32_t width, uint32_t active, const uint64_t *address) {
    const emu_request request = request_of(w, i, space, operation, width, active, address);
    notify(w, &request);
}

static ptx_space space_of(const block *b, uint64_t address) {
    const uint64_t id = REGION_OF(address);
    if (id == REGION_LOCAL) return PTX_LOCAL;
    return id < b->launch->n_regions ? b->regions[id].space : PTX_GLOBAL;
}

/* The block, as a member of the group, whose shared memory an address is in. */
static uint32_t member_of(const block *b, uint64_t address) {
    return b->member - b->rank + (uint32_t)WINDOW_OF(address);
}

/* The bits of an address that tell its memory from others: the space, in shared memory also the
 * window of the block. */
static uint64_t memory_of(const block *b, uint64_t address) {
    const ptx_space space = space_of(b, address);
    return space == PTX_SHARED ? space | WINDOW_OF(address) << 8 : space;
}

/* Reports one request per memory that the lanes access. Only global addresses stay addresses: in
 * the other spaces they become offsets. */
static void report_by_space(const warp *w, const insn *i, emu_operation operation, uint32_t width,
                            lanes_u64 address, uint32_t active) {
    while (active) {
        const uint64_t memory = memory_of(w->block, address[first_lane(active)]);
        const ptx_space space = (ptx_space)(memory & 0xff);
        uint32_t here = 0;
        for (uint32_t left = active; left; left &= left - 1)
            if (memory_of(w->block, address[first_lane(left)]) == memory) here |= left & -left;
        lanes_u64 offset;
        const uint64_t bits = space == PTX_GLOBAL   ? ~(uint64_t)0
                              : space == PTX_SHARED ? WINDOW_BASE(1) - 1
                                                    : REGION_BASE(1) - 1;
        for (int l = 0; l < LANES; l++)
            offset[l] = address[l] & bits;
        emu_request request = request_of(w, i, space, operation, width, here, offset);
        if (space == PTX_SHARED) {
            request.owner = member_of(w->block, address[first_lane(here)]);
            request.rank = (uint32_t)WINDOW_OF(address[first_lane(here)]);
        }
        notify(w, &request);
        active &= ~here;
    }
}

void observe_access(const warp *w, const insn *i, ptx_space space, emu_operation operation,
                    uint32_t width, lanes_u64 address, uint32_t active) {
    if (space == PTX_SHARED && w->block->window)
        for (int l = 0; l < LANES; l++)
            address[l] = WINDOW_OFFSET(address[l]);
    if (space == PTX_SHARED || space == PTX_GLOBAL) {
        report(w, i, space, operation, width, active, address);
        return;
    }
    for (int l = 0; l < LANES; l++)
        address[l] = space_address(space, address[l]);
    report_by_space(w, i, operation, width, address, active);
}

void observe_copy_source(const warp *w, const insn *i, const uint64_t *source, uint32_t reading,
                         const uint32_t bytes[LANES]) {
    emu_request request =
        request_of(w, i, PTX_GLOBAL, EMU_COPY_ASYNC_READ, i->width, reading, source);
    for (uint32_t left = reading; left; left &= left - 1)
        if (bytes[first_lane(left)] < i->width) request.lane_bytes = bytes;
    notify(w, &request);
}

void observe_copy(const warp *w, const insn *i, const uint64_t *address, const uint64_t *source,
                  uint32_t reading) {
    lanes_u64 offset;
    for (int l = 0; l < LANES; l++)
        offset[l] = WINDOW_OFFSET(address[l]);
    emu_request request =
        request_of(w, i, PTX_SHARED, EMU_COPY_ASYNC_WRITE, i->width, w->active, offset);
    request.source = source;
    request.reading = reading;
    notify(w, &request);
}

void observe_bulk(const warp *w, const insn *i, int lane, ptx_space space, emu_operation operation,
                  uint32_t width, const uint64_t *address, uint32_t active, uint32_t excess,
                  emu_multicast multicast) {
    lanes_u64 offset;
    emu_request request = request_of(w, i, space, operation, width, active, address);
    request.bulk_lane = (uint32_t)lane;
    request.excess = excess;
    request.multicast = multicast;
    if (space == PTX_SHARED) {
        request.owner = member_of(w->block, address[first_lane(active)]);
        for (int l = 0; l < LANES; l++)
            offset[l] = WINDOW_OFFSET(address[l]);
        request.address = offset;
    }
    notify(w, &request);
}

void observe_filled(const warp *w, const insn *i, int lane, uint32_t sectors,
                    emu_multicast multicast) {
    static const lanes_u64 no_addresses;
    emu_request request = request_of(w, i, PTX_GLOBAL, EMU_BULK_READ, 0, 0, no_addresses);
    request.bulk_lane = (uint32_t)lane;
    request.filled = sectors;
    request.multicast = multicast;
    notify(w, &request);
}

void observe_addresses(const warp *w, const insn *i, lanes_u64 out) {
    w->block->observing->addresses(w, i->a, i->wide, i->imm, out);
}

const insn *exec_observed(warp *w, const insn *i) {
    lanes_u64 address;
    observe_addresses(w, i, address);
    const insn *next = i->unobserved(w, i);
    if (next)
        observe_access(w, i, (ptx_space)i->space, (emu_operation)i->operation,
                       (uint32_t)i->width * i->count, address, w->active);
    return next;
}

const insn *exec_moved(warp *w, const insn *i) {
    const block *b = w->block;
    const insn *next = i->unobserved(w, i);
    if (!b->observer->moved) return next;
    const emu_move move = {
        i->ptx, w->split->frame->program->function, w->frame, b->member, w->index, w->active};
    b->observer->moved(b->observer_state, &move);
    return next;
}

void observe_event(const warp *w, emu_sync event) {
    const emu_observer *observer = w->block->observer;
    if (!observer || !observer->sync) return;
    event.warp = w->index;
    event.member = w->block->member;
    event.clock = (uint32_t)w->clock;
    observer->sync(w->block->observer_state, &event);
    block_goes_on(w->block);
}

void observe_sync(const warp *w, const insn *i, emu_sync_kind kind, uint32_t lanes) {
    observe_event(w, (emu_sync){.kind = kind, .ptx = i ? i->ptx : NULL, .lanes = lanes});
}
