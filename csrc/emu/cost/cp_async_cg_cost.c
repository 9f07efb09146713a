/* The wavefronts of cp.async.cg, 16 bytes a lane, as Nsight Compute counts them on an H200.
 *
 * Data comes from L2 in sectors of 32 bytes, two lanes' halves each, and is written in lines of 128. One
 * wavefront carries sectors of one source line into one line of shared memory, all with the same use
 * of their halves (only the first, both swapped, ...), if their four places in the line turn into the
 * new ones by one rotation, or one reflection: a square's symmetries, of which XOR swizzles are some.
 * Found from random requests (docs/exactness.md): a line whose 16-byte pieces are XORed with a constant
 * is one wavefront, one that is shifted by 16 bytes is three. Where lanes write to one place, only the
 * first counts.
 */
#include "cp_async_cg_cost.h"

#include <stdbool.h>

enum { LANES = 32, PIECE = 16, PIECES_A_LINE = 8 };

/* A sector on its way: halves has a bit for each of first to first, first to second, ... */
typedef struct move {
    uint64_t from_sector, to_sector;
    uint32_t halves;
} move;

static uint32_t collect(const uint64_t to[LANES], const uint64_t from[LANES], uint32_t active,
                        move moves[LANES]) {
    uint32_t n = 0;
    for (uint32_t l = 0; l < LANES; l++) {
        if (!(active >> l & 1)) continue;
        bool repeated = false;
        for (uint32_t k = 0; k < l; k++)
            repeated |= (active >> k & 1) && to[k] == to[l];
        if (repeated) continue;
        const uint64_t source = from[l] / PIECE, target = to[l] / PIECE;
        const uint32_t used = 3u << 2 * (source & 1); /* a half goes to one place at a time */
        uint32_t m = 0;
        while (m < n && (moves[m].from_sector != source / 2 || moves[m].to_sector != target / 2 ||
                         moves[m].halves & used))
            m++;
        if (m == n) moves[n++] = (move){source / 2, target / 2, 0};
        moves[m].halves |= 1u << (2 * (source & 1) + (target & 1));
    }
    return n;
}

uint32_t cp_async_cg_wavefronts(const uint64_t to[LANES], const uint64_t from[LANES],
                                uint32_t active) {
    enum { SECTORS = PIECES_A_LINE / 2 };
    move moves[LANES];
    const uint32_t n = collect(to, from, active, moves);
    uint32_t done = 0, total = 0;
    for (uint32_t m = 0; m < n; m++) {
        if (done >> m & 1) continue;
        uint32_t rotations = 0, reflections = 0; /* of four each, which occur */
        for (uint32_t k = m; k < n; k++) {
            const move *a = &moves[m], *b = &moves[k];
            if (a->from_sector / SECTORS != b->from_sector / SECTORS ||
                a->to_sector / SECTORS != b->to_sector / SECTORS || a->halves != b->halves)
                continue;
            done |= 1u << k;
            rotations |= 1u << ((b->to_sector - b->from_sector) & (SECTORS - 1));
            reflections |= 1u << ((b->to_sector + b->from_sector) & (SECTORS - 1));
        }
        const int turns = __builtin_popcount(rotations), flips = __builtin_popcount(reflections);
        total += (uint32_t)(turns < flips ? turns : flips);
    }
    return total;
}
