/* Transpose at any pitch: whole words are read, whole sectors are written.
 *
 *      x rows, j ->                       y rows, i ->          | sectors of 32 bytes
 *    +-------------+                     ...|.......|.......|...
 *    | lead        |  rows above i0        j  [=======.=======]        a tile of row j begins with the
 *    +-------------+ i0                    j+1 .[=======.=======]      sector that i0 is in, so each row
 *    | tile        |            ->         j+2   [=======.=======]     has its own shift: 0 to lead - 1
 *    +-------------+                       j+3 [=======.=======]
 *
 * Rows of y that are no multiple of a sector begin anywhere in one. With square tiles two blocks then write parts
 * of each sector at a tile's edge, and memory sees a half that it must read before it can write it. Here a block
 * reads up to 32 bytes of rows more, which the L2 cache has, and every sector has one writer.
 * Words: of elements of 1 and 2 bytes a thread copies the aligned words that a row of x touches, as they are; the
 * row's phase is added when elements are picked out. N elements of a column make a word of y. Larger
 * elements are words themselves.
 * Banks: lanes read N rows apart. Rows go to shared memory by r % N, then r / N, so that lanes are one row of an
 * odd number of words apart: 1 wavefront for 4 bytes, 2 for 8, 4 for 16, the fewest.
 * Bytes: 2 rows cols elements. 4 bytes a thread are enough: copy speed is a request of 128 bytes in 16 clocks and
 * multiprocessor, each way. All copies of a block are under way at once, in no register.
 * Differs from vectorized by words in place of 16-byte chunks: it is as fast where those are not aligned.
 */
#include "transpose_any.cuh"
#include "transpose_in_place.cuh"

template <int BYTES> struct word_of {
    typedef ELEMENT type;
};
template <> struct word_of<1> {
    typedef unsigned type;
};
template <> struct word_of<2> {
    typedef unsigned type;
};
typedef word_of<sizeof(ELEMENT)>::type word;

constexpr int E = sizeof(ELEMENT), N = sizeof(word) / E;
constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr int TILE_I = E <= 2 ? 128 : E == 4 ? 64 : 32, TILE_J = E <= 4 ? 64 : 32;
constexpr int LEAD = SECTOR / E, ROWS = LEAD + TILE_I;
constexpr int WORDS = N == 1 ? TILE_J : TILE_J / N + 1; /* that a row of a tile may touch */
constexpr int PITCH = WORDS | 1;

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
template <typename T> __device__ __forceinline__ T join(const T (&by_row)[1], unsigned) {
    return by_row[0];
}

extern "C" __global__ void __launch_bounds__(THREADS)
    transpose_sectors(const __grid_constant__ transpose_args g) {
    __shared__ word cell[N][ROWS / N][PITCH]; /* [r % N][r / N][words of row r] */

    const ELEMENT *from = g.x + blockIdx.z * g.batch_x;
    ELEMENT *to = g.y + blockIdx.z * g.batch_y;
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const tile_origin tile = block_tile(g.rows + g.lead, TILE_J, TILE_I);
    const long long i0 = tile.column, j0 = tile.row, above = i0 - LEAD; /* row 0 of cell */

    const unsigned first = above + LEAD - g.lead < 0 ? (unsigned)-above : LEAD - g.lead;
    const unsigned last = g.rows - above < ROWS ? (unsigned)(g.rows - above) : ROWS;
    const unsigned long long begin = (unsigned long long)from;
    const unsigned long long end =
        (unsigned long long)(from + (g.rows - 1) * g.ldx + g.cols); /* of the matrix */
    const long long columns = g.cols - j0 < TILE_J ? g.cols - j0 : TILE_J;
#pragma unroll 4
    for (unsigned e = first * WORDS + threadIdx.x; e < last * WORDS; e += THREADS) {
        const unsigned r = e / WORDS, c = e % WORDS;
        word *into = &cell[r % N][r / N][c];
        const unsigned long long row = (unsigned long long)(from + (above + r) * g.ldx + j0);
        const unsigned long long at = row / sizeof(word) * sizeof(word) + c * sizeof(word);
        if (at >= begin && at + sizeof(word) <= end) {
            if (at < row + columns * E) COPY_ASYNC_WORD(into, at);
        } else if constexpr (N > 1) { /* words that are not all of the array */
            for (int b = 0; b < sizeof(word); b += E) {
                if (at + b >= begin && at + b < end)
                    reinterpret_cast<ELEMENT *>(into)[b / E] = *(const ELEMENT *)(at + b);
            }
        }
    }
    COPY_ASYNC_COMMIT();
    COPY_ASYNC_WAIT(0);
    __syncthreads();

    /* Where column j0 of the rows m, m + N, ... begins for this lane, as elements of cell. */
    unsigned column[N];
#pragma unroll
    for (int m = 0; m < N; m++) {
        const unsigned phase = (unsigned)(begin + ((above + m) * g.ldx + j0) * E) % sizeof(word);
        column[m] = (m * (ROWS / N) + lane) * PITCH * N + phase / E;
    }
    const ELEMENT *elements = reinterpret_cast<const ELEMENT *>(cell);
    const bool whole = i0 >= g.lead && i0 + TILE_I <= g.rows;
#pragma unroll 2
    for (unsigned j = warp; j < TILE_J; j += WARPS) {
        if (j0 + j >= g.cols) break;
        ELEMENT *row = to + (j0 + j) * g.ldy;
        const unsigned shift = g.lead ? (unsigned)((unsigned long long)(row + i0) / E) % LEAD : 0;
        const unsigned d = LEAD - shift; /* the row of cell that the tile begins with */
#pragma unroll
        for (int k = 0; k < TILE_I / N; k += 32) {
            ELEMENT by_row[N];
#pragma unroll
            for (unsigned m = 0; m < N; m++) {
                const unsigned down = d / N + (m < d % N) + k, r = (down + lane) * N + m;
                if (whole || (r >= first && r < last))
                    by_row[m] = elements[column[m] + down * PITCH * N + j];
            }
            const word w = join(by_row, d % N);
            const long long i = i0 - shift + (k + lane) * N;
            if (whole || (i >= 0 && i + N <= g.rows)) {
                *reinterpret_cast<word *>(row + i) = w;
            } else if constexpr (N > 1) {
#pragma unroll
                for (int n = 0; n < N; n++)
                    if (i + n >= 0 && i + n < g.rows)
                        row[i + n] = reinterpret_cast<const ELEMENT *>(&w)[n];
            }
        }
    }
}
