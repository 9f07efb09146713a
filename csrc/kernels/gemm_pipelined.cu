/* GEMM: cp.async copies the tiles of later rounds into shared memory, STAGES deep, while the warps
 * work on this one.
 *
 *      round      0       1       2       3       4          STAGES = 3: a ring of 3 tiles
 *      copy     k0:[0]  k1:[1]  k2:[2]  k3:[0]  k4:[1]       starts here, lands later
 *      use                      k0:[0]  k1:[1]  k2:[2]       waits for all but STAGES - 2 groups
 *
 * A round waits for the oldest copy and passes one barrier: now the copies of all threads are
 * visible, and no warp still uses the previous round's tile. It refills that tile and computes.
 * Banks: as in vectorized, 2 wavefronts per 16-byte load, the minimum. cp.async writes the data
 * that STS.128 writes there, to the same addresses. Edges and unaligned matrices: one word per lane
 * and copy, 0 for what does not exist. That is four times the copies, each with a 4-way conflict;
 * vectorized always stores 16 bytes and is faster there. (Lanes along a row: no conflict, slower.)
 * Bytes and FLOPs: as in vectorized, without its staging registers, and with no stall unless a copy
 * is more than STAGES - 1 rounds late. Shared memory: STAGES (BLOCK_M + BLOCK_N) BLOCK_K words,
 * 36 KiB for float.
 * Differs from vectorized by cp.async in place of load, hold in registers, store.
 */
#include "common.cuh"

#define WARPS_N  (BLOCK_N / (8 * THREAD_N))
#define THREADS  (BLOCK_M / (4 * THREAD_M) * WARPS_N * 32)
#define CHUNKS_K (BLOCK_K / V) /* per row of As */
#define CHUNKS_N (BLOCK_N / V) /* per row of Bs */
#define A_COPIES (BLOCK_M * CHUNKS_K / THREADS)
#define B_COPIES (BLOCK_K * CHUNKS_N / THREADS)

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_pipelined(const __grid_constant__ gemm_args g) {
    extern __shared__ vector shared[];
    vector(*As)[BLOCK_M][CHUNKS_K] = reinterpret_cast<vector(*)[BLOCK_M][CHUNKS_K]>(shared);
    vector(*Bs)[BLOCK_K][CHUNKS_N] = reinterpret_cast<vector(*)[BLOCK_K][CHUNKS_N]>(As + STAGES);

    const REAL *A = g.A + blockIdx.z * g.batch_a;
    const REAL *B = g.B + blockIdx.z * g.batch_b;
    REAL *C = g.C + blockIdx.z * g.batch_c;
    const bool a_aligned = rows_aligned(A, g.lda, sizeof(REAL));
    const bool b_aligned = rows_aligned(B, g.ldb, sizeof(REAL));
    const bool c_aligned = rows_aligned(C, g.ldc, sizeof(REAL));

    const unsigned t = threadIdx.x, lane = t % 32, warp = t / 32;
    const unsigned m_lane = warp / WARPS_N * 4 * THREAD_M + (lane & 1) + (lane >> 4) * 2;
    const unsigned n_lane = warp % WARPS_N * 8 * (THREAD_N / V) + (lane >> 1) % 8; /* in chunks */
    const tile_origin tile = block_tile(g.N, BLOCK_M, BLOCK_N);
    const bool whole_m = a_aligned && tile.row + BLOCK_M <= g.M;
    const bool whole_n = b_aligned && tile.column + BLOCK_N <= g.N;

    REAL sum[THREAD_M][THREAD_N] = {};
    int stage = 0, free_stage = 0; /* stage to use, stage to fill */
    /* Iteration k0 starts the copies of tile k0 and uses the tile STAGES - 1 before it. */
    const long long ahead = (STAGES - 1) * BLOCK_K;
    for (long long k0 = 0; k0 < g.K + ahead; k0 += BLOCK_K) {
        if (k0 >= ahead) {
            COPY_ASYNC_WAIT(STAGES - 2);
            __syncthreads();
        }
        const bool whole_k = k0 + BLOCK_K <= g.K;
        if (k0 < g.K) {
#pragma unroll
            for (int s = 0; s < A_COPIES; s++) {
                const unsigned m = (t + s * THREADS) / CHUNKS_K,
                               chunk = (t + s * THREADS) % CHUNKS_K;
                const long long row = tile.row + m, k = k0 + chunk * V;
                COPY_ASYNC_VECTOR(&As[free_stage][m][chunk ^ m % CHUNKS_K], A, row * g.lda + k,
                                  whole_m && whole_k, row < g.M ? g.K - k : 0);
            }
#pragma unroll
            for (int s = 0; s < B_COPIES; s++) {
                const unsigned r = (t + s * THREADS) / CHUNKS_N,
                               chunk = (t + s * THREADS) % CHUNKS_N;
                const long long k = k0 + r, column = tile.column + chunk * V;
                COPY_ASYNC_VECTOR(&Bs[free_stage][r][chunk], B, k * g.ldb + column,
                                  whole_n && whole_k, k < g.K ? g.N - column : 0);
            }
        }
        COPY_ASYNC_COMMIT(); /* at the end empty groups keep the count right */
        free_stage = free_stage + 1 == STAGES ? 0 : free_stage + 1;
        if (k0 < ahead) continue;

#pragma unroll
        for (int chunk = 0; chunk < CHUNKS_K; chunk++) {
            vector a[THREAD_M], b[THREAD_N / V];
#pragma unroll
            for (int i = 0; i < THREAD_M; i++) {
                const unsigned m = m_lane + i * 4;
                a[i] = As[stage][m][chunk ^ m % CHUNKS_K];
            }
#pragma unroll
            for (int k = 0; k < V; k++) {
#pragma unroll
                for (int j = 0; j < THREAD_N / V; j++) {
                    b[j] = Bs[stage][chunk * V + k][n_lane + j * 8];
                }
#pragma unroll
                for (int i = 0; i < THREAD_M; i++) {
#pragma unroll
                    for (int j = 0; j < THREAD_N; j++) {
                        sum[i][j] += element(a[i], k) * element(b[j / V], j % V);
                    }
                }
            }
        }
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }

#pragma unroll
    for (int i = 0; i < THREAD_M; i++) {
        const long long row = tile.row + m_lane + i * 4;
#pragma unroll
        for (int j = 0; j < THREAD_N / V; j++) {
            const long long column = tile.column + (n_lane + j * 8) * V;
            store_epilogue(g, &sum[i][j * V], C + row * g.ldc + column, c_aligned,
                           row < g.M ? g.N - column : 0);
        }
    }
}
