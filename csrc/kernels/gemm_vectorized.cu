/* GEMM: every memory access moves 16 bytes. A swizzle avoids bank conflicts, because rows padded by
 * one word would not start on 16-byte boundaries.
 *
 *      warp: 4 x 8 lanes; a lane owns every 4th row and every 8th vector of columns
 *                    | v0 v1 .. v7 | v0 v1 .. v7 |   V = 16 / sizeof(REAL) elements per vector
 *            row 0   | o           | o           |   o: the vectors of lane row 0, column 0
 *            row 1.3 |             |             |   warp tile: 4 THREAD_M x 8 THREAD_N
 *            row 4   | o           | o           |   block: 64 x 128 x 16, 4 warps, thread 8 x 8
 *
 * As[m][chunk ^ m] holds A as it is in global memory, a chunk being V adjacent k: a lane reads one
 * chunk of 8 rows and has V steps of A in registers. Bs[k][n] likewise, in chunks of V columns.
 * Banks: a 16-byte request is served 8 lanes at a time, or 16 if lanes l and l^1 (or l and l^2)
 * always have the same address. So lane bits 0 and 4 select the row, bits 1..3 the column. In a
 * load of A lanes l and l^2 agree, in a load of B l and l^1; each takes 2 wavefronts, the minimum
 * of a full-warp LDS.128. Half a warp reads 2 adjacent rows of As (the XOR puts them in other banks
 * if a row fills all banks) or 128 bytes of a row of Bs. Stores: 8 lanes, 128 bytes, 4 wavefronts.
 * A chunk costs 32 wavefronts per warp for 256 FFMAs per lane: half as long as the arithmetic.
 * Bytes: M N K (1/64 + 1/128) words of global memory. Edge tiles, and matrices whose rows are not
 * 16-byte aligned, are loaded word by word; the branch is uniform in the block.
 * Differs from register_tiled by vectors, swizzle, lane order, and two buffers as in double_buffer.
 */
#include "common.cuh"

#define WARPS_N  (BLOCK_N / (8 * THREAD_N))
#define THREADS  (BLOCK_M / (4 * THREAD_M) * WARPS_N * 32)
#define CHUNKS_K (BLOCK_K / V) /* per row of As */
#define CHUNKS_N (BLOCK_N / V) /* per row of Bs */
#define A_COPIES (BLOCK_M * CHUNKS_K / THREADS)
#define B_COPIES (BLOCK_K * CHUNKS_N / THREADS)

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_vectorized(const __grid_constant__ gemm_args g) {
    extern __shared__ vector shared[];
    vector(*As)[BLOCK_M][CHUNKS_K] = reinterpret_cast<vector(*)[BLOCK_M][CHUNKS_K]>(shared);
    vector(*Bs)[BLOCK_K][CHUNKS_N] = reinterpret_cast<vector(*)[BLOCK_K][CHUNKS_N]>(As + 2);

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
    vector a_next[A_COPIES], b_next[B_COPIES];
    int buffer = 0;
    for (long long k0 = 0; k0 < g.K + BLOCK_K; k0 += BLOCK_K, buffer ^= 1) {
        const bool fetch = k0 < g.K, use = k0 > 0, whole_k = k0 + BLOCK_K <= g.K;
        if (fetch) {
#pragma unroll
            for (int s = 0; s < A_COPIES; s++) {
                const long long row = tile.row + (t + s * THREADS) / CHUNKS_K;
                const long long k = k0 + (t + s * THREADS) % CHUNKS_K * V;
                a_next[s] =
                    load_vector(A + row * g.lda + k, whole_m && whole_k, row < g.M ? g.K - k : 0);
            }
#pragma unroll
            for (int s = 0; s < B_COPIES; s++) {
                const long long k = k0 + (t + s * THREADS) / CHUNKS_N;
                const long long column = tile.column + (t + s * THREADS) % CHUNKS_N * V;
                b_next[s] = load_vector(B + k * g.ldb + column, whole_n && whole_k,
                                        k < g.K ? g.N - column : 0);
            }
        }
        if (use) {
#pragma unroll
            for (int chunk = 0; chunk < CHUNKS_K; chunk++) {
                vector a[THREAD_M], b[THREAD_N / V];
#pragma unroll
                for (int i = 0; i < THREAD_M; i++) {
                    const unsigned m = m_lane + i * 4;
                    a[i] = As[buffer ^ 1][m][chunk ^ m % CHUNKS_K];
                }
#pragma unroll
                for (int k = 0; k < V; k++) {
#pragma unroll
                    for (int j = 0; j < THREAD_N / V; j++) {
                        b[j] = Bs[buffer ^ 1][chunk * V + k][n_lane + j * 8];
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
        }
        if (fetch) {
#pragma unroll
            for (int s = 0; s < A_COPIES; s++) {
                const unsigned m = (t + s * THREADS) / CHUNKS_K,
                               chunk = (t + s * THREADS) % CHUNKS_K;
                As[buffer][m][chunk ^ m % CHUNKS_K] = a_next[s];
            }
#pragma unroll
            for (int s = 0; s < B_COPIES; s++) {
                Bs[buffer][(t + s * THREADS) / CHUNKS_N][(t + s * THREADS) % CHUNKS_N] = b_next[s];
            }
        }
        __syncthreads();
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
