// What the runtime documents of wrong launches, wrong calls and faults.
#include <cstdio>

__global__ void store(int *y, size_t at) { y[at] = 1; }
__global__ void large(int *y) {
    extern __shared__ int shared[];
    shared[threadIdx.x] = 1;
    y[threadIdx.x] = shared[threadIdx.x];
}

static int wrong;

static void expect(const char *what, cudaError_t wanted, cudaError_t found) {
    if (wanted == found) return;
    printf("%s: expected %s, found %s\n", what, cudaGetErrorName(wanted), cudaGetErrorName(found));
    wrong++;
}

int main() {
    int *y, host[64];
    expect("malloc", cudaSuccess, cudaMalloc(&y, sizeof host));
    expect("much", cudaErrorMemoryAllocation, cudaMalloc((void **)&host, (size_t)1 << 45));
    cudaGetLastError();
    store<<<1, 2048>>>(y, 0);
    expect("block", cudaErrorInvalidConfiguration, cudaGetLastError());
    store<<<0, 32>>>(y, 0);
    expect("grid", cudaErrorInvalidConfiguration, cudaGetLastError());
    large<<<1, 32, 60000>>>(y);
    expect("shared", cudaErrorInvalidValue, cudaGetLastError());
    expect("attribute", cudaSuccess,
           cudaFuncSetAttribute(large, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000));
    large<<<1, 32, 60000>>>(y);
    expect("opted in", cudaSuccess, cudaGetLastError());
    expect("copy", cudaErrorInvalidValue,
           cudaMemcpy(host, y, sizeof host + 4, cudaMemcpyDeviceToHost));
    expect("device", cudaErrorInvalidDevice, cudaSetDevice(7));
    cudaGetLastError();
    store<<<1, 1>>>(y, 64);
    expect("launch", cudaSuccess, cudaGetLastError());
    expect("fault", cudaErrorIllegalAddress, cudaDeviceSynchronize());
    expect("later", cudaErrorIllegalAddress, cudaMalloc(&y, 4));
    expect("reset", cudaSuccess, cudaDeviceReset());
    expect("again", cudaSuccess, cudaMalloc(&y, sizeof host));
    store<<<1, 1>>>(y, 63);
    expect("works", cudaSuccess, cudaDeviceSynchronize());
    printf("%s\n", wrong ? "FAIL" : "PASS");
    return wrong;
}
