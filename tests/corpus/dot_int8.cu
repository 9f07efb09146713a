// Products of int8 vectors, four elements an instruction (dp4a), and of mixed widths (dp2a).
__global__ void dot_int8(const int *a, const int *b, const unsigned *u, int *dots, unsigned *sums,
                         int words) {
    int row = blockIdx.x, dot = 0;
    unsigned sum = 0;
    for (int i = threadIdx.x; i < words; i += 32) {
        dot = __dp4a(a[row * words + i], b[i], dot);
        sum = __dp4a(u[row * words + i], 0x01010101u, sum);
    }
    dot = __reduce_add_sync(0xffffffff, dot);
    sum = __reduce_add_sync(0xffffffff, sum);
    if (threadIdx.x == 0) dots[row] = __dp2a_lo(row << 16 | 3, 0x0201, dot), sums[row] = sum;
}
