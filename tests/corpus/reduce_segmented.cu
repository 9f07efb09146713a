// Sums of segments that offsets delimit, one warp a segment.
__global__ void reduce_segmented(const float *x, const int *offsets, float *sums, int n) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (warp >= n) return;
    float v = 0;
    for (int i = offsets[warp] + lane; i < offsets[warp + 1]; i += 32)
        v += x[i];
    for (int mask = 16; mask > 0; mask /= 2)
        v += __shfl_xor_sync(0xffffffff, v, mask);
    if (lane == 0) sums[warp] = v;
}
