// Inclusive prefix sum of a block from warp scans by shuffles.
__device__ float warp_scan(float v, int lane) {
    for (int offset = 1; offset < 32; offset *= 2) {
        float below = __shfl_up_sync(0xffffffff, v, offset);
        if (lane >= offset) v += below;
    }
    return v;
}

__global__ void scan_shuffle(const float *x, float *y, int n) {
    __shared__ float totals[32];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    float v = warp_scan(t < n ? x[t] : 0.0f, lane);
    if (lane == 31) totals[warp] = v;
    __syncthreads();
    if (warp == 0) totals[lane] = warp_scan(lane < blockDim.x / 32 ? totals[lane] : 0.0f, lane);
    __syncthreads();
    if (warp > 0) v += totals[warp - 1];
    if (t < n) y[t] = v;
}
