/* The exact cost of one shared-memory request, for compute capability 7.0 and later.
 *
 * 32 banks of 4 bytes, bank = (byte address / 4) mod 32. Lanes go in groups: 1, 2, 4 bytes a lane: all 32;
 * 8 bytes: lanes 0-15 and 16-31; 16 bytes, and the rows of ldmatrix and stmatrix: four groups of 8.
 * Groups' wavefronts add up; a group with no active lane costs nothing.
 *
 * Loads and stores: a group's wavefronts are the largest number of distinct words (or 8- or 16-byte
 * items) that fall into one bank. Loads of 8 or 16 bytes merge neighbouring groups if for all active
 * lanes l lane l^1 is inactive or has the same address, or likewise l^2;
 * the rows of ldmatrix do not merge, and are counted as not `load`.
 *
 * Atomics and cp.async: lanes count, not words. Lanes of one address wait for each other.
 *
 * Compared with Nsight Compute's counters on an H200: docs/exactness.md.
 */
#ifndef EMU_BANKS_H
#define EMU_BANKS_H

#include <stdbool.h>
#include <stdint.h>

uint32_t banks_wavefronts(const uint64_t address[32], uint32_t active, uint32_t width, bool load);

/* How many neighbouring lanes are served together in that request: 8, 16 or 32, from lane 0 on. The
 * wavefronts of these groups add up. */
uint32_t banks_group_lanes(const uint64_t address[32], uint32_t active, uint32_t width, bool load);

/* The fewest wavefronts that could serve such a request: enough for the distinct bytes asked for, 128 a
 * wavefront, and no fewer than the groups that its width, at best merged, falls into. So a conflict
 * factor of 1 is always within reach of another layout or another order of the lanes. */
uint32_t banks_ideal(const uint64_t address[32], uint32_t active, uint32_t width, bool load);

/* Both at once, which is faster. */
void banks_request(const uint64_t address[32], uint32_t active, uint32_t width, bool load,
                   uint32_t *wavefronts, uint32_t *ideal);

/* A request whose lanes do not share words: an atomic that the hardware has as one instruction. */
uint32_t banks_serial_wavefronts(const uint64_t address[32], uint32_t active, uint32_t width);

/* A cp.async through L1 (.ca): `reading` lanes read 4, 8 or 16 bytes at `from`, the others write zeros.
 * A group's reads and writes go side by side, and the slower of them counts. */
uint32_t banks_copy_wavefronts(const uint64_t to[32], const uint64_t from[32], uint32_t active,
                               uint32_t reading, uint32_t width);

/* A read-modify-write that the hardware does not have: the warp loads, computes, and stores what nobody
 * else's lane of the bank stored first; the others try again. Wavefronts of its loads and of its stores,
 * each of which costs two. The lowest lane of a bank goes first. */
typedef struct banks_attempts {
    uint32_t loads, stores;
} banks_attempts;

banks_attempts banks_retried(const uint64_t address[32], uint32_t active, uint32_t width);

/* Global memory: distinct 32-byte sectors touched; and the fewest the bytes could have cost. */
uint32_t sectors_touched(const uint64_t address[32], uint32_t active, uint32_t width);
uint32_t sectors_ideal(const uint64_t address[32], uint32_t active, uint32_t width);

#endif
