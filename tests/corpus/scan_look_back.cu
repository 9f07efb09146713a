// Prefix sum of a whole array in one pass: each block looks back at its predecessors' published sums.
enum { EMPTY, PARTIAL, COMPLETE };

// A block's state and sum in one word, so that both are seen at once.
__global__ void scan_look_back(const int *x, int *y, unsigned long long *states, unsigned *ticket,
                               int n) {
    __shared__ int tile[128];
    __shared__ int block, before;
    int t = threadIdx.x;
    if (t == 0) block = atomicAdd(ticket, 1);
    __syncthreads();
    int i = block * 128 + t;
    tile[t] = i < n ? x[i] : 0;
    __syncthreads();
    for (int offset = 1; offset < 128; offset *= 2) {
        int below = t >= offset ? tile[t - offset] : 0;
        __syncthreads();
        tile[t] += below;
        __syncthreads();
    }
    if (t == 0) {
        unsigned total = tile[127];
        int sum = 0;
        if (block > 0) atomicExch(&states[block], (unsigned long long)PARTIAL << 32 | total);
        for (int other = block - 1; other >= 0; other--) {
            unsigned long long state;
            do
                state = atomicAdd(&states[other], 0ull);
            while (state >> 32 == EMPTY);
            sum += (int)(unsigned)state;
            if (state >> 32 == COMPLETE) break;
        }
        atomicExch(&states[block], (unsigned long long)COMPLETE << 32 | (unsigned)(sum + total));
        before = sum;
    }
    __syncthreads();
    if (i < n) y[i] = before + tile[t];
}
