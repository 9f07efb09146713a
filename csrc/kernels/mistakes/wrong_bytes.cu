// Mistake: a barrier is given a number of elements, but counts bytes.
//
// y = x with each 64 elements reversed. 256 bytes are copied and 64 announced, so the transaction
// count never returns to zero. (It does not either if too many are announced.)

#include "bulk_load.cuh"

extern "C" __global__ void wrong_bytes(const float *x, float *y) {
    __shared__ __align__(128) float tile[64];
    __shared__ unsigned long long barrier;
    const unsigned t = threadIdx.x, first = 64 * blockIdx.x, full = shared_address(&barrier);
    if (t == 0) {
        barrier_init(full, 1);
        barrier_init_done();
    }
    __syncthreads();
    if (t == 0) {
        barrier_expect(full, 64); // sizeof tile
        bulk_load(shared_address(tile), x + first, sizeof tile, full);
    }
    barrier_wait(full, 0);
    y[first + t] = tile[63 - t];
}
