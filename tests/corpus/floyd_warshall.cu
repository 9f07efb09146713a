// Shortest paths within tiles of 32 nodes: one phase of the blocked Floyd-Warshall.
__global__ void floyd_warshall(unsigned *distance) {
    __shared__ unsigned tile[32][32];
    int r = threadIdx.y, c = threadIdx.x, i = (blockIdx.x * 32 + r) * 32 + c;
    tile[r][c] = distance[i];
    for (int k = 0; k < 32; k++) {
        __syncthreads();
        unsigned through = tile[r][k] + tile[k][c];
        __syncthreads();
        tile[r][c] = min(tile[r][c], through);
    }
    distance[i] = tile[r][c];
}
