// x holds 128 stereo samples: left, right, left, right, ...
// y gets the 128 left ones, and after them the 128 right ones.
__global__ void split_channels(const float *x, float *y) {
    __shared__ __align__(8) float tile[256];
    int t = threadIdx.x;

    tile[t] = x[t];
    __syncthreads();

    if (t < 128) {
        float2 sample = ((float2 *)tile)[t];
        y[t] = sample.x;
        y[t + 128] = sample.y;
    }
}
