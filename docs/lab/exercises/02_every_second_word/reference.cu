__global__ void split_channels(const float *x, float *y) {
    int t = threadIdx.x;
    y[t] = t < 128 ? x[2 * t] : x[2 * (t - 128) + 1];
}
