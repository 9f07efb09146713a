// Bit tricks, each an instruction: reverse, count, find, permute bytes, insert, extract, shift two words.
__global__ void bit_tricks(const unsigned *x, const unsigned long long *w, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned v = x[i], *row = out + 12 * i, field;
    row[0] = __brev(v);
    row[1] = __popc(v);
    row[2] = __clz(v);
    row[3] = __ffs(v);
    row[4] = __byte_perm(v, ~v, 0x2615);
    row[5] = __funnelshift_r(v, i, v & 31);
    row[6] = __clzll(w[i]) << 16 | __popcll(w[i]) << 8 | __ffsll(w[i]);
    row[7] = (unsigned)(__brevll(w[i]) >> 20);
    asm("bfe.u32 %0, %1, 7, 11;" : "=r"(field) : "r"(v));
    row[8] = field;
    asm("bfi.b32 %0, %1, %2, 5, 9;" : "=r"(field) : "r"((unsigned)i), "r"(v));
    row[9] = field;
    asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(field) : "r"(v), "r"(v << 3), "r"((unsigned)i));
    row[10] = field;
    row[11] = __vadd4(v, 0x01ff7f80) ^ __vabsdiffu4(v, 0x80808080) ^ __vcmpgtu4(v, 0x40c04080);
}
