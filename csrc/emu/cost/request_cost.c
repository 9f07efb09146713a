/* The cost of one request: wavefronts in shared memory, sectors in global memory. The rules are
 * those of banks.h, atomic_cost.c, cp_async_cg_cost.c and remote.c. */
#include "request_cost.h"

#include <string.h>

#include "atomic_cost.h"
#include "banks.h"
#include "cp_async_cg_cost.h"
#include "../base/lanes.h"
#include "ptxas_vectorize.h"
#include "remote.h"

static bool has(const ptx_instruction *p, const char *modifier) {
    for (uint32_t k = 0; k < p->n_modifiers; k++)
        if (strcmp(p->modifiers[k], modifier) == 0) return true;
    return false;
}

/* Wavefronts of an atomic or a cp.async, which count lanes and not words (banks.h). */
static uint32_t serial_cost(const emu_request *r, const uint64_t *address) {
    if (r->operation == EMU_ATOMIC)
        return atomic_wavefronts(r->ptx, (atomic_form)r->machine->atomic, address, r->active,
                                 r->width);
    if (!has(r->ptx, "cg"))
        return banks_copy_wavefronts(address, r->source, r->active, r->reading, r->width);
    /* Lanes that write zeros read no source; their writes cost the same as through L1. Where each
     * lane may have some zeros, all write them. (On a GPU those that read nothing count as copies,
     * too; their source addresses are arbitrary.) */
    const uint32_t zeros = r->machine->fills ? r->active : r->active & ~r->reading;
    return cp_async_cg_wavefronts(address, r->source, r->active & r->reading) +
           banks_serial_wavefronts(address, zeros, r->width);
}

static request_cost cost_of_shared(const emu_request *r) {
    request_cost c;
    /* Rows of ldmatrix and stmatrix, and 16-byte chunks of bulk copies and wgmma operands, are
     * served in groups of eight that never merge. */
    const bool load = r->operation == EMU_LOAD;
    uint64_t address[LANES];
    if (r->operation == EMU_ATOMIC || r->operation == EMU_COPY_ASYNC_WRITE) {
        for (uint32_t l = 0; l < LANES; l++)
            address[l] = l * r->width; /* a conflict-free layout */
        c.actual = serial_cost(r, r->address);
        c.ideal = serial_cost(r, address);
        if (c.ideal > c.actual) c.ideal = c.actual;
    } else {
        banks_request(r->address, r->active, r->width, load, &c.actual, &c.ideal);
    }
    c.machine = c.actual, c.machine_ideal = c.ideal;
    if (r->operation != EMU_LOAD && r->operation != EMU_STORE) return c;
    const uint32_t width = r->machine->width ? r->machine->width : r->width;
    if (r->machine->width) {
        for (uint32_t l = 0; l < LANES; l++)
            address[l] = r->address[l] + (uint64_t)r->machine->shift;
        c.machine = banks_wavefronts(address, r->active, width, load);
    }
    c.machine_ideal = banks_ncu_ideal(r->active, width, c.machine);
    return c;
}

/* The texture unit serves eight lanes at a time. */
static request_cost cost_of_texture(const emu_request *r) {
    enum { AT_A_TIME = 8 };
    request_cost c = {0};
    for (uint32_t first = 0; first < LANES; first += AT_A_TIME) {
        const uint32_t active = r->active & ((1u << AT_A_TIME) - 1) << first;
        c.actual += sectors_touched(r->address, active, r->width);
        c.ideal += sectors_ideal(r->address, active, r->width);
    }
    return c;
}

static request_cost cost_of_global(const emu_request *r) {
    if (r->operation == EMU_TEXTURE_READ) return cost_of_texture(r);
    const uint32_t sectors = sectors_touched(r->address, r->active, r->width);
    return (request_cost){sectors, sectors_ideal(r->address, r->active, r->width), 0, 0};
}

/* All blocks are one request. Lanes that have one address are serialised, as by atomics. */
static request_cost cost_of_store_async(const emu_request *r) {
    uint64_t consecutive[LANES];
    for (uint32_t l = 0; l < LANES; l++)
        consecutive[l] = l * r->width;
    request_cost c = {.actual = banks_serial_wavefronts(r->address, r->active, r->width),
                      .ideal = banks_serial_wavefronts(consecutive, r->active, r->width)};
    if (c.ideal > c.actual) c.ideal = c.actual;
    c.machine = c.actual, c.machine_ideal = c.ideal;
    return c;
}

static request_cost cost_of_filled(const emu_request *r) {
    return (request_cost){r->filled, r->filled, 0, 0};
}

/* Each block that receives a multicast counts its sectors. */
static request_cost cost_of_multicast(const emu_request *r) {
    const emu_multicast to = r->multicast;
    const request_cost c = r->filled ? cost_of_filled(r) : cost_of_global(r);
    const uint32_t sectors = c.actual < to.least ? to.least : c.actual;
    return (request_cost){sectors * to.receivers, c.ideal * to.receivers, 0, 0};
}

request_cost request_cost_of(const emu_request *r) {
    if (r->multicast.receivers) return cost_of_multicast(r);
    if (r->filled) return cost_of_filled(r);
    if (r->operation == EMU_STORE_ASYNC) return cost_of_store_async(r);
    return r->space == PTX_SHARED ? cost_of_shared(r) : cost_of_global(r);
}

/* ---- other blocks' shared memory ---- */

/* An atomic that is one machine instruction, also to other blocks: of integers, and exch. */
static bool is_remote_loop(const emu_request *r) {
    static const char *const floats[] = {"f16", "bf16", "f16x2", "bf16x2", "f32", "f64"};
    bool found = r->width < 4;
    for (size_t k = 0; k < sizeof floats / sizeof *floats; k++)
        found |= has(r->ptx, floats[k]);
    return found && !has(r->ptx, "exch");
}

static request_cost cost_of_remote_lanes(const emu_request *r, const remote_access *at) {
    uint64_t consecutive[LANES];
    request_cost c = {0};
    if (r->operation != EMU_ATOMIC) {
        c.actual = remote_wavefronts(at->address, at->active, r->width, REMOTE_READ_OR_WRITE);
        c.ideal = banks_ideal(at->address, at->active, r->width, false);
    } else if (is_remote_loop(r)) {
        c.actual = atomic_wavefronts(r->ptx, ATOMIC_PLAIN, at->offset, at->active, r->width);
        c.ideal = c.actual;
    } else {
        const remote_kind kind = has(r->ptx, "cas") ? REMOTE_CAS : REMOTE_ATOMIC;
        for (uint32_t l = 0; l < LANES; l++)
            consecutive[l] = remote_address(l * r->width, 1);
        c.actual = remote_wavefronts(at->address, at->active, r->width, kind);
        c.ideal = remote_wavefronts(consecutive, at->active, r->width, kind);
    }
    if (c.ideal > c.actual) c.ideal = c.actual;
    return c;
}

bool remote_access_continues(const remote_access *at, const emu_request *r) {
    return at->ptx == r->ptx && at->warp == r->warp && at->clock == r->clock &&
           !memcmp(at->block, r->block, sizeof at->block);
}

request_cost remote_access_add(remote_access *at, const emu_request *r) {
    if (!remote_access_continues(at, r)) {
        *at = (remote_access){.ptx = r->ptx, .warp = r->warp, .clock = r->clock};
        memcpy(at->block, r->block, sizeof at->block);
    }
    for (uint32_t left = r->active; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(left);
        at->offset[lane] = r->address[lane];
        at->address[lane] = remote_address(r->address[lane], r->rank);
    }
    at->active |= r->active;
    const request_cost all = cost_of_remote_lanes(r, at);
    const request_cost more = {.actual = all.actual - at->wavefronts,
                               .ideal = all.ideal - at->ideal};
    at->wavefronts = all.actual;
    at->ideal = all.ideal;
    return more;
}
