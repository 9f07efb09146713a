/* Transpose: through a tile in shared memory, so that both arrays are accessed along their rows.
 *
 *        x             shared              y
 *      [--------]    | 0 1 2 ... 31 |    [--------]     lane l reads x[i][j + l] into cell[r][l],
 *      [--------] -> | 0 1 2 ... 31 | -> [--------]     then, after the barrier, writes cell[l][r]
 *      [--------]    | 0 1 2 ... 31 |    [--------]     to y[j + r][i + l]
 *       rows in        columns out        rows out      (the numbers are banks)
 *
 * Banks (4 bytes): the store goes along a row, 1 wavefront. The load goes down a column with a
 * stride of 32 words: one bank, 32 wavefronts. 1 and 2 bytes: rows of 8 and 16 words, 8- and
 * 16-way; 8 and 16 bytes: all lanes of a group share banks, again 32 wavefronts instead of 2 and 4.
 * Bytes: 2 rows cols elements; a 4-byte read and a 4-byte write take 4 sectors each.
 * Differs from naive by the tile and the barrier.
 */
#include "common.cuh"

#define TILE       32
#define BLOCK_ROWS 8

extern "C" __global__ void __launch_bounds__(TILE *BLOCK_ROWS)
    transpose_tiled(const __grid_constant__ transpose_args g) {
    __shared__ ELEMENT cell[TILE][TILE];

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
