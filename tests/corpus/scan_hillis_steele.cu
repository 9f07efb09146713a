// Inclusive prefix sum of a block by Hillis and Steele: log n steps between two buffers.
__global__ void scan_hillis_steele(const int *x, int *y, int n) {
    extern __shared__ int buffers[];
    int *from = buffers, *to = buffers + blockDim.x;
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    from[t] = i < n ? x[i] : 0;
    __syncthreads();
    for (int offset = 1; offset < blockDim.x; offset *= 2) {
        to[t] = from[t] + (t >= offset ? from[t - offset] : 0);
        __syncthreads();
        int *swap = from;
        from = to;
        to = swap;
    }
    if (i < n) y[i] = from[t];
}
