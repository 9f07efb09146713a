// Odd-even transposition sort: n rounds of swaps between neighbours.
__global__ void sort_odd_even(short *x, int n) {
    extern __shared__ short line[];
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        line[i] = x[i];
    for (int round = 0; round < n; round++) {
        __syncthreads();
        for (int i = 2 * threadIdx.x + round % 2; i + 1 < n; i += 2 * blockDim.x)
            if (line[i] > line[i + 1]) {
                short swap = line[i];
                line[i] = line[i + 1];
                line[i + 1] = swap;
            }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        x[i] = line[i];
}
