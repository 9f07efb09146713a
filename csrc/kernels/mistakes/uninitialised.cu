// Mistake: a read of shared memory that nobody wrote.
//
// A sum of three neighbours. The tile has a place for the neighbour on either side of the block, and
// nobody fills them.

extern "C" __global__ void uninitialised(const float *x, float *y) {
    __shared__ float tile[66];
    const unsigned t = threadIdx.x, i = 64 * blockIdx.x + t;
    tile[t + 1] = x[i];
    __syncthreads();
    y[i] = tile[t] + tile[t + 1] + tile[t + 2];
}
