/* transpose_sector_aligned: kernels for a square matrix that is transposed in place.
 *
 *      . . J . .       a block has tile (I, J) and its mirror image (J, I), J <= I: it reads both,
 *      . . . . .       waits, and writes each to the place of the other
 *      J . . . I       blocks: n (n + 1) / 2; tile rows p and n - 1 - p together have n + 1 tiles,
 *      . . . . .       which makes a rectangle of them (for odd n, of all but the last row)
 *      . . I . .
 *
 * Where rows begin at 16 bytes and consist of whole 16-byte chunks, chunks are copied to shared
 * memory by cp.async and transposed on the way back, as in vectorized. Otherwise elements are, all
 * of a thread's in flight at once. Banks: as in vectorized; for elements, as in padded: columns of
 * rows of TILE + 1. Bytes: as in any transpose, in half the memory.
 */
#ifndef SMK_TRANSPOSE_IN_PLACE_CUH
#define SMK_TRANSPOSE_IN_PLACE_CUH

#include "common.cuh"
#include "transpose_loads.cuh"
#include "transpose_square.cuh"
#include "transpose_tiles.h"

/* Origins of a block's two tiles. */
typedef struct mirrored {
    long long I, J;
} mirrored;

__device__ __forceinline__ mirrored tiles_of_block(long long size, int side) {
    const unsigned n = (unsigned)((size + side - 1) / side), even = n % 2 == 0, width = n + even;
    const unsigned p = blockIdx.x / width, c = blockIdx.x - p * width;
    const bool middle = !even && p == n / 2;
    return {(long long)side * (middle   ? n - 1
                               : c <= p ? p
                                        : n - 2 + even - p),
            (long long)side * (middle || c <= p ? c : c - p - 1)};
}

extern "C" __global__ void __launch_bounds__(IN_PLACE_THREADS, 3)
    transpose_sector_aligned_in_place(const __grid_constant__ transpose_args g) {
    constexpr int SIDE = IN_PLACE_TILE(sizeof(ELEMENT)), STRIDE = IN_PLACE_THREADS / SIDE;
    __shared__ ELEMENT cell[2][SIDE][SIDE + 1];

    const mirrored at = tiles_of_block(g.rows, SIDE);
    const int x = threadIdx.x % SIDE, first = threadIdx.x / SIDE;
    const int rows = g.rows - at.I < SIDE ? (int)(g.rows - at.I) : SIDE; /* from I on */
    const int cols = g.rows - at.J < SIDE ? (int)(g.rows - at.J) : SIDE; /* from J on */
    ELEMENT *matrix = g.y + blockIdx.z * g.batch_y;
    ELEMENT *below = matrix + (at.I + first) * g.ldx + (at.J + x) * g.step_x;
    ELEMENT *above = matrix + (at.J + first) * g.ldx + (at.I + x) * g.step_x;

    const bool whole = rows == SIDE && cols == SIDE;
    ELEMENT some[2][SIDE / STRIDE];
#pragma unroll
    for (int r = 0; r < SIDE; r += STRIDE) {
        if (whole || (first + r < rows && x < cols))
            some[0][r / STRIDE] = load_mutable(below + r * g.ldx);
        if (whole || (first + r < cols && x < rows))
            some[1][r / STRIDE] = load_mutable(above + r * g.ldx);
    }
#pragma unroll
    for (int r = 0; r < SIDE; r += STRIDE) {
        cell[0][first + r][x] = some[0][r / STRIDE];
        cell[1][first + r][x] = some[1][r / STRIDE];
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < SIDE; r += STRIDE) {
        if (whole || (first + r < cols && x < rows)) above[r * g.ldx] = cell[0][x][first + r];
        if (at.I != at.J && (whole || (first + r < rows && x < cols)))
            below[r * g.ldx] = cell[1][x][first + r];
    }
}

extern "C" __global__ void __launch_bounds__(IN_PLACE_VECTORS_THREADS(sizeof(ELEMENT)))
    transpose_sector_aligned_in_place_vectors(const __grid_constant__ transpose_args g) {
    constexpr int SIDE = IN_PLACE_VECTORS_TILE(sizeof(ELEMENT)), CHUNKS = SIDE / S;
    constexpr int THREADS = IN_PLACE_VECTORS_THREADS(sizeof(ELEMENT));
    __shared__ uint4 chunk[2][SIDE][CHUNKS];

    const mirrored at = tiles_of_block(g.rows, SIDE);
    ELEMENT *matrix = g.y + blockIdx.z * g.batch_y;
    ELEMENT *tile[2] = {matrix + at.I * g.ldx + at.J, matrix + at.J * g.ldx + at.I};
    const unsigned of_i = g.rows - at.I < SIDE ? (unsigned)(g.rows - at.I) : SIDE;
    const unsigned of_j = g.rows - at.J < SIDE ? (unsigned)(g.rows - at.J) : SIDE;
    const unsigned rows[2] = {of_i, of_j}, cols[2] = {of_j, of_i};

#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
        for (unsigned n = threadIdx.x; n < SIDE * CHUNKS; n += THREADS) {
            const unsigned r = n / CHUNKS, c = n % CHUNKS;
            if (r < rows[t] && c * S < cols[t])
                COPY_ASYNC_16(&chunk[t][r][c ^ r / S % 8], tile[t] + r * g.ldx + c * S);
        }
    COPY_ASYNC_COMMIT();
    COPY_ASYNC_WAIT(0);
    __syncthreads();
#pragma unroll
    for (int t = 0; t < 2; t++) {
        if (t && at.I == at.J) break;
#pragma unroll 1
        for (unsigned n = threadIdx.x; n < CHUNKS * CHUNKS; n += THREADS) {
            const unsigned line = n % CHUNKS, c = n / CHUNKS;
            if (line * S >= rows[t] || c * S >= cols[t]) continue;
            unsigned square[S][4];
#pragma unroll
            for (unsigned s = 0; s < S; s++) {
                const uint4 v = chunk[t][line * S + s][c ^ line % 8];
                square[s][0] = v.x, square[s][1] = v.y, square[s][2] = v.z, square[s][3] = v.w;
            }
            transpose_square(square);
#pragma unroll
            for (unsigned s = 0; s < S; s++)
                store_vector(tile[1 - t] + (c * S + s) * g.ldx + line * S,
                             make_uint4(square[s][0], square[s][1], square[s][2], square[s][3]));
        }
    }
}

#endif
