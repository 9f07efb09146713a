/* transpose_sector_aligned for small arrays: padded, in tiles whose sides are chosen by shape.
 *
 *     2^log_rows x 2^log_cols elements of x: a square, or all of a short side and more of the other
 *
 * Such a call costs a launch, a round trip to memory, and fetching its instructions, which are few
 * here: sizes are below 2^32, and no division is left. Whole sectors do not matter, because the
 * result stays in the L2 cache until it is complete.
 * Banks: a row has 32 / rows elements more, so that lanes reading columns reach all banks.
 */
#ifndef SMK_TRANSPOSE_SMALL_TILES_CUH
#define SMK_TRANSPOSE_SMALL_TILES_CUH

#include "transpose_loads.cuh"
#include "transpose_tiles.h"

template <unsigned TILE, unsigned THREADS>
__device__ __forceinline__ void move_small_tile(const transpose_args &g, ELEMENT *cell) {
    constexpr unsigned STEPS = TILE / THREADS;
    const unsigned rows = 1u << g.log_rows, cols = 1u << g.log_cols;
    const unsigned pitch = SMALL_TILE_PITCH(sizeof(ELEMENT), g.log_rows, g.log_cols);
    const unsigned across = ((unsigned)g.rows + rows - 1) >> g.log_rows;
    const unsigned down = g.reciprocal ? __umulhi(blockIdx.x, g.reciprocal) : blockIdx.x;
    const unsigned i0 = (blockIdx.x - down * across) << g.log_rows, j0 = down << g.log_cols;
    const unsigned left_i = (unsigned)g.rows - i0, left_j = (unsigned)g.cols - j0;

    const ELEMENT *from = g.x + blockIdx.z * g.batch_x + i0 * g.ldx + j0;
    ELEMENT some[STEPS];
#pragma unroll
    for (unsigned s = 0; s < STEPS; s++) {
        const unsigned e = threadIdx.x + s * THREADS, i = e >> g.log_cols, j = e & (cols - 1);
        if (i < left_i && j < left_j) some[s] = load(from + i * g.ldx + j);
    }
#pragma unroll
    for (unsigned s = 0; s < STEPS; s++) {
        const unsigned e = threadIdx.x + s * THREADS, i = e >> g.log_cols, j = e & (cols - 1);
        cell[i * pitch + j] = some[s];
    }
    __syncthreads();
    ELEMENT *to = g.y + blockIdx.z * g.batch_y + j0 * g.ldy + i0;
#pragma unroll
    for (unsigned s = 0; s < STEPS; s++) {
        const unsigned e = threadIdx.x + s * THREADS, i = e & (rows - 1), j = e >> g.log_rows;
        if (i < left_i && j < left_j) to[j * g.ldy + i] = cell[i * pitch + j];
    }
}

#define SMALL_TILE(name, tile, threads)                                                            \
    extern "C" __global__ void __launch_bounds__(threads)                                          \
        name(const __grid_constant__ transpose_args g) {                                           \
        extern __shared__ uint4 dynamic[];                                                         \
        move_small_tile<tile, threads>(g, reinterpret_cast<ELEMENT *>(dynamic));                   \
    }

/* 2, 4 and 8 elements per thread. */
SMALL_TILE(transpose_sector_aligned_tile_by2, 1 << SMALL_LOG_BY2, SMALL_THREADS_BY2)
SMALL_TILE(transpose_sector_aligned_tile_by4, 1 << SMALL_LOG_BY4, SMALL_THREADS_BY4)
SMALL_TILE(transpose_sector_aligned_tile_by8, 1 << SMALL_LOG_BY8, SMALL_THREADS_BY8)

#endif
