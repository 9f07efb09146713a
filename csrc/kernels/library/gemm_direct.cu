/* GEMM of tiny problems, limited by the latency of one load: MMA's operands go from global memory to
 * registers, without tiles in shared memory.
 *
 *      lane 4 g + t, per slab of k           the four t: a slab     rows and columns of a lane
 *      A, rows in memory:  row g       | t: own words |             ALONG    g, g + 8, ..
 *                          row g + 8   |              |             ACROSS   N g, N g + 1, .. N g + N - 1
 *      A, columns in memory: of each k of its own, rows 2 g and 2 g + 1
 *
 * Other kernels pass operands through shared memory, which takes copies, a barrier, loads, and the
 * arithmetic of their addresses: some hundreds of instructions per warp, each some 5 clocks after the
 * one before. A product of 16 x 16 x 16 takes 3.4 us as an empty launch, 4.2 so, 4.8 by sliced_k.
 * The order of k within an MMA is free if A and B agree, and so are the orders of rows and of columns.
 * So a lane's k are neighbours, four words of them (words of two 16-bit elements, or one fp64), and
 * an operand that is not K-major gives each lane neighbouring rows or columns. Loads are 16 bytes
 * ALONG, and ACROSS as wide as the lane's rows or columns, if the rows of both operands begin and end
 * at such boundaries; otherwise by elements.
 * SLICES: warps that split K, slab by slab; the first adds the sums of the others, which pass through
 * shared memory, always in the same order. Lanes are adjacent there: no bank conflict.
 * Every warp reads its operands itself, M N K (1 / 16 + 1 / BLOCK_N) elements in all: L1 has most of
 * them, but larger products need tiles.
 * Differs from small_k by having no tiles.
 */
#include "mma_16x8.cuh"
#include "split_k.cuh"

enum order { ALONG, ACROSS };
constexpr int BYTES = sizeof(REAL), PER_WORD = BYTES == 2 ? 2 : 1;
constexpr int WORDS = 4, OWN = WORDS * PER_WORD, SLAB = 4 * OWN; /* k: of a lane, of a warp */
constexpr int WARPS = 4, GROUPS = WARPS / SLICES, N_TILES = BLOCK_N / 8;
constexpr int AT_ONCE = SLICES > 1 ? 1 : 2;          /* slabs of a warp whose loads are in flight */
constexpr int BLOCKS = BYTES * N_TILES < 16 ? 5 : 4; /* per multiprocessor, by registers */

template <int SIZE> struct bits_of {
    typedef double element, word;
};
template <> struct bits_of<2> {
    typedef unsigned short element;
    typedef unsigned word;
};
typedef bits_of<BYTES>::element element;
typedef bits_of<BYTES>::word word;

__device__ __forceinline__ unsigned join(unsigned short low, unsigned short high) {
    return low | (unsigned)high << 16;
}
__device__ __forceinline__ double join(double x, double) {
    return x;
}

template <int N> struct __align__(N * sizeof(element)) neighbours {
    element at[N];
};

/* N neighbours, of which the first `exist` do; others are 0. WIDE: all or none, and p is aligned. */
template <bool WIDE, int N>
__device__ __forceinline__ void load(element (&x)[N], const element *p, int exist) {
    constexpr int MOST = N < 16 / BYTES ? N : 16 / BYTES;
#pragma unroll
    for (int i = 0; i < N; i += MOST) {
        neighbours<MOST> v = {};
        if (WIDE) {
            if (exist > 0) v = *reinterpret_cast<const neighbours<MOST> *>(p + i);
        } else {
#pragma unroll
            for (int j = 0; j < MOST; j++) {
                if (i + j < exist) v.at[j] = p[i + j];
            }
        }
#pragma unroll
        for (int j = 0; j < MOST; j++) {
            x[i + j] = v.at[j];
        }
    }
}

/* A lane's N lines of an operand, rows of A or columns of B, from a slab on. */
template <order ORDER, int N> struct lane_lines {
    const element *from;
    long long pitch;
    int exist; /* lines, from the lane's first one on */

    __device__ __forceinline__ lane_lines(const REAL *x, long long row_pitch, long long first,
                                          long long lines)
        : pitch(row_pitch) {
        const int g = threadIdx.x % 32 / 4, k = threadIdx.x % 4 * OWN;
        const long long line = first + (ORDER == ALONG ? g : g * N);
        from = reinterpret_cast<const element *>(x) +
               (ORDER == ALONG ? line * pitch + k : k * pitch + line);
        exist = (int)min(max(lines - line, 0ll), 8ll * N);
    }
    static __device__ __forceinline__ int line(int n) {
        const int g = threadIdx.x % 32 / 4;
        return ORDER == ALONG ? 8 * n + g : g * N + n;
    }
    /* Of the slab that begins at k, `left` k exist from the lane's own on. */
    template <bool WIDE>
    __device__ __forceinline__ void load_slab(word (&x)[N][WORDS], long long k, int left) const {
        element of[N][OWN];
        if (ORDER == ALONG) {
#pragma unroll
            for (int n = 0; n < N; n++) {
                load<WIDE>(of[n], from + 8 * n * pitch + k, 8 * n < exist ? left : 0);
            }
        } else {
#pragma unroll
            for (int j = 0; j < OWN; j++) {
                element across[N];
                load<WIDE>(across, from + (k + j) * pitch, j < left ? exist : 0);
#pragma unroll
                for (int n = 0; n < N; n++) {
                    of[n][j] = across[n];
                }
            }
        }
#pragma unroll
        for (int n = 0; n < N; n++) {
#pragma unroll
            for (int w = 0; w < WORDS; w++) {
                x[n][w] = join(of[n][PER_WORD * w], of[n][PER_WORD * w + PER_WORD - 1]);
            }
        }
    }
};

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

/* Whether a lane's neighbours are all there, or none, and aligned. */
template <order ORDER, int N>
__device__ __forceinline__ bool wide(const REAL *x, long long pitch, long long lines, long long k) {
    constexpr int BOTH = (ORDER == ALONG ? OWN : N), AT = BOTH * BYTES < 16 ? BOTH * BYTES : 16;
    return (ORDER == ALONG ? k : lines) % BOTH == 0 &&
           ((unsigned long long)x | (unsigned long long)pitch * BYTES) % AT == 0;
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
