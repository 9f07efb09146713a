// Mistake: a producer that does not wait until its tile is free.
//
// y = x with each 64 elements reversed. Warp 2 copies; warps 0 and 1 read and arrive at `empty`, on
// which no thread waits. So the second copy may land before the first was read. Then `full` is one
// phase ahead of the readers, which wait for a phase that never completes.

#include "bulk_load.cuh"

extern "C" __global__ void unawaited_refill(const float *x, float *y) {
    __shared__ __align__(128) float tile[64];
    __shared__ unsigned long long barriers[2];
    const unsigned t = threadIdx.x, full = shared_address(barriers), empty = full + 8;
    if (t == 0) {
        barrier_init(full, 1);
        barrier_init(empty, 64);
        barrier_init_done();
    }
    __syncthreads();
    for (unsigned n = 0; n < 2; n++) {
        if (t == 64) {
            // barrier_wait(empty, n ^ 1);
            barrier_expect(full, sizeof tile);
            bulk_load(shared_address(tile), x + 64 * n, sizeof tile, full);
        } else if (t < 64) {
            barrier_wait(full, n);
            y[64 * n + t] = tile[63 - t];
            barrier_arrive(empty);
        }
    }
}
