/* Wavefronts of cp.async.cg with 16 bytes per lane, as Nsight Compute counts them on an H200.
 *
 * The data arrives from L2 in sectors of 32 bytes (two 16-byte halves, one lane each) and is
 * written to shared memory in lines of 128 bytes (four sectors). One wavefront can copy several
 * sectors if
 *
 *   - they have the same source line and the same target line,
 *   - they move their halves alike (only the first, both swapped, ...), and
 *   - one rotation, or one reflection, maps their positions in the source line (0 to 3) to those
 *     in the target line. XOR swizzles are among these symmetries of a square.
 *
 * The rule was found from random requests (docs/exactness.md). A line whose 16-byte chunks are
 * XORed with a constant is one wavefront; a line shifted by 16 bytes is three. If several lanes
 * write to the same chunk, only the first counts.
 */
#include "cp_async_cg_cost.h"

#include <stdbool.h>

enum { LANES = 32, CHUNK = 16, CHUNKS_PER_LINE = 8 };

/* The copy of one sector. `halves`: bit 2 s + t is set if source half s goes to target half t. */
typedef struct sector_copy {
    uint64_t from_sector, to_sector;
    uint32_t halves;
} sector_copy;

static uint32_t collect(const uint64_t to[LANES], const uint64_t from[LANES], uint32_t active,
                        sector_copy copies[LANES]) {
    uint32_t n = 0;
    for (uint32_t l = 0; l < LANES; l++) {
        if (!(active >> l & 1)) continue;
        bool repeated = false;
        for (uint32_t k = 0; k < l; k++)
            repeated |= (active >> k & 1) && to[k] == to[l];
        if (repeated) continue;
        const uint64_t source = from[l] / CHUNK, target = to[l] / CHUNK;
        const uint32_t used = 3u << 2 * (source & 1); /* a copy sends each half to one target */
        uint32_t m = 0;
        while (m < n && (copies[m].from_sector != source / 2 || copies[m].to_sector != target / 2 ||
                         copies[m].halves & used))
            m++;
        if (m == n) copies[n++] = (sector_copy){source / 2, target / 2, 0};
        copies[m].halves |= 1u << (2 * (source & 1) + (target & 1));
    }
    return n;
}

uint32_t cp_async_cg_wavefronts(const uint64_t to[LANES], const uint64_t from[LANES],
                                uint32_t active) {
    enum { SECTORS = CHUNKS_PER_LINE / 2 };
    sector_copy copies[LANES];
    const uint32_t n = collect(to, from, active, copies);
    uint32_t done = 0, total = 0;
    for (uint32_t m = 0; m < n; m++) {
        if (done >> m & 1) continue;
        uint32_t rotations = 0, reflections = 0; /* those of the four that occur, as bits */
        for (uint32_t k = m; k < n; k++) {
            const sector_copy *a = &copies[m], *b = &copies[k];
            if (a->from_sector / SECTORS != b->from_sector / SECTORS ||
                a->to_sector / SECTORS != b->to_sector / SECTORS || a->halves != b->halves)
                continue;
            done |= 1u << k;
            rotations |= 1u << ((b->to_sector - b->from_sector) & (SECTORS - 1));
            reflections |= 1u << ((b->to_sector + b->from_sector) & (SECTORS - 1));
        }
        const int n_rotations = __builtin_popcount(rotations),
                  n_reflections = __builtin_popcount(reflections);
        total += (uint32_t)(n_rotations < n_reflections ? n_rotations : n_reflections);
    }
    return total;
}
