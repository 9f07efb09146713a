/* GEMM of few rows or columns of 16-bit elements, as in decoding with a language model. On tensor
 * cores, so that 16 rows cost no more than 1.
 *
 *   MMA 16 x 8 x 16:  its 16 rows are rows of the thick operand, its 8 columns rows of the thin one
 *
 *   ACROSS  lane (g, t) = lane / 4, lane % 4 loads 8 columns from 8 g on, of k = 4 t .. 4 t + 3
 *           k 4t     | c0 c1 .. c7 |     MMA operands are pairs along K: one byte permutation each;
 *           k 4t + 1 | c0 c1 .. c7 |     MMA c has rows 8 g + c and 8 g + c + 4: 4 MMAs, 64 columns
 *   ALONG   lane (g, t) loads 8 k from 8 t on, of rows g, g + 8, g + 16, g + 24: pairs as loaded;
 *           two MMAs for 16 rows and 32 k
 *
 * Any 16 k may form an MMA as long as both operands agree, so no load is rearranged.
 *
 * Why: a 2-byte element serves ROWS multiply-adds. FFMAs could do them for 8 rows, but not the type
 * conversions as well (gemm_skinny). Here 2 KiB of loads of a warp need 4 MMAs, 16 permutations and
 * one load of the thin operand for 8 rows; 16 rows need twice both. Products are exact, sums fp32.
 * Shared memory: the thin operand, not converted. ACROSS: 8 bytes per lane, row pitch 32 modulo 128
 * bytes: half a warp reads 4 rows x 32 bytes, all banks. ALONG: 16 bytes per lane, row pitch 64.
 * Differs from skinny by the MMA and with it 16 x 8 sums and zero-padded last units of K.
 */
#include "skinny_parts.cuh"

template <int TILES_, direction HOW_> struct geometry {
    typedef REAL stored;
    static constexpr int TILES = TILES_, ROWS = 8 * TILES;
    static constexpr direction HOW = HOW_;
    static constexpr int ELEMENTS = 8, LOADS = 4, DEPTH = 2;
    static constexpr int J = HOW == ACROSS ? 8 : 4, KL = HOW == ACROSS ? 4 : 8;
    static constexpr int LANES_J = 8, LANES_K = 4;
    static constexpr int WARPS_J = SKINNY_MMA_WARPS_J(TILES, HOW == ALONG);
    static constexpr int WARPS_K = SKINNY_MMA_WARPS_K(HOW == ALONG);
    static constexpr int THREADS = 32 * WARPS_J * WARPS_K;
    static constexpr int STRIP = J * LANES_J * WARPS_J;
    static constexpr int UNIT = KL * LANES_K, ROUND = UNIT * WARPS_K;
    static constexpr int ROUNDS = TILES * SKINNY_RING / (2 * ROUND * ROWS * (int)sizeof(REAL));
    static constexpr int PITCH = 2 * ROUNDS * ROUND + (HOW == ACROSS ? 16 : 32);
    static_assert(SKINNY_STEP % UNIT == 0, "parts are whole units");

    static __device__ __forceinline__ int lane_j(int lane) { return lane / LANES_K; }
    static __device__ __forceinline__ int lane_k(int lane) { return lane % LANES_K; }
    static __device__ __forceinline__ REAL store(REAL x) { return x; }
    /* Row, among the lane's J, of half h of MMA q. */
    static __device__ __forceinline__ int row(int q, int h) {
        return HOW == ACROSS ? q + 4 * h : 2 * q + h;
    }
};

#define MMA(type)                                                                                  \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32"                              \
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                         \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                           \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
__device__ __forceinline__ void mma(float *d, const unsigned *a, const unsigned *b, float16) {
    MMA("f16");
}
__device__ __forceinline__ void mma(float *d, const unsigned *a, const unsigned *b, bfloat16) {
    MMA("bf16");
}

/* Word w of half h of MMA q: a pair of k, 2t, 2t + 1 (w even) or 2t + 8, 2t + 9 of the MMA. */
template <typename is>
__device__ __forceinline__ unsigned pair_of(const piece<is> &x, int q, int h, int w) {
    if (is::HOW == ALONG) return x.word[is::row(q, h)][w];
    const int column = is::row(q, h);
    return __byte_perm(x.word[2 * w][column / 2], x.word[2 * w + 1][column / 2],
                       column % 2 ? 0x7632 : 0x5410);
}

template <typename is, typename sums>
__device__ __forceinline__ void multiply(sums &sum, const piece<is> &x, const REAL *thin) {
    struct __align__(is::KL * 2) pairs {
        unsigned word[is::KL / 2];
    };
    thin += is::lane_j(threadIdx.x % 32) * is::PITCH;
    pairs y[is::TILES];
#pragma unroll
    for (int tile = 0; tile < is::TILES; tile++) {
        y[tile] = *reinterpret_cast<const pairs *>(thin + tile * 8 * is::PITCH);
    }
#pragma unroll
    for (int q = 0; q < is::J / 2; q++) {
#pragma unroll
        for (int w = 0; w < is::KL / 2; w += 2) {
            const unsigned a[4] = {pair_of(x, q, 0, w), pair_of(x, q, 1, w),
                                   pair_of(x, q, 0, w + 1), pair_of(x, q, 1, w + 1)};
#pragma unroll
            for (int tile = 0; tile < is::TILES; tile++) {
                mma(sum[tile][q], a, &y[tile].word[w], REAL());
            }
        }
    }
}

/* A unit padded with zeros. */
template <typename is, typename sums, width HOW_WIDE>
__device__ __forceinline__ void add_rest(sums &sum, const operands &g, const skinny_place<is> &at,
                                         const thick_reader<is, HOW_WIDE> &thick, int unit,
                                         const REAL *thin) {
    piece<is> x;
    const long long k_own = (long long)unit * is::UNIT + at.lane_k * is::KL;
    if (at.warp_k != unit % is::WARPS_K) return;
#pragma unroll
    for (int n = 0; n < is::LOADS; n++) {
#pragma unroll
        for (int e = 0; e < is::ELEMENTS; e++) {
            const int j = is::HOW == ACROSS ? e : n * is::LANES_J, k = is::HOW == ACROSS ? n : e;
            const int most = is::HOW == ACROSS ? thick.more : thick.more * is::LANES_J;
            x.at(n, e) = k_own + k < g.K ? thick.rows[min(j, most) * g.step_b + (k_own + k) * g.ldb]
                                         : REAL();
        }
    }
    multiply<is>(sum, x, thin);
}

template <typename is> __device__ __forceinline__ void product(const gemm_args &all) {
    extern __shared__ uint4 bytes[];
    skinny_place<is> at;
    const operands g = find_place(at, all);
    overlap_launches();
    float sum[is::TILES][is::J / 2][4] = {};
    accumulate<is>(sum, g, at, reinterpret_cast<REAL *>(bytes));
    number *sums = reinterpret_cast<number *>(bytes);
#pragma unroll
    for (int tile = 0; tile < is::TILES; tile++) {
#pragma unroll
        for (int q = 0; q < is::J / 2; q++) {
#pragma unroll
            for (int r = 0; r < 4; r++) {
                sum_at<is>(sums, at.warp_k, 8 * tile + 2 * at.lane_k + r % 2,
                           at.row(is::row(q, r / 2))) = sum[tile][q][r];
            }
        }
    }
    __syncthreads();
    store_sums(all, g, at, sums);
}

#define PRODUCT(name, tiles, how)                                                                  \
    extern "C" __global__ void __launch_bounds__(geometry<tiles, how>::THREADS)                    \
        name(const __grid_constant__ gemm_args g) {                                                \
        product<geometry<tiles, how>>(g);                                                          \
    }
#define PRODUCTS(name, rows)                                                                       \
    PRODUCT(name##_##rows, rows / 8, ACROSS)                                                       \
    PRODUCT(name##_##rows##_along, rows / 8, ALONG)
PRODUCTS(gemm_skinny_mma, 8)
PRODUCTS(gemm_skinny_mma, 16)
SUM_PARTS(gemm_skinny_mma_reduce)
