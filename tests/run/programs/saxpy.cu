#include <cstdio>
#include <vector>

__global__ void saxpy(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

int main(int words, char **word) {
    const int n = words > 1 ? atoi(word[1]) : 1000;
    const size_t bytes = n * sizeof(float);
    std::vector<float> x(n), y(n);
    for (int i = 0; i < n; i++) x[i] = i, y[i] = 2 * i;
    float *dx, *dy;
    cudaMalloc(&dx, bytes);
    cudaMalloc(&dy, bytes);
    cudaMemcpy(dx, x.data(), bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(dy, y.data(), bytes, cudaMemcpyHostToDevice);
    saxpy<<<(n + 255) / 256, 256>>>(n, 3.0f, dx, dy);
    cudaError_t error = cudaMemcpy(y.data(), dy, bytes, cudaMemcpyDeviceToHost);
    int wrong = error != cudaSuccess;
    for (int i = 0; i < n; i++) wrong += y[i] != 5.0f * i;
    printf("%s\n", wrong ? "FAIL" : "PASS");
    cudaFree(dx);
    cudaFree(dy);
    return wrong != 0;
}
