/* GEMM of small results and small batches, limited by the time of one block: no ring of tiles.
 *
 *                   B: K x BLOCK_N                  warps split K: of every 8 slabs of 4 k
 *                   | half 0 |                      SLICES = 8:  | 0 1 2 3 4 5 6 7 |
 *                   | half 1 |                      SLICES = 4:  | 0 1 2 3 0 1 2 3 |
 *   A: BLOCK_M x K                                  the warps of a slice cover the block's tile:
 *   | half 0 | half 1 |   C: BLOCK_M x BLOCK_N      4 x 8 lanes, THREAD_M x THREAD_N outputs each
 *
 * A ring costs a wait and a barrier per tile, and small tiles of C have little work in between.
 * Here all copies of the panel start before the first wait, so their latency is paid once. The wait
 * is in two halves: the first half is multiplied while the second still arrives. A K longer than
 * PANEL_K goes through the same two halves, each refilled after its use.
 * Split of K: a small tile has few outputs per thread, and then shared memory binds. 4 x 4 outputs
 * and 4 k are 64 FFMAs for 8 loads of 16 bytes; 4 outputs would be 16 FFMAs for 4. So warps also
 * split K. The slices' sums pass through shared memory (SLICES BLOCK_M BLOCK_N 4 bytes written and
 * read), and the thread that stores an element adds them.
 * Clocks, 256^3 in tiles of 16 x 32: 128 blocks, one wave. 48 KiB from L2 at 64 bytes per clock
 * take 768, after a latency of some 700. FFMAs take 1024, with as many wavefronts of loads. The
 * sums take 2 x 64. In all some 3000, 1.6 us; an empty launch takes 3.6 us. Measured: 6.2 us, and
 * 7.3 us where the kernel's code is not cached.
 * C is stored through shared memory, so that a request's lanes lie along a row: sliced_k_sums.cuh.
 * Banks: sliced_k_copies.cuh. Of 8 lanes, 0, 1, 4, 5 have one row, 2, 3, 6, 7 another. Lanes l and
 * l^1 share a row, l and l^2 a column, so loads of both operands merge: 2 wavefronts per request.
 * Differs from pipelined by having no ring, and by warps that split K.
 */
#include "sliced_k_copies.cuh"
#include "sliced_k_sums.cuh"
#include "split_k.cuh"

/* The work of a block: k = first..end - 1 of the tile of C at (row, column). */
typedef struct block_work {
    long long row, column, first, end;
    int part;
} block_work;

__device__ __forceinline__ block_work work_of_block(const gemm_args &g) {
    const int item = (int)blockIdx.x, part = divide(item, g.tiles.by_all);
    const tile_place tile = place(item - part * g.tiles.down * g.tiles.across, g.tiles);
    const part_range range = range_of(part, g.tiles);
    return {(long long)tile.row * BLOCK_M, (long long)tile.column * BLOCK_N,
            (long long)range.first * CHUNK, min((long long)range.end * CHUNK, g.K), part};
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
    const int half = min((chunks + 1) / 2, PANEL_K / CHUNK / 2); /* in chunks */

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, slice = warp / WARPS;
    const int lane_m = lane >> 1 & 1 | lane >> 3 & 2, lane_n = lane & 1 | lane >> 1 & 6;
    const int row = warp % WARPS / WARPS_N * WARP_M + lane_m * 4;
    const int column = warp % WARPS_N * WARP_N + lane_n * 4;

    /* Shared memory: both halves of A, then both halves of B. */
    constexpr int A_CHUNK = BLOCK_M * CHUNK, B_CHUNK = BLOCK_N * CHUNK;
    unsigned panel = shared_address(shared);
    asm volatile("" : "+r"(panel)); /* otherwise recomputed at each use */
    float sum[THREAD_M][THREAD_N] = {};
    overlap_launches();
    /* Iteration h copies half h and multiplies half h - 1. */
#pragma unroll 1
    for (int h = 0; h == 0 || (h - 1) * half < chunks; h++) {
        const int first = h * half, end = min(first + half, chunks);
        if (first < end) {
            if (h >= 2) __syncthreads(); /* all warps have read this half */
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
            multiply_slab(sum, x, y);
        }
    }

    __syncthreads();
    put_sums(shared + slice * TILE, sum, row, column);
    __syncthreads();
    gemm_args into = g; /* C, or the sums of this split-K part */
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

/* Registers per thread at most, and with them the resident blocks per multiprocessor. */
constexpr int REGISTERS = THREAD_M * THREAD_N <= 16 ? 80 : THREAD_M * THREAD_N <= 32 ? 128 : 248;
constexpr int BLOCKS = THREADS * REGISTERS < 65536 ? 65536 / REGISTERS / THREADS : 1;

#define SLICED_K(name, of_a, of_b)                                                                 \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                  \
        name(const __grid_constant__ gemm_args g) {                                                \
        product<of_a, of_b>(g);                                                                    \
    }
SLICED_K(gemm_sliced_k, ALONG, ACROSS)
SLICED_K(gemm_sliced_k_a, ACROSS, ACROSS)
SLICED_K(gemm_sliced_k_b, ALONG, ALONG)
SLICED_K(gemm_sliced_k_ab, ACROSS, ALONG)
SUM_PARTS(gemm_sliced_k_reduce)
