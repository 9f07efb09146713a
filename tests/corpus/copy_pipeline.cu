// cp.async with two stages: a tile is loaded while the one before is worked on.
#include <cuda_pipeline.h>

__global__ void copy_pipeline(const float4 *x, float4 *y, int tiles) {
    __shared__ float4 stage[2][64];
    int t = threadIdx.x, base = blockIdx.x * tiles * 64;
    __pipeline_memcpy_async(&stage[0][t], &x[base + t], 16);
    __pipeline_commit();
    for (int tile = 0; tile < tiles; tile++) {
        if (tile + 1 < tiles)
            __pipeline_memcpy_async(&stage[(tile + 1) % 2][t], &x[base + (tile + 1) * 64 + t], 16);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        float4 mirrored = stage[tile % 2][63 - t];
        y[base + tile * 64 + t] = make_float4(mirrored.w, mirrored.z, mirrored.y, mirrored.x);
        __syncthreads();
    }
}
