// Mistake: no barrier between the store of a tile and the loads of it.
//
// y = x reversed, a block's 64 elements at a time. A thread reads what another thread writes, and
// does not wait for it: the warp that runs first reads data that are not there yet.

extern "C" __global__ void missing_barrier(const float *x, float *y) {
    __shared__ float tile[64];
    const unsigned t = threadIdx.x, first = 64 * blockIdx.x;
    tile[t] = x[first + t];
    // __syncthreads();
    y[first + t] = tile[63 - t];
}
