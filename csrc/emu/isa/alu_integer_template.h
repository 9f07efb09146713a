/* Integer arithmetic: add sub mul mad sad div rem abs neg min max, and the 24-bit and packed forms.
 * Carries and dot products are in alu_extended_template.h.
 *
 * Arithmetic wraps, so it is done in unsigned types. Signed types appear only where the sign
 * changes the result.
 */
#include "alu.h"

/* ---- add sub mul mad ---- */

#define ADD(name, T)      LANEWISE(name, T, T, T, T, a + b)
#define SUBTRACT(name, T) LANEWISE(name, T, T, T, T, a - b)
FOR_UNSIGNED(ADD, add)
FOR_UNSIGNED(SUBTRACT, sub)

static inline int32_t clamp_s32(int64_t x) {
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x;
}

LANEWISE(add_sat_s32, s32, s32, s32, s32, clamp_s32((int64_t)a + b))
LANEWISE(sub_sat_s32, s32, s32, s32, s32, clamp_s32((int64_t)a - b))

/* Adds both 16-bit halves, without a carry between them. */
static inline uint32_t add_u16_halves(uint32_t a, uint32_t b) {
    return ((a + b) & 0xffff) | ((a & 0xffff0000) + (b & 0xffff0000));
}

LANEWISE(add_u16x2, u32, u32, u32, u32, add_u16_halves(a, b))

/* 1u: the product of two uint16_t would be an int and could overflow. */
#define MULTIPLY_LOW(name, T)     LANEWISE(name, T, T, T, T, 1u * a * b)
#define MULTIPLY_ADD_LOW(name, T) LANEWISE(name, T, T, T, T, 1u * a * b + c)
FOR_UNSIGNED(MULTIPLY_LOW, mul_lo)
FOR_UNSIGNED(MULTIPLY_ADD_LOW, mad_lo)

#define MULTIPLY_HIGH(name, T) LANEWISE(name, T, T, T, T, high_##T(a, b))
FOR_INTEGERS(MULTIPLY_HIGH, mul_hi)

/* The sum wraps as uint64_t, then narrows to the lane's type. */
#define MULTIPLY_ADD_HIGH(name, T)                                                                 \
    LANEWISE(name, T, T, T, T, (uint64_t)high_##T(a, b) + (uint64_t)c)
FOR_INTEGERS(MULTIPLY_ADD_HIGH, mad_hi)
LANEWISE(mad_hi_sat_s32, s32, s32, s32, s32, clamp_s32((int64_t)high_s32(a, b) + c))

LANEWISE(mul_wide_u16, u32, u16, u16, u16, (uint32_t)a *b)
LANEWISE(mul_wide_s16, s32, s16, s16, s16, (int32_t)a *b)
LANEWISE(mul_wide_u32, u64, u32, u32, u32, (uint64_t)a *b)
LANEWISE(mul_wide_s32, s64, s32, s32, s32, (int64_t)a *b)
LANEWISE(mad_wide_u16, u32, u16, u16, u32, (uint32_t)a *b + c)
LANEWISE(mad_wide_s16, u32, s16, s16, u32, (uint32_t)((int32_t)a * b) + c)
LANEWISE(mad_wide_u32, u64, u32, u32, u64, (uint64_t)a *b + c)
LANEWISE(mad_wide_s32, u64, s32, s32, u64, (uint64_t)((int64_t)a * b) + c)

static exec_fn select_add_integer(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    static const exec_by_type table = {TYPES_SIGNLESS(add), [PTX_U16X2] = add_u16x2,
                                       [PTX_S16X2] = add_u16x2};
    static const exec_by_type saturating = {[PTX_S32] = add_sat_s32};
    return alu_uniform(dc, p, out, t, 2, decode_take(dc, "sat") ? saturating : table);
}

static exec_fn select_sub_integer(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    static const exec_by_type table = {TYPES_SIGNLESS(sub)};
    static const exec_by_type saturating = {[PTX_S32] = sub_sat_s32};
    return alu_uniform(dc, p, out, t, 2, decode_take(dc, "sat") ? saturating : table);
}

static ptx_type double_width_type(ptx_type t) {
    switch (t) {
    case PTX_U16: return PTX_U32;
    case PTX_S16: return PTX_S32;
    case PTX_U32: return PTX_U64;
    case PTX_S32: return PTX_S64;
    default: return PTX_NO_TYPE;
    }
}

static exec_fn select_mul_integer(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    static const exec_by_type low = {TYPES_SIGNLESS(mul_lo)};
    static const exec_by_type high = {TYPES_INTEGER(mul_hi)};
    static const exec_by_type wide = {[PTX_U16] = mul_wide_u16,
                                      [PTX_S16] = mul_wide_s16,
                                      [PTX_U32] = mul_wide_u32,
                                      [PTX_S32] = mul_wide_s32};
    if (decode_take(dc, "lo")) return alu_uniform(dc, p, out, t, 2, low);
    if (decode_take(dc, "hi")) return alu_uniform(dc, p, out, t, 2, high);
    if (!decode_take(dc, "wide") || !wide[t] ||
        !alu_operands(dc, p, out, double_width_type(t), t, t, PTX_NO_TYPE, PTX_NO_TYPE))
        return NULL;
    return wide[t];
}

static exec_fn select_mad_integer(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    static const exec_by_type low = {TYPES_SIGNLESS(mad_lo)};
    static const exec_by_type high = {TYPES_INTEGER(mad_hi)};
    static const exec_by_type high_saturating = {[PTX_S32] = mad_hi_sat_s32};
    static const exec_by_type wide = {[PTX_U16] = mad_wide_u16,
                                      [PTX_S16] = mad_wide_s16,
                                      [PTX_U32] = mad_wide_u32,
                                      [PTX_S32] = mad_wide_s32};
    if (decode_take(dc, "lo")) return alu_uniform(dc, p, out, t, 3, low);
    if (decode_take(dc, "hi"))
        return alu_uniform(dc, p, out, t, 3, decode_take(dc, "sat") ? high_saturating : high);
    if (!decode_take(dc, "wide") || !wide[t] ||
        !alu_operands(dc, p, out, double_width_type(t), t, t, double_width_type(t), PTX_NO_TYPE))
        return NULL;
    return wide[t];
}

/* ---- 24-bit ---- */

static inline int64_t product24_s32(int32_t a, int32_t b) {
    return (int64_t)((int32_t)((uint32_t)a << 8) >> 8) * ((int32_t)((uint32_t)b << 8) >> 8);
}

static inline uint64_t product24_u32(uint32_t a, uint32_t b) {
    return (uint64_t)(a & 0xffffff) * (b & 0xffffff);
}

#define MULTIPLY24_LOW(name, T)  LANEWISE(name, T, T, T, T, product24_##T(a, b))
#define MULTIPLY24_HIGH(name, T) LANEWISE(name, T, T, T, T, product24_##T(a, b) >> 16)
#define MULTIPLY24_ADD_LOW(name, T)                                                                \
    LANEWISE(name, T, T, T, T, (uint32_t)product24_##T(a, b) + (uint32_t)c)
#define MULTIPLY24_ADD_HIGH(name, T)                                                               \
    LANEWISE(name, T, T, T, T, (uint32_t)(product24_##T(a, b) >> 16) + (uint32_t)c)
MULTIPLY24_LOW(mul24_lo_u32, u32)
MULTIPLY24_LOW(mul24_lo_s32, s32)
MULTIPLY24_HIGH(mul24_hi_u32, u32)
MULTIPLY24_HIGH(mul24_hi_s32, s32)
MULTIPLY24_ADD_LOW(mad24_lo_u32, u32)
MULTIPLY24_ADD_LOW(mad24_lo_s32, s32)
MULTIPLY24_ADD_HIGH(mad24_hi_u32, u32)
MULTIPLY24_ADD_HIGH(mad24_hi_s32, s32)
LANEWISE(mad24_hi_sat_s32, s32, s32, s32, s32,
         clamp_s32((int64_t)(int32_t)(product24_s32(a, b) >> 16) + c))

static exec_fn select_mul24(decoder *dc, const ptx_instruction *p, insn *out) {
    static const exec_by_type low = {[PTX_U32] = mul24_lo_u32, [PTX_S32] = mul24_lo_s32};
    static const exec_by_type high = {[PTX_U32] = mul24_hi_u32, [PTX_S32] = mul24_hi_s32};
    const ptx_type t = decode_take_type(dc);
    if (decode_take(dc, "lo")) return alu_uniform(dc, p, out, t, 2, low);
    return decode_take(dc, "hi") ? alu_uniform(dc, p, out, t, 2, high) : NULL;
}

static exec_fn select_mad24(decoder *dc, const ptx_instruction *p, insn *out) {
    static const exec_by_type low = {[PTX_U32] = mad24_lo_u32, [PTX_S32] = mad24_lo_s32};
    static const exec_by_type high = {[PTX_U32] = mad24_hi_u32, [PTX_S32] = mad24_hi_s32};
    static const exec_by_type high_saturating = {[PTX_S32] = mad24_hi_sat_s32};
    const ptx_type t = decode_take_type(dc);
    if (decode_take(dc, "lo")) return alu_uniform(dc, p, out, t, 3, low);
    if (!decode_take(dc, "hi")) return NULL;
    return alu_uniform(dc, p, out, t, 3, decode_take(dc, "sat") ? high_saturating : high);
}

/* ---- sad div rem abs neg min max ---- */

#define ABSOLUTE_DIFFERENCE(name, T)                                                               \
    LANEWISE(name, T, T, T, T,                                                                     \
             (uint64_t)c + (a < b ? (uint64_t)b - (uint64_t)a : (uint64_t)a - (uint64_t)b))
FOR_INTEGERS(ABSOLUTE_DIFFERENCE, sad)
SELECT_UNIFORM(sad, 3, TYPES_INTEGER(sad))

/* PTX does not specify division by zero. Quotient and remainder are all ones, as on hardware. The
 * one signed quotient that overflows wraps. */
#define DIVIDE_UNSIGNED(name, T)    LANEWISE(name, T, T, T, T, b ? a / b : ~(lane_##T)0)
#define REMAINDER_UNSIGNED(name, T) LANEWISE(name, T, T, T, T, b ? a % b : ~(lane_##T)0)
#define DIVIDE_SIGNED(name, T)                                                                     \
    LANEWISE(name, T, T, T, T, b == 0 ? -1 : b == -1 ? (lane_##T)(0 - (uint64_t)a) : a / b)
#define REMAINDER_SIGNED(name, T) LANEWISE(name, T, T, T, T, b == 0 ? -1 : b == -1 ? 0 : a % b)
FOR_UNSIGNED(DIVIDE_UNSIGNED, div)
FOR_SIGNED(DIVIDE_SIGNED, div)
FOR_UNSIGNED(REMAINDER_UNSIGNED, rem)
FOR_SIGNED(REMAINDER_SIGNED, rem)
SELECT_UNIFORM(rem, 2, TYPES_INTEGER(rem))

static exec_fn select_div_integer(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    static const exec_by_type table = {TYPES_INTEGER(div)};
    return alu_uniform(dc, p, out, t, 2, table);
}

#define ABSOLUTE(name, T, U)                                                                       \
    LANEWISE(name, U, T, T, T, a < 0 ? (lane_##U)0 - (lane_##U)a : (lane_##U)a)
ABSOLUTE(abs_s16, s16, u16)
ABSOLUTE(abs_s32, s32, u32)
ABSOLUTE(abs_s64, s64, u64)

static exec_fn select_abs_integer(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    static const exec_by_type table = {TYPES_SIGNED(abs)};
    return alu_uniform(dc, p, out, t, 1, table);
}

#define NEGATE(name, T) LANEWISE(name, T, T, T, T, 0 - a)
FOR_UNSIGNED(NEGATE, neg)

static exec_fn select_neg_integer(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    static const exec_by_type table = {
        [PTX_S16] = neg_u16, [PTX_S32] = neg_u32, [PTX_S64] = neg_u64};
    return alu_uniform(dc, p, out, t, 1, table);
}

#define MIN_OF(a, b)     ((a) < (b) ? (a) : (b))
#define MAX_OF(a, b)     ((a) > (b) ? (a) : (b))
#define MINIMUM(name, T) LANEWISE(name, T, T, T, T, MIN_OF(a, b))
#define MAXIMUM(name, T) LANEWISE(name, T, T, T, T, MAX_OF(a, b))
FOR_INTEGERS(MINIMUM, min)
FOR_INTEGERS(MAXIMUM, max)
LANEWISE(min_relu_s32, s32, s32, s32, s32, MAX_OF(MIN_OF(a, b), 0))
LANEWISE(max_relu_s32, s32, s32, s32, s32, MAX_OF(MAX_OF(a, b), 0))

#define PACKED(name, T, op)                                                                        \
    LANEWISE(name, u32, u32, u32, u32,                                                             \
             packed_u16x2((uint32_t)op((T)a, (T)b), (uint32_t)op((T)(a >> 16), (T)(b >> 16))))
#define MIN_OF_RELU(a, b) MAX_OF(MIN_OF(a, b), 0)
#define MAX_OF_RELU(a, b) MAX_OF(MAX_OF(a, b), 0)
PACKED(min_u16x2, uint16_t, MIN_OF)
PACKED(max_u16x2, uint16_t, MAX_OF)
PACKED(min_s16x2, int16_t, MIN_OF)
PACKED(max_s16x2, int16_t, MAX_OF)
PACKED(min_relu_s16x2, int16_t, MIN_OF_RELU)
PACKED(max_relu_s16x2, int16_t, MAX_OF_RELU)

static exec_fn select_min_integer(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    static const exec_by_type table = {TYPES_INTEGER(min), [PTX_U16X2] = min_u16x2,
                                       [PTX_S16X2] = min_s16x2};
    static const exec_by_type relu = {[PTX_S32] = min_relu_s32, [PTX_S16X2] = min_relu_s16x2};
    return alu_uniform(dc, p, out, t, 2, decode_take(dc, "relu") ? relu : table);
}

static exec_fn select_max_integer(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    static const exec_by_type table = {TYPES_INTEGER(max), [PTX_U16X2] = max_u16x2,
                                       [PTX_S16X2] = max_s16x2};
    static const exec_by_type relu = {[PTX_S32] = max_relu_s32, [PTX_S16X2] = max_relu_s16x2};
    return alu_uniform(dc, p, out, t, 2, decode_take(dc, "relu") ? relu : table);
}
