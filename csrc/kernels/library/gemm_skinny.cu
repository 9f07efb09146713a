/* GEMM of few rows or columns: the large operand is read once, at memory speed.
 *
 *   thin operand: 2 .. 16 rows of K, in shared memory a few rounds at a time     C: 2 .. 16 rows
 *   thick operand: rows of K, one strip of them per block                        one strip
 *
 *     thick, ACROSS     K          strip           the warps of a block split K, one unit at a time
 *     (MN-major:        |  w0  |#|#|#|#|   unit    (w0 .. w15, w0 ..); a lane keeps the loads of
 *     neighbours lie    |  w1  |#|#|#|#|           DEPTH units in flight, in registers
 *     in a row of C)    |  w2  |#|#|#|#|
 *                       v  ..                      sums: ROWS x J per lane, added over K's lanes by
 *     ALONG (K-major): neighbours lie along K      shuffles, over the warps in shared memory
 *
 * Why bandwidth is the limit: an element of the thick operand serves ROWS multiply-adds, 2 ROWS
 * FLOPs for 4 bytes. An H200 does 15 fp32 FLOPs in the time of one byte from memory, so by FLOPs
 * even 16 rows are memory-bound, and 4 rows take as long as 1. Bytes in flight count: 4.3 TB/s
 * times some 0.9 us are 4 MB, 30 KB per multiprocessor; 32 warps with 4 loads of 16 bytes per lane
 * are 64 KB. More warps beat more loads per warp, because others load while one waits or adds.
 *
 * Why a block is a narrow strip whose warps split K: 8192 columns are 256 strips of 32, two for
 * each of 132 multiprocessors; with 4 columns per thread they would be 16 blocks of 128 threads.
 * And 32 x 4 bytes are a whole line. A block reads all of the thin operand, ROWS / STRIP of the
 * thick one's bytes, so for 16 rows the strip is wider. There FFMAs, operands and barriers bind: 64
 * sums per thread leave room for 16 warps. With few strips and a long K, K is split (split_k.cuh).
 *
 * Shared memory: a load brings all lanes 16 bytes along K of one thin row, from 4 or 8 different,
 * adjacent addresses, and lanes l and l^1 agree: 2 wavefronts. It feeds 4 J FFMAs.
 * One row is gemm_gemv's, 16 bits are gemm_skinny_mma's.
 * Differs from coalesced by all of this.
 */
#include "skinny_parts.cuh"

template <int ROWS_, direction HOW_> struct geometry {
    typedef number stored;
    static constexpr int ROWS = ROWS_;
    static constexpr direction HOW = HOW_;
    /* Per load: 16 bytes, or less where its sums would need too many registers. */
    static constexpr int ELEMENTS =
        SKINNY_NEIGHBOURS(ROWS, (int)sizeof(number), 16 / (int)sizeof(REAL));
    static constexpr int LOADS =
        HOW == ACROSS ? 4 : SKINNY_NEIGHBOURS(ROWS, (int)sizeof(number), 4);
    static constexpr int J =
        HOW == ACROSS ? ELEMENTS : LOADS; /* rows of the thick operand per lane */
    static constexpr int KL = HOW == ACROSS ? LOADS : ELEMENTS; /* k per lane */
    static constexpr int LANES_J = SKINNY_LANES(HOW == ALONG), LANES_K = 32 / LANES_J;
    static constexpr int WARPS_J = SKINNY_WARPS_J(ROWS);
    static constexpr int WARPS_K = SKINNY_WARPS_K(ROWS, HOW == ALONG, sizeof(number));
    static constexpr int THREADS = 32 * WARPS_J * WARPS_K;
    /* Units in flight; blocks per multiprocessor: few sums leave registers for 32 warps. */
    static constexpr int DEPTH = ROWS == 8 ? 2 : 1;
    static constexpr int BLOCKS = ROWS <= 4 ? 1024 / THREADS : ROWS <= 8 ? 512 / THREADS : 1;
    static constexpr int STRIP = J * LANES_J * WARPS_J;
    static constexpr int UNIT = KL * LANES_K, ROUND = UNIT * WARPS_K;
    static constexpr int FIT = WARPS_J * SKINNY_RING / (2 * ROUND * ROWS * (int)sizeof(number));
    static constexpr int ROUNDS = FIT < 8 ? FIT : 8;
    static constexpr int PITCH = 2 * ROUNDS * ROUND + 16 / (int)sizeof(number);
    static_assert(KL <= WARPS_K && SKINNY_STEP % UNIT == 0, "add_rest; parts of whole units");

    /* Lanes l, l^1 and l^2 read the same address of the thin operand, ACROSS and ALONG. */
    static __device__ __forceinline__ int lane_j(int lane) { return lane % LANES_J; }
    static __device__ __forceinline__ int lane_k(int lane) { return lane / LANES_J; }
    static __device__ __forceinline__ number store(REAL x) { return x; }
};

template <typename is, typename sums>
__device__ __forceinline__ void multiply(sums &sum, const piece<is> &x, const number *thin) {
    constexpr int WIDE = PART_WIDE;
#pragma unroll
    for (int w = 0; w < is::KL; w += WIDE) {
#pragma unroll
        for (int i = 0; i < is::ROWS; i++) {
            const part_vector y = *reinterpret_cast<const part_vector *>(thin + i * is::PITCH + w);
#pragma unroll
            for (int k = 0; k < WIDE; k++) {
#pragma unroll
                for (int j = 0; j < is::J; j++) {
                    const REAL own = is::HOW == ACROSS ? x.at(w + k, j) : x.at(j, w + k);
                    sum[i][j] += own * y.at[k];
                }
            }
        }
    }
}

/* The end of K: one element of K per thread, straight from global memory. */
template <typename is, typename sums, width HOW_WIDE>
__device__ __forceinline__ void add_rest(sums &sum, const operands &g, const skinny_place<is> &at,
                                         const thick_reader<is, HOW_WIDE> &thick, int unit,
                                         const number *) {
    const long long k = (long long)unit * is::UNIT + at.warp_k * is::LANES_K + at.lane_k;
    if (k >= g.K) return;
    const REAL *a = g.A + k * g.step_a, *b = thick.rows + k * g.ldb;
    number x[is::J];
#pragma unroll
    for (int j = 0; j < is::J; j++) {
        x[j] = *b;
        if (j < thick.more) b += (is::HOW == ALONG ? is::LANES_J : 1) * g.step_b;
    }
#pragma unroll
    for (int i = 0; i < is::ROWS; i++) {
        const number y = *a;
        if (i < g.M - 1) a += g.lda;
#pragma unroll
        for (int j = 0; j < is::J; j++) {
            sum[i][j] += x[j] * y;
        }
    }
}

template <typename is> __device__ __forceinline__ void product(const gemm_args &all) {
    extern __shared__ uint4 bytes[];
    number *shared = reinterpret_cast<number *>(bytes);
    skinny_place<is> at;
    const operands g = find_place(at, all);
    overlap_launches();
    number sum[is::ROWS][is::J] = {};
    accumulate<is>(sum, g, at, shared);
#pragma unroll
    for (int i = 0; i < is::ROWS; i++) {
#pragma unroll
        for (int j = 0; j < is::J; j++) {
#pragma unroll
            for (int lanes = is::LANES_J; lanes < 32; lanes *= 2) {
                sum[i][j] += __shfl_xor_sync(0xffffffff, sum[i][j], lanes);
            }
            if (at.lane_k == 0) sum_at<is>(shared, at.warp_k, i, at.row(j)) = sum[i][j];
        }
    }
    __syncthreads();
    store_sums(all, g, at, shared);
}

#define PRODUCT(name, rows, how)                                                                   \
    extern "C" __global__ void __launch_bounds__(geometry<rows, how>::THREADS,                     \
                                                 geometry<rows, how>::BLOCKS)                      \
        name(const __grid_constant__ gemm_args g) {                                                \
        product<geometry<rows, how>>(g);                                                           \
    }
#define PRODUCTS(name, rows)                                                                       \
    PRODUCT(name##_##rows, rows, ACROSS)                                                           \
    PRODUCT(name##_##rows##_along, rows, ALONG)
PRODUCTS(gemm_skinny, 2)
PRODUCTS(gemm_skinny, 4)
PRODUCTS(gemm_skinny, 8)
PRODUCTS(gemm_skinny, 16)
SUM_PARTS(gemm_skinny_reduce)
