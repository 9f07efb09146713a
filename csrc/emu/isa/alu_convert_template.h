/* cvt: between all integer and floating-point types, with packing of two results into one register.
 *
 * The conversions that programs live on have handlers of their own. All others take one road: the
 * source becomes a 64-bit integer or a double, exactly; that is clamped or rounded once; the result
 * is stored as wide as its register. A register may be wider than the type it is used with: reads
 * take the low bits, writes extend by the type's sign.
 */
#include "alu_format.h"

/* ---- the frequent ones, register as wide as type ---- */

/* Between integers, without .sat, the destination's sign does not matter. */
#define CONVERT_INTEGER(T)                                                                         \
    LANEWISE(cvt_u16_##T, u16, T, T, T, a)                                                         \
    LANEWISE(cvt_u32_##T, u32, T, T, T, a)                                                         \
    LANEWISE(cvt_u64_##T, u64, T, T, T, a)
CONVERT_INTEGER(u16)
CONVERT_INTEGER(s16)
CONVERT_INTEGER(u32)
CONVERT_INTEGER(s32)
CONVERT_INTEGER(u64)
CONVERT_INTEGER(s64)

#define CONVERTERS(T) {cvt_u16_##T, cvt_u32_##T, cvt_u64_##T}
static const exec_fn integer_converters[PTX_N_TYPES][3] = {
    [PTX_U16] = CONVERTERS(u16), [PTX_S16] = CONVERTERS(s16), [PTX_U32] = CONVERTERS(u32),
    [PTX_S32] = CONVERTERS(s32), [PTX_U64] = CONVERTERS(u64), [PTX_S64] = CONVERTERS(s64),
};

static inline int32_t truncated_s32(float a) {
    const float in_range = a < 0x1p31f ? a >= -0x1p31f ? a : -0x1p31f : 0;
    return a >= 0x1p31f ? INT32_MAX : (int32_t)in_range;
}

LANEWISE(cvt_rn_f32_s32, u32, s32, s32, s32, bits_of_f32((float)a))
LANEWISE(cvt_rn_f32_u32, u32, u32, u32, u32, bits_of_f32((float)a))
LANEWISE(cvt_rn_f64_s32, f64, s32, s32, s32, a)
LANEWISE(cvt_rn_f64_u32, f64, u32, u32, u32, a)
LANEWISE(cvt_rn_f32_f64, u32, f64, f64, f64,
         a != a ? nan_of_f64(a, format_f32) : bits_of_f32((float)a))
LANEWISE(cvt_f64_f32, u64, f32, f32, f32, f64_of_f32(a))
LANEWISE(cvt_f32_f16, u32, u16, u16, u16, canonical_f32(value_f16(a)))
LANEWISE(cvt_f32_bf16, u32, u16, u16, u16, bits_of_f32(value_bf16(a)))
LANEWISE(cvt_rn_f16_f32, u16, f32, f32, f32, rounded(a, format_f16, ROUND_NEAREST, false))
LANEWISE(cvt_rn_bf16_f32, u16, f32, f32, f32, rounded(a, format_bf16, ROUND_NEAREST, false))
LANEWISE(cvt_rzi_s32_f32, s32, f32, f32, f32, truncated_s32(a))

/* X(to, from, whether rounding to an integer, rounding, handler). Without a rounding it is to
 * nearest. A cvt of f32 or f64 to itself is a mov. */
#define FREQUENT_CONVERSIONS(X)                                                                    \
    X(F32, S32, false, ROUND_NEAREST, cvt_rn_f32_s32)                                              \
    X(F32, U32, false, ROUND_NEAREST, cvt_rn_f32_u32)                                              \
    X(F64, S32, false, ROUND_NEAREST, cvt_rn_f64_s32)                                              \
    X(F64, U32, false, ROUND_NEAREST, cvt_rn_f64_u32)                                              \
    X(F32, F64, false, ROUND_NEAREST, cvt_rn_f32_f64)                                              \
    X(F64, F32, false, ROUND_NEAREST, cvt_f64_f32)                                                 \
    X(F32, F16, false, ROUND_NEAREST, cvt_f32_f16)                                                 \
    X(F32, BF16, false, ROUND_NEAREST, cvt_f32_bf16)                                               \
    X(F16, F32, false, ROUND_NEAREST, cvt_rn_f16_f32)                                              \
    X(BF16, F32, false, ROUND_NEAREST, cvt_rn_bf16_f32)                                            \
    X(S32, F32, true, ROUND_ZERO, cvt_rzi_s32_f32)                                                 \
    X(F32, F32, false, ROUND_NEAREST, cvt_u32_u32)                                                 \
    X(F64, F64, false, ROUND_NEAREST, cvt_u64_u64)

/* ---- all others ---- */

typedef struct conversion {
    ptx_type from, to;             /* of an element */
    uint32_t from_bytes, to_bytes; /* of a register's lane */
    uint32_t from_bits, to_bits;   /* how far apart packed elements are; 0: there is one */
    uint32_t rounding;
    bool integral; /* rounding to an integer */
    bool ftz, sat, relu, finite;
} conversion;

static bool is_float(ptx_type t) {
    switch (t) {
    case PTX_F64:
    case PTX_F32:
    case PTX_TF32:
    case PTX_F16:
    case PTX_BF16:
    case PTX_E4M3X2:
    case PTX_E5M2X2: return true;
    default: return false;
    }
}

static bool is_signed_integer(ptx_type t) {
    return t == PTX_S8 || t == PTX_S16 || t == PTX_S32 || t == PTX_S64;
}

static bool is_integer(ptx_type t) {
    return is_signed_integer(t) || t == PTX_U8 || is_unsigned(t);
}

static void load_lanes(const warp *w, uint32_t offset, uint32_t bytes, uint64_t *bits) {
    if (bytes == 8)
        EACH_LANE bits[lane] = LANE_POINTER(u64, w, offset)[lane];
    else if (bytes == 4)
        EACH_LANE bits[lane] = LANE_POINTER(u32, w, offset)[lane];
    else
        EACH_LANE bits[lane] = LANE_POINTER(u16, w, offset)[lane];
}

static void store_lanes(warp *w, uint32_t offset, uint32_t bytes, const uint64_t *bits) {
    if (bytes == 8)
        STORE_LANES(u64, w, offset, bits);
    else if (bytes == 4)
        STORE_LANES(u32, w, offset, bits);
    else
        STORE_LANES(u16, w, offset, bits);
}

/* The low bits of a register as a value of the type, in 64 bits of its sign. */
static void extend(ptx_type t, uint64_t *bits) {
    const uint32_t unused = 64 - 8u * ptx_type_size[t];
    const bool is_signed = is_signed_integer(t);
    EACH_LANE {
        const uint64_t top = bits[lane] << unused;
        bits[lane] = is_signed ? (uint64_t)((int64_t)top >> unused) : top >> unused;
    }
}

/* The element that starts at that bit, as a double. */
static void load_floats(const warp *w, uint32_t offset, const conversion *how, uint32_t shift,
                        double *x) {
    lanes_u64 bits;
    load_lanes(w, offset, how->from_bytes, bits);
    for (int lane = 0; lane < LANES; lane++) {
        const uint64_t element = bits[lane] >> shift;
        switch (how->from) {
        case PTX_F64: x[lane] = f64_of_bits(element); break;
        case PTX_F16: x[lane] = value_f16((uint16_t)element); break;
        case PTX_BF16: x[lane] = value_bf16((uint16_t)element); break;
        case PTX_E4M3X2: x[lane] = value_e4m3((uint8_t)element); break;
        case PTX_E5M2X2: x[lane] = value_e5m2((uint8_t)element); break;
        default: {
            const uint32_t f32 = (uint32_t)element;
            const uint32_t flushed = flushed_f32(canonical_f32(f32_of_bits(f32)));
            x[lane] = f64_of_bits(f64_of_f32(f32_of_bits(how->ftz ? flushed : f32)));
        }
        }
    }
}

/* An integer's magnitude as a double, rounded to odd where 53 bits are too few. */
static inline double odd_magnitude(uint64_t magnitude) {
    if (magnitude >> 53) magnitude = (magnitude >> 11 | ((magnitude & 0x7ff) != 0)) << 11;
    return (double)magnitude;
}

static double to_integral(double x, uint32_t rounding) {
    switch (rounding) {
    case ROUND_ZERO: return trunc(x);
    case ROUND_DOWN: return floor(x);
    case ROUND_UP: return ceil(x);
    default: return rint(x);
    }
}

/* Of an integral value or NaN. PTX: a NaN gives 0, but from f64 and to 64 bits only the top bit. */
static uint64_t float_to_integer(double x, ptx_type from, ptx_type to) {
    const int bits = 8 * ptx_type_size[to];
    const uint64_t top = (uint64_t)1 << (bits - 1);
    if (x != x) return from == PTX_F64 || bits == 64 ? top : 0;
    if (is_signed_integer(to)) {
        if (x >= ldexp(1, bits - 1)) return top - 1;
        return x < -ldexp(1, bits - 1) ? 0 - top : (uint64_t)(int64_t)x;
    }
    if (x >= ldexp(1, bits)) return top | (top - 1);
    return x <= 0 ? 0 : (uint64_t)x;
}

static uint32_t float_to_narrow(double x, float_format format, const conversion *how) {
    if (x != x && how->from == PTX_F64) return nan_of_f64(x, format);
    return rounded(x, format, how->rounding, how->finite);
}

static uint64_t float_to_float(double x, const conversion *how) {
    if (how->sat) x = x > 0 ? x < 1 ? x : 1 : 0; /* NaN and -0 give +0 */
    if (how->relu) x = x <= 0 ? 0 : x;
    switch (how->to) {
    case PTX_F64: return result_f64(x, x, x, x);
    case PTX_F16: return float_to_narrow(x, format_f16, how);
    case PTX_BF16: return float_to_narrow(x, format_bf16, how);
    case PTX_TF32: return (uint64_t)float_to_narrow(x, format_tf32, how) << 13;
    case PTX_E4M3X2: return float_to_narrow(x, format_e4m3, how);
    case PTX_E5M2X2: return float_to_narrow(x, format_e5m2, how);
    default:
        if (how->ftz && is_tiny(x, format_f32, how->rounding)) x = copysign(0.0, x);
        return float_to_narrow(x, format_f32, how);
    }
}

static const insn *cvt_from_float(warp *w, const insn *in) {
    const conversion *how = in->extra;
    double x[LANES];
    lanes_u64 results = {0};
    /* Of two results the upper comes from a, or from the upper part of a packed a. */
    for (int part = how->to_bits ? 1 : 0; part >= 0; part--) {
        const bool from_b = part == 0 && how->to_bits && !how->from_bits;
        load_floats(w, from_b ? in->b : in->a, how, part ? how->from_bits : 0, x);
        for (int lane = 0; lane < LANES; lane++) {
            const double value = how->integral ? to_integral(x[lane], how->rounding) : x[lane];
            const uint64_t bits = is_integer(how->to) ? float_to_integer(value, how->from, how->to)
                                                      : float_to_float(value, how);
            results[lane] |= bits << (part ? how->to_bits : 0);
        }
    }
    if (is_integer(how->to)) extend(how->to, results);
    store_lanes(w, in->d, how->to_bytes, results);
    return in + 1;
}

/* Into the range of an integer type, from one that is_signed. */
static uint64_t clamped_integer(uint64_t bits, bool from_signed, ptx_type to) {
    const uint64_t top = (uint64_t)1 << (8 * ptx_type_size[to] - 1);
    const uint64_t largest = is_signed_integer(to) ? top - 1 : top | (top - 1);
    if (from_signed && (int64_t)bits < 0) {
        const uint64_t least = is_signed_integer(to) ? 0 - top : 0;
        return (int64_t)bits < (int64_t)least ? least : bits;
    }
    return bits > largest ? largest : bits;
}

static uint64_t integer_to_float(uint64_t bits, bool negative, const conversion *how) {
    const double magnitude = odd_magnitude(negative ? 0 - bits : bits);
    return float_to_float(negative ? -magnitude : magnitude, how);
}

static const insn *cvt_from_integer(warp *w, const insn *in) {
    const conversion *how = in->extra;
    const bool is_signed = is_signed_integer(how->from);
    lanes_u64 bits;
    load_lanes(w, in->a, how->from_bytes, bits);
    extend(how->from, bits);
    if (is_integer(how->to)) {
        if (how->sat) EACH_LANE bits[lane] = clamped_integer(bits[lane], is_signed, how->to);
        extend(how->to, bits);
    } else if (how->to == PTX_F64 && !how->sat) {
        set_rounding(how->rounding);
        for (int lane = 0; lane < LANES; lane++) {
            const double x = is_signed ? (double)(int64_t)bits[lane] : (double)bits[lane];
            bits[lane] = bits_of_f64(x);
        }
        LANES_COMPLETE(bits);
        reset_rounding(how->rounding);
        /* Rounding down, compilers' sequences for vectors of u64 make a -0 of 0. */
        EACH_LANE bits[lane] = bits[lane] << 1 ? bits[lane] : 0;
    } else {
        for (int lane = 0; lane < LANES; lane++)
            bits[lane] = integer_to_float(bits[lane], is_signed && (int64_t)bits[lane] < 0, how);
    }
    store_lanes(w, in->d, how->to_bytes, bits);
    return in + 1;
}

/* ---- selection ---- */

/* Types of which every value is one of the other need no rounding to get there. */
static bool loses_precision(ptx_type from, ptx_type to) {
    if (to == PTX_F64 || from == to) return false;
    return to != PTX_F32 || from == PTX_F64;
}

/* A register's own type says where its bits lie, which may be wider than what is done with it. */
static ptx_type stored_type(decoder *dc, const ptx_operand *o, ptx_type used) {
    const ptx_type declared = decode_register_type(dc, o);
    return declared == PTX_NO_TYPE ? used : declared;
}

static uint32_t stored_bytes(ptx_type t) {
    return ptx_type_size[t] < 2 ? 2 : ptx_type_size[t];
}

/* The modifiers. False if the rounding that the types need is missing, or there is one they refuse.
 */
static bool take_conversion(decoder *dc, conversion *how) {
    static const char *const integral[4] = {"rni", "rzi", "rmi", "rpi"};
    const bool from_float = is_float(how->from), to_float = is_float(how->to);
    const bool f32 = how->from == PTX_F32 || how->to == PTX_F32;
    const bool to_small = to_float && how->to != PTX_F32 && how->to != PTX_F64;
    /* To f16, an H200 does not flush its source, which shows where a rounding points away from
     * zero. */
    how->ftz = f32 && decode_take(dc, "ftz") && how->to != PTX_F16;
    how->sat = how->to != PTX_BF16 && how->from != PTX_BF16 && decode_take(dc, "sat");
    how->relu = to_small && decode_take(dc, "relu");
    how->finite = to_small && decode_take(dc, "satfinite");

    if (from_float && (!to_float || how->from == how->to)) {
        for (uint32_t mode = 0; mode < 4 && !how->integral; mode++) {
            how->integral = decode_take(dc, integral[mode]);
            how->rounding = mode;
        }
        if (!how->integral) how->rounding = ROUND_NEAREST;
        return to_float || how->integral;
    }
    if (!to_float) return true;
    if (how->to == PTX_TF32 && decode_take(dc, "rna")) {
        how->rounding = ROUND_NEAREST_AWAY;
        return true;
    }
    if (from_float && !loses_precision(how->from, how->to)) return true;
    const int rounding = take_rounding(dc, -1);
    how->rounding = (uint32_t)rounding;
    return rounding >= 0;
}

static exec_fn frequent_conversion(const conversion *how) {
    static const struct {
        ptx_type to, from;
        bool integral;
        uint32_t rounding;
        exec_fn exec;
    } rows[] = {
#define X(to, from, integral, rounding, exec) {PTX_##to, PTX_##from, integral, rounding, exec},
        FREQUENT_CONVERSIONS(X)
#undef X
    };
    if (how->ftz || how->sat || how->relu || how->finite) return NULL;
    if (how->from_bytes != ptx_type_size[how->from] || how->to_bytes != ptx_type_size[how->to])
        return NULL;
    if (is_integer(how->to) && is_integer(how->from)) {
        const int width = how->to_bytes == 2 ? 0 : how->to_bytes == 4 ? 1 : 2;
        return integer_converters[how->from][width];
    }
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (rows[k].to == how->to && rows[k].from == how->from &&
            rows[k].integral == how->integral && rows[k].rounding == how->rounding)
            return rows[k].exec;
    return NULL;
}

/* cvt of two results: .f16x2 .bf16x2 .e4m3x2 .e5m2x2 of two f32, or between pairs. */
static exec_fn select_cvt_packed(decoder *dc, const ptx_instruction *p, insn *out, ptx_type to,
                                 ptx_type from) {
    const bool to_8bit = to == PTX_E4M3X2 || to == PTX_E5M2X2;
    const bool from_8bit = from == PTX_E4M3X2 || from == PTX_E5M2X2;
    const bool two_sources = from == PTX_F32;
    if (!two_sources && !(to_8bit && from == PTX_F16X2) && !(from_8bit && to == PTX_F16X2))
        return NULL;
    conversion *how = decode_alloc(dc, sizeof *how);
    *how = (conversion){
        .from = from == PTX_F16X2 ? PTX_F16 : from,
        .to = to == PTX_F16X2    ? PTX_F16
              : to == PTX_BF16X2 ? PTX_BF16
                                 : to,
        .from_bytes = ptx_type_size[from],
        .to_bytes = ptx_type_size[to],
        .from_bits = two_sources ? 0
                     : from_8bit ? 8
                                 : 16,
        .to_bits = to_8bit ? 8 : 16,
    };
    if (from_8bit) {
        how->relu = decode_take(dc, "relu");
        if (!decode_take(dc, "rn")) return NULL;
    } else if (!take_conversion(dc, how) || how->ftz || how->sat || how->rounding > ROUND_ZERO ||
               (to_8bit && (!how->finite || how->rounding != ROUND_NEAREST))) {
        return NULL;
    }
    out->extra = how;
    const ptx_type source = two_sources ? PTX_F32 : from_8bit ? PTX_B16 : PTX_B32;
    if (!alu_operands(dc, p, out, to_8bit ? PTX_B16 : PTX_B32, source,
                      two_sources ? source : PTX_NO_TYPE, PTX_NO_TYPE, PTX_NO_TYPE))
        return NULL;
    return cvt_from_float;
}

static exec_fn select_cvt(decoder *dc, const ptx_instruction *p, insn *out) {
    if (decode_take(dc, "pack")) return select_cvt_pack(dc, p, out);
    const ptx_type to = decode_take_type(dc), from = decode_take_type(dc);
    if (to == PTX_NO_TYPE || from == PTX_NO_TYPE) return NULL;
    if (is_packed(to) || to == PTX_E4M3X2 || to == PTX_E5M2X2)
        return select_cvt_packed(dc, p, out, to, from);
    if ((!is_integer(to) && !is_float(to)) || (!is_integer(from) && !is_float(from)) ||
        from == PTX_TF32 || (to == PTX_TF32 && from != PTX_F32) || p->n_operands != 2 ||
        p->operands[0].pair)
        return NULL;

    const ptx_type to_stored = stored_type(dc, &p->operands[0], to);
    const ptx_type from_stored = stored_type(dc, &p->operands[1], from);
    if (ptx_type_size[to_stored] < ptx_type_size[to] || to_stored == PTX_B128 ||
        ptx_type_size[from_stored] < ptx_type_size[from] || from_stored == PTX_B128 ||
        to_stored == PTX_PRED || from_stored == PTX_PRED)
        return NULL;
    conversion *how = decode_alloc(dc, sizeof *how);
    *how = (conversion){.from = from,
                        .to = to,
                        .from_bytes = stored_bytes(from_stored),
                        .to_bytes = stored_bytes(to_stored)};
    if (!take_conversion(dc, how)) return NULL;
    out->extra = how;
    out->a = decode_source(dc, &p->operands[1], from_stored);
    out->d = decode_destination(dc, &p->operands[0], to_stored);
    const exec_fn frequent = frequent_conversion(how);
    if (frequent) return frequent;
    return is_float(from) ? cvt_from_float : cvt_from_integer;
}
