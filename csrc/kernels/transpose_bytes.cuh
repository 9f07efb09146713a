/* transpose_sectors for elements of 1 and 2 bytes: whole words both ways, at any pitch.
 *
 *     N rows of x   |..aa|aaaa|aaaa|a...|    aligned words as they are, one a lane; two neighbours are shifted into
 *                   |...b|bbbb|bbbb|bb..|    the one that begins with a column of the tile
 *     N x N elements of N such words         are turned in registers: N words, each of N rows of one column
 *     row j of y    |..ab|cdef|ghij|kl..|    shifted again, by what y's row is off
 *
 * N = 4 / itemsize. The word behind a row's last lane is read by another lane, all rows' at once.
 * Banks: the words of a column lie in a row of an odd number of words, columns in the order of j % N, then j / N:
 * lanes store one row apart, and load neighbours: 1 wavefront each.
 * Bytes: 2 rows cols elements; all words of a thread are on their way at once.
 */
#ifndef SMK_TRANSPOSE_BYTES_CUH
#define SMK_TRANSPOSE_BYTES_CUH

#include "transpose_loads.cuh"
#include "transpose_tiles.h"

/* N x N elements in N words, in place. */
__device__ __forceinline__ void turn(unsigned (&w)[4]) {
    const unsigned a = __byte_perm(w[0], w[1], 0x5140), b = __byte_perm(w[0], w[1], 0x7362);
    const unsigned c = __byte_perm(w[2], w[3], 0x5140), d = __byte_perm(w[2], w[3], 0x7362);
    w[0] = __byte_perm(a, c, 0x5410), w[1] = __byte_perm(a, c, 0x7632);
    w[2] = __byte_perm(b, d, 0x5410), w[3] = __byte_perm(b, d, 0x7632);
}
__device__ __forceinline__ void turn(unsigned (&w)[2]) {
    const unsigned a = __byte_perm(w[0], w[1], 0x5410);
    w[1] = __byte_perm(w[0], w[1], 0x7632), w[0] = a;
}

/* The aligned word at `at`, of which the array may have only the first bytes. */
template <typename T>
__device__ __forceinline__ unsigned word_at(unsigned long long at, unsigned long long end) {
    if (at + 4 <= end) return load(reinterpret_cast<const unsigned *>(at));
    unsigned word = 0;
    for (unsigned b = 0; at + b < end; b += sizeof(T))
        word |= (unsigned)*reinterpret_cast<const T *>(at + b) << 8 * b;
    return word;
}

template <typename T> __device__ __forceinline__ void move_bytes(const transpose_args &g) {
    constexpr int E = sizeof(T), N = 4 / E, TILE_I = WIDE_TILE_I(E), TILE_J = WIDE_TILE_J(E);
    constexpr int UNIT = WIDE_UNIT(E), LEAD = WIDE_LEAD(E), GROUPS = TILE_I / N; /* of N rows */
    constexpr int STEPS = GROUPS / WIDE_WARPS, MORE = (LEAD / N + WIDE_WARPS - 1) / WIDE_WARPS;
    constexpr int PITCH = (LEAD / N + GROUPS) | 1;
    static_assert(TILE_J == 32 * N && (STEPS + MORE) * N <= 32, "a word a lane, a row a lane");
    __shared__ unsigned cell[N][TILE_J / N][PITCH]; /* [j % N][j / N][words of column j] */

    const unsigned long long from = (unsigned long long)(g.x + blockIdx.z * g.batch_x);
    const unsigned long long to = (unsigned long long)(g.y + blockIdx.z * g.batch_y);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const tile_origin tile = block_tile(g.rows + g.lead, TILE_J, TILE_I);
    const long long i0 = tile.column, j0 = tile.row, pitch = g.ldx * E;

    const int first = i0 < g.lead ? (int)-i0 : -g.lead;
    const int last = g.rows - i0 < TILE_I ? (int)(g.rows - i0) : TILE_I;
    const long long left = (g.cols - j0) * E; /* bytes of a row, from the tile's first on */
    const unsigned long long origin = from + i0 * pitch + j0 * E;
    const unsigned long long end = from + (g.rows - 1) * pitch + g.cols * E;
    const bool whole = i0 >= g.lead && i0 + TILE_I <= g.rows && left >= TILE_J * E;
    const bool shifted = (from | pitch) % 4;

    unsigned words[STEPS + MORE][N], behind = 0;
#pragma unroll
    for (int s = -MORE; s < STEPS; s++) {
        const int group = warp + s * WIDE_WARPS;
        if (s < 0 && group < -g.lead / N) continue;
#pragma unroll
        for (int n = 0; n < N; n++) {
            const int r = group * N + n;
            const unsigned long long row = origin + r * pitch, at = (row & ~3ull) + lane * 4;
            words[s + MORE][n] = 0;
            if (whole)
                words[s + MORE][n] = load(reinterpret_cast<const unsigned *>(at));
            else if (r >= first && r < last && (long long)(at - row) < left)
                words[s + MORE][n] = word_at<T>(at, end);
        }
    }
    if (shifted) {
        const int r = (warp + (lane / N - MORE) * WIDE_WARPS) * N + lane % N;
        const unsigned long long row = origin + r * pitch, at = (row & ~3ull) + 128;
        if (r >= first && r < last && (long long)(at - row) < left) behind = word_at<T>(at, end);
    }
#pragma unroll
    for (int s = -MORE; s < STEPS; s++) {
        const int group = warp + s * WIDE_WARPS;
        if (s < 0 && group < -g.lead / N) continue;
        if (shifted) {
#pragma unroll
            for (int n = 0; n < N; n++) {
                const unsigned skew = (unsigned)(origin + (group * N + n) * pitch) % 4;
                const unsigned low = words[s + MORE][n], next = __shfl_down_sync(~0u, low, 1);
                const unsigned after = __shfl_sync(~0u, behind, (s + MORE) * N + n);
                words[s + MORE][n] = __funnelshift_r(low, lane < 31 ? next : after, skew * 8);
            }
        }
        turn(words[s + MORE]);
#pragma unroll
        for (int n = 0; n < N; n++)
            cell[n][lane][LEAD / N + group] = words[s + MORE][n];
    }
    __syncthreads();

#pragma unroll 4
    for (int j = warp; j < TILE_J; j += WIDE_WARPS) {
        if (!whole && j0 + j >= g.cols) break;
        const unsigned long long row = to + ((j0 + j) * g.ldy + i0) * E;
        const unsigned shift = g.lead ? (unsigned)row % UNIT : 0, skip = LEAD * E - shift;
        const unsigned *line = cell[j % N][j / N] + skip / 4;
#pragma unroll
        for (int k = lane; k < GROUPS; k += 32) {
            unsigned w = line[k];
            if (skip % 4) w = __funnelshift_r(w, line[k + 1], skip % 4 * 8);
            T *at = reinterpret_cast<T *>(row - shift) + k * N;
            const int r = k * N - (int)shift / E;
            if (whole || (r >= first && r + N <= last)) {
                *reinterpret_cast<unsigned *>(at) = w;
            } else {
#pragma unroll
                for (int n = 0; n < N; n++)
                    if (r + n >= first && r + n < last) at[n] = (T)(w >> 8 * E * n);
            }
        }
    }
}

#endif
