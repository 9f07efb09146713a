// GELU by tanh and by erf, for four elements per thread.
__device__ float gelu_tanh(float v) {
    return 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
}

__global__ void gelu(const float *x, float *by_tanh, float *by_erf, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        by_tanh[i] = gelu_tanh(x[i]);
        by_erf[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));
    }
}
