/* The last step of a product by the Ozaki scheme: residues to float64.
 *
 * With s_i the bytes of an element of C: t_g = sum_i s_i P_g / p_i (32 bits), then x = sum_g t_g
 * P / P_g - q P in 128 bits, modulo 2^128, where q is the nearest integer to sum_g t_g / P_g. That
 * is exact, because |x| is below P/2 by a margin that float32 resolves. x is rounded once, to
 * nearest even, also if the result is subnormal.
 *
 * Bytes: MODULI read and 8 written per element. 35 IMAD and IMAD.WIDE for 15 moduli.
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
    unsigned long long sum[4] = {0, 0, 0, 0};
    float quotient = 0;
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
        unsigned t = 0;
#pragma unroll
        for (int i = GROUP_SIZE * g; i < end_of_group(g); i++)
            t += (word[i] >> 8 * at & 0xff) * OZAKI.rest[i];
        quotient = fmaf((float)t, OZAKI.group_reciprocal[g], quotient);
#pragma unroll
        for (int w = 0; w < 4; w++)
            sum[w] += (unsigned long long)t * OZAKI.others[g].word[w];
    }
    const unsigned q = __float2uint_rn(quotient);
#pragma unroll
    for (int w = 0; w < 4; w++)
        sum[w] += (unsigned long long)q * OZAKI.negative_product.word[w];
    const unsigned long long low = sum[0] + (sum[1] << 32);
    return {low, (sum[1] >> 32) + sum[2] + (sum[3] << 32) + (low < sum[0])};
}

/* m 2^e for 2^63 <= m < 2^64 where that is below the smallest normal number. */
__device__ __noinline__ double subnormal(unsigned long long m, int e) {
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
__device__ __noinline__ double plain_element(const gemm_args &g, long long row, long long column) {
    const double *a = g.A + blockIdx.z * g.batch_a + row * g.lda;
    const double *b = g.B + blockIdx.z * g.batch_b + column * g.step_b;
    double sum = 0;
    for (long long k = 0; k < g.K; k++)
        sum = fma(a[k * g.step_a], b[k * g.ldb], sum);
    return sum;
}

__device__ __forceinline__ double element_of(const gemm_args &g, const unsigned (&word)[MODULI],
                                             int at, long long row, long long column, int a,
                                             int b) {
    if (a == NOT_FINITE || b == NOT_FINITE) return plain_element(g, row, column);
    return rounded(reconstruct(word, at), a + b);
}

/* A thread computes OZAKI_COMBINE_COLUMNS adjacent elements of C. */
__device__ __forceinline__ void combine(const gemm_args &g, const ozaki_args &o) {
    overlap_launches();
    const int across = (int)((g.N + OZAKI_COMBINE_COLUMNS - 1) / OZAKI_COMBINE_COLUMNS);
    const long long unit = (long long)blockIdx.x * OZAKI_COMBINE_THREADS + threadIdx.x;
    const long long row = unit / across, column = unit % across * OZAKI_COMBINE_COLUMNS;
    if (row >= g.M) return;
    unsigned word[MODULI] = {};
    int a = 0, b[OZAKI_COMBINE_COLUMNS] = {};
    if (g.K > 0) {
        const unsigned char *from = o.c + blockIdx.z * o.c_batch + row * o.c_pitch + column;
#pragma unroll
        for (int i = 0; i < MODULI; i++, from += o.c_plane)
            word[i] = *reinterpret_cast<const unsigned *>(from);
        a = o.a.exponent[blockIdx.z * o.a.batch_exponents + row];
#pragma unroll
        for (int i = 0; i < OZAKI_COMBINE_COLUMNS; i++)
            if (column + i < g.N)
                b[i] = o.b.exponent[blockIdx.z * o.b.batch_exponents + column + i];
    }
    double sum[OZAKI_COMBINE_COLUMNS];
#pragma unroll
    for (int i = 0; i < OZAKI_COMBINE_COLUMNS; i++)
        sum[i] = column + i < g.N ? element_of(g, word, i, row, column + i, a, b[i]) : 0;
    double *c = g.C + blockIdx.z * g.batch_c + row * g.ldc + column;
    const bool aligned = (unsigned long long)c % 16 == 0;
#pragma unroll
    for (int i = 0; i < OZAKI_COMBINE_COLUMNS; i += V)
        store_epilogue(g, sum + i, c + i, aligned, g.N - column - i);
}

#endif
