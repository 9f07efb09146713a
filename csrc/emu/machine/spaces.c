/* Checks one lane's access, and reports a bad one. The slow path: ../isa/memory_template.h calls
 * it if an access does not qualify for a fast path. */
#include <inttypes.h>
#include <stdio.h>

#include "block.h"
#include "heap.h"

static const char *const space_names[] = {[PTX_GENERIC] = "generic", [PTX_GLOBAL] = "global",
                                          [PTX_SHARED] = "shared",   [PTX_LOCAL] = "local",
                                          [PTX_CONST] = "constant",  [PTX_PARAM] = "parameter"};

static const char *region_name(uint64_t id) {
    switch (id) {
    case REGION_SHARED: return "the block's shared memory";
    case REGION_LOCAL: return "the thread's local memory";
    case REGION_CONST: return "constant memory";
    case REGION_PARAM: return "the kernel's parameters";
    case REGION_GLOBAL: return "the module's global variables";
    case REGION_HEAP: return "the heap";
    default: return "a buffer"; /* its number would depend on where the host keeps the arrays */
    }
}

/* The region whose start is nearest: an address just below a region is described as before it. */
static uint64_t nearest_region(uint64_t address) {
    return (address + (REGION_BASE(1) >> 1)) >> REGION_SHIFT;
}

static void describe_address(const warp *w, uint64_t address, uint32_t bytes, char *out,
                             size_t size) {
    const launch *l = w->block->launch;
    const uint64_t id = nearest_region(address);
    if (id == REGION_NONE || id == REGION_CODE || id >= l->n_regions) {
        snprintf(out, size,
                 address < 4096 ? "a null pointer" : "no memory of this launch has that address");
        return;
    }
    const uint64_t length = id == REGION_LOCAL ? w->local->size : w->block->regions[id].size;
    const char *whose = region_name(id);
    if (REGION_OF(address) != id)
        snprintf(out, size, "%" PRIu64 " bytes before the start of %s (%" PRIu64 " bytes)",
                 REGION_BASE(id) - address, whose, length);
    else if (REGION_OFFSET(address) == length)
        snprintf(out, size, "the first byte past the end of %s (%" PRIu64 " bytes)", whose, length);
    else if (REGION_OFFSET(address) > length)
        snprintf(out, size, "%" PRIu64 " bytes past the end of %s (%" PRIu64 " bytes)",
                 REGION_OFFSET(address) - length, whose, length);
    else
        snprintf(out, size,
                 "the last %" PRIu64 " of %u bytes lie past the end of %s (%" PRIu64 " bytes)",
                 REGION_OFFSET(address) + bytes - length, bytes, whose, length);
}

static void report_bad_access(warp *w, const insn *i, ptx_space space, int lane, uint64_t address,
                              uint32_t bytes, bool write) {
    const launch *l = w->block->launch;
    const uint64_t id = REGION_OF(address);
    const char *verb = write ? "writes" : "reads";
    /* Shows an offset in a buffer, as the buffer's region depends on where the host keeps the
     * arrays. */
    const bool in_buffer = id >= REGION_BUFFERS && id < l->n_regions;
    const uint64_t shown = space == PTX_SHARED || in_buffer ? REGION_OFFSET(address) : address;
    emu_fault at = {.kind = EMU_OUT_OF_BOUNDS, .address = address, .width = bytes};
    char place[256];
    if (id == REGION_HEAP && address % bytes) {
        at.kind = EMU_MISALIGNED;
        warp_fault_at(w, i, 1u << lane, &at,
                      "misaligned address: the kernel %s %u bytes of the heap at 0x%" PRIx64
                      ", which is not a multiple of %u",
                      verb, bytes, address, bytes);
        return;
    }
    if (id > REGION_NONE && id < l->n_regions && id != REGION_LOCAL) {
        const region *r = &w->block->regions[id];
        const char *whose = region_name(id);
        const bool inside = r->size >= bytes && REGION_OFFSET(address) <= r->size - bytes;
        if (inside && address % bytes) {
            at.kind = EMU_MISALIGNED;
            warp_fault_at(w, i, 1u << lane, &at,
                          "misaligned address: the kernel %s %u bytes of %s memory at 0x%" PRIx64
                          ", which is not a multiple of %u",
                          verb, bytes, space_names[space], shown, bytes);
            return;
        }
        if (inside && space != PTX_GENERIC && r->space != space) {
            warp_fault_at(w, i, 1u << lane, &at,
                          "an access to %s memory has the address 0x%" PRIx64 ", which is in %s",
                          space_names[space], address, whose);
            return;
        }
        if (inside && write && !r->writable) {
            warp_fault_at(w, i, 1u << lane, &at,
                          "the kernel writes %u bytes at 0x%" PRIx64 " of %s, which is read-only",
                          bytes, shown, whose);
            return;
        }
    }
    if (id == REGION_HEAP && l->module->heap)
        heap_describe(l->module->heap, REGION_OFFSET(address), place, sizeof place);
    else
        describe_address(w, address, bytes, place, sizeof place);
    warp_fault_at(w, i, 1u << lane, &at,
                  "out of bounds: the kernel %s %u bytes of %s memory at 0x%" PRIx64 ": %s", verb,
                  bytes, space_names[space], shown, place);
}

unsigned char *lane_reach(warp *w, const insn *i, ptx_space space, int lane, uint64_t address,
                          uint32_t bytes, bool write) {
    const uint64_t full = space_address(space, address);
    const uint64_t id = REGION_OF(full), offset = REGION_OFFSET(full);
    if (id == REGION_LOCAL) {
        /* Parameters of device functions are in local memory too. */
        const bool space_matches = space == PTX_LOCAL || space == PTX_GENERIC || space == PTX_PARAM;
        if (space_matches && offset % bytes == 0 && offset + bytes <= w->local->size)
            return local_at(w->local, lane, offset);
    } else if (id == REGION_HEAP) {
        heap *h = w->block->launch->module->heap;
        const bool space_matches = space == PTX_GLOBAL || space == PTX_GENERIC;
        unsigned char *there =
            h && space_matches && offset % bytes == 0 ? heap_reach(h, offset, bytes) : NULL;
        if (there) return there;
    } else if (id < w->block->launch->n_regions) {
        const region *r = &w->block->regions[id];
        /* ld.global may read constant memory: on a GPU it is part of global memory. nvcc relies
         * on this for pointers that it cannot trace. */
        const bool space_matches = space == PTX_GENERIC || r->space == space ||
                                   (space == PTX_GLOBAL && r->space == PTX_CONST);
        if (space_matches && r->size >= bytes && offset <= r->size - bytes && offset % bytes == 0 &&
            (!write || r->writable))
            return r->host + offset;
    }
    report_bad_access(w, i, space, lane, full, bytes, write);
    return NULL;
}
