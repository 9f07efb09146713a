// Exclusive prefix sum of a block by Blelloch: up-sweep, down-sweep, with padding against conflicts.
#define PADDED(i) ((i) + (i) / 32)

template <int N> __global__ void scan_blelloch(const unsigned *x, unsigned *y) {
    __shared__ unsigned tree[PADDED(N)];
    int t = threadIdx.x, base = blockIdx.x * N;
    tree[PADDED(t)] = x[base + t];
    tree[PADDED(t + N / 2)] = x[base + t + N / 2];
    int stride = 1;
    for (int active = N / 2; active > 0; active /= 2, stride *= 2) {
        __syncthreads();
        if (t < active) {
            int left = stride * (2 * t + 1) - 1, right = stride * (2 * t + 2) - 1;
            tree[PADDED(right)] += tree[PADDED(left)];
        }
    }
    if (t == 0) tree[PADDED(N - 1)] = 0;
    for (int active = 1; active < N; active *= 2) {
        stride /= 2;
        __syncthreads();
        if (t < active) {
            int left = stride * (2 * t + 1) - 1, right = stride * (2 * t + 2) - 1;
            unsigned swap = tree[PADDED(left)];
            tree[PADDED(left)] = tree[PADDED(right)];
            tree[PADDED(right)] += swap;
        }
    }
    __syncthreads();
    y[base + t] = tree[PADDED(t)];
    y[base + t + N / 2] = tree[PADDED(t + N / 2)];
}
