// Mistake: a barrier inside a branch that only a part of a warp takes.
//
// Threads without an element skip the barrier together with the store. What then happens is for the
// hardware to choose: it may wait for ever, or let the others through.

extern "C" __global__ void divergent_barrier(const float *x, float *y, int n) {
    __shared__ float tile[64];
    const int t = threadIdx.x, i = 64 * blockIdx.x + t;
    if (i < n) {
        tile[t] = x[i];
        __syncthreads();
        y[i] = tile[t ^ 1];
    }
}
