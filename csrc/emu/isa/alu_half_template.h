/* f16, bf16 and their packed pairs: add sub mul fma, abs neg min max, and the approximate ex2 and
 * tanh.
 *
 * An operation is one function of the bits of three sources. Its handlers apply it to 16-bit lanes
 * or to both halves of 32-bit lanes. It computes in double, where products of two halves are exact
 * and sums are rounded to odd, and rounds once.
 */
#include "alu_format.h"
#include "alu_functions.h"

static inline uint16_t flush_half(uint16_t bits, uint32_t flags, bool bf16) {
    return flags & FLAG_FTZ && !(bits & (bf16 ? 0x7f80 : 0x7c00)) ? bits & 0x8000 : bits;
}

static inline double half_to_double(uint16_t bits, uint32_t flags, bool bf16) {
    bits = flush_half(bits, flags, bf16);
    return bf16 ? value_bf16(bits) : value_f16(bits);
}

static inline uint16_t double_to_half(double x, uint32_t flags, bool bf16) {
    if (flags & FLAG_SAT) x = x > 0 ? x < 1 ? x : 1 : 0; /* NaN and -0 give +0 */
    if (flags & FLAG_RELU) x = x <= 0 ? 0 : x;
    if (flags & FLAG_FTZ && is_tiny(x, bf16 ? format_bf16 : format_f16, ROUND_NEAREST))
        x = copysign(0.0, x);
    return (uint16_t)round_to_format(x, bf16 ? format_bf16 : format_f16, ROUND_NEAREST, false);
}

#define HALF_FUNCTION(op, result)                                                                  \
    static inline uint16_t op##_half(uint16_t a_bits, uint16_t b_bits, uint16_t c_bits,            \
                                     uint32_t flags, bool bf16) {                                  \
        const double a = half_to_double(a_bits, flags, bf16),                                      \
                     b = half_to_double(b_bits, flags, bf16);                                      \
        const double c = half_to_double(c_bits, flags, bf16);                                      \
        (void)a, (void)b, (void)c;                                                                 \
        return double_to_half(result, flags, bf16);                                                \
    }

/* Defines the handlers of op from its function op_half, and their table by type. */
#define HALF_HANDLERS(op)                                                                          \
    LANEWISE(op##_f16, u16, u16, u16, u16, op##_half(a, b, c, flags, false))                       \
    LANEWISE(op##_bf16, u16, u16, u16, u16, op##_half(a, b, c, flags, true))                       \
    LANEWISE(op##_f16x2, u32, u32, u32, u32, HALVES(op, false))                                    \
    LANEWISE(op##_bf16x2, u32, u32, u32, u32, HALVES(op, true))                                    \
    static const exec_by_type op##_half_table = {[PTX_F16] = op##_f16,                             \
                                                 [PTX_F16X2] = op##_f16x2,                         \
                                                 [PTX_BF16] = op##_bf16,                           \
                                                 [PTX_BF16X2] = op##_bf16x2};

#define HALVES(op, bf16)                                                                           \
    packed_u16x2(op##_half((uint16_t)a, (uint16_t)b, (uint16_t)c, flags, bf16),                    \
                 op##_half(a >> 16, b >> 16, c >> 16, flags, bf16))

HALF_FUNCTION(add, add_to_odd(a, b))
HALF_FUNCTION(sub, add_to_odd(a, -b))
HALF_FUNCTION(mul, a *b)
HALF_FUNCTION(ex2, function_exp2(a))
HALF_FUNCTION(tanh, function_tanh(a))
HALF_FUNCTION(fma, add_to_odd(a *b, c))

HALF_HANDLERS(add)
HALF_HANDLERS(sub)
HALF_HANDLERS(mul)
HALF_HANDLERS(fma)
HALF_HANDLERS(ex2)
HALF_HANDLERS(tanh)

static bool is_f16(ptx_type t) {
    return t == PTX_F16 || t == PTX_F16X2;
}

/* Rounding is always to nearest. Only f16 has .ftz and .sat. */
static exec_fn select_half(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t, int n,
                           const exec_by_type table) {
    const bool ftz = is_f16(t) && decode_take(dc, "ftz"), sat = is_f16(t) && decode_take(dc, "sat");
    out->flags |= (uint8_t)((ftz ? FLAG_FTZ : 0) | (sat ? FLAG_SAT : 0));
    return alu_uniform(dc, p, out, t, n, table);
}

static exec_fn select_add_half(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    decode_take(dc, "rn");
    return select_half(dc, p, out, t, 2, add_half_table);
}

static exec_fn select_sub_half(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    decode_take(dc, "rn");
    return select_half(dc, p, out, t, 2, sub_half_table);
}

static exec_fn select_mul_half(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    decode_take(dc, "rn");
    return select_half(dc, p, out, t, 2, mul_half_table);
}

static exec_fn select_fma_half(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    if (!decode_take(dc, "rn")) return NULL;
    out->flags = decode_take(dc, "relu") ? FLAG_RELU : 0;
    return select_half(dc, p, out, t, 3, fma_half_table);
}

/* ex2 requires .ftz for bf16 and does not have it for f16. */
static exec_fn select_ex2_half(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    const bool ftz = decode_take(dc, "ftz");
    if (!decode_take(dc, "approx") || ftz == is_f16(t)) return NULL;
    out->flags = ftz ? FLAG_FTZ : 0;
    return alu_uniform(dc, p, out, t, 1, ex2_half_table);
}

static exec_fn select_tanh_half(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    return decode_take(dc, "approx") ? alu_uniform(dc, p, out, t, 1, tanh_half_table) : NULL;
}

/* ---- abs, neg, min, max: operations on bits ---- */

static inline bool is_nan_half(uint16_t bits, bool bf16) {
    return (bits & 0x7fff) > (bf16 ? 0x7f80 : 0x7c00);
}

static inline uint16_t abs_half(uint16_t a, uint16_t b, uint16_t c, uint32_t flags, bool bf16) {
    (void)b, (void)c;
    return is_nan_half(a, bf16) ? NAN_HALF : flush_half(a, flags, bf16) & 0x7fff;
}

static inline uint16_t neg_half(uint16_t a, uint16_t b, uint16_t c, uint32_t flags, bool bf16) {
    (void)b, (void)c;
    return is_nan_half(a, bf16) ? NAN_HALF : flush_half(a, flags, bf16) ^ 0x8000;
}

MINMAX(min_of_f16, uint16_t, float, value_f16, <, |, NAN_HALF)
MINMAX(max_of_f16, uint16_t, float, value_f16, >, &, NAN_HALF)
MINMAX(min_of_bf16, uint16_t, float, value_bf16, <, |, NAN_HALF)
MINMAX(max_of_bf16, uint16_t, float, value_bf16, >, &, NAN_HALF)

#define MINMAX_HALF(name, which)                                                                   \
    static inline uint16_t name##_half(uint16_t a, uint16_t b, uint16_t c, uint32_t flags,         \
                                       bool bf16) {                                                \
        (void)c;                                                                                   \
        const bool nan = is_nan_half(a, bf16) || is_nan_half(b, bf16);                             \
        if (flags & MINMAX_NAN && nan) return NAN_HALF;                                            \
        a = flush_half(a, flags, bf16), b = flush_half(b, flags, bf16);                            \
        const uint16_t sign = flags & MINMAX_XORSIGN_ABS ? (a ^ b) & 0x8000 : 0;                   \
        if (flags & MINMAX_XORSIGN_ABS) a &= 0x7fff, b &= 0x7fff;                                  \
        const uint16_t result = bf16 ? which##_bf16(a, b) : which##_f16(a, b);                     \
        return is_nan_half(result, bf16) ? result : result | sign;                                 \
    }

MINMAX_HALF(min, min_of)
MINMAX_HALF(max, max_of)

HALF_HANDLERS(abs)
HALF_HANDLERS(neg)
HALF_HANDLERS(min)
HALF_HANDLERS(max)

static exec_fn select_abs_half(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    out->flags = is_f16(t) && decode_take(dc, "ftz") ? FLAG_FTZ : 0;
    return alu_uniform(dc, p, out, t, 1, abs_half_table);
}

static exec_fn select_neg_half(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    out->flags = is_f16(t) && decode_take(dc, "ftz") ? FLAG_FTZ : 0;
    return alu_uniform(dc, p, out, t, 1, neg_half_table);
}

static exec_fn select_minmax_half(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t,
                                  const exec_by_type table) {
    const int flags = take_minmax_flags(dc);
    if (flags < 0 || (flags & FLAG_FTZ && !is_f16(t))) return NULL;
    out->flags = (uint8_t)flags;
    return alu_uniform(dc, p, out, t, 2, table);
}

static exec_fn select_min_half(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    return select_minmax_half(dc, p, out, t, min_half_table);
}

static exec_fn select_max_half(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    return select_minmax_half(dc, p, out, t, max_half_table);
}
