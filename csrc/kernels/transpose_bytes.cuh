/* transpose_sectors for elements of 1 and 2 bytes: whole words both ways, at any pitch.
 *
 *     row r of x:  |..aa|aaaa|aaaa|a...|    the aligned words that it touches, copied as they are, in the
 *                     ^ phase               background; elements are picked out behind the row's phase
 *     row j of y:  |bbbb|bbbb|              N elements of a column, of N rows from one that makes it aligned
 *
 * Banks: a warp picks elements that are N rows apart. Rows go to shared memory by r % N, then r / N, so that lanes
 * are one row of an odd number of words apart: 1 wavefront. They are picked in the order of r % N, which is the
 * same for all shifts, and the word is rotated.
 */
#ifndef SMK_TRANSPOSE_BYTES_CUH
#define SMK_TRANSPOSE_BYTES_CUH

#include "common.cuh"
#include "transpose_tiles.h"

/* Of N elements of rows m, m + 1, ... modulo N, by their rows: the word that has row m first. */
__device__ __forceinline__ unsigned join(const unsigned char (&by_row)[4], unsigned m) {
    const unsigned low = __byte_perm(by_row[0], by_row[1], 0x0040);
    const unsigned high = __byte_perm(by_row[2], by_row[3], 0x0040);
    const unsigned all = __byte_perm(low, high, 0x5410);
    return __funnelshift_r(all, all, m * 8);
}
__device__ __forceinline__ unsigned join(const unsigned short (&by_row)[2], unsigned m) {
    const unsigned all = __byte_perm(by_row[0], by_row[1], 0x5410);
    return __funnelshift_r(all, all, m * 16);
}

/* The aligned word at `at`, of which the array may have only the first bytes. */
template <typename T>
__device__ __forceinline__ void copy_word(unsigned *into, unsigned long long at,
                                          unsigned long long end) {
    if (at + 4 <= end) {
        COPY_ASYNC_WORD(into, at);
    } else {
        for (unsigned b = 0; b < 4 && at + b < end; b += sizeof(T))
            reinterpret_cast<T *>(into)[b / sizeof(T)] = *reinterpret_cast<const T *>(at + b);
    }
}

template <typename T> __device__ __forceinline__ void move_bytes(const transpose_args &g) {
    constexpr int E = sizeof(T), N = 4 / E, TILE_I = WIDE_TILE_I(E), TILE_J = WIDE_TILE_J(E);
    constexpr int LEAD = WIDE_LEAD(E), ROWS = LEAD + TILE_I;
    constexpr int WORDS = TILE_J / N + 1; /* that a row of a tile may touch */
    constexpr int PITCH = WORDS | 1;
    __shared__ unsigned cell[N][ROWS / N][PITCH]; /* [r % N][r / N][words of row r] */

    const T *from = g.x + blockIdx.z * g.batch_x;
    T *to = g.y + blockIdx.z * g.batch_y;
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const tile_origin tile = block_tile(g.rows + g.lead, TILE_J, TILE_I);
    const long long i0 = tile.column, j0 = tile.row, above = i0 - LEAD; /* row 0 of cell */

    const unsigned first = above + LEAD - g.lead < 0 ? (unsigned)-above : LEAD - g.lead;
    const unsigned last = g.rows - above < ROWS ? (unsigned)(g.rows - above) : ROWS;
    const unsigned long long begin = (unsigned long long)from;
    const unsigned long long end = begin + ((g.rows - 1) * g.ldx + g.cols) * E;
#pragma unroll 4
    for (unsigned r = first + warp; r < last; r += WIDE_WARPS) {
        const unsigned long long row = begin + ((above + r) * g.ldx + j0) * E, at = row & ~3ull;
        unsigned *into = cell[r % N][r / N];
#pragma unroll
        for (unsigned c = 0; c < WORDS - 1; c += 32)
            copy_word<T>(into + c + lane, at + (c + lane) * 4, end);
        if (lane == 0) copy_word<T>(into + WORDS - 1, at + (WORDS - 1) * 4, end);
    }
    COPY_ASYNC_COMMIT();
    COPY_ASYNC_WAIT(0);
    __syncthreads();

    /* Where column j0 of the rows m, m + N, ... begins for this lane, as elements of cell. */
    unsigned column[N];
#pragma unroll
    for (int m = 0; m < N; m++) {
        const unsigned phase = (unsigned)(begin + ((above + m) * g.ldx + j0) * E) % 4;
        column[m] = (m * (ROWS / N) + lane) * PITCH * N + phase / E;
    }
    const T *elements = reinterpret_cast<const T *>(cell);
    const bool whole = i0 >= g.lead && i0 + TILE_I <= g.rows;
#pragma unroll 2
    for (unsigned j = warp; j < TILE_J; j += WIDE_WARPS) {
        if (j0 + j >= g.cols) break;
        T *row = to + (j0 + j) * g.ldy + i0;
        const unsigned shift = g.lead ? (unsigned)(unsigned long long)row / E % LEAD : 0;
        const unsigned d = LEAD - shift; /* the row of cell that the tile begins with */
#pragma unroll
        for (int k = 0; k < TILE_I / N; k += 32) {
            T by_row[N];
#pragma unroll
            for (unsigned m = 0; m < N; m++) {
                const unsigned down = d / N + (m < d % N) + k, r = (down + lane) * N + m;
                if (whole || (r >= first && r < last))
                    by_row[m] = elements[column[m] + down * PITCH * N + j];
            }
            const unsigned w = join(by_row, d % N);
            const int r = (int)((k + lane) * N - shift); /* of the tile */
            if (whole || (i0 + r >= 0 && i0 + r + N <= g.rows)) {
                *reinterpret_cast<unsigned *>(row + r) = w;
            } else {
#pragma unroll
                for (int n = 0; n < N; n++)
                    if (i0 + r + n >= 0 && i0 + r + n < g.rows) row[r + n] = (T)(w >> 8 * E * n);
            }
        }
    }
}

#endif
