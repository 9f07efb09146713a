/* gemm_small_k of fp32: its sums are along rows of C, and are stored straight from registers.
 *
 * TURNED, for few columns: columns of C take the place of its rows, so that lanes lie along the rows
 * of A. Else of 3 columns 3 lanes of 32 would work. Stores are not along rows then, but the rows of
 * such a C are short, and a warp writes all sectors of its 32 rows.
 */
#ifndef SMK_SMALL_K_FFMA_CUH
#define SMK_SMALL_K_FFMA_CUH

#include "sliced_k_copies.cuh"

constexpr int WIDTH = 32 * THREAD_N, WARPS = BLOCK_M / THREAD_M, THREADS = 32 * WARPS;

/* Sums of a lane are `right` apart in C, and its rows `down`. */
template <bool READ>
__device__ __forceinline__ void store(const gemm_args &g, const float (&sum)[THREAD_M][THREAD_N],
                                      float *C, int rows, int columns) {
    const float alpha = (float)g.alpha, beta = (float)g.beta;
    const long long down = TURNED ? 1 : g.ldc, right = TURNED ? 32 * g.ldc : 32;
#pragma unroll
    for (int m = 0; m < THREAD_M; m++) {
#pragma unroll
        for (int n = 0; n < THREAD_N; n++) {
            if (m < rows && n * 32 < columns) {
                C[n * right] = alpha * sum[m][n] + (READ ? beta * C[n * right] : 0);
            }
        }
        C += down;
    }
}

template <order OF_A, order OF_B> __device__ __forceinline__ void product(const gemm_args &g) {
    extern __shared__ uint4 bytes[];
    constexpr order OF_ROWS = TURNED ? OF_B : OF_A, OF_LANES = TURNED ? OF_A : OF_B;
    float *panel = reinterpret_cast<float *>(bytes);
    const tile_origin tile = block_tile(g.N, TURNED ? WIDTH : BLOCK_M, TURNED ? BLOCK_M : WIDTH);
    const operand_lines A = lines_from<OF_A>(
        g.A + blockIdx.z * g.batch_a, OF_A == ALONG ? g.lda : g.step_a, tile.row, g.M, 0, g.K);
    const operand_lines B = lines_from<OF_B>(
        g.B + blockIdx.z * g.batch_b, OF_B == ALONG ? g.step_b : g.ldb, tile.column, g.N, 0, g.K);
    const operand_lines &of_rows = TURNED ? B : A, &of_lanes = TURNED ? A : B;
    const int row = threadIdx.x / 32 * THREAD_M, lane = threadIdx.x % 32;
    const int chunks = (int)((g.K + CHUNK - 1) / CHUNK), most = min(chunks, PANEL_K / CHUNK);
    float *lane_panel = panel + most * CHUNK * BLOCK_M;
    unsigned rows_to = shared_address(panel), lanes_to = shared_address(lane_panel);
    asm volatile("" : "+r"(rows_to), "+r"(lanes_to));
    float sum[THREAD_M][THREAD_N] = {};
#pragma unroll 1
    for (int first = 0; first < chunks; first += most) {
        const int end = min(first + most, chunks);
        if (first > 0) __syncthreads();
        copy_panel<OF_ROWS, BLOCK_M, 4, THREADS>(rows_to, of_rows, first, end);
        copy_panel<OF_LANES, WIDTH, 1, THREADS>(lanes_to, of_lanes, first, end);
        COPY_ASYNC_COMMIT();
        COPY_ASYNC_WAIT(0);
        __syncthreads();
        const int slabs =
            ((int)min(g.K - (long long)first * CHUNK, (long long)most * CHUNK) + SLAB - 1) / SLAB;
#pragma unroll 1
        for (int slab = 0; slab < slabs; slab++) {
            float x[THREAD_M][SLAB], y[THREAD_N][SLAB];
            load_fragment<OF_LANES, WIDTH, 1, 32>(y, lane_panel, lane, slab);
            load_fragment<OF_ROWS, BLOCK_M, 4, 4>(x, panel, row, slab);
            multiply_slab(sum, x, y);
        }
    }
    const long long down = TURNED ? 1 : g.ldc, right = TURNED ? g.ldc : 1;
    const int rows = (int)min((long long)of_rows.lines - row, (long long)THREAD_M);
    float *C = g.C + blockIdx.z * g.batch_c + tile.row * g.ldc + tile.column;
    C += row * down + lane * right;
    if ((float)g.beta == 0) {
        store<false>(g, sum, C, rows, of_lanes.lines - lane);
    } else {
        store<true>(g, sum, C, rows, of_lanes.lines - lane);
    }
}

#endif
