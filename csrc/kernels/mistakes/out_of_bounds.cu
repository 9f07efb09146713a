// Mistake: no bounds check of a thread's index.
//
// The grid is rounded up to whole blocks, so the last block has threads past the end of x.

extern "C" __global__ void out_of_bounds(const float *x, float *y, int n) {
    const int i = blockDim.x * blockIdx.x + threadIdx.x;
    // if (i < n)
    y[i] = 2 * x[i];
}
