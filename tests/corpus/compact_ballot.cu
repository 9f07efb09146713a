// Stream compaction: ballot and popc rank the lanes that keep their element; order within a warp stays.
__global__ void compact_ballot(const float *x, float *kept, int *count, int n, float limit) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    bool keep = i < n && x[i] > limit;
    unsigned mask = __ballot_sync(0xffffffff, keep);
    int base = 0;
    if (lane == 0 && mask) base = atomicAdd(count, __popc(mask));
    base = __shfl_sync(0xffffffff, base, 0);
    if (keep) kept[base + __popc(mask & ((1u << lane) - 1))] = x[i];
}
