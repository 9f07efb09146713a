// Radix sort of a block's keys, a bit a pass: a stable split by the ranks of zeros and ones.
template <int N> __global__ void sort_radix(unsigned *keys) {
    __shared__ unsigned key[N];
    __shared__ int zeros_before[N / 32 + 1];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    key[t] = keys[blockIdx.x * N + t];
    __syncthreads();
    for (int bit = 0; bit < 32; bit++) {
        unsigned own = key[t];
        bool zero = !(own >> bit & 1);
        unsigned zeros = __ballot_sync(0xffffffff, zero);
        if (lane == 0) zeros_before[warp + 1] = __popc(zeros);
        if (t == 0) zeros_before[0] = 0;
        __syncthreads();
        if (t == 0)
            for (int w = 0; w < N / 32; w++)
                zeros_before[w + 1] += zeros_before[w];
        __syncthreads();
        int rank = zeros_before[warp] + __popc(zeros & ((1u << lane) - 1));
        key[zero ? rank : zeros_before[N / 32] + t - rank] = own;
        __syncthreads();
    }
    keys[blockIdx.x * N + t] = key[t];
}
