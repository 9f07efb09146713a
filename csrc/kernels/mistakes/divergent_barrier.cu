// Mistake: a barrier inside a branch that only part of a warp takes.
//
// Threads without an element skip the barrier together with the store. The behaviour is undefined:
// the kernel may hang, or the other threads may pass the barrier.

extern "C" __global__ void divergent_barrier(const float *x, float *y, int n) {
    __shared__ float tile[64];
    const int t = threadIdx.x, i = 64 * blockIdx.x + t;
    if (i < n) {
        tile[t] = x[i];
        __syncthreads();
        y[i] = tile[t ^ 1];
    }
}
