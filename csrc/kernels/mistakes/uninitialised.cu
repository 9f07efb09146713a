// Mistake: a read of shared memory that no thread wrote.
//
// A sum of three neighbours. The tile has an element for the neighbour on either side of the block,
// and these are never written.

extern "C" __global__ void uninitialised(const float *x, float *y) {
    __shared__ float tile[66];
    const unsigned t = threadIdx.x, i = 64 * blockIdx.x + t;
    tile[t + 1] = x[i];
    __syncthreads();
    y[i] = tile[t] + tile[t + 1] + tile[t + 2];
}
