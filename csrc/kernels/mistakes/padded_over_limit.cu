// Mistake: padding that pushes a tile over the limit of shared memory.
//
// 241 x 241 words are 232324 bytes; on sm_90 a block may opt in to 232448. One more column, to
// avoid bank conflicts, makes it 233288, and the launch fails.

extern "C" __global__ void padded_over_limit(const float *x, float *y) {
    constexpr int SIDE = 241, PAD = 1;
    extern __shared__ float tile[];
    for (int i = threadIdx.x; i < SIDE * SIDE; i += blockDim.x)
        tile[i / SIDE * (SIDE + PAD) + i % SIDE] = x[i];
    __syncthreads();
    for (int i = threadIdx.x; i < SIDE * SIDE; i += blockDim.x)
        y[i] = tile[i % SIDE * (SIDE + PAD) + i / SIDE];
}
