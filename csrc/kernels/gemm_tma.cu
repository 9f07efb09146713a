/* GEMM: one thread of a warp of its own asks for whole tiles, TMA copies them, mbarriers say when.
 *
 *   producer     |A0 B0|A1 B1|A2 B2|A3 B3|  waits for empty[0]  |A4 B4| ...
 *   ring            [0]   [1]   [2]   [3]                          [0]      STAGES tiles of A and B
 *   consumer 0          |0 0 0 0 0 0|1 1 1 1 1 1|2 2 ...                    a warp waits for full[s],
 *   consumer 1           |0 0 0 0 0 0|1 1 1 1 1 1|2 ...                     multiplies, arrives at empty[s]
 *
 *   full[s]   its phase ends when the producer has arrived and as many bytes as it said have landed
 *   empty[s]  its phase ends when every consumer warp has arrived
 *
 * Phases have parities: 0 in the ring's first round, 1 in the second, 0 again. A wait returns when the phase
 * of the parity that it names has ended. The producer names the round before, which on a new barrier counts as
 * ended.
 *
 * What it changes: pipelined pays an address, a bounds check and an instruction for every 16 bytes of every
 * thread. Here 5 instructions of one thread copy 32 KiB. They say where a box lies in a map of the matrix that
 * the host made, so edges are no case: what is outside arrives as 0. Nobody waits at a __syncthreads for the
 * slowest warp: one that falls behind holds up the ring only STAGES tiles later. And the producer goes on over
 * the end of a tile of C. What it asks for: rows on 16-byte boundaries, along the box. Where A or B has others,
 * or is transposed, gemm_tma_pack copies it first.
 *
 *   A's tile: one box, [m][k], BLOCK_M rows of 128 bytes     B's: BLOCK_N / 32 boxes, [k][n], 32 rows of 128
 *   TMA's 128-byte swizzle puts piece p (16 bytes) of row r at p ^ r % 8, nearly as pipelined does
 *
 * Banks: 4 rows of A at one p, 8 p of one row of B: different pieces, so 2 wavefronts a 16-byte read and none
 * lost. Warps, lanes and FLOPs are pipelined's. Bytes: 32 KiB from L2 for 4096 clocks of FFMA.
 * Differs from pipelined by who copies, and who waits for whom.
 */
#include "common.cuh"
#include "hopper.cuh"
#include "tile_order.cuh"

#define PARTS 1
typedef float operand;
#include "wgmma_pack.cuh"
WGMMA_PREPARE(gemm_tma_pack, pack)

#define BLOCK_K   32
#define PIECES    8 /* a row of a box */
#define BOXES_N   (BLOCK_N / 32)
#define WARPS_N   (BLOCK_N / 64)
#define CONSUMERS (BLOCK_M / 32 * WARPS_N)
#define THREADS   (32 * CONSUMERS + 32)

typedef struct ring {
    vector A[STAGES][BLOCK_M][PIECES];
    vector B[STAGES][BOXES_N][BLOCK_K][PIECES];
    unsigned long long full[STAGES], empty[STAGES]; /* mbarriers */
} ring;

/* A tile of C's tiles of A and B, one after the other; n: of all that this block has used. */
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
        __syncwarp(); /* all lanes have read, before one says so */
        if (threadIdx.x % 32 == 0) barrier_arrive(shared_address(&r.empty[s]));
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_tma(const __grid_constant__ gemm_args g, const __grid_constant__ wgmma_args w,
             const __grid_constant__ tensor_map A, const __grid_constant__ tensor_map B,
             const __grid_constant__ tensor_map) {
    extern __shared__ __align__(
        1024) unsigned char shared[]; /* a swizzled row's r counts from 1024 */
    ring &r = *reinterpret_cast<ring *>(shared);
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(shared_address(&r.full[s]), 1);
            barrier_init(shared_address(&r.empty[s]), CONSUMERS);
        }
        barrier_init_done();
    }
    __syncthreads(); /* the only one */
    overlap_launches();

    const int down = (g.M + BLOCK_M - 1) / BLOCK_M, across = (g.N + BLOCK_N - 1) / BLOCK_N;
    const unsigned m_lane = warp / WARPS_N * 32 + (lane & 1) + (lane >> 4) * 2;
    const unsigned box = warp % WARPS_N * 2, n_lane = (lane >> 1) % 8;
    REAL *C = g.C + blockIdx.z * g.batch_c;
    const bool c_aligned = rows_aligned(C, g.ldc, sizeof(REAL));
    unsigned n = 0;
    for (int tile = blockIdx.x; tile < down * across; tile += gridDim.x, n += w.steps) {
        const tile_place to = place<2048 / BLOCK_M>(tile, down, across);
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
