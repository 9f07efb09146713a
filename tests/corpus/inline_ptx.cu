// Inline PTX: 128-bit sums with carries, predicates, special registers, labels of its own.
__global__ void inline_ptx(const unsigned *a, const unsigned *b, unsigned *sums, int *lanes) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned *x = a + 4 * i, *y = b + 4 * i;
    unsigned s0, s1, s2, s3, lane;
    asm("add.cc.u32 %0, %4, %8;\n\t"
        "addc.cc.u32 %1, %5, %9;\n\t"
        "addc.cc.u32 %2, %6, %10;\n\t"
        "addc.u32 %3, %7, %11;"
        : "=&r"(s0), "=&r"(s1), "=&r"(s2), "=r"(s3)
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]));
    sums[4 * i] = s0, sums[4 * i + 1] = s1, sums[4 * i + 2] = s2, sums[4 * i + 3] = s3;
    int steps;
    asm volatile("{\n\t"
                 ".reg .pred more;\n\t"
                 ".reg .u32 left;\n\t"
                 "mov.u32 %0, %%laneid;\n\t"
                 "mov.u32 left, %0;\n\t"
                 "mov.s32 %1, 0;\n\t"
                 "again:\n\t"
                 "add.s32 %1, %1, 2;\n\t"
                 "setp.gt.u32 more, left, 0;\n\t"
                 "@more sub.u32 left, left, 1;\n\t"
                 "@more bra again;\n\t"
                 "}"
                 : "=&r"(lane), "=&r"(steps));
    lanes[i] = 1000 * lane + steps;
}
