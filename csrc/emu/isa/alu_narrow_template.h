/* cvt to and from pairs of the formats of sm_100: e2m1x2, e2m3x2, e3m2x2 and ue8m0x2.
 *
 * The first three have no infinity and no NaN: what is too large, and a NaN, becomes the largest
 * number, a NaN the positive one. ue8m0 is an exponent: 2^(bits - 127), and 0xff is NaN; the sign
 * of the source is dropped. (PTX ISA, cvt; NVIDIA's host code in cuda_fp6.hpp, cuda_fp4.hpp and
 * cuda_fp8.hpp gives the same for every source.) No such chip was available to compare with.
 */
#include "alu_format.h"

typedef struct narrow_format {
    const char *name;
    float_format format; /* mantissa of 0 bits: ue8m0 */
    uint32_t step;       /* bits from one element to the next */
} narrow_format;

static const narrow_format narrow_formats[] = {
    {"e2m1x2", {1, 2, 0x7, 0x7, 0x7, 0x8}, 4},
    {"e2m3x2", {3, 2, 0x1f, 0x1f, 0x1f, 0x20}, 8},
    {"e3m2x2", {2, 3, 0x1f, 0x1f, 0x1f, 0x20}, 8},
    {"ue8m0x2", {0, 8, 0xfe, 0xff, 0xff, 0}, 8},
};

typedef struct narrow_conversion {
    const narrow_format *narrow;
    ptx_type wide; /* PTX_F32, PTX_F16X2 or PTX_BF16X2 */
    uint32_t rounding;
    bool relu, finite;
} narrow_conversion;

static bool is_exponent(const narrow_format *narrow) {
    return narrow->format.mantissa == 0;
}

/* The smallest power of two that is not below |x| (up), or the largest that is not above it. */
static uint32_t exponent_of(float x, bool up, bool finite) {
    const uint32_t magnitude = bits_of_f32(x) & 0x7fffffff, half_min_normal = 0x00400000;
    if (magnitude > 0x7f800000) return 0xff;
    const bool inexact = (magnitude & 0x7fffff) != 0 && magnitude > half_min_normal;
    const uint32_t exponent = (magnitude >> 23) + (up && inexact);
    return finite && exponent == 0xff ? 0xfe : exponent;
}

static uint32_t to_narrow(float x, const narrow_conversion *cvt) {
    if (is_exponent(cvt->narrow)) return exponent_of(x, cvt->rounding == ROUND_UP, cvt->finite);
    return round_to_format(cvt->relu && x <= 0 ? 0 : x, cvt->narrow->format, ROUND_NEAREST, true);
}

static float from_narrow(uint32_t bits, const narrow_format *narrow) {
    const float_format f = narrow->format;
    if (is_exponent(narrow))
        return bits == 0xff ? f32_of_bits(NAN_F32) : ldexpf(1, (int)bits - 127);
    const uint32_t fraction = bits & ((1u << f.mantissa) - 1);
    const uint32_t biased = bits >> f.mantissa & ((1u << f.exponent) - 1);
    const int exponent = (int)(biased ? biased : 1) - ((1 << (f.exponent - 1)) - 1);
    const uint32_t significand = fraction + (biased ? 1u << f.mantissa : 0);
    const float x = ldexpf((float)significand, exponent - (int)f.mantissa);
    return bits & f.sign ? -x : x;
}

/* The upper result comes from a, the lower one from b; or both from the halves of a packed a. */
static const insn *cvt_to_narrow(warp *w, const insn *in) {
    const narrow_conversion *cvt = in->extra;
    const uint32_t step = cvt->narrow->step;
    lanes_u32 results;
    for (int lane = 0; lane < LANES; lane++) {
        const uint32_t a = LANE_POINTER(u32, w, in->a)[lane];
        float high = f32_of_bits(a), low;
        if (cvt->wide == PTX_F32) {
            low = f32_of_bits(LANE_POINTER(u32, w, in->b)[lane]);
        } else if (cvt->wide == PTX_F16X2) {
            high = value_f16((uint16_t)(a >> 16)), low = value_f16((uint16_t)a);
        } else {
            high = value_bf16((uint16_t)(a >> 16)), low = value_bf16((uint16_t)a);
        }
        results[lane] = to_narrow(high, cvt) << step | to_narrow(low, cvt);
    }
    STORE_LANES(u16, w, in->d, results);
    return in + 1;
}

static const insn *cvt_from_narrow(warp *w, const insn *in) {
    const narrow_conversion *cvt = in->extra;
    const uint32_t step = cvt->narrow->step, field = (1u << step) - 1;
    const float_format wide = cvt->wide == PTX_F16X2 ? format_f16 : format_bf16;
    lanes_u32 results;
    for (int lane = 0; lane < LANES; lane++) {
        const uint32_t a = LANE_POINTER(u16, w, in->a)[lane];
        uint32_t parts[2];
        for (uint32_t part = 0; part < 2; part++) {
            const float x = from_narrow(a >> part * step & field, cvt->narrow);
            parts[part] = round_to_format(cvt->relu && x <= 0 ? 0 : x, wide, ROUND_NEAREST, false);
        }
        results[lane] = packed_u16x2(parts[0], parts[1]);
    }
    STORE_LANES(u32, w, in->d, results);
    return in + 1;
}

/* ---- decoding ---- */

/* Takes a narrow format that is modifier `from_end` from the end (0: the source's, 1: the
 * result's); NULL if there is another type. */
static const narrow_format *take_narrow(decoder *dc, const ptx_instruction *p, uint32_t from_end) {
    if (p->n_modifiers < 2) return NULL;
    const char *name = p->modifiers[p->n_modifiers - 1 - from_end];
    for (size_t k = 0; k < sizeof narrow_formats / sizeof *narrow_formats; k++)
        if (!strcmp(name, narrow_formats[k].name) && decode_take(dc, name))
            return &narrow_formats[k];
    return NULL;
}

static ptx_type narrow_register(const narrow_format *narrow) {
    return narrow->step == 4 ? PTX_B8 : PTX_B16;
}

static exec_fn select_cvt_to_narrow(decoder *dc, const ptx_instruction *p, insn *out,
                                    narrow_conversion *cvt) {
    const narrow_format *narrow = cvt->narrow;
    const bool exponent = is_exponent(narrow), two_sources = cvt->wide == PTX_F32;
    const ptx_type packed = exponent ? PTX_BF16X2 : narrow->step == 4 ? PTX_F16X2 : PTX_F32;
    if (!two_sources && cvt->wide != packed) return NULL;
    cvt->finite = decode_take(dc, "satfinite");
    cvt->relu = !exponent && decode_take(dc, "relu");
    cvt->rounding = (uint32_t)take_rounding(dc, ROUND_DOWN); /* .rm, as none, is not possible */
    if (exponent ? cvt->rounding != ROUND_ZERO && cvt->rounding != ROUND_UP
                 : cvt->rounding != ROUND_NEAREST || !cvt->finite)
        return NULL;
    const ptx_type source = two_sources ? PTX_F32 : PTX_B32;
    return alu_operands(dc, p, out, narrow_register(narrow), source,
                        two_sources ? source : PTX_NO_TYPE, PTX_NO_TYPE, PTX_NO_TYPE)
               ? cvt_to_narrow
               : NULL;
}

static exec_fn select_cvt_from_narrow(decoder *dc, const ptx_instruction *p, insn *out,
                                      narrow_conversion *cvt) {
    const bool exponent = is_exponent(cvt->narrow);
    if (cvt->wide != (exponent ? PTX_BF16X2 : PTX_F16X2) || !decode_take(dc, "rn")) return NULL;
    cvt->relu = !exponent && decode_take(dc, "relu");
    return alu_operands(dc, p, out, PTX_B32, narrow_register(cvt->narrow), PTX_NO_TYPE, PTX_NO_TYPE,
                        PTX_NO_TYPE)
               ? cvt_from_narrow
               : NULL;
}

/* *is_narrow: the instruction has one of these formats; otherwise nothing is taken. */
static exec_fn select_cvt_narrow(decoder *dc, const ptx_instruction *p, insn *out,
                                 bool *is_narrow) {
    const narrow_format *source = take_narrow(dc, p, 0);
    const narrow_format *result = source ? NULL : take_narrow(dc, p, 1);
    *is_narrow = source || result;
    if (!*is_narrow) return NULL;
    narrow_conversion *cvt = decode_alloc(dc, sizeof *cvt);
    *cvt = (narrow_conversion){.narrow = source ? source : result, .wide = decode_take_type(dc)};
    out->extra = cvt;
    return source ? select_cvt_from_narrow(dc, p, out, cvt) : select_cvt_to_narrow(dc, p, out, cvt);
}
