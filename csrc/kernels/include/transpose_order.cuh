/* Which tile of x a block takes: consecutive blocks go along y, so that its rows are written from
 * end to end. They read a strip of x, as wide as a tile, of all rows.
 *
 *     pairs == 0           pairs > 0
 *     strip 0: 0 1 2 ..    strip 0:     0 2 4 ..      If rows are a multiple of 128 KiB apart,
 *     strip 1: ..          ..                         addresses in a strip differ in the upper bits
 *     ..                   strip pairs: 1 3 5 ..      only and reach few memory channels. So two
 *                                                     strips, 16 KiB apart, are read alternately.
 *
 * Such rows are rare for elements of 1 and 2 bytes, whose kernels have no registers to spare.
 */
#ifndef SMK_TRANSPOSE_ORDER_CUH
#define SMK_TRANSPOSE_ORDER_CUH

#include "common.cuh"
#include "transpose_tiles.h"

__device__ __forceinline__ tile_origin transpose_tile(const transpose_args &g, int lead, int tile_i,
                                                      int tile_j) {
    tile_origin tile = block_tile(g.rows + lead, tile_j, tile_i);
    if (!HAS_PAIRS(sizeof(ELEMENT)) || g.pairs == 0) return tile;
    const unsigned down = (unsigned)((g.rows + lead + tile_i - 1) / tile_i);
    const unsigned strips = (unsigned)((g.cols + tile_j - 1) / tile_j), pairs = (unsigned)g.pairs;
    const unsigned pair = blockIdx.x / (2 * down), in_pair = blockIdx.x - pair * 2 * down;
    const unsigned first = pair / pairs * 2 * pairs; /* first strip of the pair's group */
    if (first + 2 * pairs > strips) return tile;     /* the group is not whole */
    tile.row = (long long)(first + pair % pairs + in_pair % 2 * pairs) * tile_j;
    tile.column = (long long)(in_pair / 2) * tile_i;
    return tile;
}

#endif
