/* transpose_sector_aligned for 16-byte aligned rows of whole chunks: vectorized, two tile sizes.
 *
 * A tile is CI x CJ squares of S x S elements; a thread transposes one square after the other.
 * Chunks outside the matrix are skipped, so a tile at an edge takes no longer. The small tile is
 * for arrays that give each multiprocessor few large tiles, and for short sides.
 * Banks: as in vectorized, for any CJ: chunk n, counted along the rows, is at n ^ (r / S % 8).
 */
#ifndef SMK_TRANSPOSE_VECTORS_CUH
#define SMK_TRANSPOSE_VECTORS_CUH

#include "transpose_loads.cuh"
#include "transpose_order.cuh"
#include "transpose_square.cuh"
#include "transpose_tiles.h"

/* With 16-byte elements two requests make up 256 bytes, with smaller ones a single request does. */
__device__ __forceinline__ uint4 load_chunk(const ELEMENT *p) {
    const uint4 *chunk = reinterpret_cast<const uint4 *>(p);
    return S == 1 ? load_256(chunk) : load(chunk);
}

template <int CI, int CJ, int THREADS>
__device__ __forceinline__ void move_vectors(const transpose_args &g) {
    constexpr int TILE_I = CI * S, TILE_J = CJ * S, STEPS = TILE_I * CJ / THREADS;
    constexpr int ROWS = THREADS / CJ; /* read at a time */
    __shared__ uint4 chunk[TILE_I * CJ];

    const tile_origin tile = transpose_tile(g, 0, TILE_I, TILE_J);
    const unsigned lane = threadIdx.x % CJ, group = threadIdx.x / CJ;
    const long long i0 = tile.column, j0 = tile.row;
    const unsigned rows = g.rows - i0 < TILE_I ? (unsigned)(g.rows - i0) : TILE_I;
    const unsigned chunks = g.cols - j0 < TILE_J ? (unsigned)(g.cols - j0) / S : CJ;

    const ELEMENT *from = g.x + blockIdx.z * g.batch_x + (i0 + group) * g.ldx + j0 + lane * S;
    uint4 row[STEPS];
#pragma unroll
    for (unsigned s = 0; s < STEPS; s++)
        if (s * ROWS + group < rows && lane < chunks) row[s] = load_chunk(from + s * ROWS * g.ldx);
#pragma unroll
    for (unsigned s = 0; s < STEPS; s++) {
        const unsigned r = s * ROWS + group;
        chunk[(r * CJ + lane) ^ r / S % 8] = row[s];
    }
    __syncthreads();

    const unsigned line = threadIdx.x % CI;
    ELEMENT *to = g.y + blockIdx.z * g.batch_y + j0 * g.ldy + i0 + line * S;
#pragma unroll 1
    for (unsigned c = threadIdx.x / CI; c < chunks; c += THREADS / CI) {
        unsigned square[S][4];
#pragma unroll
        for (unsigned s = 0; s < S; s++) {
            const uint4 v = chunk[((line * S + s) * CJ + c) ^ line % 8];
            square[s][0] = v.x, square[s][1] = v.y, square[s][2] = v.z, square[s][3] = v.w;
        }
        transpose_square(square);
        if (line * S >= rows) continue;
#pragma unroll
        for (unsigned s = 0; s < S; s++)
            store_vector(to + (c * S + s) * g.ldy,
                         make_uint4(square[s][0], square[s][1], square[s][2], square[s][3]));
    }
}

constexpr int VECTORS_SMALL_THREADS = VECTORS_SMALL_THREADS_OF(sizeof(ELEMENT));

extern "C" __global__ void __launch_bounds__(VECTORS_THREADS)
    transpose_sector_aligned_vectors(const __grid_constant__ transpose_args g) {
    constexpr int E = sizeof(ELEMENT);
    if constexpr (HAS_VECTORS(E))
        move_vectors<VECTORS_TILE_I(E) / S, VECTORS_TILE_J(E) / S, VECTORS_THREADS>(g);
}

extern "C" __global__ void __launch_bounds__(VECTORS_SMALL_THREADS)
    transpose_sector_aligned_vectors_small(const __grid_constant__ transpose_args g) {
    constexpr int E = sizeof(ELEMENT);
    move_vectors<VECTORS_SMALL_I(E) / S, VECTORS_SMALL_J(E) / S, VECTORS_SMALL_THREADS>(g);
}

#endif
