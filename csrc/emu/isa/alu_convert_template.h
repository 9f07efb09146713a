/* cvt between all integer and floating-point types, also with two results packed into one register.
 *
 * Frequent conversions have their own handlers. All others take three steps: the source becomes a
 * 64-bit integer or a double, exactly; it is clamped or rounded once; the result is stored with the
 * width of its register. A register may be wider than the type it is used with: reads take the low
 * bits, writes sign- or zero-extend.
 */
#include "alu_format.h"

/* ---- frequent conversions, with registers as wide as their types ---- */

/* Between integers without .sat, signed and unsigned destinations get the same bits. */
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

/* Rounds towards zero and saturates; a NaN gives 0. */
static inline int32_t truncate_to_s32(float a) {
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
LANEWISE(cvt_rn_f16_f32, u16, f32, f32, f32, round_to_format(a, format_f16, ROUND_NEAREST, false))
LANEWISE(cvt_rn_bf16_f32, u16, f32, f32, f32, round_to_format(a, format_bf16, ROUND_NEAREST, false))
LANEWISE(cvt_rzi_s32_f32, s32, f32, f32, f32, truncate_to_s32(a))

/* X(to, from, rounds to an integer, rounding mode, handler). Exact conversions have ROUND_NEAREST.
 * A cvt of f32 or f64 to itself is a mov. */
#define COMMON_CONVERSIONS(X)                                                                      \
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

/* ---- all other conversions ---- */

typedef struct conversion {
    ptx_type from, to;             /* element types */
    uint32_t from_bytes, to_bytes; /* register bytes per lane */
    uint32_t from_bits, to_bits;   /* bits from one packed element to the next; 0: one element */
    uint32_t rounding;
    bool integral; /* rounds to an integer */
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

/* Sign- or zero-extends the low bits of each lane from type t to 64 bits. */
static void extend_to_64(ptx_type t, uint64_t *bits) {
    const uint32_t unused = 64 - 8u * ptx_type_size[t];
    const bool is_signed = is_signed_integer(t);
    EACH_LANE {
        const uint64_t top = bits[lane] << unused;
        bits[lane] = is_signed ? (uint64_t)((int64_t)top >> unused) : top >> unused;
    }
}

/* The element at bit `shift` of each lane, as a double. */
static void load_floats(const warp *w, uint32_t offset, const conversion *cvt, uint32_t shift,
                        double *x) {
    lanes_u64 bits;
    load_lanes(w, offset, cvt->from_bytes, bits);
    for (int lane = 0; lane < LANES; lane++) {
        const uint64_t element = bits[lane] >> shift;
        switch (cvt->from) {
        case PTX_F64: x[lane] = f64_of_bits(element); break;
        case PTX_F16: x[lane] = value_f16((uint16_t)element); break;
        case PTX_BF16: x[lane] = value_bf16((uint16_t)element); break;
        case PTX_E4M3X2: x[lane] = value_e4m3((uint8_t)element); break;
        case PTX_E5M2X2: x[lane] = value_e5m2((uint8_t)element); break;
        default: {
            const uint32_t f32 = (uint32_t)element;
            const uint32_t flushed = flush_f32(canonical_f32(f32_of_bits(f32)));
            x[lane] = f64_of_bits(f64_of_f32(f32_of_bits(cvt->ftz ? flushed : f32)));
        }
        }
    }
}

/* An integer's magnitude as a double, rounded to odd if it has more than 53 bits. */
static inline double magnitude_to_odd(uint64_t magnitude) {
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

/* x is integral or NaN. PTX: a NaN gives 0; from f64 or to 64 bits, only the top bit is set. */
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

static uint32_t float_to_narrow(double x, float_format format, const conversion *cvt) {
    if (x != x && cvt->from == PTX_F64) return nan_of_f64(x, format);
    return round_to_format(x, format, cvt->rounding, cvt->finite);
}

static uint64_t float_to_float(double x, const conversion *cvt) {
    if (cvt->sat) x = x > 0 ? x < 1 ? x : 1 : 0; /* NaN and -0 give +0 */
    if (cvt->relu) x = x <= 0 ? 0 : x;
    switch (cvt->to) {
    case PTX_F64: return propagate_nan_f64(x, x, x, x);
    case PTX_F16: return float_to_narrow(x, format_f16, cvt);
    case PTX_BF16: return float_to_narrow(x, format_bf16, cvt);
    case PTX_TF32: return (uint64_t)float_to_narrow(x, format_tf32, cvt) << 13;
    case PTX_E4M3X2: return float_to_narrow(x, format_e4m3, cvt);
    case PTX_E5M2X2: return float_to_narrow(x, format_e5m2, cvt);
    default:
        if (cvt->ftz && is_tiny(x, format_f32, cvt->rounding)) x = copysign(0.0, x);
        return float_to_narrow(x, format_f32, cvt);
    }
}

static const insn *cvt_from_float(warp *w, const insn *in) {
    const conversion *cvt = in->extra;
    double x[LANES];
    lanes_u64 results = {0};
    /* Packed results: the upper one comes from a, the lower one from b; or both from the halves of
     * a packed a. */
    for (int part = cvt->to_bits ? 1 : 0; part >= 0; part--) {
        const bool from_b = part == 0 && cvt->to_bits && !cvt->from_bits;
        load_floats(w, from_b ? in->b : in->a, cvt, part ? cvt->from_bits : 0, x);
        for (int lane = 0; lane < LANES; lane++) {
            const double value = cvt->integral ? to_integral(x[lane], cvt->rounding) : x[lane];
            const uint64_t bits = is_integer(cvt->to) ? float_to_integer(value, cvt->from, cvt->to)
                                                      : float_to_float(value, cvt);
            results[lane] |= bits << (part ? cvt->to_bits : 0);
        }
    }
    if (is_integer(cvt->to)) extend_to_64(cvt->to, results);
    store_lanes(w, in->d, cvt->to_bytes, results);
    return in + 1;
}

/* Clamps a 64-bit integer, signed if from_signed, to the range of type `to`. */
static uint64_t clamp_integer(uint64_t bits, bool from_signed, ptx_type to) {
    const uint64_t top = (uint64_t)1 << (8 * ptx_type_size[to] - 1);
    const uint64_t max = is_signed_integer(to) ? top - 1 : top | (top - 1);
    if (from_signed && (int64_t)bits < 0) {
        const uint64_t min = is_signed_integer(to) ? 0 - top : 0;
        return (int64_t)bits < (int64_t)min ? min : bits;
    }
    return bits > max ? max : bits;
}

static uint64_t integer_to_float(uint64_t bits, bool negative, const conversion *cvt) {
    const double magnitude = magnitude_to_odd(negative ? 0 - bits : bits);
    return float_to_float(negative ? -magnitude : magnitude, cvt);
}

static double integer_to_f64(uint64_t bits, bool is_signed, uint32_t rounding) {
    const bool negative = is_signed && (int64_t)bits < 0;
    if (rounding != ROUND_NEAREST)
        return directed_integer(negative ? 0 - bits : bits, negative, rounding);
    return is_signed ? (double)(int64_t)bits : (double)bits;
}

static const insn *cvt_from_integer(warp *w, const insn *in) {
    const conversion *cvt = in->extra;
    const bool is_signed = is_signed_integer(cvt->from);
    lanes_u64 bits;
    load_lanes(w, in->a, cvt->from_bytes, bits);
    extend_to_64(cvt->from, bits);
    if (is_integer(cvt->to)) {
        if (cvt->sat) EACH_LANE bits[lane] = clamp_integer(bits[lane], is_signed, cvt->to);
        extend_to_64(cvt->to, bits);
    } else if (cvt->to == PTX_F64 && !cvt->sat) {
        for (int lane = 0; lane < LANES; lane++)
            bits[lane] = bits_of_f64(integer_to_f64(bits[lane], is_signed, cvt->rounding));
    } else {
        for (int lane = 0; lane < LANES; lane++)
            bits[lane] = integer_to_float(bits[lane], is_signed && (int64_t)bits[lane] < 0, cvt);
    }
    store_lanes(w, in->d, cvt->to_bytes, bits);
    return in + 1;
}

/* ---- decoding ---- */

/* Whether type `to` cannot represent every value of `from`; both are floating-point types. */
static bool needs_rounding(ptx_type from, ptx_type to) {
    if (to == PTX_F64 || from == to) return false;
    return to != PTX_F32 || from == PTX_F64;
}

/* The type that a register was declared with. It may be wider than the type it is used with. */
static ptx_type register_type(decoder *dc, const ptx_operand *o, ptx_type used) {
    const ptx_type declared = decode_register_type(dc, o);
    return declared == PTX_NO_TYPE ? used : declared;
}

static uint32_t register_bytes(ptx_type t) {
    return ptx_type_size[t] < 2 ? 2 : ptx_type_size[t];
}

/* Takes the rounding to a floating-point type. False if the types need one and it is missing. From
 * f16 to bf16 and back ptxas takes .rn if there is none. */
static bool take_float_rounding(decoder *dc, conversion *cvt) {
    const bool halves = (cvt->from == PTX_F16 && cvt->to == PTX_BF16) ||
                        (cvt->from == PTX_BF16 && cvt->to == PTX_F16);
    if (cvt->to == PTX_TF32 && decode_take(dc, "rna")) {
        cvt->rounding = ROUND_NEAREST_AWAY;
        return true;
    }
    if (is_float(cvt->from) && !needs_rounding(cvt->from, cvt->to)) return true;
    const int rounding = take_rounding(dc, halves ? ROUND_NEAREST : -1);
    cvt->rounding = (uint32_t)rounding;
    return rounding >= 0 && (cvt->to != PTX_TF32 || rounding <= ROUND_ZERO);
}

/* Takes the modifiers. False if the types need a rounding modifier and it is missing, or if they
 * exclude each other. Modifiers that the types do not allow are not taken, so decode refuses them.
 */
static bool take_conversion(decoder *dc, conversion *cvt) {
    static const char *const integral[4] = {"rni", "rzi", "rmi", "rpi"};
    const bool from_float = is_float(cvt->from), to_float = is_float(cvt->to);
    const bool f32 = cvt->from == PTX_F32 || cvt->to == PTX_F32;
    const bool to_narrow = to_float && cvt->to != PTX_F32 && cvt->to != PTX_F64;
    const bool packed = cvt->to_bits != 0;
    const bool may_clamp = to_narrow && (cvt->from == PTX_F32 || packed);
    const bool ftz = f32 && cvt->to != PTX_TF32 && !packed && decode_take(dc, "ftz");
    /* To f16, an H200 does not flush the source. This shows when the rounding is away from zero. */
    cvt->ftz = ftz && cvt->to != PTX_F16;
    cvt->sat = cvt->to != PTX_BF16 && cvt->from != PTX_BF16 && cvt->to != PTX_TF32 && !packed &&
               decode_take(dc, "sat");
    cvt->relu = may_clamp && decode_take(dc, "relu");
    cvt->finite = may_clamp && decode_take(dc, "satfinite");

    if (from_float && (!to_float || cvt->from == cvt->to)) {
        for (uint32_t mode = 0; mode < 4 && !cvt->integral; mode++) {
            cvt->integral = decode_take(dc, integral[mode]);
            cvt->rounding = mode;
        }
        if (!cvt->integral) cvt->rounding = ROUND_NEAREST;
        return to_float || cvt->integral;
    }
    if (!to_float) return true;
    if (!take_float_rounding(dc, cvt)) return false;
    if (!cvt->relu && !cvt->finite) return true;
    const bool away = cvt->rounding == ROUND_NEAREST_AWAY;
    return !ftz && !cvt->sat && (away ? !cvt->relu : cvt->rounding <= ROUND_ZERO);
}

static exec_fn common_conversion(const conversion *cvt) {
    static const struct {
        ptx_type to, from;
        bool integral;
        uint32_t rounding;
        exec_fn exec;
    } rows[] = {
#define X(to, from, integral, rounding, exec) {PTX_##to, PTX_##from, integral, rounding, exec},
        COMMON_CONVERSIONS(X)
#undef X
    };
    if (cvt->ftz || cvt->sat || cvt->relu || cvt->finite) return NULL;
    if (cvt->from_bytes != ptx_type_size[cvt->from] || cvt->to_bytes != ptx_type_size[cvt->to])
        return NULL;
    if (is_integer(cvt->to) && is_integer(cvt->from)) {
        const int width = cvt->to_bytes == 2 ? 0 : cvt->to_bytes == 4 ? 1 : 2;
        return integer_converters[cvt->from][width];
    }
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (rows[k].to == cvt->to && rows[k].from == cvt->from &&
            rows[k].integral == cvt->integral && rows[k].rounding == cvt->rounding)
            return rows[k].exec;
    return NULL;
}

/* cvt with a packed result: .f16x2 .bf16x2 .e4m3x2 .e5m2x2 from two f32 or from a packed source. */
static exec_fn select_cvt_packed(decoder *dc, const ptx_instruction *p, insn *out, ptx_type to,
                                 ptx_type from) {
    const bool to_8bit = to == PTX_E4M3X2 || to == PTX_E5M2X2;
    const bool from_8bit = from == PTX_E4M3X2 || from == PTX_E5M2X2;
    const bool two_sources = from == PTX_F32;
    if (!two_sources && !(to_8bit && from == PTX_F16X2) && !(from_8bit && to == PTX_F16X2))
        return NULL;
    conversion *cvt = decode_alloc(dc, sizeof *cvt);
    *cvt = (conversion){
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
        cvt->relu = decode_take(dc, "relu");
        if (!decode_take(dc, "rn")) return NULL;
    } else if (!take_conversion(dc, cvt) || cvt->rounding > ROUND_ZERO ||
               (to_8bit && (!cvt->finite || cvt->rounding != ROUND_NEAREST))) {
        return NULL;
    }
    out->extra = cvt;
    const ptx_type source = two_sources ? PTX_F32 : from_8bit ? PTX_B16 : PTX_B32;
    if (!alu_operands(dc, p, out, to_8bit ? PTX_B16 : PTX_B32, source,
                      two_sources ? source : PTX_NO_TYPE, PTX_NO_TYPE, PTX_NO_TYPE))
        return NULL;
    return cvt_from_float;
}

static exec_fn select_cvt(decoder *dc, const ptx_instruction *p, insn *out) {
    if (decode_take(dc, "pack")) return select_cvt_pack(dc, p, out);
    bool is_narrow;
    const exec_fn narrow = select_cvt_narrow(dc, p, out, &is_narrow);
    if (is_narrow) return narrow;
    const ptx_type to = decode_take_type(dc), from = decode_take_type(dc);
    if (to == PTX_NO_TYPE || from == PTX_NO_TYPE) return NULL;
    if (is_packed(to) || to == PTX_E4M3X2 || to == PTX_E5M2X2)
        return select_cvt_packed(dc, p, out, to, from);
    if ((!is_integer(to) && !is_float(to)) || (!is_integer(from) && !is_float(from)) ||
        from == PTX_TF32 || from == PTX_E4M3X2 || from == PTX_E5M2X2 ||
        (to == PTX_TF32 && from != PTX_F32) || p->n_operands != 2 || p->operands[0].pair)
        return NULL;

    const ptx_type to_stored = register_type(dc, &p->operands[0], to);
    const ptx_type from_stored = register_type(dc, &p->operands[1], from);
    if (ptx_type_size[to_stored] < ptx_type_size[to] || to_stored == PTX_B128 ||
        ptx_type_size[from_stored] < ptx_type_size[from] || from_stored == PTX_B128 ||
        to_stored == PTX_PRED || from_stored == PTX_PRED)
        return NULL;
    conversion *cvt = decode_alloc(dc, sizeof *cvt);
    *cvt = (conversion){.from = from,
                        .to = to,
                        .from_bytes = register_bytes(from_stored),
                        .to_bytes = register_bytes(to_stored)};
    if (!take_conversion(dc, cvt)) return NULL;
    out->extra = cvt;
    out->a = decode_source(dc, &p->operands[1], from_stored);
    out->d = decode_destination(dc, &p->operands[0], to_stored);
    const exec_fn common = common_conversion(cvt);
    if (common) return common;
    return is_float(from) ? cvt_from_float : cvt_from_integer;
}
