// Connected components: edges unite trees by atomicCAS at their roots, then every node finds its root.
__device__ int find(volatile int *parent, int i) {
    while (parent[i] != i)
        i = parent[i];
    return i;
}

__global__ void unite(const int *edges, int n_edges, int *parent) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= n_edges) return;
    int a = edges[2 * e], b = edges[2 * e + 1];
    while (true) {
        a = find(parent, a), b = find(parent, b);
        if (a == b) return;
        if (a < b) {
            int swap = a;
            a = b, b = swap;
        }
        if (atomicCAS(&parent[a], a, b) == a) return;
    }
}

__global__ void flatten(int *parent, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicExch(&parent[i], find(parent, i));
}
