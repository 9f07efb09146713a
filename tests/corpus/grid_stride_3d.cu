// A grid and blocks of three dimensions, each walked with its own stride.
__global__ void grid_stride_3d(const int *x, int *y, int3 size) {
    for (int k = blockIdx.z * blockDim.z + threadIdx.z; k < size.z; k += gridDim.z * blockDim.z)
        for (int j = blockIdx.y * blockDim.y + threadIdx.y; j < size.y; j += gridDim.y * blockDim.y)
            for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size.x;
                 i += gridDim.x * blockDim.x)
                y[(i * size.y + j) * size.z + k] = x[(k * size.y + j) * size.x + i];
}
