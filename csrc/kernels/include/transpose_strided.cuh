/* transpose_sector_aligned: kernels for strides that no other kernel takes, and for mere copies.
 *
 *      tile of x, 2^log_rows x 2^log_cols       lanes read along j and write along i; where a side
 *      [ j -> ]  [ j -> ]  [ j -> ]  matrices   is shorter than a warp, they continue in the next
 *      [      ]  [      ]  [      ]             row, then in the next matrix
 *
 * Banks: rows of 2^log_cols + 1 elements, so columns do not conflict; rows shorter than a warp do.
 */
#ifndef SMK_TRANSPOSE_STRIDED_CUH
#define SMK_TRANSPOSE_STRIDED_CUH

#include "common.cuh"
#include "transpose_tiles.h"

constexpr int ANY_THREADS = 256;
constexpr int ANY_BATCH = sizeof(ELEMENT) <= 8 ? 8 : 4; /* elements in flight per thread */

extern "C" __global__ void __launch_bounds__(ANY_THREADS)
    transpose_sector_aligned_strided(const __grid_constant__ transpose_args g) {
    extern __shared__ uint4 dynamic[];
    ELEMENT *cell = reinterpret_cast<ELEMENT *>(dynamic);

    const int rows = 1 << g.log_rows, cols = 1 << g.log_cols;
    const int elements = g.matrices << (g.log_rows + g.log_cols);
    const tile_origin tile = block_tile(g.rows, cols, rows);
    const long long i0 = tile.column, j0 = tile.row, z0 = (long long)blockIdx.z * g.matrices;
    const ELEMENT *from = g.x + z0 * g.batch_x + i0 * g.ldx + j0 * g.step_x;
    ELEMENT *to = g.y + z0 * g.batch_y + i0 * g.step_y + j0 * g.ldy;
    const int last_i = g.rows - i0 < rows ? (int)(g.rows - i0) : rows;
    const int last_j = g.cols - j0 < cols ? (int)(g.cols - j0) : cols;
    const int last_z = g.batches - z0 < g.matrices ? (int)(g.batches - z0) : g.matrices;

    for (int first = threadIdx.x; first < elements; first += ANY_BATCH * ANY_THREADS) {
        ELEMENT some[ANY_BATCH];
#pragma unroll
        for (int s = 0; s < ANY_BATCH; s++) {
            const int e = first + s * ANY_THREADS, j = e & (cols - 1);
            const int i = e >> g.log_cols & (rows - 1), z = e >> (g.log_cols + g.log_rows);
            if (i < last_i && j < last_j && z < last_z)
                some[s] = from[z * g.batch_x + i * g.ldx + j * g.step_x];
        }
#pragma unroll
        for (int s = 0; s < ANY_BATCH; s++) {
            const int e = first + s * ANY_THREADS, j = e & (cols - 1);
            const int i = e >> g.log_cols & (rows - 1), z = e >> (g.log_cols + g.log_rows);
            if (i < last_i && j < last_j && z < last_z) {
                if (g.copy)
                    to[z * g.batch_y + i * g.step_y + j * g.ldy] = some[s];
                else
                    cell[(e >> g.log_cols) * STRIDED_PITCH(g.log_cols) + j] = some[s];
            }
        }
    }
    if (g.copy) return;
    __syncthreads();
#pragma unroll ANY_BATCH
    for (int e = threadIdx.x; e < elements; e += ANY_THREADS) {
        const int i = e & (rows - 1), j = e >> g.log_rows & (cols - 1);
        const int z = e >> (g.log_cols + g.log_rows);
        if (i < last_i && j < last_j && z < last_z)
            to[z * g.batch_y + i * g.step_y + j * g.ldy] =
                cell[((z << g.log_rows) + i) * STRIDED_PITCH(g.log_cols) + j];
    }
}

/* y[i*step_y + j] = x[i*ldx + j]: copies contiguous rows. */
extern "C" __global__ void __launch_bounds__(COPY_THREADS)
    transpose_sector_aligned_copy(const __grid_constant__ transpose_args g) {
    constexpr int V = 16 / sizeof(ELEMENT);
    const tile_origin tile = block_tile(g.cols, 1, COPY_ELEMENTS(sizeof(ELEMENT)));
    const ELEMENT *from = g.x + blockIdx.z * g.batch_x + tile.row * g.ldx + tile.column;
    ELEMENT *to = g.y + blockIdx.z * g.batch_y + tile.row * g.step_y + tile.column;
    const long long left = g.cols - tile.column;
    const int n =
        left < COPY_ELEMENTS(sizeof(ELEMENT)) ? (int)left : COPY_ELEMENTS(sizeof(ELEMENT));
    int done = 0;
    if (((unsigned long long)from | (unsigned long long)to) % 16 == 0) {
        uint4 some[COPY_VECTORS];
#pragma unroll
        for (int s = 0; s < COPY_VECTORS; s++) {
            const int e = (s * COPY_THREADS + threadIdx.x) * V;
            if (e + V <= n) some[s] = *reinterpret_cast<const uint4 *>(from + e);
        }
#pragma unroll
        for (int s = 0; s < COPY_VECTORS; s++) {
            const int e = (s * COPY_THREADS + threadIdx.x) * V;
            if (e + V <= n) store_vector(to + e, some[s]);
        }
        done = n / V * V;
    }
#pragma unroll 8
    for (int e = done + threadIdx.x; e < n; e += COPY_THREADS)
        to[e] = from[e];
}

#endif
