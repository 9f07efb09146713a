/* Wavefronts and sectors of one request, for compute capability 7.0 and later.
 *
 * Shared memory has 32 banks of 4 bytes: bank = (byte address / 4) mod 32. A request is served in
 * groups of lanes:
 *
 *     1, 2, 4 bytes per lane                     one group of 32 lanes
 *     8 bytes per lane                           two groups of 16 (lanes 0-15, 16-31)
 *     16 bytes per lane, ldmatrix, stmatrix      four groups of 8
 *
 * The request's wavefronts are the sum over its groups. A group without active lanes has none.
 *
 * Loads and stores: a group's wavefronts are the maximum over banks of the distinct words in that
 * bank (of distinct 8- or 16-byte items, for wider accesses). For loads of 8 or 16 bytes two
 * neighbouring groups merge into one, if for every active lane l lane l^1 is inactive or has the
 * same address, or if the same holds for l^2. Groups of ldmatrix never merge, so its callers
 * pass `load` as false.
 *
 * Atomics and cp.async: count lanes instead of distinct words, because lanes with the same
 * address are serialized.
 *
 * Checked against Nsight Compute's counters on an H200: docs/exactness.md.
 */
#ifndef EMU_BANKS_H
#define EMU_BANKS_H

#include <stdbool.h>
#include <stdint.h>

/* width: bytes per lane (here and below). */
uint32_t banks_wavefronts(const uint64_t address[32], uint32_t active, uint32_t width, bool load);

/* Lanes per group in that request, after merging: 8, 16 or 32. */
uint32_t banks_group_lanes(const uint64_t address[32], uint32_t active, uint32_t width, bool load);

/* The ideal wavefronts of a request: its distinct bytes at 128 bytes per wavefront, but at least
 * its number of groups after the best possible merge. So some other layout or lane order always
 * reaches a conflict factor (wavefronts / ideal wavefronts) of 1. */
uint32_t banks_ideal(const uint64_t address[32], uint32_t active, uint32_t width, bool load);

/* The ideal of Nsight Compute (memory_l1_wavefronts_shared_ideal) for a load or store that takes so
 * many wavefronts: the active lanes' bytes at 128 bytes per wavefront, as if no two lanes had the
 * same address, but at most its wavefronts. */
uint32_t banks_ncu_ideal(uint32_t active, uint32_t width, uint32_t wavefronts);

/* Wavefronts and ideal wavefronts in one call, which is faster than two. */
void banks_request(const uint64_t address[32], uint32_t active, uint32_t width, bool load,
                   uint32_t *wavefronts, uint32_t *ideal);

/* A request in which lanes with the same word are serialized: an atomic that is one machine
 * instruction. */
uint32_t banks_serial_wavefronts(const uint64_t address[32], uint32_t active, uint32_t width);

/* A cp.async through L1 (.ca) of 4, 8 or 16 bytes per lane: `reading` lanes copy from `from`, the
 * other active lanes write zeros. A group's reads and writes overlap, so its cost is the larger
 * of the two. */
uint32_t banks_copy_wavefronts(const uint64_t to[32], const uint64_t from[32], uint32_t active,
                               uint32_t reading, uint32_t width);

/* An atomic that is a retry loop, because there is no machine instruction for it. In each round
 * the warp loads, computes, and tries to store. In each bank only the lowest lane of a group
 * succeeds; the other lanes retry. `loads` and `stores` are wavefronts; an attempt to store costs
 * two per group. */
typedef struct banks_attempts {
    uint32_t loads, stores;
} banks_attempts;

banks_attempts banks_retried(const uint64_t address[32], uint32_t active, uint32_t width);
/* The lanes that succeed in the first round. */
uint32_t banks_retried_round(const uint64_t address[32], uint32_t active, uint32_t width);

/* Global memory: the distinct 32-byte sectors of a request, and its ideal sectors (its distinct
 * bytes at 32 bytes per sector). */
uint32_t sectors_touched(const uint64_t address[32], uint32_t active, uint32_t width);
uint32_t sectors_ideal(const uint64_t address[32], uint32_t active, uint32_t width);

#endif
