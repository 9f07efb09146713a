// Mistake: one lane releases a tile for its warp while the other lanes still read it.
//
// y = x with each 64 elements reversed. Warp 2 copies, warps 0 and 1 read. `full`: a copy has
// landed; `empty`: both warps have read. An arrival orders what the arriving thread did before it;
// what its warp did is ordered only after __syncwarp.

#include "bulk_load.cuh"

extern "C" __global__ void early_release(const float *x, float *y) {
    __shared__ __align__(128) float tile[64];
    __shared__ unsigned long long barriers[2];
    const unsigned t = threadIdx.x, full = shared_address(barriers), empty = full + 8;
    if (t == 0) {
        barrier_init(full, 1);
        barrier_init(empty, 2);
        barrier_init_done();
    }
    __syncthreads();
    for (unsigned n = 0; n < 2; n++) {
        if (t == 64) {
            barrier_wait(empty, n ^ 1);
            barrier_expect(full, sizeof tile);
            bulk_load(shared_address(tile), x + 64 * n, sizeof tile, full);
        } else if (t < 64) {
            barrier_wait(full, n);
            y[64 * n + t] = tile[63 - t];
            // __syncwarp();
            if (t % 32 == 0) barrier_arrive(empty);
        }
    }
}
