/* transpose_sector_aligned for small arrays: padded, in tiles of 16 x 16 or 32 x 32.
 *
 * Such a call costs a launch, a round trip to memory, and fetching its instructions, which are few
 * here. Whole sectors do not matter, because the result stays in the L2 cache until it is complete.
 */
#ifndef SMK_TRANSPOSE_SMALL_TILES_CUH
#define SMK_TRANSPOSE_SMALL_TILES_CUH

#include "transpose_loads.cuh"
#include "transpose_tiles.h"

template <int SIDE> __device__ __forceinline__ void move_small_tile(const transpose_args &g) {
    constexpr unsigned ROWS = SMALL_TILE_THREADS / SIDE; /* moved at a time */
    constexpr unsigned GAP = sizeof(ELEMENT) < 4 ? 4 / sizeof(ELEMENT) : 1;
    __shared__ ELEMENT cell[SIDE][SIDE + GAP];
    const tile_origin tile = block_tile(g.rows, SIDE, SIDE);
    const unsigned lane = threadIdx.x % SIDE, group = threadIdx.x / SIDE;
    const long long i0 = tile.column, j0 = tile.row;
    const long long rows = g.rows - i0, cols = g.cols - j0; /* left, from the tile on */

    const ELEMENT *from = g.x + blockIdx.z * g.batch_x + (i0 + group) * g.ldx + j0 + lane;
    ELEMENT some[SIDE / ROWS];
#pragma unroll
    for (unsigned s = 0; s < SIDE; s += ROWS)
        if (group + s < rows && lane < cols) some[s / ROWS] = load(from + s * g.ldx);
#pragma unroll
    for (unsigned s = 0; s < SIDE; s += ROWS)
        cell[group + s][lane] = some[s / ROWS];
    __syncthreads();
    ELEMENT *to = g.y + blockIdx.z * g.batch_y + (j0 + group) * g.ldy + i0 + lane;
#pragma unroll
    for (unsigned s = 0; s < SIDE; s += ROWS)
        if (group + s < cols && lane < rows) to[s * g.ldy] = cell[lane][group + s];
}

extern "C" __global__ void __launch_bounds__(SMALL_TILE_THREADS)
    transpose_sector_aligned_tile32(const __grid_constant__ transpose_args g) {
    move_small_tile<32>(g);
}

extern "C" __global__ void __launch_bounds__(SMALL_TILE_THREADS)
    transpose_sector_aligned_tile16(const __grid_constant__ transpose_args g) {
    move_small_tile<16>(g);
}

#endif
