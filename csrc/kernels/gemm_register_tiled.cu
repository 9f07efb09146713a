/* GEMM: each thread computes THREAD_M x THREAD_N outputs in registers, so that a word from shared
 * memory feeds several FFMAs.
 *
 *                      BLOCK_N = 64
 *                 +------------------+          256 threads as 16 x 16, 4 x 4 outputs each:
 *                 | Bs[k][n]  16 x 64|          thread (x, y) owns rows 4 y .. 4 y + 3
 *                 +------------------+                  and columns 4 x .. 4 x + 3
 *   As[k][m]      |      4           |
 *   16 x 64   64  |    4[C]          |          per k: 4 words of As, 4 of Bs, 16 FFMAs
 *                 +------------------+
 *
 * Banks (float, defaults): A's tile is stored transposed, so each k reads a row of As. The load
 * As[k][4 y + i] is one word for each of the warp's two y: 1 wavefront. The load Bs[k][4 x + j] has
 * a stride of 4 words over 16 lanes: 8 banks, 2-way. The transposed store goes down a column of 16
 * rows and two m: rows 64 words apart conflict 16-way; PAD = 1, 65 words, leaves 2-way.
 * So a k costs 4 + 8 wavefronts for 16 FFMAs, which take the SM 4 cycles: shared memory binds.
 * ptxas merges loads that it can prove aligned (every fourth row of 65 words): 8.5 per k remain.
 * PAD = 0 makes every load an LDS.128, 6 per k, and every store to As 16-way: no faster. vectorized
 * requests wide loads explicitly, in a lane order in which they do not conflict.
 * Bytes: 2 M N K / 64 words of global memory; 8 instead of 32 shared words per 16 FFMAs.
 * Differs from tiled by several outputs per thread, and by As being transposed and padded.
 */
#include "common.cuh"

#define THREADS_N (BLOCK_N / THREAD_N)
#define THREADS   (BLOCK_M / THREAD_M * THREADS_N)
#define A_ROWS    (THREADS / BLOCK_K) /* rows of the tile that the block copies per step */
#define B_ROWS    (THREADS / BLOCK_N)

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_register_tiled(const __grid_constant__ gemm_args g) {
    __shared__ REAL As[BLOCK_K][BLOCK_M + PAD];
    __shared__ REAL Bs[BLOCK_K][BLOCK_N + PAD];

    const REAL *A = g.A + blockIdx.z * g.batch_a;
    const REAL *B = g.B + blockIdx.z * g.batch_b;
    REAL *C = g.C + blockIdx.z * g.batch_c;

    const unsigned t = threadIdx.x;
    const unsigned x = t % THREADS_N, y = t / THREADS_N;
    const tile_origin tile = block_tile(g.N, BLOCK_M, BLOCK_N);

    /* Thread t copies elements t, t + THREADS, ... of each tile: always the same column. */
    const unsigned a_k = t % BLOCK_K, a_m = t / BLOCK_K;
    const unsigned b_n = t % BLOCK_N, b_k = t / BLOCK_N;
    const REAL *a_from = A + (tile.row + a_m) * g.lda + a_k;
    const REAL *b_from = B + b_k * g.ldb + tile.column + b_n;
    const bool b_exists = tile.column + b_n < g.N;

    REAL sum[THREAD_M][THREAD_N] = {};
    for (long long k0 = 0; k0 < g.K; k0 += BLOCK_K) {
#pragma unroll
        for (int m = 0; m < BLOCK_M; m += A_ROWS) {
            const bool exists = (tile.row + a_m + m < g.M) & (k0 + a_k < g.K);
            As[a_k][a_m + m] = exists ? a_from[m * g.lda] : REAL(0);
        }
#pragma unroll
        for (int k = 0; k < BLOCK_K; k += B_ROWS) {
            Bs[b_k + k][b_n] = b_exists & (k0 + b_k + k < g.K) ? b_from[k * g.ldb] : REAL(0);
        }
        a_from += BLOCK_K;
        b_from += BLOCK_K * g.ldb;
        __syncthreads();

#pragma unroll
        for (int k = 0; k < BLOCK_K; k++) {
            REAL a[THREAD_M], b[THREAD_N];
#pragma unroll
            for (int i = 0; i < THREAD_M; i++) {
                a[i] = As[k][y * THREAD_M + i];
            }
#pragma unroll
            for (int j = 0; j < THREAD_N; j++) {
                b[j] = Bs[k][x * THREAD_N + j];
            }
#pragma unroll
            for (int i = 0; i < THREAD_M; i++) {
#pragma unroll
                for (int j = 0; j < THREAD_N; j++) {
                    sum[i][j] += a[i] * b[j];
                }
            }
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < THREAD_M; i++) {
#pragma unroll
        for (int j = 0; j < THREAD_N; j++) {
            const long long row = tile.row + y * THREAD_M + i;
            const long long column = tile.column + x * THREAD_N + j;
            if (row < g.M && column < g.N) {
                REAL *c = C + row * g.ldc + column;
                *c = epilogue(g, sum[i][j], c);
            }
        }
    }
}
