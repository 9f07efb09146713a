// Something of everything that a report names: a race in inlined code, a double free, a leak, a copy
// of bytes that were never written, a call that is not supported, an access out of bounds.
__device__ __forceinline__ void set(float *to, float value) { to[threadIdx.x / 32] = value; }

__global__ void race(float *y) {
    __shared__ float part[4];
    set(part, threadIdx.x);
    __syncthreads();
    set(y, part[0]);
}

__device__ __forceinline__ void put(int *to) { to[64] = 1; }
__global__ void beyond(int *y) { put(y); }

int main() {
    float *y;
    cudaMipmappedArray_t levels;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    float back[4];
    cudaMalloc(&y, sizeof back);
    cudaMemcpy(back, y, sizeof back, cudaMemcpyDeviceToHost);
    race<<<1, 128>>>(y);
    cudaMallocMipmappedArray(&levels, &format, {8, 8, 0}, 2);
    cudaFree(y);
    cudaFree(y);
    cudaMalloc(&y, sizeof back);
    beyond<<<1, 1>>>((int *)y);
    return cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 0 : 1;
}
