/* The address space of a kernel.
 *
 * Kernel addresses are never host addresses. The bits from 40 up select a region, the bits below
 * are an offset in it. So every access can be checked against the size of its region, whatever
 * address a kernel computes. A region starts at a multiple of 256 bytes, like cudaMalloc's
 * allocations, so sector counts do not depend on host addresses.
 *
 * .shared addresses are offsets, which kernels keep in 32 bits; cvta adds the region. In all other
 * spaces an address equals its generic address.
 *
 * The shared memory of a cluster is one region, with a window of 16 MiB for each block. The bits
 * from 24 up are the block's rank in the cluster, as in the addresses that mapa returns on Hopper;
 * the bits below are the offset in the block's shared memory. A .shared::cta access may leave out
 * its own block's rank.
 */
#ifndef EMU_SPACES_H
#define EMU_SPACES_H

#include "insn.h"
#include "../base/lanes.h"

enum { REGION_SHIFT = 40, WINDOW_SHIFT = 24 };

enum region_id {
    REGION_NONE, /* of the null pointer */
    REGION_SHARED,
    REGION_LOCAL, /* of each thread; also parameters and results of device functions */
    REGION_CONST,
    REGION_PARAM,  /* the kernel's parameters */
    REGION_CODE,   /* addresses of functions; not readable */
    REGION_GLOBAL, /* module variables */
    REGION_GRID,   /* the workspace of a cooperative launch */
    REGION_HEAP,   /* of malloc: part of global memory; heap.h checks accesses */
    REGION_BUFFERS /* and up: the job's buffers */
};

#define REGION_BASE(id)        ((uint64_t)(id) << REGION_SHIFT)
#define REGION_OF(address)     ((uint64_t)(address) >> REGION_SHIFT)
#define REGION_OFFSET(address) ((uint64_t)(address) & (REGION_BASE(1) - 1))

/* Of an address in shared memory: the block's rank in the cluster, and the offset. */
#define WINDOW_BASE(rank)      ((uint64_t)(rank) << WINDOW_SHIFT)
#define WINDOW_OF(address)     (REGION_OFFSET(address) >> WINDOW_SHIFT)
#define WINDOW_OFFSET(address) ((uint64_t)(address) & (WINDOW_BASE(1) - 1))

typedef struct region {
    unsigned char *host;
    uint64_t size; /* 0 for local memory, whose size lane_reach takes from local_memory */
    ptx_space space;
    bool writable;
    bool blank; /* uninitialized at the start: reading bytes before they are written is a hazard */
    uint64_t base; /* its first offset: of shared memory the window of the block, else 0 */
} region;

/* The local memory of a warp's threads: 16-byte chunk c of lane l is at byte 16 * (32 * c + l).
 * So it can grow without a new layout. */
typedef struct local_memory {
    unsigned char *bytes;
    uint64_t size; /* per lane */
} local_memory;

enum { LOCAL_CHUNK = 16 };

static inline unsigned char *local_at(const local_memory *local, int lane, uint64_t offset) {
    return local->bytes + (offset / LOCAL_CHUNK * LANES + (uint64_t)lane) * LOCAL_CHUNK +
           offset % LOCAL_CHUNK;
}

/* How many of the `bytes` from an offset are in the offset's chunk. */
static inline uint64_t local_run(uint64_t offset, uint64_t bytes) {
    const uint64_t left = LOCAL_CHUNK - offset % LOCAL_CHUNK;
    return bytes < left ? bytes : left;
}

/* The generic address of an address in this space: adds the region to an offset in .shared,
 * .local, ... */
static inline uint64_t space_address(ptx_space space, uint64_t address) {
    static const uint8_t region_of_space[] = {
        [PTX_GENERIC] = REGION_NONE,         [PTX_GLOBAL] = REGION_NONE,
        [PTX_SHARED] = REGION_SHARED,        [PTX_LOCAL] = REGION_LOCAL,
        [PTX_CONST] = REGION_CONST,          [PTX_PARAM] = REGION_PARAM,
        [PTX_SHARED_CLUSTER] = REGION_SHARED};
    return REGION_OF(address) ? address : address + REGION_BASE(region_of_space[space]);
}

/* The host address of one lane's access of `bytes` (at most 16), after checks of space, bounds,
 * alignment and write permission. NULL: warp_fault has been called. */
unsigned char *lane_reach(warp *w, const insn *i, ptx_space space, int lane, uint64_t address,
                          uint32_t bytes, bool write);

/* The block of the cluster whose shared memory an address is in. The address must have passed
 * lane_reach with the same space. */
struct block *shared_owner(const warp *w, ptx_space space, uint64_t address);

#endif
