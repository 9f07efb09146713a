// Something of everything that a report names: a race in inlined code, a double free, a leak, a copy
// of bytes that were never written, a call that is not supported, an access out of bounds, a read that
// a compare-and-swap checks. With an argument it has a bank conflict, and a Ctrl-C in a kernel.
#include <signal.h>
#include <unistd.h>

__device__ __forceinline__ void set(float *to, float value) { to[threadIdx.x / 32] = value; }

__global__ void race(float *y) {
    __shared__ float part[4];
    set(part, threadIdx.x);
    __syncthreads();
    set(y, part[0]);
}

__device__ __forceinline__ void put(int *to) { to[64] = 1; }
__global__ void beyond(int *y) { put(y); }

__device__ __forceinline__ void increment(int *x) {
    int old = *x, seen;
    do {
        seen = old;
        old = atomicCAS(x, seen, seen + 1);
    } while (old != seen);
}
__global__ void count(int *x) { increment(x); }

__global__ void wait(volatile int *y) {
    __shared__ volatile int column[1024];
    column[threadIdx.x * 32] = y[0];
    while (column[threadIdx.x * 32] > 0) {
    }
}

int interrupted() {
    int *y;
    cudaMalloc(&y, 4);
    cudaMemset(y, 0, 4);
    count<<<2, 64>>>(y);
    if (!fork()) {
        sleep(1);
        kill(getppid(), SIGINT);
        _exit(0);
    }
    wait<<<1, 32>>>(y);
    return cudaDeviceSynchronize();
}

int main(int n, char **) {
    if (n > 1) return interrupted();
    float *y;
    cudaExternalSemaphore_t other;
    const cudaExternalSemaphoreHandleDesc of_another_library = {};
    float back[4];
    cudaMalloc(&y, sizeof back);
    cudaMemcpy(back, y, sizeof back, cudaMemcpyDeviceToHost);
    race<<<1, 128>>>(y);
    cudaImportExternalSemaphore(&other, &of_another_library);
    cudaFree(y);
    cudaFree(y);
    cudaMalloc(&y, sizeof back);
    beyond<<<1, 1>>>((int *)y);
    return cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 0 : 1;
}
