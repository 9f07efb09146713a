/* transpose_sector_aligned for small arrays: padded, in tiles whose sides are chosen by shape.
 *
 *     2^log_rows x 2^log_cols elements of x: a square, or all of a short side and more of the other
 *
 * Such a call costs a launch, a round trip to memory, and fetching its instructions, which are few
 * here: sizes are below 2^32, and no division is left. Whole sectors do not matter, because the
 * result stays in the L2 cache until it is complete.
 * Banks: a row has 32 / rows elements more (of 8 and 16 bytes, of which a request serves 16 or 8
 * at a time: 16 / rows and 8 / rows), so lanes that read columns reach all banks. A store takes up
 * to 2 wavefronts where rows are shorter than a warp.
 */
#ifndef SMK_TRANSPOSE_SMALL_TILES_CUH
#define SMK_TRANSPOSE_SMALL_TILES_CUH

#include "transpose_bytes.cuh"
#include "transpose_loads.cuh"
#include "transpose_tiles.h"

/* In words of N elements; each square of N x N elements is transposed in registers. */
template <typename WORD, unsigned TILE, unsigned THREADS>
__device__ __forceinline__ void move_small_tile(const transpose_args &g, WORD *cell) {
    constexpr unsigned N = sizeof(WORD) / sizeof(ELEMENT), STEPS = TILE / THREADS;
    const unsigned rows = 1u << g.log_rows, cols = 1u << g.log_cols; /* squares */
    const unsigned pitch = SMALL_TILE_PITCH(sizeof(WORD), g.log_rows, g.log_cols);
    const unsigned plane = pitch << g.log_rows; /* of the same row, or column, of each square */
    const unsigned across = ((unsigned)g.rows / N + rows - 1) >> g.log_rows;
    const unsigned down = g.reciprocal ? __umulhi(blockIdx.x, g.reciprocal) : blockIdx.x;
    const unsigned i0 = (blockIdx.x - down * across) << g.log_rows, j0 = down << g.log_cols;
    const unsigned left_i = (unsigned)g.rows / N - i0, left_j = (unsigned)g.cols / N - j0;

    const ELEMENT *from = g.x + blockIdx.z * g.batch_x + i0 * N * g.ldx + j0 * N;
    WORD some[STEPS][N];
#pragma unroll
    for (unsigned s = 0; s < STEPS; s++) {
        const unsigned e = threadIdx.x + s * THREADS, i = e >> g.log_cols, j = e & (cols - 1);
        if (i >= left_i || j >= left_j) continue;
#pragma unroll
        for (unsigned n = 0; n < N; n++)
            some[s][n] = load(reinterpret_cast<const WORD *>(from + (i * N + n) * g.ldx + j * N));
    }
#pragma unroll
    for (unsigned s = 0; s < STEPS; s++) {
        const unsigned e = threadIdx.x + s * THREADS, i = e >> g.log_cols, j = e & (cols - 1);
        if constexpr (N > 1) turn(some[s]);
#pragma unroll
        for (unsigned n = 0; n < N; n++)
            cell[n * plane + i * pitch + j] = some[s][n];
    }
    __syncthreads();
    ELEMENT *to = g.y + blockIdx.z * g.batch_y + j0 * N * g.ldy + i0 * N;
#pragma unroll
    for (unsigned s = 0; s < STEPS; s++) {
        const unsigned e = threadIdx.x + s * THREADS, i = e & (rows - 1), j = e >> g.log_rows;
        if (i >= left_i || j >= left_j) continue;
#pragma unroll
        for (unsigned n = 0; n < N; n++)
            *reinterpret_cast<WORD *>(to + (j * N + n) * g.ldy + i * N) =
                cell[n * plane + i * pitch + j];
    }
}

#define SMALL_TILE(name, tile, threads)                                                            \
    extern "C" __global__ void __launch_bounds__(threads)                                          \
        name(const __grid_constant__ transpose_args g) {                                           \
        extern __shared__ uint4 dynamic[];                                                         \
        move_small_tile<ELEMENT, tile, threads>(g, reinterpret_cast<ELEMENT *>(dynamic));          \
    }

/* 2, 4 and 8 elements per thread. */
SMALL_TILE(transpose_sector_aligned_tile_by2, 1 << SMALL_LOG_BY2, SMALL_THREADS_BY2)
SMALL_TILE(transpose_sector_aligned_tile_by4, 1 << SMALL_LOG_BY4, SMALL_THREADS_BY4)
SMALL_TILE(transpose_sector_aligned_tile_by8, 1 << SMALL_LOG_BY8, SMALL_THREADS_BY8)

/* Elements of 1 and 2 bytes in aligned words. */
extern "C" __global__ void __launch_bounds__(SMALL_THREADS_WORDS)
    transpose_sector_aligned_tile_words(const __grid_constant__ transpose_args g) {
    extern __shared__ uint4 dynamic[];
    if constexpr (sizeof(ELEMENT) < 4)
        move_small_tile<unsigned, 1 << SMALL_LOG_WORDS, SMALL_THREADS_WORDS>(
            g, reinterpret_cast<unsigned *>(dynamic));
}

#endif
