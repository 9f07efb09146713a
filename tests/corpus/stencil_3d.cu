// Seven-point Laplacian in a box: a plane in shared memory, the column above and below in registers.
__global__ void stencil_3d(const double *u, double *out, int nx, int ny, int nz) {
    __shared__ double plane[8][16];
    int tx = threadIdx.x, ty = threadIdx.y;
    int x = blockIdx.x * 14 + tx, y = blockIdx.y * 6 + ty, layer = nx * ny;
    bool exists = x < nx && y < ny;
    bool inner = tx > 0 && tx < 15 && ty > 0 && ty < 7 && x < nx - 1 && y < ny - 1;
    const double *column = u + y * nx + x;
    double below = 0, here = exists ? column[0] : 0, above = exists ? column[layer] : 0;
    for (int z = 1; z < nz - 1; z++) {
        below = here, here = above, above = exists ? column[(z + 1) * layer] : 0;
        __syncthreads();
        plane[ty][tx] = here;
        __syncthreads();
        if (inner)
            out[z * layer + y * nx + x] = plane[ty][tx - 1] + plane[ty][tx + 1] +
                                          plane[ty - 1][tx] + plane[ty + 1][tx] + below + above -
                                          6 * here;
    }
}
