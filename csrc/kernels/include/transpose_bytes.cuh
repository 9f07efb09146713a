/* transpose_sector_aligned for elements of 1 and 2 bytes: 32-bit words both ways, at any pitch.
 *
 *     N rows of x   |..aa|aaaa|aaaa|a...|   aligned words, one per lane; two adjacent ones shift
 *                   |...b|bbbb|bbbb|bb..|   into the word that begins with a tile's column
 *     N x N elements of N such words        are transposed in registers: N words of N rows each
 *     row j of y    |..ab|cdef|ghij|kl..|   shifted again, by the misalignment of y's row
 *
 * N = 4 / itemsize. The word after a row's last lane is read by another lane, for all rows at once.
 * Rows N apart have the same misalignment to a word, and rows of y 32 apart the same to a sector.
 * What depends on that is computed once, because instructions are the limit here.
 * Banks: the words of a column lie in a row of an odd number of words; columns are ordered by
 * j % N, then j / N: lanes store one row apart, and load adjacent words: 1 wavefront each.
 * Bytes: 2 rows cols elements; all words of a thread are in flight at once.
 */
#ifndef SMK_TRANSPOSE_BYTES_CUH
#define SMK_TRANSPOSE_BYTES_CUH

#include "transpose_loads.cuh"
#include "transpose_order.cuh"
#include "transpose_tiles.h"

/* Transposes N x N elements in N words, in place. */
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

/* The aligned word at `at`. The array may end inside it. */
template <typename T> __device__ __forceinline__ unsigned word_at(const char *at, const char *end) {
    if (at + 4 <= end) return load_256(reinterpret_cast<const unsigned *>(at));
    unsigned word = 0;
    for (unsigned b = 0; at + b < end; b += sizeof(T))
        word |= (unsigned)*reinterpret_cast<const T *>(at + b) << 8 * b;
    return word;
}

/* A tile in shared memory; its size in squares of N x N elements. */
template <typename T, int TILE_I> struct tile_of_words {
    static constexpr int N = 4 / sizeof(T), LEAD = WIDE_LEAD(sizeof(T)) / N;
    static constexpr int DOWN = TILE_I / N, ACROSS = WIDE_TILE_J(sizeof(T)) / N;
    static constexpr int PITCH = (LEAD + DOWN) | 1;
    unsigned at[N][ACROSS][PITCH]; /* [j % N][j / N][words of column j] */
};

template <typename T, int TILE_I, bool WHOLE>
__device__ __forceinline__ void move_words(const transpose_args &g, long long i0, long long j0,
                                           tile_of_words<T, TILE_I> &cell) {
    typedef tile_of_words<T, TILE_I> is;
    constexpr int E = sizeof(T), N = is::N, TILE_J = WIDE_TILE_J(E);
    constexpr int STEPS = is::DOWN / WIDE_WARPS;
    static_assert(is::LEAD == WIDE_WARPS && is::ACROSS == 32, "a square a warp, a word a lane");
    static_assert((STEPS + 1) * N <= 32, "a row a lane");

    static_assert(WIDE_LEAD(E) == WIDE_WARPS * N, "a warp of squares above the tile");
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first = i0 < g.lead ? (int)-i0 : -g.lead;
    const int last = g.rows - i0 < TILE_I ? (int)(g.rows - i0) : TILE_I;
    const int left = g.cols - j0 < TILE_J ? (int)(g.cols - j0) * E : TILE_J * E; /* bytes */
    const T *from = g.x + blockIdx.z * g.batch_x;
    const char *end = reinterpret_cast<const char *>(from + (g.rows - 1) * g.ldx + g.cols);
    const char *corner = reinterpret_cast<const char *>(from + i0 * g.ldx + j0);
    const long long pitch = g.ldx * E;

    const char *rows[N];
    unsigned skew[N];
#pragma unroll
    for (int n = 0; n < N; n++) {
        const char *row = corner + (warp * N + n) * pitch;
        skew[n] = (unsigned)(unsigned long long)row % 4;
        rows[n] = row - skew[n] + lane * 4;
    }
    /* Only a word of x's last row can extend past the array. */
    const int final = (int)min(g.rows - 1 - i0, (long long)TILE_I);
    unsigned words[STEPS + 1][N], of_final = 0;
    if (!WHOLE && final < TILE_I) {
        const char *row = corner + final * pitch;
        const int off = (int)((unsigned long long)row % 4);
        if (lane * 4 < left + off) of_final = word_at<T>(row - off + lane * 4, end);
    }
#pragma unroll
    for (int s = -1; s < STEPS; s++) {
        if (s < 0 && warp * N < WIDE_LEAD(E) - g.lead) continue;
#pragma unroll
        for (int n = 0; n < N; n++) {
            const char *at = rows[n] + s * WIDE_WARPS * N * pitch;
            const int r = (warp + s * WIDE_WARPS) * N + n;
            unsigned word = r == final ? of_final : 0;
            if (WHOLE || (r >= first && r < last && r != final && lane * 4 < left + (int)skew[n]))
                word = load_256(reinterpret_cast<const unsigned *>(at));
            words[s + 1][n] = word;
        }
    }
    const bool skewed = ((unsigned)(unsigned long long)corner | (unsigned)pitch) % 4;
    unsigned behind = 0; /* the word after words[lane / N][lane % N] of lane 31 */
    if (skewed) {
        const int r = (warp + (lane / N - 1) * WIDE_WARPS) * N + lane % N;
        const char *row = corner + r * pitch;
        const unsigned off = (unsigned)(unsigned long long)row % 4;
        if (r >= first && r < last && 128 < left + (int)off)
            behind = word_at<T>(row - off + 128, end);
    }
#pragma unroll
    for (int s = -1; s < STEPS; s++) {
        if (s < 0 && warp * N < WIDE_LEAD(E) - g.lead) continue;
        unsigned (&word)[N] = words[s + 1];
        if (skewed) {
#pragma unroll
            for (int n = 0; n < N; n++) {
                const unsigned next = __shfl_down_sync(~0u, word[n], 1);
                const unsigned after = __shfl_sync(~0u, behind, (s + 1) * N + n);
                word[n] = __funnelshift_r(word[n], lane < 31 ? next : after, skew[n] * 8);
            }
        }
        turn(word);
#pragma unroll
        for (int n = 0; n < N; n++)
            cell.at[n][lane][is::LEAD + warp + s * WIDE_WARPS] = word[n];
    }
    __syncthreads();

    char *to = reinterpret_cast<char *>(g.y + blockIdx.z * g.batch_y + j0 * g.ldy + i0);
    const long long across = g.ldy * E;
    const unsigned unit = g.lead ? g.lead * E - 1 : 0; /* rows of tiles begin at one */
    if (lane >= is::DOWN) return;
#pragma unroll 2
    for (int near = warp; near < 32; near += WIDE_WARPS) {
        char *row = to + near * across;
        const int shift = (int)((unsigned)(unsigned long long)row & unit);
        const int skip = is::LEAD * 4 - shift;
        const unsigned *line = &cell.at[near % N][near / N][skip / 4 + lane];
        row += lane * 4 - shift;
#pragma unroll
        for (int j = 0; j < TILE_J; j += 32) {
            if (!WHOLE && j0 + near + j >= g.cols) break;
#pragma unroll
            for (int k = 0; k < is::DOWN; k += 32) {
                unsigned word = line[j / N * is::PITCH + k];
                if (skip % 4)
                    word = __funnelshift_r(word, line[j / N * is::PITCH + k + 1], skip % 4 * 8);
                T *at = reinterpret_cast<T *>(row + j * across + k * 4);
                const int r = (k + lane) * N - shift / E;
                if (WHOLE || (r >= first && r + N <= last)) {
                    *reinterpret_cast<unsigned *>(at) = word;
                } else {
#pragma unroll
                    for (int n = 0; n < N; n++)
                        if (r + n >= first && r + n < last) at[n] = (T)(word >> 8 * E * n);
                }
            }
        }
    }
}

template <typename T, int TILE_I>
__device__ __forceinline__ void move_bytes(const transpose_args &g) {
    constexpr int TILE_J = WIDE_TILE_J(sizeof(T));
    const tile_origin tile = transpose_tile(g, g.lead, TILE_I, TILE_J);
    const long long i0 = tile.column, j0 = tile.row;
    __shared__ tile_of_words<T, TILE_I> cell;
    if (i0 >= g.lead && i0 + TILE_I <= g.rows && j0 + TILE_J <= g.cols)
        move_words<T, TILE_I, true>(g, i0, j0, cell);
    else
        move_words<T, TILE_I, false>(g, i0, j0, cell);
}

#endif
