/* GEMM of few rows or few columns, GEMV among them: the large operand is read once, at the memory's speed.
 *
 *      thin: 1 .. 16 rows of K, in shared memory a few rounds at a time      C: 1 .. 16 rows
 *      thick: rows of K, a strip of them a block                             strip
 *
 *          thick, ACROSS      K          strip                  a block's 8 warps share K, a unit each in turn
 *          (its neighbours    |  w0  |#|#|#|#|   unit           (w0 .. w7, w0 ..); a lane has the loads of
 *          in C lie side      |  w1  |#|#|#|#|                  DEPTH units under way, in registers
 *          by side)           |  w2  |#|#|#|#|
 *                             v  ..                             sums: ROWS x J a lane; over K's lanes by
 *          ALONG: the same, but neighbours lie along K          shuffles, over the warps by shared memory
 *
 * Why bandwidth is all: an element of the thick operand serves ROWS multiply-adds, 2 ROWS FLOPs for 4 bytes.
 * An H200 makes 15 fp32 FLOPs in the time of a byte from memory, so 16 rows still wait for it, and 1 row takes
 * as long as 8. Then what counts is bytes under way: 4.3 TB/s times some 0.9 us are 4 MB, 30 KB on each
 * multiprocessor: 16 warps of 2 units of 4 loads of 16 bytes are 64.
 *
 * Why a block is a narrow strip with K shared by its warps: strips of 32 neighbours are enough blocks for all
 * multiprocessors where a thread an output would be 64 of them, and 32 x 4 bytes are whole lines. With more
 * rows a block is wider: every block reads all of the thin operand, ROWS / STRIP of the thick one's bytes.
 * Few strips and long K: K in parts, too (split_k.cuh).
 *
 * Shared memory: a read brings 16 bytes along K of one thin row to all lanes; their addresses are 4 or 8
 * different ones, neighbours, and lanes l and l^1 agree: 2 wavefronts. For these a warp has 4 WIDE J FFMAs.
 * "Few columns" is the same with A as the thick operand: C transposed is B transposed times A transposed.
 * Differs from coalesced by all of this.
 */
#include "skinny_parts.cuh"

#ifndef BLOCKS
#define BLOCKS(rows, how) (rows < 8 ? 2 : 1)
#endif
#ifndef DEPTHS
#define DEPTHS(rows, how) 2
#endif

/* Sums of the thread's J rows of the thick operand, over the warp's units of K. */
template <int ROWS, direction HOW, bool VECTORS, typename is = geometry<ROWS, HOW>>
__device__ __forceinline__ void accumulate(number (&sum)[ROWS][is::J], const operands &g,
                                           long long j, int warp_k, int lane_k, number *shared) {
    thick_reader<ROWS, HOW, VECTORS> thick(g, j, warp_k, lane_k * is::KL);
    thin_copier<ROWS, HOW> thin(g, shared);
    constexpr int DEPTH = DEPTHS(ROWS, HOW);
    piece<is> x[DEPTH];
    const int units = thick.units, rounds = (units + WARPS_K - 1) / WARPS_K;
    const number *own = shared + warp_k * is::UNIT + lane_k * is::KL;
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
        thick.load(x[d]);
    }
#pragma unroll 1
    for (int n = 0; n < is::ROUNDS; n++) {
        thin.load();
        thin.store();
    }
    __syncthreads();
#pragma unroll 1
    for (int first = 0; first < rounds; first += DEPTH) {
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            const int round = first + d;
            if (round >= rounds) break;
            thin.load();
            if (round * WARPS_K + warp_k < units) {
                const number *y_from = own + round % (2 * is::ROUNDS) * is::ROUND;
#pragma unroll
                for (int w = 0; w < is::KL; w += WIDE) {
#pragma unroll
                    for (int i = 0; i < ROWS; i++) {
                        const part_vector y =
                            *reinterpret_cast<const part_vector *>(y_from + i * is::PITCH + w);
#pragma unroll
                        for (int k = 0; k < WIDE; k++) {
#pragma unroll
                            for (int n = 0; n < is::J; n++) {
                                sum[i][n] += x[d].template at<HOW>(n, w + k) * y.at[k];
                            }
                        }
                    }
                }
            }
            thick.load(x[d]);
            thin.store();
            if ((round + 1) % is::ROUNDS == 0) __syncthreads();
        }
    }
    add_rest<ROWS, HOW>(sum, g, thick.rows, thick.j_left,
                        (long long)units * is::UNIT + warp_k * is::LANES_K + lane_k);
    __syncthreads();
}

template <int ROWS, direction HOW> __device__ __forceinline__ void skinny(const gemm_args &all) {
    extern __shared__ uint4 shared_bytes[];
    typedef geometry<ROWS, HOW> is;
    number *shared = reinterpret_cast<number *>(shared_bytes);
    const bool columns = all.N < all.M; /* then B is the thin operand, and C is made transposed */
    const REAL *A = all.A + blockIdx.z * all.batch_a, *B = all.B + blockIdx.z * all.batch_b;
    operands g =
        columns ? operands{B, A, all.N, all.M, all.K, all.step_b, all.ldb, all.step_a, all.lda}
                : operands{A, B, all.M, all.N, all.K, all.lda, all.step_a, all.ldb, all.step_b};

    const unsigned strips = (unsigned)((g.N + is::STRIP - 1) / is::STRIP);
    const unsigned tiles = gridDim.x / (unsigned)all.split, part = blockIdx.x / tiles;
    const unsigned tile = blockIdx.x - part * tiles, group = tile / strips;
    const long long j_block = (long long)(tile - group * strips) * is::STRIP;
    const long long i_block = (long long)group * ROWS;
    const part_range range =
        range_of_part(all, (int)part, (int)((g.K + SKINNY_STEP - 1) / SKINNY_STEP));
    const long long k_block = (long long)range.first * SKINNY_STEP;
    g.K = min(g.K, (long long)range.end * SKINNY_STEP) - k_block;
    g.M -= i_block;
    g.A += i_block * g.lda + k_block * g.step_a;
    g.B += k_block * g.ldb;

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warp_k = warp / is::WARPS_J;
    const int lane_j = HOW == ACROSS ? lane % 8 : lane % 4;
    const int lane_k = HOW == ACROSS ? lane / 8 : lane / 4;
    const int j_thread = (warp % is::WARPS_J * is::LANES_J + lane_j) * is::J;
    const long long apart = HOW == ACROSS ? g.ldb : g.step_b;
    const bool vectors =
        (HOW == ACROSS ? g.step_b : g.ldb) == 1 &&
        (HOW == ALONG || j_block + is::STRIP <= g.N || g.N % is::J == 0) &&
        ((unsigned long long)g.B | (unsigned long long)apart * sizeof(REAL)) % is::BYTES == 0;
    number sum[ROWS][is::J] = {};
    if (vectors) {
        accumulate<ROWS, HOW, true>(sum, g, j_block + j_thread, warp_k, lane_k, shared);
    } else {
        accumulate<ROWS, HOW, false>(sum, g, j_block + j_thread, warp_k, lane_k, shared);
    }

    store<ROWS, HOW>(all, sum, shared, columns, (int)part, i_block, j_block, j_thread, warp_k,
                     lane_k);
}

#define PRODUCT(name, rows, how)                                                                   \
    extern "C" __global__ void __launch_bounds__(geometry<rows, how>::THREADS, BLOCKS(rows, how))  \
        name(const __grid_constant__ gemm_args g) {                                                \
        skinny<rows, how>(g);                                                                      \
    }
#define PRODUCTS(name, rows)                                                                       \
    PRODUCT(name##_##rows, rows, ACROSS)                                                           \
    PRODUCT(name##_##rows##_along, rows, ALONG)
PRODUCTS(gemm_skinny, 1)
PRODUCTS(gemm_skinny, 2)
PRODUCTS(gemm_skinny, 4)
PRODUCTS(gemm_skinny, 8)
PRODUCTS(gemm_skinny, 16)
SUM_PARTS(gemm_skinny_reduce)
