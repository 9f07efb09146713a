// Sums blocks of 256 numbers. Wrong: no barrier between the steps.
#include <cstdio>
#include <vector>
__global__ void sum(const float *x, float *y, int n) {
    __shared__ float part[256];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2)
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
int main() {
    const int n = 1000, blocks = (n + 255) / 256;
    std::vector<float> in(n, 1.0f), out(blocks);
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, blocks * sizeof(float));
    cudaMemcpy(x, in.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    sum<<<blocks, 256>>>(x, y, n);
    cudaMemcpy(out.data(), y, blocks * sizeof(float), cudaMemcpyDeviceToHost);
    float total = 0;
    for (float part : out) total += part;
    printf("sum: %g\n", total);
    cudaFree(x);
}
