/* GEMM of float64 matrices by int8 tensor cores from sm_80 on: ozaki2 with mma.sync.
 *
 *   planes of A', B'   cp.async, 128 rows of A and 256 of B by 128 bytes of K per stage
 *   row r              16-byte chunk c is at c ^ r % 8: ldmatrix of 8 rows reads 8 different chunks
 *   a warp             64 x 64 of C: per 32 bytes of K 4 + 4 ldmatrix.x4 for 32 MMAs
 *
 * FLOPs: MODULI times 2 M N K at int8's rate.
 * Bytes: as ozaki2's; sums are reduced to bytes in registers and stored four at a time.
 * Banks: the fewest wavefronts; 8 lanes of cp.async write the 8 chunks of a row.
 * Differs from ozaki2 by the instructions of the product alone.
 */
#include "mma_bytes.cuh"

OZAKI_KERNEL(gemm_mma_ozaki2, THREADS, 1) {
    extern __shared__ unsigned char shared[];
    const unsigned stages = shared_address(shared);
    const int down = (int)((g.M + BLOCK_M - 1) / BLOCK_M);
    const int across = (int)((g.N + BLOCK_N - 1) / BLOCK_N);
    const int items = down * across * MODULI * o.batches;
    const int steps = (o.k + OZAKI_STEP - 1) / OZAKI_STEP;
    const int warp = threadIdx.x / 32, warp_row = warp / (BLOCK_N / WARP) * WARP,
              warp_column = warp % (BLOCK_N / WARP) * WARP;
    overlap_launches();
    for (int item = blockIdx.x; item < items; item += gridDim.x) {
        const plane_tile t = tile_of(item, down, across);
        const operands from = operands_of(o, t);
        sums sum = {};
#pragma unroll
        for (int step = 0; step < STAGES - 1; step++) {
            if (step < steps) fill(stages + step * STAGE, o, from, t, step);
            COPY_ASYNC_COMMIT();
        }
        for (int step = 0; step < steps; step++) {
            COPY_ASYNC_WAIT(STAGES - 2);
            __syncthreads(); /* all copies have landed, and the stage before is free */
            const int later = step + STAGES - 1;
            if (later < steps) fill(stages + later % STAGES * STAGE, o, from, t, later);
            COPY_ASYNC_COMMIT();
            multiply(sum, stages + step % STAGES * STAGE, warp_row, warp_column);
        }
        __syncthreads(); /* before the next tile fills the stages */
        store(g, o, sum, t, t.row + warp_row, t.column + warp_column);
    }
}

OZAKI_OTHER_KERNELS(gemm_mma_ozaki2)
