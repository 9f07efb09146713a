// Count, sum, minimum and maximum of a whole array: all threads' atomics on a block's few counters.
__global__ void tally(const int *x, int *facts, int n) {
    __shared__ int below, sum, lowest, highest, others;
    if (threadIdx.x == 0) {
        below = sum = others = 0;
        lowest = 0x7fffffff, highest = -0x7fffffff - 1;
    }
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        if (x[i] < 0) {
            atomicAdd(&below, 1);
            atomicAdd(&sum, x[i]);
        } else {
            atomicAdd((unsigned *)&others, 1u);
        }
        atomicMin(&lowest, x[i]);
        atomicMax(&highest, x[i]);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(&facts[0], below);
        atomicAdd(&facts[1], sum);
        atomicMin(&facts[2], lowest);
        atomicMax(&facts[3], highest);
        atomicAdd(&facts[4], others);
    }
}
