/* Transpose: the textbook's 32 x 33 tile.
 *
 *        cell[r][l]     0  1  2 ... 31 | 0        rows are 33 elements apart: cell[l][r] of 4 bytes
 *                       1  2  3 ...  0 | 1        is in bank (33 l + r) mod 32 = (l + r) mod 32,
 *                       2  3  4 ...  1 | 2        a different one for each lane
 *                       ...                       (the numbers are banks)
 *
 * Banks, PAD = 1: storing rows and loading columns take the fewest wavefronts for every element
 * size: 1 for 1, 2 and 4 bytes, 2 for 8, 4 for 16. (1 byte: byte 33 l is in word 33 (l / 4) + {0,
 * 8, 16, 24}, bank l / 4 + {0, 8, 16, 24}: 32 of them.) An even PAD leaves conflicts for 4 bytes.
 * Bytes: as in tiled, and 3.1 % more shared memory.
 * Differs from tiled by PAD.
 */
#include "common.cuh"

#define TILE       32
#define BLOCK_ROWS 8

extern "C" __global__ void __launch_bounds__(TILE *BLOCK_ROWS)
    transpose_padded(const __grid_constant__ transpose_args g) {
    __shared__ ELEMENT cell[TILE][TILE + PAD];

    const ELEMENT *from = g.x + blockIdx.z * g.batch_x;
    ELEMENT *to = g.y + blockIdx.z * g.batch_y;

    const int x = threadIdx.x;
    const tile_origin tile = block_tile(g.rows, TILE, TILE);
    const long long i0 = tile.column, j0 = tile.row;

#pragma unroll
    for (int r = threadIdx.y; r < TILE; r += BLOCK_ROWS) {
        const long long i = i0 + r, j = j0 + x;
        if (i < g.rows && j < g.cols) cell[r][x] = from[i * g.ldx + j];
    }
    __syncthreads();
#pragma unroll
    for (int r = threadIdx.y; r < TILE; r += BLOCK_ROWS) {
        const long long i = i0 + x, j = j0 + r;
        if (i < g.rows && j < g.cols) to[j * g.ldy + i] = cell[x][r];
    }
}
