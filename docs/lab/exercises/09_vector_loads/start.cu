// One block of 64 threads reverses 256 elements.
__global__ void reverse(const float *x, float *y) {
    __shared__ __align__(16) float tile[256];
    int t = threadIdx.x;

    for (int i = t; i < 256; i += 64)
        tile[i] = x[i];
    __syncthreads();

    for (int i = t; i < 256; i += 64)
        y[i] = tile[255 - i];
}
