// An array of each thread in local memory, indexed by data: the median of nine, by insertion sort.
__global__ void local_array(const unsigned short *x, unsigned short *medians, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned short sorted[9];
#pragma unroll 1
    for (int k = 0; k < 9; k++) {
        unsigned short v = x[(i + k) % n];
        int place = k;
        for (; place > 0 && sorted[place - 1] > v; place--)
            sorted[place] = sorted[place - 1];
        sorted[place] = v;
    }
    medians[i] = sorted[4];
}
