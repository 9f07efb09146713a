// Place of the first maximum of an array: value and place packed into one word for atomicMax.
__device__ unsigned ordered(float v) {
    unsigned bits = __float_as_uint(v);
    return bits >> 31 ? ~bits : bits | 0x80000000;
}

__global__ void argmax(const float *x, unsigned long long *best, int n) {
    __shared__ unsigned long long own;
    if (threadIdx.x == 0) own = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicMax(&own, (unsigned long long)ordered(x[i]) << 32 | ~(unsigned)i);
    __syncthreads();
    if (threadIdx.x == 0) atomicMax(best, own);
}
