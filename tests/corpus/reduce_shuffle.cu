// Sum by warp shuffles, then by one warp over the warps' sums; a template of the type.
template <typename T> __device__ T warp_sum(T v) {
    for (int offset = 16; offset > 0; offset /= 2)
        v += __shfl_down_sync(0xffffffff, v, offset);
    return v;
}

template <typename T, int THREADS> __global__ void reduce_shuffle(const T *x, T *sums, int n) {
    __shared__ T partial[THREADS / 32];
    T v = 0;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS)
        v += x[i];
    v = warp_sum(v);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < THREADS / 32 ? partial[threadIdx.x] : T(0);
        v = warp_sum(v);
        if (threadIdx.x == 0) sums[blockIdx.x] = v;
    }
}
