/* The exact cost of one shared-memory request, for compute capability 7.0 and later.
 *
 * 32 banks of 4 bytes, bank = (byte address / 4) mod 32. Within a group of lanes the wavefronts are
 * the largest number of distinct 4-byte words that fall into one bank. Groups: 1, 2, 4 bytes a lane: all 32 lanes;
 * 8 bytes: lanes 0-15 and 16-31; 16 bytes: four groups of 8. Loads of 8 or 16 bytes merge neighbouring
 * groups if for all active lanes l lane l^1 is inactive or has the same address, or likewise l^2; the rows
 * of ldmatrix, 16 bytes each, do not merge, and are counted as not `load`. Groups'
 * wavefronts add up; a group with no active lane costs nothing. Checked against Nsight Compute's
 * SASS-level counters on an H200 (docs/exactness.md when it exists).
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

/* Global memory: distinct 32-byte sectors touched; and the fewest the bytes could have cost. */
uint32_t sectors_touched(const uint64_t address[32], uint32_t active, uint32_t width);
uint32_t sectors_ideal(const uint64_t address[32], uint32_t active, uint32_t width);

#endif
