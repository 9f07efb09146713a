// Histogram in which lanes of equal value elect a leader (match), who adds for all of them.
__global__ void histogram_match(const int *x, int *bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned present = __ballot_sync(0xffffffff, i < n);
    if (i >= n) return;
    unsigned equal = __match_any_sync(present, x[i]);
    int leader = __ffs(equal) - 1;
    if (threadIdx.x % 32 == leader) atomicAdd(&bins[x[i]], __popc(equal));
}
