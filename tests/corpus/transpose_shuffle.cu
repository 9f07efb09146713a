// Transpose of 32 x 32 tiles in registers: five rounds of shuffles between lanes.
__global__ void transpose_shuffle(const unsigned *x, unsigned *y) {
    int lane = threadIdx.x, base = blockIdx.x * 1024;
    unsigned own[32];
#pragma unroll
    for (int r = 0; r < 32; r++)
        own[r] = x[base + r * 32 + lane];
#pragma unroll
    for (int bit = 1; bit < 32; bit *= 2)
#pragma unroll
        for (int r = 0; r < 32; r++)
            if (!(r & bit)) {
                bool upper = lane & bit;
                unsigned sent = upper ? own[r] : own[r | bit];
                unsigned got = __shfl_xor_sync(0xffffffff, sent, bit);
                if (upper)
                    own[r] = got;
                else
                    own[r | bit] = got;
            }
#pragma unroll
    for (int r = 0; r < 32; r++)
        y[base + r * 32 + lane] = own[r];
}
