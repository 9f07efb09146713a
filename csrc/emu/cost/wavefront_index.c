/* Distributes the lanes of a request over its wavefronts, by the rules of banks.h.
 *
 * A group of lanes takes as many wavefronts as its busiest bank has items, and groups follow each
 * other. Within a group, a bank serves its items in the order of the lanes that name them first. */
#include "wavefront_index.h"

#include <string.h>

#include "atomic_form.h"
#include "banks.h"
#include "ptxas_vectorize.h"
#include "remote.h"
#include "request_cost.h"

enum { LANES = 32, WORD = 4, ROW = 128 };

static bool has(const ptx_instruction *p, const char *modifier) {
    for (uint32_t k = 0; k < p->n_modifiers; k++)
        if (strcmp(p->modifiers[k], modifier) == 0) return true;
    return false;
}

static uint32_t item_of(uint32_t width) {
    return width < WORD ? WORD : width;
}

/* Serves a group of lanes from wavefront `first` on. `serial`: each lane is an item of its own.
 * Returns the number of wavefronts. */
static uint32_t serve_group(const uint64_t address[LANES], uint32_t lanes, uint32_t item,
                            bool serial, uint32_t first, uint8_t index[LANES]) {
    uint64_t items[LANES];
    uint8_t place[LANES], queue[LANES] = {0};
    uint32_t n = 0, max = 0;
    for (; lanes; lanes &= lanes - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(lanes);
        const uint64_t own = address[lane] / item;
        uint32_t k = serial ? n : 0;
        while (k < n && items[k] != own)
            k++;
        if (k == n) {
            items[n] = own;
            place[n++] = queue[own % (ROW / item)]++;
            max = place[k] + 1u > max ? place[k] + 1u : max;
        }
        index[lane] = (uint8_t)(first + place[k]);
    }
    return max;
}

/* Returns the number of the wavefront after the last one. */
static uint32_t serve_from(uint32_t wavefronts, const uint64_t address[LANES], uint32_t active,
                           uint32_t item, uint32_t group, bool serial, uint8_t index[LANES]) {
    for (uint32_t first = 0; first < LANES; first += group) {
        const uint32_t lanes = (uint32_t)((1ull << group) - 1) << first;
        wavefronts += serve_group(address, active & lanes, item, serial, wavefronts, index);
    }
    return wavefronts;
}

static void serve(const uint64_t address[LANES], uint32_t active, uint32_t item, uint32_t group,
                  bool serial, uint8_t index[LANES]) {
    serve_from(0, address, active, item, group, serial, index);
}

/* Loads and stores of another block: pass by pass (remote.c). */
static void serve_remote(const emu_request *r, uint8_t index[LANES]) {
    const uint32_t item = item_of(r->width);
    uint64_t address[LANES];
    uint32_t passes[LANES], wavefronts = 0;
    for (uint32_t l = 0; l < LANES; l++)
        address[l] = remote_address(r->address[l], r->rank);
    const uint32_t n = remote_passes(address, r->active, passes);
    for (uint32_t k = 0; k < n; k++)
        wavefronts = serve_from(wavefronts, address, passes[k], item, ROW / item, false, index);
}

/* As banks_copy_wavefronts counts them: a group's writes begin when the group before has been read
 * and written. */
static void serve_copy(const emu_request *r, uint8_t index[LANES]) {
    const uint32_t item = item_of(r->width), group = ROW / item;
    uint8_t unused[LANES];
    uint32_t wavefronts = 0;
    for (uint32_t first = 0; first < LANES; first += group) {
        const uint32_t lanes = r->active & (uint32_t)((1ull << group) - 1) << first;
        const uint32_t written = serve_group(r->address, lanes, item, true, wavefronts, index);
        const uint32_t read =
            r->source ? serve_group(r->source, lanes & r->reading, item, false, 0, unused) : 0;
        wavefronts += written > read ? written : read;
    }
}

/* A retry loop: a lane is served in the round in which its store succeeds (banks_retried). */
static void serve_retried(const uint64_t address[LANES], uint32_t active, uint32_t width,
                          uint8_t index[LANES]) {
    uint32_t wavefronts = 0;
    while (active) {
        const uint32_t done = banks_retried_round(address, active, width);
        const banks_attempts all = banks_retried(address, active, width);
        const banks_attempts rest = banks_retried(address, active & ~done, width);
        for (uint32_t left = done; left; left &= left - 1)
            index[__builtin_ctz(left)] = (uint8_t)(wavefronts < 254 ? wavefronts : 254);
        wavefronts += all.loads + all.stores - rest.loads - rest.stores;
        active &= ~done;
    }
}

static void serve_atomic(const emu_request *r, uint8_t index[LANES]) {
    const uint32_t item = item_of(r->width), group = ROW / item;
    const atomic_form form = (atomic_form)r->machine->atomic;
    const bool word = has(r->ptx, "u32") || has(r->ptx, "s32") || has(r->ptx, "b32");
    const bool twice = r->width < WORD || has(r->ptx, "cas");
    const bool wide = has(r->ptx, "u64") || has(r->ptx, "s64") || has(r->ptx, "b64");
    if (form == ATOMIC_ELECTED) return;
    if (form == ATOMIC_COUNTING) {
        serve(r->address, r->active, item, group, false, index);
        return;
    }
    if (!twice && !word && !has(r->ptx, "exch") && !(wide && has(r->ptx, "shared::cluster"))) {
        serve_retried(r->address, r->active, r->width, index);
        return;
    }
    serve(r->address, r->active, item, group, true, index);
    for (uint32_t left = twice ? r->active : 0; left; left &= left - 1)
        index[__builtin_ctz(left)] *= 2;
}

void wavefront_index(const emu_request *r, uint8_t index[LANES]) {
    const uint32_t item = item_of(r->width);
    for (uint32_t l = 0; l < LANES; l++)
        index[l] = r->active >> l & 1 ? 0 : WAVEFRONT_NONE;
    if (r->operation == EMU_COPY_ASYNC_WRITE && has(r->ptx, "cg"))
        return; /* sectors, not lanes, are served: cp_async_cg_cost.c */
    if (r->operation == EMU_COPY_ASYNC_WRITE)
        serve_copy(r, index);
    else if (r->operation == EMU_STORE_ASYNC)
        serve(r->address, r->active, item, ROW / item, true, index);
    else if (request_is_remote(r) && r->operation != EMU_ATOMIC)
        serve_remote(r, index);
    else if (r->operation == EMU_ATOMIC && !request_is_remote(r))
        serve_atomic(r, index);
    else if (!request_is_remote(r))
        serve(r->address, r->active, item,
              banks_group_lanes(r->address, r->active, r->width, r->operation == EMU_LOAD), false,
              index);
}
