/* Constants of the Ozaki scheme II, computed by the compiler from the list of moduli.
 *
 *     P = p_0 p_1 ...   x mod P from x mod p_i: x = sum_i s_i P / p_i (mod P),
 *                       s_i = x y_i mod p_i, y_i the inverse of P / p_i modulo p_i
 *
 * B's residues are multiplied by y_i, so the product's residues are s_i. Three moduli form a group
 * g with product P_g: t_g = sum_i s_i P_g / p_i is below 2^26, and x = sum_g t_g P / P_g (mod P).
 *
 * Source: Ozaki, Uchino, Imamura, "Ozaki Scheme II", 2025.
 */
#ifndef SMK_OZAKI_MODULI_CUH
#define SMK_OZAKI_MODULI_CUH

constexpr int GROUP_SIZE = 3, GROUPS = (MODULI + GROUP_SIZE - 1) / GROUP_SIZE;
/* The sum of the terms of x is below 2^(128 + QUOTIENT_SHIFT). */
constexpr int QUOTIENT_SHIFT = MODULI > 15 ? 4 : 0;

/* Pairwise coprime, the largest. */
__device__ constexpr int modulus_of(int i) {
    constexpr int moduli[] = {256, 255, 253, 251, 247, 241, 239, 233,
                              229, 227, 223, 217, 211, 199, 197, 193};
    return moduli[i];
}

/* An integer modulo 2^128, low words first. */
struct wide {
    unsigned word[4];
};

__device__ constexpr wide times(const wide &x, unsigned factor) {
    wide product = {};
    unsigned long long carry = 0;
    for (int i = 0; i < 4; i++) {
        carry += (unsigned long long)x.word[i] * factor;
        product.word[i] = (unsigned)carry;
        carry >>= 32;
    }
    return product;
}

/* The product of all moduli, without those first..end - 1. */
__device__ constexpr wide product_without(int first, int end) {
    wide product = {{1, 0, 0, 0}};
    for (int i = 0; i < MODULI; i++)
        if (i < first || i >= end) product = times(product, modulus_of(i));
    return product;
}

__device__ constexpr wide negative(const wide &x) {
    wide result = {};
    unsigned long long carry = 1;
    for (int i = 0; i < 4; i++) {
        carry += ~x.word[i];
        result.word[i] = (unsigned)carry;
        carry >>= 32;
    }
    return result;
}

/* x modulo p, nearest to 0. */
__device__ constexpr int centered(int x, int p) {
    const int rest = (x % p + p) % p;
    return rest > (p - 1) / 2 ? rest - p : rest;
}

/* y_i */
__device__ constexpr int inverse_of(int i) {
    const int p = modulus_of(i);
    int others = 1, y = 1;
    for (int j = 0; j < MODULI; j++)
        if (j != i) others = others * (modulus_of(j) % p) % p;
    while (others * y % p != 1)
        y++;
    return y;
}

/* Four signed bytes: what digits first..first + 3 of an element of A or B contribute modulo p_i. */
__device__ constexpr unsigned weights_of(int i, int first, bool a) {
    const int p = modulus_of(i);
    int weight = a ? 1 : inverse_of(i) % p;
    unsigned bytes = 0;
    for (int digit = 0; digit < first + 4; digit++) {
        if (digit >= first) bytes |= (unsigned)(centered(weight, p) & 0xff) << 8 * (digit - first);
        weight = weight * 256 % p;
    }
    return bytes;
}

__device__ constexpr int end_of_group(int g) {
    return GROUP_SIZE * (g + 1) < MODULI ? GROUP_SIZE * (g + 1) : MODULI;
}

/* P_g / p_i, g the group of i. */
__device__ constexpr unsigned rest_of_group(int i) {
    const int g = i / GROUP_SIZE;
    unsigned product = 1;
    for (int j = GROUP_SIZE * g; j < end_of_group(g); j++)
        if (j != i) product *= modulus_of(j);
    return product;
}

/* P / 2, less a margin of 2^-6 of it. */
__device__ constexpr double limit_of_product() {
    double product = 0.5 - 0.5 / 64;
    for (int i = 0; i < MODULI; i++)
        product *= modulus_of(i);
    return product;
}

/* The constants that kernels read; with indices known to the compiler they become immediates. */
struct ozaki_constants {
    int modulus[MODULI];
    float reciprocal[MODULI];
    unsigned base[MODULI];          /* bits of the float that a sum of digits is added to */
    unsigned weights[2][MODULI][2]; /* of A and of B */
    int multiplier[MODULI];         /* floor(2^38 / p) */
    unsigned rest[MODULI];          /* P_g / p_i */
    wide others[GROUPS];            /* P / P_g */
    float quotient;                 /* 2^(96 + QUOTIENT_SHIFT) / P */
    wide negative_product;          /* -P */
};

/* The least multiple of p from which sums of digits lead to floats in [2^23, 2^24). */
__device__ constexpr unsigned base_of(int p) {
    const unsigned least = (1u << 23) + (1u << 17);
    return (least + p - 1) / p * p - (1u << 23) + 0x4b000000;
}

__device__ constexpr ozaki_constants make_constants() {
    ozaki_constants c = {};
    for (int i = 0; i < MODULI; i++) {
        c.modulus[i] = modulus_of(i);
        c.reciprocal[i] = 1.0f / modulus_of(i);
        c.base[i] = base_of(modulus_of(i));
        for (int half = 0; half < 2; half++) {
            c.weights[0][i][half] = weights_of(i, 4 * half, true);
            c.weights[1][i][half] = weights_of(i, 4 * half, false);
        }
        c.multiplier[i] = (int)((1ll << 38) / modulus_of(i));
        c.rest[i] = rest_of_group(i);
    }
    for (int g = 0; g < GROUPS; g++) {
        c.others[g] = product_without(GROUP_SIZE * g, end_of_group(g));
    }
    c.quotient =
        (float)((1ull << QUOTIENT_SHIFT) * 0x1p96 / (2 * limit_of_product() / (1 - 0x1p-6)));
    c.negative_product = negative(product_without(0, 0));
    return c;
}

__device__ constexpr ozaki_constants OZAKI = make_constants();

#endif
