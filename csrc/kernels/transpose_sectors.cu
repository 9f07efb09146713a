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
 * Words: elements of 1 and 2 bytes travel N to a word. Rows of x are read as the aligned words they touch and
 * shifted into place, N x N squares are turned in registers, and rows of y are shifted once more.
 * Banks: a column of x is a row of cell, an odd number of words long. A warp stores N columns that are N
 * apart: they lie TILE_J / N rows apart, so that lanes are one row apart. 1 wavefront for 4 bytes, 2 for 8,
 * 4 for 16, the fewest, both ways.
 * Bytes: 2 rows cols elements. 4 bytes a thread are enough: copy speed is a request of 128 bytes in 16 clocks and
 * multiprocessor, each way.
 * Order: neighbouring blocks go along y, whose rows so are written from end to end: pages of memory are
 * closed once. They do so in strips, lest x be read from more pages than addresses are kept for.
 * Differs from vectorized by words in place of 16-byte chunks: it is as fast where those are not aligned.
 */
#include "transpose_any.cuh"
#include "transpose_in_place.cuh"
#include "transpose_narrow.cuh"
#include "transpose_words.cuh"

constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr int TILE_I = WIDE_TILE_I(E), TILE_J = WIDE_TILE_J(E);
constexpr int LEAD = SECTOR / E, ACROSS = TILE_J / N / 32; /* words of a row that a lane reads */
constexpr int GROUPS = (LEAD + TILE_I) / N;                /* of N rows */
constexpr int STEPS = (GROUPS + WARPS - 1) / WARPS;
constexpr int BATCH = E <= 8 ? STEPS : (STEPS + 1) / 2; /* on their way in a warp, of N = 1 */

/* A template, so that of each `if constexpr` only what fits the word is compiled. */
template <typename word> __device__ __forceinline__ void move_tile(const transpose_args &g) {
    __shared__ word cell[N][TILE_J / N][GROUPS | 1]; /* [j % N][j / N][group of rows] */

    const ELEMENT *from = g.x + blockIdx.z * g.batch_x;
    ELEMENT *to = g.y + blockIdx.z * g.batch_y;
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    const unsigned along = (unsigned)((g.rows + g.lead + TILE_I - 1) / TILE_I); /* tiles, of y */
    const unsigned down = (unsigned)((g.cols + TILE_J - 1) / TILE_J);
    const unsigned strip = blockIdx.x / (g.strip * down), n = blockIdx.x - strip * g.strip * down;
    const unsigned width = along - strip * g.strip < g.strip ? along - strip * g.strip : g.strip;
    const long long i0 = (long long)(strip * g.strip + n % width) * TILE_I;
    const long long j0 = (long long)(n / width) * TILE_J, above = i0 - LEAD; /* row 0 of group 0 */
    const int first = above + LEAD - g.lead < 0 ? (int)-above : LEAD - g.lead; /* rows there are */
    const int last = g.rows - above < LEAD + TILE_I ? (int)(g.rows - above) : LEAD + TILE_I;

    if constexpr (N == 1) {
        const word *p = from + (above + warp) * g.ldx + j0 + lane;
        const bool full = j0 + TILE_J <= g.cols;
#pragma unroll
        for (int s0 = 0; s0 < STEPS; s0 += BATCH) {
            word some[BATCH][ACROSS];
#pragma unroll
            for (int s = 0; s < BATCH; s++) {
                const int k = (s0 + s) * WARPS + warp;
#pragma unroll
                for (int a = 0; a < ACROSS; a++)
                    if (k >= first && k < last && (full || j0 + lane + a * 32 < g.cols))
                        some[s][a] = load(p + (s0 + s) * WARPS * g.ldx + a * 32);
            }
#pragma unroll
            for (int s = 0; s < BATCH; s++) {
                const int k = (s0 + s) * WARPS + warp;
#pragma unroll
                for (int a = 0; a < ACROSS; a++)
                    if (k >= first && k < last) cell[0][lane + a * 32][k] = some[s][a];
            }
        }
    } else {
        const unsigned long long begin = (unsigned long long)from;
        const unsigned long long end = begin + ((g.rows - 1) * g.ldx + g.cols) * E;
        const bool inner = first == LEAD - g.lead && last == LEAD + TILE_I &&
                           j0 + TILE_J <= g.cols && above + first > 0 && above + last < g.rows;
        unsigned long long row = begin + ((above + (long long)warp * N) * g.ldx + j0) * E;
        const unsigned long long line = g.ldx * E;
#pragma unroll 1
        for (int k = warp; k < GROUPS; k += WARPS, row += WARPS * N * line) {
            if (k * N + N <= first || k * N >= last) continue;
            word rows[ACROSS][N];
#pragma unroll
            for (int n = 0; n < N; n++) {
                const unsigned long long own = row + n * line, p = own / 4 * 4 + lane * 4;
                const unsigned phase = (unsigned)own % 4;
#pragma unroll
                for (int a = 0; a < ACROSS; a++) {
                    unsigned low = 0, high = 0;
                    if (inner) {
                        low = load(reinterpret_cast<const unsigned *>(p) + a * 32);
                        if (phase) high = load(reinterpret_cast<const unsigned *>(p) + a * 32 + 1);
                    } else if (k * N + n >= first && k * N + n < last &&
                               j0 + (lane + a * 32) * N < g.cols) {
                        low = load_part(p + a * 128, begin, end);
                        if (phase) high = load_part(p + a * 128 + 4, begin, end);
                    }
                    rows[a][n] = __funnelshift_r(low, high, phase * 8);
                }
            }
#pragma unroll
            for (int a = 0; a < ACROSS; a++) {
                turn(rows[a]);
#pragma unroll
                for (int n = 0; n < N; n++)
                    cell[n][lane + a * 32][k] = rows[a][n];
            }
        }
    }
    __syncthreads();

    const bool whole = i0 >= g.lead && i0 + TILE_I <= g.rows;
    ELEMENT *row = to + (j0 + warp) * g.ldy + i0;
#pragma unroll(E <= 8 ? 4 : 2)
    for (unsigned j = warp; j < TILE_J; j += WARPS, row += WARPS * g.ldy) {
        if (j0 + j >= g.cols) break;
        const int shift = g.lead ? (int)((unsigned long long)row / E % LEAD) : 0;
        const int d = LEAD - shift; /* the row of the tile that is written first */
        const word *column = cell[j % N][j / N] + d / N + lane;
        ELEMENT *out = row - shift + lane * N;
#pragma unroll
        for (int k = 0; k < TILE_I / N; k += 32) {
            const int r = d + (k + lane) * N; /* rows r to r + N - 1 of the tile */
            if (whole || (r >= first && r + N <= last)) {
                word w = column[k];
                if constexpr (N > 1) {
                    if (d % N) w = __funnelshift_r(w, column[k + 1], d % N * 8 * E);
                }
                reinterpret_cast<word *>(out)[k] = w;
            } else if constexpr (N > 1) {
#pragma unroll
                for (int n = 0; n < N; n++) {
                    const int e = r + n;
                    if (e >= first && e < last)
                        out[k * N + n] =
                            reinterpret_cast<const ELEMENT *>(&cell[j % N][j / N][e / N])[e % N];
                }
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    transpose_sectors(const __grid_constant__ transpose_args g) {
    move_tile<word_of<E>::type>(g);
}
