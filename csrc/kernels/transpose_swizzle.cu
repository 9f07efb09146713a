/* Transpose: tiled, with the columns of row r permuted by XOR r.
 *
 *        cell[r][c ^ r]     0  1  2  3 ... 31       cell[l][r ^ l] of 4 bytes is in bank r ^ l:
 *                           1  0  3  2 ... 30       for a fixed r, a different one for each lane l
 *                           2  3  0  1 ... 29
 *                           ...                     (the numbers are banks)
 *
 * Banks: the fewest wavefronts both ways for every element size: 1 for 1, 2 and 4 bytes, 2 for 8, 4
 * for 16. (2 bytes: rows of 16 words; even lanes have 16 different words in the lower half of the
 * banks, odd lanes in the upper half.)
 * Bytes: as in tiled; no memory is wasted.
 * Differs from padded by ^ in place of PAD.
 */
#include "common.cuh"

#define TILE       32
#define BLOCK_ROWS 8

extern "C" __global__ void __launch_bounds__(TILE *BLOCK_ROWS)
    transpose_swizzle(const __grid_constant__ transpose_args g) {
    __shared__ ELEMENT cell[TILE][TILE];

    const ELEMENT *from = g.x + blockIdx.z * g.batch_x;
    ELEMENT *to = g.y + blockIdx.z * g.batch_y;

    const int x = threadIdx.x;
    const tile_origin tile = block_tile(g.rows, TILE, TILE);
    const long long i0 = tile.column, j0 = tile.row;

#pragma unroll
    for (int r = threadIdx.y; r < TILE; r += BLOCK_ROWS) {
        const long long i = i0 + r, j = j0 + x;
        if (i < g.rows && j < g.cols) cell[r][x ^ r] = from[i * g.ldx + j];
    }
    __syncthreads();
#pragma unroll
    for (int r = threadIdx.y; r < TILE; r += BLOCK_ROWS) {
        const long long i = i0 + x, j = j0 + r;
        if (i < g.rows && j < g.cols) to[j * g.ldy + i] = cell[x][r ^ x];
    }
}
