// One level of breadth-first search: the frontier's neighbours, each claimed once by atomicCAS.
__global__ void bfs(const int *starts, const int *targets, const int *frontier, int n_frontier,
                    int *depth, int *next, int *n_next, int level) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n_frontier) return;
    int node = frontier[i];
    for (int e = starts[node]; e < starts[node + 1]; e++)
        if (atomicCAS(&depth[targets[e]], -1, level) == -1) next[atomicAdd(n_next, 1)] = targets[e];
}
