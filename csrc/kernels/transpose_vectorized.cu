/* Transpose: 16 bytes per thread and access, in global and in shared memory.
 *
 *       x rows                    shared                        y rows
 *   [chunk 0|1|2|..]    r: chunk c at c ^ (r / S)      thread: S rows of one chunk, S x S elements,
 *   [chunk 0|1|2|..] ->                             ->   a b    transposed in registers    a c
 *   S = 16 / itemsize elements per chunk                 c d  ->  and stored as rows of y    b d
 *
 * A block moves CHUNKS x CHUNKS such squares with one thread for each. Loads: lanes go along the
 * chunks of a row of x; stores: lanes go down the rows, and so along a row of y.
 * Banks: 16 bytes are served 8 lanes at a time. When storing, 8 lanes have 8 adjacent chunks of a
 * row, permuted: 128 bytes, 1 wavefront. When loading, lane l has row S l + s, chunk c ^ l: rows
 * start in one bank, the XOR takes 8 lanes to 8 chunks: 1 wavefront. 4 per request, the fewest.
 * Words are transposed by renaming registers, halves and bytes by one PRMT per word and step.
 * Bytes: 2 rows cols elements; S loads of 16 bytes are in flight in each thread.
 * A tile at an edge, or an array whose rows are not 16-byte aligned, is moved by elements (on that
 * side only: x and y are decided separately), with adjacent elements in adjacent lanes.
 * Differs from swizzle by 16-byte chunks, and by the last step in registers.
 */
#include "transpose_square.cuh"

constexpr int CHUNKS = S == 16 ? 8 : 16; /* registers hold at most 16 rows of 16 bytes */
constexpr int TILE = CHUNKS * S;
constexpr int THREADS = CHUNKS * CHUNKS;
constexpr int BATCH =
    S < 8 ? S : 8; /* elements in flight per thread where vectors cannot be used */

extern "C" __global__ void __launch_bounds__(THREADS)
    transpose_vectorized(const __grid_constant__ transpose_args g) {
    __shared__ uint4 chunk[TILE][CHUNKS];

    const ELEMENT *from = g.x + blockIdx.z * g.batch_x;
    ELEMENT *to = g.y + blockIdx.z * g.batch_y;

    const unsigned t = threadIdx.x;
    const unsigned lane = t % CHUNKS, group = t / CHUNKS;
    const tile_origin tile = block_tile(g.rows, TILE, TILE);
    const long long i0 = tile.column, j0 = tile.row;
    const bool whole = i0 + TILE <= g.rows && j0 + TILE <= g.cols;

    if (whole && rows_aligned(from, g.ldx, sizeof(ELEMENT))) {
        uint4 row[S];
#pragma unroll
        for (int s = 0; s < S; s++) {
            const unsigned r = s * CHUNKS + group;
            row[s] = *reinterpret_cast<const uint4 *>(from + (i0 + r) * g.ldx + j0 + lane * S);
        }
#pragma unroll
        for (int s = 0; s < S; s++) {
            const unsigned r = s * CHUNKS + group;
            chunk[r][lane ^ r / S % CHUNKS] = row[s];
        }
    } else {
        for (unsigned first = t; first < TILE * TILE; first += BATCH * THREADS) {
            ELEMENT some[BATCH];
#pragma unroll
            for (int s = 0; s < BATCH; s++) {
                const unsigned r = (first + s * THREADS) / TILE, c = (first + s * THREADS) % TILE;
                if (i0 + r < g.rows && j0 + c < g.cols) some[s] = from[(i0 + r) * g.ldx + j0 + c];
            }
#pragma unroll
            for (int s = 0; s < BATCH; s++) {
                const unsigned r = (first + s * THREADS) / TILE, c = (first + s * THREADS) % TILE;
                reinterpret_cast<ELEMENT *>(&chunk[r][c / S ^ r / S % CHUNKS])[c % S] = some[s];
            }
        }
    }
    __syncthreads();

    if (whole && rows_aligned(to, g.ldy, sizeof(ELEMENT))) {
        unsigned square[S][4];
#pragma unroll
        for (int s = 0; s < S; s++) {
            const uint4 row = chunk[lane * S + s][group ^ lane];
            square[s][0] = row.x, square[s][1] = row.y, square[s][2] = row.z, square[s][3] = row.w;
        }
        transpose_square(square);
#pragma unroll
        for (int s = 0; s < S; s++) {
            store_vector(to + (j0 + group * S + s) * g.ldy + i0 + lane * S,
                         make_uint4(square[s][0], square[s][1], square[s][2], square[s][3]));
        }
    } else {
#pragma unroll BATCH
        for (unsigned e = t; e < TILE * TILE; e += THREADS) {
            const unsigned c = e / TILE, r = e % TILE;
            if (i0 + r < g.rows && j0 + c < g.cols) {
                to[(j0 + c) * g.ldy + i0 + r] =
                    reinterpret_cast<ELEMENT *>(&chunk[r][c / S ^ r / S % CHUNKS])[c % S];
            }
        }
    }
}
