/* GEMM of small results and small batches, where what binds is the time of one block: no ring.
 *
 *                    B: K x BLOCK_N                     warps share K: of each 8 slabs of 4 k
 *                    | half 0 |                         SLICES = 8:  | 0 1 2 3 4 5 6 7 |
 *                    | half 1 |                         SLICES = 4:  | 0 1 2 3 0 1 2 3 |
 *      A: BLOCK_M x K                                   a slice's warps lie side by side over the block's tile,
 *      | half 0 | half 1 |   C: BLOCK_M x BLOCK_N       4 x 8 lanes, THREAD_M x THREAD_N outputs each
 *
 * A ring of tiles pays a wait and a barrier for each of its tiles, and small tiles of C leave little to do
 * between them. Here every copy of the panel is on its way before the first is waited for: one latency. It is
 * waited for in two halves, so that the first is multiplied while the second still comes. A longer K than
 * PANEL_K goes through the same two halves, each refilled when it has been used.
 *
 * Warps share K and not only the tile, because a small tile has few outputs a thread, and then shared memory
 * binds: 4 x 4 outputs and 4 k are 64 FFMAs for 8 reads of 16 bytes; 4 outputs would be 16 for 4. The slices'
 * sums meet in shared memory, SLICES BLOCK_M BLOCK_N 4 bytes written and read, and are added by whoever stores them.
 *
 * Clocks, 256^3 in tiles of 16 x 32: 128 blocks, one wave. 48 KiB from L2 at 64 bytes a clock 768, after some 700
 * of latency; 1024 of FFMAs, as many wavefronts of reads; 64 for the sums, twice. Some 3000 in all, 1.6 us, beside
 * the 3.6 of a launch that does nothing. Measured are 6.2; 7.3 where its code is not in a cache.
 * C is stored by way of shared memory, so that the lanes of a request lie along a row: panel_sums.cuh.
 * Banks: panel_copies.cuh. In a warp lanes 0, 1, 4, 5 of 8 have one row and 2, 3, 6, 7 another; lanes l and l^1
 * have a row in common, l and l^2 a column, so both operands' reads merge: 2 wavefronts a request.
 * Differs from pipelined by having no ring, and warps that share K.
 */
#include "panel_copies.cuh"
#include "panel_sums.cuh"
#include "split_k.cuh"

/* What a block makes: K's first..end - 1 of the tile of C from (row, column) on. */
typedef struct block_work {
    long long row, column, first, end;
    int part;
} block_work;

__device__ __forceinline__ block_work work_of_block(const gemm_args &g) {
    const unsigned across = (unsigned)((g.N + BLOCK_N - 1) / BLOCK_N);
    unsigned part = 0, tile = blockIdx.x;
    long long first = 0, end = g.K;
    if (g.split > 1) {
        const unsigned tiles = gridDim.x / (unsigned)g.split;
        part = tile / tiles;
        tile -= part * tiles;
        const int chunks = (int)((g.K + CHUNK - 1) / CHUNK);
        const part_range range = range_of((int)part, (int)g.split, chunks);
        first = (long long)range.first * CHUNK;
        end = min((long long)range.end * CHUNK, g.K);
    }
    const unsigned down = tile / across;
    return {(long long)down * BLOCK_M, (long long)(tile - down * across) * BLOCK_N, first, end,
            (int)part};
}

template <order OF_A, order OF_B> __device__ __forceinline__ void product(const gemm_args &g) {
    extern __shared__ uint4 bytes[];
    float *shared = reinterpret_cast<float *>(bytes);
    const block_work block = work_of_block(g);
    const operand_lines A =
        lines_from<OF_A>(g.A + blockIdx.z * g.batch_a, OF_A == ALONG ? g.lda : g.step_a, block.row,
                         g.M, block.first, block.end);
    const operand_lines B =
        lines_from<OF_B>(g.B + blockIdx.z * g.batch_b, OF_B == ALONG ? g.step_b : g.ldb,
                         block.column, g.N, block.first, block.end);
    const int chunks = (int)((A.k + CHUNK - 1) / CHUNK);
    const int half = min((chunks + 1) / 2, PANEL_K / CHUNK / 2); /* chunks */

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, slice = warp / WARPS;
    const int lane_m = lane >> 1 & 1 | lane >> 3 & 2, lane_n = lane & 1 | lane >> 1 & 6;
    const int row = warp % WARPS / WARPS_N * WARP_M + lane_m * 4;
    const int column = warp % WARPS_N * WARP_N + lane_n * 4;

    /* Both operands' halves, A's before B's. */
    constexpr int A_CHUNK = BLOCK_M * CHUNK, B_CHUNK = BLOCK_N * CHUNK;
    unsigned panel = shared_address(shared);
    asm volatile("" : "+r"(panel)); /* else it would be made anew at each use */
    float sum[THREAD_M][THREAD_N] = {};
    overlap_launches();
    /* Turn h copies half h and multiplies the one before. */
#pragma unroll 1
    for (int h = 0; h == 0 || (h - 1) * half < chunks; h++) {
        const int first = h * half, end = min(first + half, chunks);
        if (first < end) {
            if (h >= 2) __syncthreads(); /* nobody reads its place any more */
            const unsigned a = panel + h % 2 * half * A_CHUNK * 4;
            const unsigned b = panel + (2 * half * A_CHUNK + h % 2 * half * B_CHUNK) * 4;
            copy_panel<OF_A, BLOCK_M, 4, THREADS>(a, A, first, end);
            copy_panel<OF_B, BLOCK_N, 4, THREADS>(b, B, first, end);
        }
        COPY_ASYNC_COMMIT();
        if (h == 0) continue;
        COPY_ASYNC_WAIT(1);
        __syncthreads();
        const float *a = shared + (h - 1) % 2 * half * A_CHUNK;
        const float *b = shared + 2 * half * A_CHUNK + (h - 1) % 2 * half * B_CHUNK;
        const long long left = A.k - (long long)(first - half) * CHUNK;
        const int here = ((int)min(left, (long long)half * CHUNK) + SLAB - 1) / SLAB; /* slabs */
#pragma unroll 2
        for (int slab = slice; slab < here; slab += SLICES) {
            float x[THREAD_M][SLAB], y[THREAD_N][SLAB];
            load_fragment<OF_A, BLOCK_M, 4, 4 * LANES_M>(x, a, row, slab);
            load_fragment<OF_B, BLOCK_N, 4, 4 * LANES_N>(y, b, column, slab);
#pragma unroll
            for (int k = 0; k < SLAB; k++) {
#pragma unroll
                for (int m = 0; m < THREAD_M; m++) {
#pragma unroll
                    for (int n = 0; n < THREAD_N; n++) {
                        sum[m][n] += x[m][k] * y[n][k];
                    }
                }
            }
        }
    }

    __syncthreads();
    put_sums(shared + slice * TILE, sum, row, column);
    __syncthreads();
    gemm_args into = g; /* C, or the part's sums, which are a product by themselves */
    into.C += blockIdx.z * g.batch_c + block.row * g.ldc + block.column;
    if (g.split > 1) {
        into.C = part_at(g, block.part, block.row, block.column);
        into.ldc = into.N = g.part_pitch;
        into.alpha = 1;
        into.beta = 0;
    }
    if (rows_aligned(into.C, into.ldc, sizeof(float))) {
        store<4>(into, shared, g.M - block.row, into.N - block.column);
    } else {
        store<1>(into, shared, g.M - block.row, into.N - block.column);
    }
}

/* Registers that a thread may have, and so how many blocks a multiprocessor has at once. */
constexpr int REGISTERS = THREAD_M * THREAD_N <= 16 ? 80 : THREAD_M * THREAD_N <= 32 ? 128 : 248;
constexpr int BLOCKS = THREADS * REGISTERS < 65536 ? 65536 / REGISTERS / THREADS : 1;

#define PANEL(name, of_a, of_b)                                                                    \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                  \
        name(const __grid_constant__ gemm_args g) {                                                \
        product<of_a, of_b>(g);                                                                    \
    }
PANEL(gemm_panel, ALONG, ACROSS)
PANEL(gemm_panel_a, ACROSS, ACROSS)
PANEL(gemm_panel_b, ALONG, ALONG)
PANEL(gemm_panel_ab, ACROSS, ALONG)
SUM_PARTS(gemm_panel_reduce)
