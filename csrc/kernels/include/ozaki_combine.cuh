/* The last step of a product by the Ozaki scheme: residues to float64.
 *
 * With s_i the bytes of an element of C: t_g = sum_i s_i P_g / p_i (26 bits), S = sum_g t_g P / P_g,
 * x = S - q P in 128 bits, where q is the integer nearest to S / P. That is exact, because |x| is
 * below P/2 by a margin that the first bits of S resolve. x is rounded once, to nearest even, also
 * if the result is subnormal.
 *
 * Bytes: MODULI read and 8 written per element. About 80 instructions for 15 moduli.
 */
#ifndef SMK_OZAKI_COMBINE_CUH
#define SMK_OZAKI_COMBINE_CUH

#include "ozaki_pack.cuh"

/* A signed integer of 128 bits. */
typedef struct int128 {
    unsigned long long low, high;
} int128;

/* The sum of the products, from its bytes: byte `at` of each word. */
__device__ __forceinline__ int128 reconstruct(const unsigned (&word)[MODULI], int at) {
    unsigned long long sum[4] = {0, 0, 0, 0}; /* of the words of 32 bits, with their carries */
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
        unsigned t = 0;
#pragma unroll
        for (int i = GROUP_SIZE * g; i < end_of_group(g); i++)
            t += __byte_perm(word[i], 0, 0x4440 + at) * OZAKI.rest[i];
#pragma unroll
        for (int w = 0; w < 4; w++)
            sum[w] += (unsigned long long)t * OZAKI.others[g].word[w];
    }
    /* S / 2^96, too small by less than 3, in 32 bits. */
    const unsigned top = (unsigned)((sum[3] + (sum[2] >> 32)) >> QUOTIENT_SHIFT);
    const unsigned q = __float2uint_rn((float)top * OZAKI.quotient);
#pragma unroll
    for (int w = 0; w < 4; w++)
        sum[w] += (unsigned long long)q * OZAKI.negative_product.word[w];
    const unsigned long long low = sum[0] + (sum[1] << 32);
    return {low, (sum[1] >> 32) + sum[2] + (sum[3] << 32) + (low < sum[0])};
}

/* x rounded to nearest even, if that is 0 or at least 2^74. Of the lower part the first 53 bits are
 * kept, and the last of them is set if any behind it is. So the sum of both parts is rounded as x
 * would be. */
__device__ __forceinline__ double nearest(int128 x) {
    constexpr int DROPPED = MODULI > 15 ? 8 : 0; /* else the upper part may not be a float64 */
    unsigned long long low = x.low;
    if (DROPPED) low = low >> DROPPED | x.high << ((64 - DROPPED) & 63) | ((x.low & 0xff) != 0);
    const unsigned last = (unsigned)low | (((unsigned)low & 0x7ff) + 0x7ff);
    low = (low & ~0xffffffffull) | (last & ~0x7ffu);
    constexpr double unit = DROPPED ? 0x1p72 : 0x1p64, less = DROPPED ? 0x1p8 : 1;
    return fma((double)((long long)x.high >> DROPPED), unit, (double)low * less);
}

/* m 2^e for 2^63 <= m < 2^64 where that is below the smallest normal number. */
__device__ __forceinline__ double subnormal(unsigned long long m, int e) {
    const int drop = -1074 - e; /* bits of m below the last place, at least 12 */
    if (drop > 65) return 0;
    /* Two more bits than the result, the last one set if any below it is. */
    const unsigned long long kept = m >> (drop - 2) | (m << (66 - drop) != 0);
    return __longlong_as_double((long long)((kept >> 2) + (kept >> 1 & (kept | kept >> 2) & 1)));
}

/* x 2^-exponent, rounded to nearest even. */
__device__ __forceinline__ double rounded(int128 x, int exponent) {
    const bool minus = (long long)x.high < 0;
    if (minus) {
        x.low = 0 - x.low;
        x.high = ~x.high + (x.low == 0);
    }
    if ((x.low | x.high) == 0) return 0;
    const int zeros = x.high ? __clzll(x.high) : 64 + __clzll(x.low);
    /* The first 64 bits; the last one is set if any behind it is. */
    unsigned long long m = x.low << (zeros & 63);
    if (zeros < 64) m = (zeros ? x.high << zeros | x.low >> (64 - zeros) : x.high) | (m != 0);
    const int e = 64 - zeros - exponent, half = e / 2;
    const double value = e < -1085 ? subnormal(m, e)
                                   : __ull2double_rn(m) * exact_power(half) * exact_power(e - half);
    return minus ? -value : value;
}

/* An element of C by FFMAs, where its row of A or its column of B has a NaN or an infinity. */
__device__ __forceinline__ double plain_element(const gemm_args &g, long long row,
                                                long long column) {
    const double *a = g.A + blockIdx.z * g.batch_a + row * g.lda;
    const double *b = g.B + blockIdx.z * g.batch_b + column * g.step_b;
    double sum = 0;
    for (long long k = 0; k < g.K; k++)
        sum = fma(a[k * g.step_a], b[k * g.ldb], sum);
    return sum;
}

/* The cases that `combine` leaves: results near or beyond the ends of float64, and small x. */
__device__ __noinline__ double rare_element(const gemm_args &g, int128 x, long long row,
                                            long long column, int a, int b) {
    if (a == NOT_FINITE || b == NOT_FINITE) return plain_element(g, row, column);
    return rounded(x, a + b);
}

/* Whether |x| 2^-exponent is a normal float64 for 2^74 <= |x| < 2^125. */
__device__ __forceinline__ bool is_moderate(int exponent) {
    return (unsigned)(exponent + 800) <= 1600;
}

__device__ __forceinline__ double element_of(const gemm_args &g, const unsigned (&word)[MODULI],
                                             int at, long long row, long long column, int a,
                                             int b) {
    const int128 x = reconstruct(word, at);
    const double value = nearest(x);
    const double scaled = value * exact_power(-a) * exact_power(-b);
    const bool usual = fabs(value) >= 0x1p74 && fabs(scaled) >= 0x1p-1021;
    if ((usual || value == 0) && is_moderate(a) && is_moderate(b)) return scaled;
    return rare_element(g, x, row, column, a, b);
}

/* A thread computes OZAKI_COMBINE_COLUMNS adjacent elements of C. */
__device__ __forceinline__ void combine(const gemm_args &g, const ozaki_args &o) {
    overlap_launches();
    const unsigned across = (unsigned)((g.N + OZAKI_COMBINE_COLUMNS - 1) / OZAKI_COMBINE_COLUMNS);
    const unsigned unit = blockIdx.x * OZAKI_COMBINE_THREADS + threadIdx.x, down = unit / across;
    const long long row = down, column = (unit - down * across) * OZAKI_COMBINE_COLUMNS;
    if (row >= g.M) return;
    unsigned word[MODULI] = {};
    int a = 0;
    int4 b = {};
    if (g.K > 0) {
        const unsigned char *from = o.c + blockIdx.z * o.c_batch + row * o.c_pitch + column;
#pragma unroll
        for (int i = 0; i < MODULI; i++, from += o.c_plane)
            word[i] = *reinterpret_cast<const unsigned *>(from);
        a = o.a.exponent[blockIdx.z * o.a.batch_exponents + row];
        b = *reinterpret_cast<const int4 *>(o.b.exponent + blockIdx.z * o.b.batch_exponents +
                                            column);
    }
    const int exponents[OZAKI_COMBINE_COLUMNS] = {b.x, b.y, b.z, b.w};
    double sum[OZAKI_COMBINE_COLUMNS];
#pragma unroll
    for (int i = 0; i < OZAKI_COMBINE_COLUMNS; i++)
        sum[i] = column + i < g.N ? element_of(g, word, i, row, column + i, a, exponents[i]) : 0;
    double *c = g.C + blockIdx.z * g.batch_c + row * g.ldc + column;
    const bool aligned = (unsigned long long)c % 16 == 0;
#pragma unroll
    for (int i = 0; i < OZAKI_COMBINE_COLUMNS; i += V)
        store_epilogue(g, sum + i, c + i, aligned, g.N - column - i);
}

#endif
