/* Reduction of gemm_sliced_k's sums: each slice of K writes its sums to shared memory; the thread
 * that stores an element adds them, always in the same order. C goes this way with one slice too,
 * so that a request's lanes lie along a row, 512 bytes of it if C's rows are aligned, else 128.
 */
#ifndef SMK_SLICED_K_SUMS_CUH
#define SMK_SLICED_K_SUMS_CUH

#include "common.cuh"

constexpr int LANES_M = 4, LANES_N = 8;
constexpr int WARP_M = LANES_M * THREAD_M, WARP_N = LANES_N * THREAD_N;
constexpr int WARPS_N = BLOCK_N / WARP_N, WARPS = BLOCK_M / WARP_M * WARPS_N;
constexpr int THREADS = 32 * WARPS * SLICES, TILE = BLOCK_M * BLOCK_N;

/* Rows of sums 4 apart have their 128-byte halves swapped, for the lanes that write together. */
__device__ __forceinline__ int place_of_sum(int row, int column) {
    return row * BLOCK_N + (column ^ row / 4 % 2 * 16);
}

__device__ __forceinline__ void put_sums(float *sums, const float (&sum)[THREAD_M][THREAD_N],
                                         int row, int column) {
#pragma unroll
    for (int m = 0; m < THREAD_M; m++) {
#pragma unroll
        for (int n = 0; n < THREAD_N; n += 4) {
            const int r = row + m / 4 * 4 * LANES_M + m % 4, c = column + n * LANES_N;
            asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(
                             shared_address(sums + place_of_sum(r, c))),
                         "f"(sum[m][n]), "f"(sum[m][n + 1]), "f"(sum[m][n + 2]), "f"(sum[m][n + 3])
                         : "memory");
        }
    }
}

/* Adds the slices' sums and stores them, WIDE adjacent elements per thread and access. */
template <int WIDE>
__device__ __forceinline__ void store(const gemm_args &g, const float *sums, long long rows,
                                      long long columns) {
    constexpr int STEP = THREADS * WIDE;
#pragma unroll
    for (int first = 0; first < TILE; first += STEP) {
        const int i = first + threadIdx.x * WIDE, row = i / BLOCK_N, column = i % BLOCK_N;
        if (first + STEP > TILE && i >= TILE) return;
        const float *from = sums + place_of_sum(row, column);
        float *to = g.C + row * g.ldc + column;
        if (WIDE == 4) {
            vector sum = *reinterpret_cast<const vector *>(from);
#pragma unroll
            for (int slice = 1; slice < SLICES; slice++) {
                vector more = *reinterpret_cast<const vector *>(from + slice * TILE);
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    element(sum, j) += element(more, j);
                }
            }
            store_epilogue(g, &element(sum, 0), to, true, row < rows ? columns - column : 0);
        } else {
            float sum = *from;
#pragma unroll
            for (int slice = 1; slice < SLICES; slice++) {
                sum += from[slice * TILE];
            }
            if (row < rows && column < columns) *to = epilogue(g, sum, to);
        }
    }
}

#endif
