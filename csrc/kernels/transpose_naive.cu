/* Transpose, first rung: straight from one array to the other.
 *
 *        x  (rows x cols)                 y  (cols x rows)
 *      +------------------+             +-----------+       a block moves a tile of 32 x 32, a warp
 *      |      [32 x 32]   |             |  [32 x 32]|       a row of it: lane l reads x[i][j + l]
 *      |  i   [--------]  |     ->      |  [   |   ]|       and writes y[j + l][i]
 *      +-------j----------+             +------i----+
 *
 * Banks: none; shared memory is not used.
 * Bytes: 2 rows cols elements, no FLOPs. A 4-byte read takes 4 sectors. Its write takes 32, one
 * word of each, which the L2 cache holds until other requests write the other 7 words.
 * Differs from nothing: this is the baseline.
 */
#include "common.cuh"

#define TILE       32
#define BLOCK_ROWS 8

extern "C" __global__ void __launch_bounds__(TILE *BLOCK_ROWS)
    transpose_naive(const __grid_constant__ transpose_args g) {
    const ELEMENT *from = g.x + blockIdx.z * g.batch_x;
    ELEMENT *to = g.y + blockIdx.z * g.batch_y;

    const int x = threadIdx.x;
    const tile_origin tile = block_tile(g.rows, TILE, TILE);
    const long long i0 = tile.column, j0 = tile.row;

#pragma unroll
    for (int r = threadIdx.y; r < TILE; r += BLOCK_ROWS) {
        const long long i = i0 + r, j = j0 + x;
        if (i < g.rows && j < g.cols) to[j * g.ldy + i] = from[i * g.ldx + j];
    }
}
