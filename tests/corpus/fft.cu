// Fourier transform of 256 points in shared memory: bit reversal, then eight radix-2 stages.
__global__ void fft(const float2 *x, float2 *y) {
    __shared__ float2 data[256];
    int t = threadIdx.x, base = blockIdx.x * 256;
    for (int i = t; i < 256; i += 128)
        data[__brev(i) >> 24] = x[base + i];
    for (int half = 1; half < 256; half *= 2) {
        __syncthreads();
        int k = t % half, low = (t / half) * 2 * half + k, high = low + half;
        float sine, cosine;
        sincospif(-(float)k / half, &sine, &cosine);
        float2 a = data[low], b = data[high];
        float2 turned = {b.x * cosine - b.y * sine, b.x * sine + b.y * cosine};
        data[low] = {a.x + turned.x, a.y + turned.y};
        data[high] = {a.x - turned.x, a.y - turned.y};
    }
    __syncthreads();
    for (int i = t; i < 256; i += 128)
        y[base + i] = data[i];
}
