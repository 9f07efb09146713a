/* GEMM: one thread of a producer warp issues TMA copies of whole tiles; mbarriers track them.
 *
 *   producer   |A0 B0|A1 B1|A2 B2|A3 B3|  waits for empty[0]  |A4 B4| ...
 *   ring          [0]   [1]   [2]   [3]                          [0]    STAGES tiles of A and B
 *   consumer 0        |0 0 0 0 0 0|1 1 1 1 1 1|2 2 ...                  a warp waits for full[s],
 *   consumer 1         |0 0 0 0 0 0|1 1 1 1 1 1|2 ...                   multiplies, frees empty[s]
 *
 *   full[s]   completes a phase when the producer has arrived and the expected bytes have landed
 *   empty[s]  completes a phase when every consumer warp has arrived
 *
 * A phase has a parity: 0 in the ring's first round, 1 in the second, 0 again. A wait names a
 * parity and returns when the phase of that parity has completed. The producer names the parity of
 * the previous round, which counts as completed on a new barrier.
 *
 * Gain: pipelined spends an address, a bounds check and an instruction per 16 bytes in every
 * thread. Here 5 instructions of one thread copy 32 KiB. They give a box's place in a tensor map
 * that the host made, so edges need no special case: elements outside arrive as 0. No __syncthreads
 * waits for the slowest warp: a late warp holds up the ring only STAGES tiles later. The producer
 * also runs on past the end of a tile of C. Requirement: rows on 16-byte boundaries, along the box.
 * An A or B that does not have them, or is transposed, is copied first by gemm_tma_pack.
 *
 *   A's tile: one box, [m][k], BLOCK_M x 128 bytes   B's: BLOCK_N / 32 boxes, [k][n], 32 x 128
 *   TMA's 128-byte swizzle puts chunk p (16 bytes) of row r at p ^ r % 8, nearly as pipelined does
 *
 * Banks: 4 rows of A at one p, 8 p of one row of B: different chunks, so 2 wavefronts per 16-byte
 * load, the minimum. Warps, lanes and FLOPs: pipelined's. Bytes: 32 KiB of L2 per 4096 FFMA clocks.
 * Differs from pipelined by the producer warp and by mbarriers in place of __syncthreads.
 */
#include "common.cuh"
#include "hopper.cuh"
#include "tile_order.cuh"

#define PARTS 1
typedef float operand;
#include "wgmma_pack.cuh"
WGMMA_PREPARE(gemm_tma_pack, pack)

#define BLOCK_K   32
#define PIECES    8 /* 16-byte chunks per row of a box */
#define BOXES_N   (BLOCK_N / 32)
#define WARPS_N   (BLOCK_N / 64)
#define CONSUMERS (BLOCK_M / 32 * WARPS_N)
#define THREADS   (32 * CONSUMERS + 32)

typedef struct ring {
    vector A[STAGES][BLOCK_M][PIECES];
    vector B[STAGES][BOXES_N][BLOCK_K][PIECES];
    unsigned long long full[STAGES], empty[STAGES]; /* mbarriers */
} ring;

/* Loads all tiles of A and B for one tile of C. n: tiles that this block has loaded so far. */
__device__ __forceinline__ void produce(const gemm_args &g, int steps, const tensor_map &A,
                                        const tensor_map &B, ring &r, unsigned n, int row,
                                        int column) {
    for (int step = 0; step < steps; step++, n++) {
        const unsigned s = n % STAGES, full = shared_address(&r.full[s]);
        barrier_wait(shared_address(&r.empty[s]), n / STAGES % 2 ^ 1);
        barrier_expect(full, sizeof r.A[s] + sizeof r.B[s]);
        tma_load(shared_address(r.A[s]), &A, full, step * BLOCK_K, row, g.batch_a ? blockIdx.z : 0);
        for (int box = 0; box < BOXES_N; box++) {
            tma_load(shared_address(r.B[s][box]), &B, full, column + box * 32, step * BLOCK_K,
                     g.batch_b ? blockIdx.z : 0);
        }
    }
}

__device__ __forceinline__ void consume(REAL (&sum)[8][8], int steps, ring &r, unsigned n,
                                        unsigned m_lane, unsigned box, unsigned n_lane) {
    for (int step = 0; step < steps; step++, n++) {
        const unsigned s = n % STAGES;
        barrier_wait(shared_address(&r.full[s]), n / STAGES % 2);
        vector a[8], b[2];
#pragma unroll 16 /* all 32 would be 35 KB of code */
        for (int k = 0; k < BLOCK_K; k++) {
#pragma unroll
            for (int i = 0; k % V == 0 && i < 8; i++) { /* 4 k at a time */
                const unsigned m = m_lane + i * 4;
                a[i] = r.A[s][m][k / V ^ m % 8];
            }
#pragma unroll
            for (int j = 0; j < 2; j++) {
                b[j] = r.B[s][box + j][k][n_lane ^ k % 8];
            }
#pragma unroll
            for (int i = 0; i < 8; i++) {
#pragma unroll
                for (int j = 0; j < 8; j++) {
                    sum[i][j] += element(a[i], k % V) * element(b[j / V], j % V);
                }
            }
        }
        __syncwarp(); /* all lanes have read before lane 0 arrives */
        if (threadIdx.x % 32 == 0) barrier_arrive(shared_address(&r.empty[s]));
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_tma(const __grid_constant__ gemm_args g, const __grid_constant__ wgmma_args w,
             const __grid_constant__ tensor_map A, const __grid_constant__ tensor_map B,
             const __grid_constant__ tensor_map) {
    extern __shared__ __align__(
        1024) unsigned char shared[]; /* the swizzle counts rows from there */
    ring &r = *reinterpret_cast<ring *>(shared);
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(shared_address(&r.full[s]), 1);
            barrier_init(shared_address(&r.empty[s]), CONSUMERS);
        }
        barrier_init_done();
    }
    __syncthreads(); /* the only block-wide barrier */
    overlap_launches();

    const int down = (g.M + BLOCK_M - 1) / BLOCK_M, across = (g.N + BLOCK_N - 1) / BLOCK_N;
    const unsigned m_lane = warp / WARPS_N * 32 + (lane & 1) + (lane >> 4) * 2;
    const unsigned box = warp % WARPS_N * 2, n_lane = (lane >> 1) % 8;
    REAL *C = g.C + blockIdx.z * g.batch_c;
    const bool c_aligned = rows_aligned(C, g.ldc, sizeof(REAL));
    unsigned n = 0;
    for (int tile = blockIdx.x; tile < down * across; tile += gridDim.x, n += w.steps) {
        const tile_place to = place<TILE_ORDER_ROWS / BLOCK_M>(tile, down, across);
        const int row = to.row * BLOCK_M, column = to.column * BLOCK_N;
        if (warp == CONSUMERS) {
            if (lane == 0) produce(g, w.steps, A, B, r, n, row, column);
            continue;
        }
        REAL sum[8][8] = {};
        consume(sum, w.steps, r, n, m_lane, box, n_lane);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const long long m = row + m_lane + i * 4;
#pragma unroll
            for (int j = 0; j < 2; j++) {
                const long long at = column + (box + j) * 32 + n_lane * V;
                store_epilogue(g, &sum[i][j * V], C + m * g.ldc + at, c_aligned,
                               m < g.M ? g.N - at : 0);
            }
        }
    }
}
