// Bitonic sort of a block's keys with their values, in shared memory.
template <int N> __global__ void sort_bitonic(float *keys, int *values) {
    __shared__ float key[N];
    __shared__ int value[N];
    int t = threadIdx.x, base = blockIdx.x * N;
    key[t] = keys[base + t];
    value[t] = values[base + t];
    for (int size = 2; size <= N; size *= 2)
        for (int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            int other = t ^ stride;
            bool up = (t & size) == 0;
            if (other > t && (key[t] > key[other]) == up) {
                float k = key[t];
                key[t] = key[other], key[other] = k;
                int v = value[t];
                value[t] = value[other], value[other] = v;
            }
        }
    __syncthreads();
    keys[base + t] = key[t];
    values[base + t] = value[t];
}
