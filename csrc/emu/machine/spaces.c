/* Checks one lane's access, and reports a bad one. The slow path: ../isa/memory_template.h calls
 * it if an access does not qualify for a fast path. */
#include <inttypes.h>
#include <stdio.h>

#include "../base/pages.h"
#include "block.h"
#include "heap.h"

static const char *const space_names[] = {[PTX_GENERIC] = "generic",
                                          [PTX_GLOBAL] = "global",
                                          [PTX_SHARED] = "shared",
                                          [PTX_LOCAL] = "local",
                                          [PTX_CONST] = "constant",
                                          [PTX_PARAM] = "parameter",
                                          [PTX_SHARED_CLUSTER] = "the cluster's shared"};

static const char *region_name(uint64_t id) {
    switch (id) {
    case REGION_SHARED: return "the block's shared memory";
    case REGION_LOCAL: return "the thread's local memory";
    case REGION_CONST: return "constant memory";
    case REGION_PARAM: return "the kernel's parameters";
    case REGION_GLOBAL: return "the module's global variables";
    case REGION_GRID: return "the grid's workspace";
    case REGION_HEAP: return "the heap";
    default: return "a buffer"; /* its number would depend on where the host keeps the arrays */
    }
}

/* The region whose start is nearest: an address just below a region is described as before it. */
static uint64_t nearest_region(uint64_t address) {
    return (address + (REGION_BASE(1) >> 1)) >> REGION_SHIFT;
}

/* A pointer of the program that was given to the kernel: in no region, but mapped. Elsewhere the
 * system is not asked, as its answer differs from process to process. */
static bool is_of_host(const warp *w, uint64_t address) {
    const uint64_t id = REGION_OF(address);
    if (!w->block->launch->of_program) return false;
    const bool in_region = id != REGION_NONE && id < w->block->launch->n_regions &&
                           (id < REGION_BUFFERS || w->block->regions[id].size > 0);
    return !in_region && pages_are_mapped(address);
}

static void describe_address(const warp *w, uint64_t address, uint32_t bytes, char *out,
                             size_t size) {
    const launch *l = w->block->launch;
    const uint64_t id = nearest_region(address);
    if (is_of_host(w, address)) {
        snprintf(out, size,
                 "that is memory of the host, which a kernel cannot access; copy it to the device, "
                 "or allocate it for both (cudaMallocManaged)");
        return;
    }
    if (id == REGION_NONE || id == REGION_CODE || id >= l->n_regions) {
        snprintf(out, size,
                 address < 4096 ? "a null pointer" : "no memory of this launch has that address");
        return;
    }
    const uint64_t length = id == REGION_LOCAL ? w->local->size : w->block->regions[id].size;
    const char *whose = region_name(id);
    if (id == REGION_SHARED && length == 0) {
        snprintf(out, size,
                 "the block has no shared memory: no dynamic shared memory was given "
                 "(shared_bytes, --shared-bytes)");
        return;
    }
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
    const bool of_host = is_of_host(w, address);
    const uint64_t shown =
        space == PTX_SHARED || (in_buffer && !of_host) ? REGION_OFFSET(address) : address;
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
    if (of_host) at.address = 0; /* near no buffer */
    warp_fault_at(w, i, 1u << lane, &at,
                  "out of bounds: the kernel %s %u bytes of %s memory at 0x%" PRIx64 ": %s", verb,
                  bytes, space_names[space], shown, place);
}

/* ---- the shared memory of a cluster ---- */

/* A .shared::cta address may lack the block's rank. */
static uint64_t complete_address(const block *b, ptx_space space, uint64_t address) {
    const bool is_complete = space != PTX_SHARED || WINDOW_OF(address) || REGION_OF(address);
    return is_complete ? address : address + WINDOW_BASE(b->rank);
}

block *shared_owner(const warp *w, ptx_space space, uint64_t address) {
    block *b = w->block;
    if (b->launch->cluster_blocks == 1) return b;
    return b->peers[WINDOW_OF(complete_address(b, space, address))];
}

static void report_bad_window(warp *w, const insn *i, ptx_space space, int lane, uint64_t address,
                              uint32_t bytes, bool write) {
    const launch *l = w->block->launch;
    const uint64_t rank = WINDOW_OF(address), offset = WINDOW_OFFSET(address);
    const char *verb = write ? "writes" : "reads";
    emu_fault at = {
        .kind = EMU_OUT_OF_BOUNDS, .address = REGION_BASE(REGION_SHARED) + offset, .width = bytes};
    if (rank >= l->cluster_blocks)
        warp_fault_at(w, i, 1u << lane, &at,
                      "out of bounds: the kernel %s %u bytes of shared memory at 0x%" PRIx64
                      ", which is in none of the cluster's %u blocks",
                      verb, bytes, REGION_OFFSET(address), l->cluster_blocks);
    else if (space == PTX_SHARED && rank != w->block->rank)
        warp_fault_at(w, i, 1u << lane, &at,
                      "a .shared::cta access of block %u of the cluster has the address 0x%" PRIx64
                      ", which is in the shared memory of block %u; that takes .shared::cluster or "
                      "a generic address",
                      w->block->rank, REGION_OFFSET(address), (unsigned)rank);
    else if (offset + bytes <= l->shared_region_bytes && offset % bytes) {
        at.kind = EMU_MISALIGNED;
        warp_fault_at(w, i, 1u << lane, &at,
                      "misaligned address: the kernel %s %u bytes of the shared memory of block %u "
                      "of the cluster at 0x%" PRIx64 ", which is not a multiple of %u",
                      verb, bytes, (unsigned)rank, offset, bytes);
    } else
        warp_fault_at(w, i, 1u << lane, &at,
                      "out of bounds: the kernel %s %u bytes at 0x%" PRIx64 " of the shared memory "
                      "of block %u of the cluster, which has %" PRIu64 " bytes",
                      verb, bytes, offset, (unsigned)rank, l->shared_region_bytes);
}

static void report_exited(warp *w, const insn *i, int lane, const block *owner, uint64_t offset,
                          uint32_t bytes, bool write) {
    char position[256];
    const emu_fault at = {.kind = EMU_EXITED,
                          .other_ptx = owner->last_exit->ptx,
                          .other_block = owner->index,
                          .other_thread = owner->last_exit_thread,
                          .address = REGION_BASE(REGION_SHARED) + offset,
                          .width = bytes};
    warp_fault_at(w, i, 1u << lane, &at,
                  "the kernel %s the shared memory of block %u of the cluster, which has exited "
                  "(%s); it must not exit before the others' last access (barrier.cluster)",
                  write ? "writes" : "reads", owner->rank,
                  source_position(owner->last_exit, position, sizeof position));
}

/* lane_reach for an address in shared memory, in a cluster of several blocks. */
static unsigned char *reach_in_cluster(warp *w, const insn *i, ptx_space space, int lane,
                                       uint64_t address, uint32_t bytes, bool write) {
    const block *b = w->block;
    const uint64_t full = complete_address(b, space, address);
    const uint64_t rank = WINDOW_OF(full), offset = WINDOW_OFFSET(full);
    const bool in_window = space == PTX_SHARED ? rank == b->rank : rank < b->launch->cluster_blocks;
    const uint64_t size = b->launch->shared_region_bytes;
    if (!in_window || size < bytes || offset > size - bytes || offset % bytes) {
        report_bad_window(w, i, space, lane, full, bytes, write);
        return NULL;
    }
    if (b->peers[rank]->ended) {
        report_exited(w, i, lane, b->peers[rank], offset, bytes, write);
        return NULL;
    }
    return b->peers[rank]->shared + offset;
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
    } else if (id == REGION_SHARED && w->block->launch->cluster_blocks > 1 &&
               (space == PTX_SHARED || space == PTX_SHARED_CLUSTER || space == PTX_GENERIC)) {
        return reach_in_cluster(w, i, space, lane, address, bytes, write);
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
                                   (space == PTX_GLOBAL && r->space == PTX_CONST) ||
                                   (space == PTX_SHARED_CLUSTER && r->space == PTX_SHARED);
        if (space_matches && r->size >= bytes && offset <= r->size - bytes && offset % bytes == 0 &&
            (!write || r->writable))
            return r->host + offset;
    }
    report_bad_access(w, i, space, lane, full, bytes, write);
    return NULL;
}
