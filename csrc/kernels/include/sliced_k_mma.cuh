/* gemm_sliced_k by MMA: 16 bits and fp64. Panels and MMAs: panel_mma.cuh; the rest is as in fp32.
 *
 * A warp's tile of C is 4 THREAD_M x 8 THREAD_N, in MMA's tiles of 16 x 8. Each slice of K writes its
 * sums to shared memory; the thread that stores an element adds them, always in the same order.
 * Banks: row r of the sums has groups of 8 columns at group ^ r % 4 (fp64: r % 2), so that the lanes
 * that write together, of 4 or 2 rows, use different banks.
 */
#ifndef SMK_SLICED_K_MMA_CUH
#define SMK_SLICED_K_MMA_CUH

constexpr int BATCH = 8; /* loads of 16-bit pairs in flight, per thread and operand */
#include "panel_mma.cuh"
#include "sliced_k_work.cuh"

constexpr int WARP_M = 4 * THREAD_M, WARP_N = 8 * THREAD_N;
constexpr int M_TILES = WARP_M / 16, N_TILES = WARP_N / 8;
constexpr int WARPS_N = BLOCK_N / WARP_N, WARPS = BLOCK_M / WARP_M * WARPS_N;
constexpr int THREADS = 32 * WARPS * SLICES, TILE = BLOCK_M * BLOCK_N;

__device__ __forceinline__ int place_of_sum(int row, int column) {
    return row * BLOCK_N + (column ^ row % (BYTES == 8 ? 2 : 4) * 8);
}

__device__ __forceinline__ void put_pair(unsigned to, float x, float y) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(x), "f"(y) : "memory");
}
__device__ __forceinline__ void put_pair(unsigned to, double x, double y) {
    asm volatile("st.shared.v2.f64 [%0], {%1, %2};" ::"r"(to), "d"(x), "d"(y) : "memory");
}

__device__ __forceinline__ void put_sums(unsigned sums, const part_sum (&sum)[M_TILES][N_TILES][4],
                                         int row, int column) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int m = 0; m < M_TILES; m++) {
#pragma unroll
        for (int n = 0; n < N_TILES; n++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int at =
                    place_of_sum(row + 16 * m + 8 * h + lane / 4, column + 8 * n + lane % 4 * 2);
                put_pair(sums + at * (int)sizeof(part_sum), sum[m][n][2 * h], sum[m][n][2 * h + 1]);
            }
        }
    }
}

template <typename T, int N> struct __align__(N * sizeof(T)) several {
    T at[N];
};

/* Adds the slices' sums and stores them, WIDE adjacent elements per thread and access. */
template <int WIDE, typename OUT>
__device__ __forceinline__ void store(OUT *C, long long pitch, const part_sum *sums, long long rows,
                                      long long columns, alpha_beta by) {
    typedef several<part_sum, WIDE> sums_vector;
    typedef several<OUT, WIDE> out_vector;
    constexpr int STEP = THREADS * WIDE;
#pragma unroll
    for (int first = 0; first < TILE; first += STEP) {
        const int i = first + threadIdx.x * WIDE, row = i / BLOCK_N, column = i % BLOCK_N;
        if (first + STEP > TILE && i >= TILE) return;
        const part_sum *from = sums + place_of_sum(row, column);
        sums_vector sum = *reinterpret_cast<const sums_vector *>(from);
#pragma unroll
        for (int slice = 1; slice < SLICES; slice++) {
            const sums_vector more = *reinterpret_cast<const sums_vector *>(from + slice * TILE);
#pragma unroll
            for (int j = 0; j < WIDE; j++) {
                sum.at[j] += more.at[j];
            }
        }
        if (row >= rows || column >= columns) continue;
        OUT *to = C + row * pitch + column;
        const bool whole = column + WIDE <= columns;
        out_vector x = {};
        if (by.beta != 0 && whole) x = *reinterpret_cast<const out_vector *>(to);
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            const bool alone = !whole && column + j < columns;
            part_sum y = by.alpha * sum.at[j];
            if (by.beta != 0) {
                if (alone) x.at[j] = to[j];
                y += by.beta * widen(x.at[j]);
            }
            x.at[j] = narrow(y, OUT());
            if (alone) to[j] = x.at[j];
        }
        if (whole) *reinterpret_cast<out_vector *>(to) = x;
    }
}

template <typename OUT>
__device__ __forceinline__ void store(OUT *C, long long pitch, const part_sum *sums, long long rows,
                                      long long columns, alpha_beta by) {
    constexpr int WIDE = PART_WIDE, ALIGN = WIDE * sizeof(OUT);
    if (((unsigned long long)C | (unsigned long long)pitch * sizeof(OUT)) % ALIGN == 0) {
        store<WIDE>(C, pitch, sums, rows, columns, by);
    } else {
        store<1>(C, pitch, sums, rows, columns, by);
    }
}

/* ---- the kernel ---- */

template <order OF_A, order OF_B> __device__ __forceinline__ void product(const gemm_args &g) {
    extern __shared__ uint4 bytes[];
    part_sum *shared = reinterpret_cast<part_sum *>(bytes);
    const block_work block = work_of_block(g);
    operand_lines A =
        lines_from<OF_A>(g.A + blockIdx.z * g.batch_a, OF_A == ALONG ? g.lda : g.step_a, block.row,
                         g.M, block.first);
    operand_lines B =
        lines_from<OF_B>(g.B + blockIdx.z * g.batch_b, OF_B == ALONG ? g.step_b : g.ldb,
                         block.column, g.N, block.first);
    const int warp = threadIdx.x / 32, slice = warp / WARPS;
    const int row = warp % WARPS / WARPS_N * WARP_M, column = warp % WARPS_N * WARP_N;
    const long long k = block.end - block.first;
    constexpr int MOST = PANEL_K > CHUNK ? PANEL_K : CHUNK;
    const int chunks = ((int)min(k, (long long)MOST) + CHUNK - 1) / CHUNK;
    const unsigned a_panel = shared_address(shared), b_panel = a_panel + chunks * (BLOCK_M * 128);
    part_sum sum[M_TILES][N_TILES][4] = {};
    overlap_launches();
#pragma unroll 1
    for (long long left = k; left > 0; left -= MOST) {
        const int here = (int)min(left, (long long)MOST);
        if (left < k) __syncthreads(); /* all warps have read the panels */
        copy_panels<OF_A, OF_B, BLOCK_M, BLOCK_N, THREADS>(a_panel, b_panel, A, B, here);
#pragma unroll 2
        for (int slab = slice; slab * SLAB < here; slab += SLICES) {
            multiply_slab<OF_A, OF_B, BLOCK_M, BLOCK_N>(sum, a_panel, b_panel, row, column, slab);
        }
        advance<OF_A>(A, MOST);
        advance<OF_B>(B, MOST);
    }

    __syncthreads();
    put_sums(a_panel + slice * TILE * (int)sizeof(part_sum), sum, row, column);
    __syncthreads();
    const long long rows = g.M - block.row, columns = g.N - block.column;
    if (g.split > 1) {
        store(part_at(g, block.part, block.row, block.column), g.part_pitch, shared, rows,
              g.part_pitch - block.column, {1, 0});
    } else {
        store(g.C + blockIdx.z * g.batch_c + block.row * g.ldc + block.column, g.ldc, shared, rows,
              columns, {(part_sum)g.alpha, (part_sum)g.beta});
    }
}

#endif
