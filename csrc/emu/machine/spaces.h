/* Addresses that a kernel sees. They are never host addresses: the bits from 40 up name a region, the
 * bits below are an offset into it, so whatever a kernel computes, an access is checked against the
 * region's size. A region starts at a multiple of 256 bytes as cudaMalloc's allocations do, so sector
 * counts do not depend on where the host keeps the bytes.
 *
 * Addresses in .shared are plain offsets (kernels keep them in 32 bits); cvta adds the region. In all
 * other spaces an address is the same inside the space and as a generic one.
 */
#ifndef EMU_SPACES_H
#define EMU_SPACES_H

#include "insn.h"
#include "../base/lanes.h"

enum { REGION_SHIFT = 40 };

enum region_id {
    REGION_NONE, /* the null pointer's */
    REGION_SHARED,
    REGION_LOCAL, /* a thread's own; also parameters and results of device functions */
    REGION_CONST,
    REGION_PARAM,  /* the kernel's parameters */
    REGION_CODE,   /* addresses of functions; nothing to read there */
    REGION_GLOBAL, /* module variables */
    REGION_BUFFERS /* and up: the job's buffers */
};

#define REGION_BASE(id)        ((uint64_t)(id) << REGION_SHIFT)
#define REGION_OF(address)     ((uint64_t)(address) >> REGION_SHIFT)
#define REGION_OFFSET(address) ((uint64_t)(address) & (REGION_BASE(1) - 1))

typedef struct region {
    unsigned char *host;
    uint64_t size; /* 0 where an access must look closer: local */
    ptx_space space;
    bool writable;
    bool blank; /* starts with unspecified contents: to read what nobody wrote is a mistake */
} region;

/* A thread's local memory: 16-byte chunk c of lane l lies at (c * 32 + l) * 16, so it can grow. */
typedef struct local_memory {
    unsigned char *bytes;
    uint64_t size; /* per lane */
} local_memory;

enum { LOCAL_CHUNK = 16 };

static inline unsigned char *local_at(const local_memory *local, int lane, uint64_t offset) {
    return local->bytes + (offset / LOCAL_CHUNK * LANES + (uint64_t)lane) * LOCAL_CHUNK +
           offset % LOCAL_CHUNK;
}

/* How many of `bytes` from an offset on lie in one chunk. */
static inline uint64_t local_run(uint64_t offset, uint64_t bytes) {
    const uint64_t left = LOCAL_CHUNK - offset % LOCAL_CHUNK;
    return bytes < left ? bytes : left;
}

/* The address as its region knows it: an offset in .shared, .local, ... is completed. */
static inline uint64_t space_address(ptx_space space, uint64_t address) {
    static const uint8_t region_of_space[] = {
        [PTX_GENERIC] = REGION_NONE, [PTX_GLOBAL] = REGION_NONE, [PTX_SHARED] = REGION_SHARED,
        [PTX_LOCAL] = REGION_LOCAL,  [PTX_CONST] = REGION_CONST, [PTX_PARAM] = REGION_PARAM};
    return REGION_OF(address) ? address : address + REGION_BASE(region_of_space[space]);
}

/* One lane's bytes, `bytes` <= 16 of them, checked: space, bounds, alignment, write permission.
 * NULL after warp_fault. */
unsigned char *lane_reach(warp *w, const insn *i, ptx_space space, int lane, uint64_t address,
                          uint32_t bytes, bool write);

#endif
