/* Scales and packs the operands of a product by the Ozaki scheme: float64 to residues.
 *
 *     row of A, column of B  -> 2^e, so that |row|_2 2^e is at most sqrt(P/2)
 *     element x              -> x' = x 2^e rounded to an integer below 2^63
 *     x'                     -> x' mod p_i, a byte in plane i: [modulus][row][k]
 *
 * By Cauchy-Schwarz |sum a' b'| <= |a'|_2 |b'|_2 < P/2, so residues of the sum determine it.
 *
 * The remainder: x' = sum d_j 256^j with signed digits, so x' = sum d_j w_j (mod p), w_j = 256^j
 * mod p: two DP4A, whose sum is below 2^17. They add it to the bits of a float that is a multiple
 * of p. An FFMA by 1/p gives the rounded quotient in the low bits of a float, and an IMAD the
 * remainder's byte. A test checks every possible sum.
 *
 * Bytes: 8 read twice and MODULI written per element. Per element and modulus 2 DP4A, FFMA, IMAD.
 */
#ifndef SMK_OZAKI_PACK_CUH
#define SMK_OZAKI_PACK_CUH

#include "args.h"
#include "ozaki_args.h"
#include "ozaki_moduli.cuh"

/* The exponent of rows with a NaN or an infinity. The last kernel computes their results anew. */
constexpr int NOT_FINITE = 0x7fffffff;

/* |e| <= 1022 */
__device__ __forceinline__ double exact_power(int e) {
    return __hiloint2double((e + 1023) << 20, 0);
}

/* ---- scales ---- */

/* The sum of the squares of some elements, times 4^-(field - 1024): so it does not overflow. */
typedef struct square_sum {
    int field; /* exponent field of the largest element, at least 2 */
    double sum;
} square_sum;

__device__ __forceinline__ double scale_for(int field) {
    return exact_power(1024 - field);
}

__device__ __forceinline__ void add_squares(square_sum &s, const square_sum &other) {
    const int field = max(s.field, other.field);
    const int down = field - s.field, other_down = field - other.field;
    s.sum = (down < 500 ? s.sum * exact_power(-2 * down) : 0) +
            (other_down < 500 ? other.sum * exact_power(-2 * other_down) : 0);
    s.field = field;
}

template <int COUNT>
__device__ __forceinline__ void add_elements(square_sum &s, const double (&x)[COUNT]) {
    int largest = 0;
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        largest = max(largest, __double2hiint(x[i]) & 0x7fffffff);
    if (largest >> 20 > s.field) add_squares(s, {largest >> 20, 0});
    const double scale = scale_for(s.field);
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const double scaled = x[i] * scale;
        s.sum = fma(scaled, scaled, s.sum);
    }
}

/* The largest e with |row|_2 2^e below the limit. */
__device__ __forceinline__ int exponent_of(const square_sum &s) {
    if (s.field == 0x7ff) return NOT_FINITE;
    if (s.sum == 0) return 0;
    /* A sum of up to 2^31 squares is rounded by less than 2^-20 of it. */
    constexpr double limit = limit_of_product();
    const double ratio = limit / (s.sum * (1 + 0x1p-20));
    const int log2_ratio = (__double2hiint(ratio) >> 20) - 1023;
    return (log2_ratio >> 1) + 1024 - s.field;
}

/* A block finds the scales of 32 rows. Of a K-major operand a warp reads one, else lanes are rows. */
__device__ __forceinline__ void find_scales(const double *x, const ozaki_operand &to, int block,
                                            long long K) {
    __shared__ double sums[32][33];
    __shared__ int fields[32][33];
    constexpr int COUNT = 8; /* loads in flight */
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int own = to.by_rows ? warp : lane, part = to.by_rows ? lane : warp;
    const long long row0 = (long long)block * OZAKI_SCALE_ROWS, row = row0 + own;
    square_sum s = {2, 0};
    if (row < to.all_rows) {
        const double *from = x + row * to.row_stride + part * to.k_stride;
        const long long step = 32 * to.k_stride;
        long long k = part;
#pragma unroll 1
        for (; k + 32 * (COUNT - 1) < K; k += 32 * COUNT, from += COUNT * step) {
            double several[COUNT];
#pragma unroll
            for (int i = 0; i < COUNT; i++)
                several[i] = from[i * step];
            add_elements(s, several);
        }
#pragma unroll 1
        for (; k < K; k += 32, from += step) {
            const double one[1] = {*from};
            add_elements(s, one);
        }
    }
    sums[own][part] = s.sum;
    fields[own][part] = s.field;
    __syncthreads();
    s = {fields[warp][lane], sums[warp][lane]};
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        const square_sum other = {__shfl_xor_sync(0xffffffff, s.field, distance),
                                  __shfl_xor_sync(0xffffffff, s.sum, distance)};
        add_squares(s, other);
    }
    /* Rows behind the end: the last kernel reads whole vectors. */
    constexpr int WIDE = OZAKI_COMBINE_COLUMNS;
    if (lane == 0 && row0 + warp < (to.all_rows + WIDE - 1) / WIDE * WIDE)
        to.exponent[row0 + warp] = exponent_of(s);
}

/* ---- residues ---- */

/* Signed digits of an integer to base 256, four per word. */
typedef struct digits {
    unsigned low, high;
} digits;

__device__ __forceinline__ digits digits_of(long long x) {
    const unsigned long long each = 0x8080808080808080ull;
    const unsigned long long d = ((unsigned long long)x + each) ^ each;
    return {(unsigned)d, (unsigned)(d >> 32)};
}

/* A word whose low byte is the residue. */
template <bool OF_A> __device__ __forceinline__ unsigned residue(const digits &x, int i) {
    const unsigned low = OZAKI.weights[!OF_A][i][0], high = OZAKI.weights[!OF_A][i][1];
    if (OZAKI.modulus[i] == 256) return OF_A ? x.low : x.low * low;
    const int sum =
        __dp4a((int)x.high, (int)high, __dp4a((int)x.low, (int)low, (int)OZAKI.base[i]));
    const float quotient = fmaf(__int_as_float(sum), OZAKI.reciprocal[i], 12582912.0f);
    return sum - __float_as_int(quotient) * OZAKI.modulus[i];
}

__device__ __forceinline__ unsigned low_bytes(unsigned b0, unsigned b1, unsigned b2, unsigned b3) {
    return __byte_perm(__byte_perm(b0, b1, 0x0040), __byte_perm(b2, b3, 0x0040), 0x5410);
}

template <int WORDS> struct words_type;
template <> struct words_type<2> {
    typedef uint2 type;
};
template <> struct words_type<4> {
    typedef uint4 type;
};

/* Stores COUNT adjacent residues in each plane. */
template <bool OF_A, int COUNT>
__device__ __forceinline__ void store_residues(unsigned char *to, long long plane,
                                               const digits (&x)[COUNT]) {
    typedef typename words_type<COUNT / 4>::type stored;
#pragma unroll
    for (int i = 0; i < MODULI; i++, to += plane) {
        unsigned word[COUNT / 4];
#pragma unroll
        for (int w = 0; w < COUNT / 4; w++) {
            word[w] = low_bytes(residue<OF_A>(x[4 * w], i), residue<OF_A>(x[4 * w + 1], i),
                                residue<OF_A>(x[4 * w + 2], i), residue<OF_A>(x[4 * w + 3], i));
        }
        if constexpr (COUNT == 8)
            *reinterpret_cast<stored *>(to) = make_uint2(word[0], word[1]);
        else
            *reinterpret_cast<stored *>(to) = make_uint4(word[0], word[1], word[2], word[3]);
    }
}

/* Row of a plane for a row of the block. Rows of B are permuted in groups of 16, so that a thread
 * of the product has four adjacent columns of C in two adjacent tiles of 8. */
__device__ __forceinline__ int place_of(int row, bool of_a) {
    const int r = row % 16;
    return of_a ? row : row - r + (r / 2 % 2 * 8 + r / 4 * 2 + r % 2);
}

/* COUNT elements from `k` on; 0 behind the end. */
template <int COUNT>
__device__ __forceinline__ void load_elements(double (&x)[COUNT], const double *from,
                                              long long step, int valid) {
    if (step == 1 && valid >= COUNT && (unsigned long long)from % 16 == 0) {
#pragma unroll
        for (int i = 0; i < COUNT; i += 2) {
            const double2 pair = *reinterpret_cast<const double2 *>(from + i);
            x[i] = pair.x;
            x[i + 1] = pair.y;
        }
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            x[i] = i < valid ? from[i * step] : 0;
    }
}

/* Packs COUNT adjacent k of a row of the block, or zeros behind the end of K or of the rows. */
template <bool OF_A, bool K_MAJOR, int COUNT>
__device__ __forceinline__ void pack_elements(const double *x, const ozaki_operand &to, int row,
                                              int k, int first_k, int end) {
    double element[COUNT];
    digits digit[COUNT];
    const bool exists = row < to.rows;
    const int exponent = exists ? to.exponent[row] : 0;
    load_elements(element, x + row * to.row_stride + (first_k + k) * to.k_stride,
                  K_MAJOR ? 1 : to.k_stride, exists ? end - k : 0);
    /* In two steps, because 2^exponent may not be a float64. */
    const int half = exponent == NOT_FINITE ? 0 : exponent / 2;
    const double scale = exponent == NOT_FINITE ? 0 : exact_power(half);
    const double rest = exact_power(exponent == NOT_FINITE ? 0 : exponent - half);
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        digit[i] = digits_of(__double2ll_rn(element[i] * scale * rest));
    store_residues<OF_A>(to.planes + (long long)place_of(row, OF_A) * to.pitch + k, to.plane,
                         digit);
}

/* A warp packs 256 k of a row, or 32 k of 16 rows. */
template <bool OF_A>
__device__ __forceinline__ void pack_operand(const double *x, const ozaki_operand &to, int block,
                                             int first_k, int end) {
    const int lane = threadIdx.x % 32;
    const int unit = block * (OZAKI_PACK_THREADS / 32) + threadIdx.x / 32;
    const int rows = OF_A ? to.rows : (to.rows + OZAKI_GROUP - 1) / OZAKI_GROUP * OZAKI_GROUP;
    if (to.by_rows) {
        constexpr int COUNT = OZAKI_PACK_K_MAJOR;
        const int across = (to.pitch + 32 * COUNT - 1) / (32 * COUNT);
        const int row = unit / across, k = unit % across * 32 * COUNT + lane * COUNT;
        if (row < rows && k < to.pitch)
            pack_elements<OF_A, true, COUNT>(x, to, row, k, first_k, end);
    } else {
        constexpr int COUNT = OZAKI_PACK_K * OZAKI_PACK_ROWS / 32;
        const int across = to.pitch / OZAKI_PACK_K;
        const int row = unit / across * OZAKI_PACK_ROWS + lane % OZAKI_PACK_ROWS;
        const int k = unit % across * OZAKI_PACK_K + lane / OZAKI_PACK_ROWS * COUNT;
        if (row < rows) pack_elements<OF_A, false, COUNT>(x, to, row, k, first_k, end);
    }
}

/* ---- the kernels: blocks for A, then blocks for B ---- */

/* An operand for this batch. */
__device__ __forceinline__ ozaki_operand of_batch(ozaki_operand to) {
    to.planes += blockIdx.z * to.batch_planes;
    to.exponent += blockIdx.z * to.batch_exponents;
    return to;
}

__device__ __forceinline__ void scale_operands(const gemm_args &g, const ozaki_args &o) {
    const bool of_a = (int)blockIdx.x < o.a.scaling;
    overlap_launches();
    if (blockIdx.z != 0 && (of_a ? g.batch_a : g.batch_b) == 0) return;
    const double *x = of_a ? g.A + blockIdx.z * g.batch_a : g.B + blockIdx.z * g.batch_b;
    find_scales(x, of_batch(of_a ? o.a : o.b), blockIdx.x - (of_a ? 0 : o.a.scaling), g.K);
}

__device__ __forceinline__ void pack_operands(const gemm_args &g, const ozaki_args &o) {
    overlap_launches();
    if ((int)blockIdx.x < o.a.packing) {
        if (blockIdx.z != 0 && g.batch_a == 0) return;
        pack_operand<true>(g.A + blockIdx.z * g.batch_a, of_batch(o.a), blockIdx.x, o.first_k, o.k);
    } else {
        if (blockIdx.z != 0 && g.batch_b == 0) return;
        pack_operand<false>(g.B + blockIdx.z * g.batch_b, of_batch(o.b), blockIdx.x - o.a.packing,
                            o.first_k, o.k);
    }
}

#endif
