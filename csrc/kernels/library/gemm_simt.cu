/* GEMM: as many FFMAs as issue slots and register ports allow; 8 x 16 outputs per thread.
 *
 *      block: 256 x 128 x 16, warp: 32 x 128, 4 x 8 lanes of 2 vectors of rows, 4 of columns
 *      k         0   1 .. 6             7   8   9 .. 14                15
 *      compute   128 FFMAs each, while the fragments of k + 1 come from shared memory
 *      copy          load tile t + 1            store it, other buffer  barrier
 *
 * Limits, in issue slots per k and warp (one FFMA: one slot; measured on an H200):
 * - 128 FFMAs, 6 LDS.128 for their 24 words, 4 for the tiles, the loop and the fence: 93 % FFMAs.
 * - A 16-byte load in which lanes l and l^1 agree is served 2 groups at once (see vectorized). That
 *   fills registers faster than FFMAs allow: 3 slots. So bits 0 and 1 of a lane each change its row
 *   and its column: row = bits (1 0) xor (3 2), column = bits (4 1 0). This takes 4 wavefronts, 1
 *   slot, and 75 % of the shared memory bandwidth.
 * - Register ports: even and odd registers are two banks, of one operand per cycle each. Columns of
 *   the 8 x 16 are taken alternately down and up, so each FFMA reuses an operand of the last one. A
 *   is stored transposed, so a vector is adjacent rows, and the other two operands alternate banks.
 * - ptxas sinks a load to just before its use, too late when 8 warps share the pipe, but moves none
 *   across a pmevent, which has no effect here. One per k keeps loads ahead of the last 4 columns.
 * - Loads of tiles queue in front of fragment loads, so there is one per k, not all at once.
 * The first tile is the partial one of K. A block at an edge moves inwards until it is whole and
 * stores its own part; if the matrix is smaller, every word is checked. Shared memory: two buffers.
 * Differs from pipelined by all of this, and by staging through registers, since cp.async cannot
 * transpose and costs as many slots.
 */
#define THREAD_M 8
#define THREAD_N 16
#define BLOCK_K  16
#define WARPS_N  (BLOCK_N / 128)
#define THREADS  (BLOCK_M * BLOCK_N / (THREAD_M * THREAD_N))
#include "simt_tiles.cuh"

/* First k that loads and stores the next tile; columns of the outer product before the fence. */
#define FIRST_LOAD         1
#define FIRST_STORE        9
#define STORES_A_K         ((STORES + BLOCK_K - 2 - FIRST_STORE) / (BLOCK_K - 1 - FIRST_STORE))
#define FENCE_AFTER        12
#define SCHEDULING_FENCE() asm volatile("pmevent 1;" ::: "memory")

/* sum += the tile's rows of A times its columns of B. a_lane, b_lane: byte offsets of the lane. */
template <access how>
__device__ __forceinline__ void multiply(REAL (&sum)[THREAD_M][THREAD_N], const gemm_args &g,
                                         const REAL *A, const REAL *B, tile_origin tile,
                                         unsigned shared, unsigned a_lane, unsigned b_lane) {
    const int filled = g.K % BLOCK_K;
    tile_mover<how> mover(g, A, B, tile, filled ? filled - BLOCK_K : 0, shared);
#pragma unroll
    for (int n = 0; n < LOADS; n++) {
        mover.load_checked(n);
    }
    mover.advance();
#pragma unroll
    for (int n = 0; n < STORES; n++) {
        mover.store(n, 0, false);
    }
    __syncthreads();

    unsigned buffer = 0;
    vector a[2][THREAD_M / V], b[2][THREAD_N / V];
    auto load_fragments = [&](int k) {
#pragma unroll
        for (int i = 0; i < THREAD_M / V; i++) {
            LOAD_SHARED(a[k % 2][i], shared + a_lane + buffer + A_AT(k) + i * 16 * V);
        }
#pragma unroll
        for (int j = 0; j < THREAD_N / V; j++) {
            LOAD_SHARED(b[k % 2][j], shared + b_lane + buffer + B_AT(k) + j * 32 * V);
        }
    };
    load_fragments(0);
#pragma unroll 1
    for (long long left = (g.K + BLOCK_K - 1) / BLOCK_K; left > 0; left--) {
        const int wanted = left > 1;
#pragma unroll
        for (int k = 0; k < BLOCK_K; k++) {
            if (k == BLOCK_K - 1) {
                __syncthreads();
                buffer = BUFFER - buffer;
            }
            load_fragments((k + 1) % BLOCK_K);
            if (k >= FIRST_LOAD && k < FIRST_LOAD + LOADS) mover.load(k - FIRST_LOAD, wanted);
            if (k == FIRST_LOAD + LOADS) mover.advance();
#pragma unroll
            for (int n = 0; n < STORES_A_K; n++) {
                const int part = (k - FIRST_STORE) * STORES_A_K + n;
                if (k < FIRST_STORE || part >= STORES) continue;
                mover.store(part, BUFFER - buffer, how == VECTORS);
            }
#pragma unroll
            for (int j = 0; j < THREAD_N; j++) {
#pragma unroll
                for (int s = 0; s < THREAD_M; s++) {
                    const int i = j % 2 ? THREAD_M - 1 - s : s;
                    sum[i][j] += element(a[k % 2][i / V], i % V) * element(b[k % 2][j / V], j % V);
                }
                if (j == FENCE_AFTER - 1) SCHEDULING_FENCE();
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 256 / THREADS)
    gemm_simt(const __grid_constant__ gemm_args g) {
    extern __shared__ vector shared[];
    const REAL *A = g.A + blockIdx.z * g.batch_a;
    const REAL *B = g.B + blockIdx.z * g.batch_b;
    REAL *C = g.C + blockIdx.z * g.batch_c;
    const tile_origin own = block_tile(g.N, BLOCK_M, BLOCK_N);
    tile_origin tile = own;
    if (g.M >= BLOCK_M && tile.row > g.M - BLOCK_M) tile.row = g.M - BLOCK_M;
    if (g.N >= BLOCK_N && tile.column > g.N - BLOCK_N) tile.column = g.N - BLOCK_N;

    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned m_lane = warp / WARPS_N * 32 + ((lane ^ lane >> 2) & 3) * V;
    const unsigned n_lane = warp % WARPS_N * 128 + ((lane & 3) | (lane >> 2 & 4)) * V;
    REAL sum[THREAD_M][THREAD_N] = {};
    const unsigned at = shared_address(shared);
    if (g.M < BLOCK_M || g.N < BLOCK_N) {
        multiply<CHECKED>(sum, g, A, B, tile, at, 4 * m_lane, 4 * n_lane);
    } else if (rows_aligned(A + g.K % V, g.lda, sizeof(REAL)) &&
               rows_aligned(B + tile.column, g.ldb, sizeof(REAL))) {
        multiply<VECTORS>(sum, g, A, B, tile, at, 4 * m_lane, 4 * n_lane);
    } else {
        multiply<WORDS>(sum, g, A, B, tile, at, 4 * m_lane, 4 * n_lane);
    }

    const bool c_aligned = rows_aligned(C + tile.column, g.ldc, sizeof(REAL));
#pragma unroll
    for (int i = 0; i < THREAD_M; i++) {
        const long long row = tile.row + m_lane + i / V * 16 + i % V;
        if (row < own.row || row >= g.M) continue;
#pragma unroll
        for (int j = 0; j < THREAD_N; j += V) {
            const long long column = tile.column + n_lane + j / V * 32;
            store_epilogue(g, &sum[i][j], C + row * g.ldc + column, c_aligned, g.N - column,
                           own.column - column);
        }
    }
}
