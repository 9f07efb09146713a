/* GEMM of tiny problems: MMA fragments are loaded from global memory, without tiles in shared memory.
 *
 *      K-major A          slab: 16 words of k           MN-major A      rows
 *      row g       | t = 0 | t = 1 | t = 2 | t = 3 |    each k of the   | .. | 2 g, 2 g + 1 | .. |
 *      row g + 8   | t = 0 | t = 1 | t = 2 | t = 3 |    lane's 4 words
 *
 *      lane 4 g + t has 4 adjacent words of k; a word is two 16-bit elements or one fp64. B likewise:
 *      columns g, g + 8, .., or BLOCK_N / 8 adjacent ones.
 *
 * Limit: latency. Kernels with tiles copy, wait at a barrier and load, and compute the addresses of
 * both: some hundreds of instructions per warp, each some 5 clocks after the one before. On an H200
 * 16 x 16 x 16 in float16 takes 4.6 us, sliced_k 4.8, an empty kernel 3.4; 3 x 72 x 35 4.1 and 5.5.
 * The order of k in an MMA is free if A and B agree, and so is the order of rows and of columns. So
 * what a lane loads is adjacent in memory: 16 bytes per load where an operand is K-major, else as
 * many as it has rows or columns. Where rows of an operand do not begin and end on such boundaries,
 * both are loaded by elements.
 * SLICES: the warps that split K, slab by slab. The first adds the sums of the others, which pass
 * through shared memory, in a fixed order.
 * Bytes: M N K (1 / 16 + 1 / BLOCK_N) elements, mostly from L1. Larger problems need tiles.
 * Banks: adjacent lanes write adjacent sums, and read them so: no conflict.
 * FLOPs: 2 M N K, sums in fp32 (fp64: in fp64).
 * Differs from small_k by having no tiles.
 */
#include "lane_lines.cuh"
#include "mma_16x8.cuh"
#include "split_k.cuh"

constexpr int WARPS = 4, GROUPS = WARPS / SLICES, N_TILES = BLOCK_N / 8;
constexpr int AT_ONCE = SLICES > 1 ? 1 : 2;          /* slabs of a warp whose loads are in flight */
constexpr int BLOCKS = BYTES * N_TILES < 16 ? 5 : 4; /* per multiprocessor, by registers */

typedef part_sum warp_sums[N_TILES][4];

template <bool WIDE, order OF_A, order OF_B>
__device__ __forceinline__ void multiply(warp_sums &sum, const lane_lines<OF_A, 2> &A,
                                         const lane_lines<OF_B, N_TILES> &B, int slice,
                                         long long k_size) {
#pragma unroll AT_ONCE
    for (long long k = slice * SLAB; k < k_size; k += SLICES * SLAB) {
        const int left = (int)min(k_size - k, (long long)SLAB) - threadIdx.x % 4 * OWN;
        word a[2][WORDS], b[N_TILES][WORDS];
        A.template load_slab<WIDE>(a, k, left);
        B.template load_slab<WIDE>(b, k, left);
#pragma unroll
        for (int w = 0; w < WORDS; w += 2) {
#pragma unroll
            for (int n = 0; n < N_TILES; n++) {
                mma_16x8(sum[n], a[0][w], a[1][w], a[0][w + 1], a[1][w + 1], b[n][w], b[n][w + 1],
                         REAL());
            }
        }
    }
}

/* Adds the sums of the slices to the first one's. */
__device__ __forceinline__ void add_slices(warp_sums &sum, int group, int slice) {
    constexpr int OTHERS = SLICES > 1 ? SLICES - 1 : 1;
    __shared__ part_sum others[GROUPS][OTHERS][N_TILES * 4][32];
    const int lane = threadIdx.x % 32;
    if (slice > 0) {
#pragma unroll
        for (int i = 0; i < N_TILES * 4; i++) {
            others[group][slice - 1][i][lane] = sum[i / 4][i % 4];
        }
    }
    __syncthreads();
    if (slice > 0) return;
#pragma unroll
    for (int from = 0; from < OTHERS; from++) {
#pragma unroll
        for (int i = 0; i < N_TILES * 4; i++) {
            sum[i / 4][i % 4] += others[group][from][i][lane];
        }
    }
}

template <order OF_A, order OF_B> __device__ __forceinline__ void product(const gemm_args &g) {
    const tile_place tile = place((int)blockIdx.x, g.tiles);
    const int warp = threadIdx.x / 32, group = warp / SLICES, slice = warp % SLICES;
    const long long row = ((long long)tile.row * GROUPS + group) * 16;
    const long long column = (long long)tile.column * BLOCK_N;
    const REAL *a = g.A + blockIdx.z * g.batch_a, *b = g.B + blockIdx.z * g.batch_b;
    const long long a_pitch = OF_A == ALONG ? g.lda : g.step_a;
    const long long b_pitch = OF_B == ALONG ? g.step_b : g.ldb;
    const lane_lines<OF_A, 2> A(a, a_pitch, row, g.M);
    const lane_lines<OF_B, N_TILES> B(b, b_pitch, column, g.N);
    warp_sums sum = {};
    if (row < g.M) { /* the same for all lanes of a warp */
        if (wide<OF_A, 2>(a, a_pitch, g.M, g.K) && wide<OF_B, N_TILES>(b, b_pitch, g.N, g.K)) {
            multiply<true>(sum, A, B, slice, g.K);
        } else {
            multiply<false>(sum, A, B, slice, g.K);
        }
    }
    if (SLICES > 1) add_slices(sum, group, slice);
    if (slice > 0) return;
    const part_sum alpha = (part_sum)g.alpha, beta = (part_sum)g.beta;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const long long i = row + A.line(h);
        REAL *C = g.C + blockIdx.z * g.batch_c + i * g.ldc + column;
#pragma unroll
        for (int q = 0; q < 2 * N_TILES; q++) { /* column q % 2 of MMA q / 2 */
            const int n = q / 2, of_mma = threadIdx.x % 4 * 2 + q % 2;
            const int j = OF_B == ALONG ? 8 * n + of_mma : of_mma * N_TILES + n;
            if (i >= g.M || column + j >= g.N) continue;
            part_sum x = alpha * sum[n][2 * h + q % 2];
            if (beta != 0) x += beta * widen(C[j]);
            C[j] = narrow(x, REAL());
        }
    }
}

#define DIRECT(name, of_a, of_b)                                                                   \
    extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)                               \
        name(const __grid_constant__ gemm_args g) {                                                \
        product<of_a, of_b>(g);                                                                    \
    }
DIRECT(gemm_direct, ALONG, ACROSS)
DIRECT(gemm_direct_a, ACROSS, ACROSS)
DIRECT(gemm_direct_b, ALONG, ALONG)
DIRECT(gemm_direct_ab, ACROSS, ALONG)
