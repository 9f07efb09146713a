// Warp-wide integer reductions in one instruction each: sum, minimum, maximum, and, or, xor.
__global__ void reduce_redux(const int *x, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, warp = i / 32, v = x[i];
    int sum = __reduce_add_sync(0xffffffff, v), low = __reduce_min_sync(0xffffffff, v);
    int high = __reduce_max_sync(0xffffffff, v);
    unsigned all = __reduce_and_sync(0xffffffff, (unsigned)v);
    unsigned any = __reduce_or_sync(0xffffffff, (unsigned)v);
    unsigned odd = __reduce_xor_sync(0xffffffff, (unsigned)v);
    if (i % 32 == 0) {
        int *row = out + 6 * warp;
        row[0] = sum, row[1] = low, row[2] = high;
        row[3] = (int)all, row[4] = (int)any, row[5] = (int)odd;
    }
}
