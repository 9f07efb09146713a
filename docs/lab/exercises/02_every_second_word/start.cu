// x holds 128 stereo samples: left, right, left, right, ...
// y gets the 128 left ones, and after them the 128 right ones.
__global__ void split_channels(const float *x, float *y) {
    __shared__ float tile[256];
    int t = threadIdx.x;

    tile[t] = x[t];
    __syncthreads();

    if (t < 128)
        y[t] = tile[2 * t];
    else
        y[t] = tile[2 * (t - 128) + 1];
}
