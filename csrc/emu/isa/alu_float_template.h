/* f32 and f64: add sub mul fma mad div rcp sqrt in four roundings, with .ftz and .sat; abs neg min
 * max copysign testp.
 *
 * f32 rounded to nearest without modifiers is by far the most frequent form and has its own
 * handlers. All other forms share one handler per operation and type. The host rounds to nearest;
 * in the other roundings f32 is rounded from f64 (alu_format.h), and f64 computed with integers
 * (alu_directed.h).
 */
#include "alu_directed.h"
#include "alu_format.h"

/* ---- results ---- */

static inline uint32_t saturate_f32(uint32_t bits) {
    const float x = f32_of_bits(bits);
    return x > 0 ? x < 1 ? bits : 0x3f800000 : 0; /* NaN and -0 give +0 */
}

/* f64 arithmetic returns a source's NaN, made quiet. `first`, `second` and `third` are the sources
 * in the order in which an H200 checks them for NaN. A NaN that the operation itself produces has
 * fixed bits, the same on every host. */
static inline uint64_t propagate_nan_f64(double result, double first, double second, double third) {
    const uint64_t quiet = 0x0008000000000000;
    if (result == result) return bits_of_f64(result);
    if (first != first) return bits_of_f64(first) | quiet;
    if (second != second) return bits_of_f64(second) | quiet;
    if (third != third) return bits_of_f64(third) | quiet;
    return 0xfff8000000000000;
}

/* ---- arithmetic ---- */

typedef struct float_operation {
    exec_fn rn_f32, modified_f32, any_f64;
    int n_sources;
    bool saturates;
} float_operation;

static inline float flush_source(uint32_t bits, uint32_t keep_mask) {
    return f32_of_bits(flush_f32_unless(bits, keep_mask));
}

/* Defines the handlers of op from functions of a, b and c: op_f32 and op_f64, which round to
 * nearest; op_odd, the f32 operation's result as a double that rounds to f32 as the exact result
 * does; op_directed, the f64 operation in the other roundings. The handlers load three sources; the
 * compiler drops unused ones. first, second, third: the sources in the order of f64's NaN check.
 *
 * With .ftz only a result equal to the smallest normal number is checked again: it may be a tiny
 * value that was rounded up. */
#define FLOAT_HANDLERS(op, sources, can_saturate, first, second, third)                            \
    static const insn *op##_modified_f32(warp *w, const insn *in) {                                \
        const lane_u32 *pa = LANE_POINTER(u32, w, in->a), *pb = LANE_POINTER(u32, w, in->b);       \
        const lane_u32 *pc = LANE_POINTER(u32, w, in->c);                                          \
        const uint32_t flags = in->flags, rounding = flags & ROUND_MASK;                           \
        const uint32_t keep_mask = flags & FLAG_FTZ ? 0 : ~0u;                                     \
        lanes_u32 results;                                                                         \
        uint32_t at_min_normal = 0;                                                                \
        if (rounding == ROUND_NEAREST) EACH_LANE {                                                 \
                const float a = flush_source(pa[lane], keep_mask),                                 \
                            b = flush_source(pb[lane], keep_mask);                                 \
                const float c = flush_source(pc[lane], keep_mask);                                 \
                results[lane] = bits_of_f32(op##_f32(a, b, c));                                    \
            }                                                                                      \
        else                                                                                       \
            EACH_LANE {                                                                            \
                const double a = flush_source(pa[lane], keep_mask),                                \
                             b = flush_source(pb[lane], keep_mask);                                \
                const double c = flush_source(pc[lane], keep_mask);                                \
                results[lane] =                                                                    \
                    round_to_format(op##_odd(a, b, c, rounding), format_f32, rounding, false);     \
            }                                                                                      \
        EACH_LANE {                                                                                \
            const uint32_t bits = canonical_f32(f32_of_bits(results[lane]));                       \
            at_min_normal |= (bits & 0x7fffffff) == 0x00800000;                                    \
            results[lane] = flush_f32_unless(bits, keep_mask);                                     \
        }                                                                                          \
        for (int lane = 0; lane < LANES && at_min_normal && flags & FLAG_FTZ; lane++) {            \
            const double a = flush_source(pa[lane], keep_mask),                                    \
                         b = flush_source(pb[lane], keep_mask);                                    \
            const double c = flush_source(pc[lane], keep_mask);                                    \
            const bool tiny = is_tiny(op##_odd(a, b, c, rounding), format_f32, rounding);          \
            results[lane] &= tiny ? 0x80000000 : ~0u;                                              \
        }                                                                                          \
        if (flags & FLAG_SAT) EACH_LANE results[lane] = saturate_f32(results[lane]);               \
        STORE_LANES(u32, w, in->d, results);                                                       \
        return in + 1;                                                                             \
    }                                                                                              \
                                                                                                   \
    static const insn *op##_any_f64(warp *w, const insn *in) {                                     \
        const lane_f64 *pa = LANE_POINTER(f64, w, in->a), *pb = LANE_POINTER(f64, w, in->b);       \
        const lane_f64 *pc = LANE_POINTER(f64, w, in->c);                                          \
        lanes_u64 results;                                                                         \
        uint64_t nan = 0;                                                                          \
        const uint32_t rounding = in->flags & ROUND_MASK;                                          \
        if (rounding == ROUND_NEAREST)                                                             \
            op##_lanes_f64(pa, pb, pc, results);                                                   \
        else                                                                                       \
            for (int lane = 0; lane < LANES; lane++)                                               \
                results[lane] =                                                                    \
                    bits_of_f64(op##_directed(pa[lane], pb[lane], pc[lane], rounding));            \
        EACH_LANE nan |= IS_NAN_F64(results[lane]);                                                \
        for (int lane = 0; lane < LANES && nan; lane++) {                                          \
            const double a = pa[lane], b = pb[lane], c = pc[lane];                                 \
            (void)b, (void)c;                                                                      \
            results[lane] = propagate_nan_f64(f64_of_bits(results[lane]), first, second, third);   \
        }                                                                                          \
        STORE_LANES(u64, w, in->d, results);                                                       \
        return in + 1;                                                                             \
    }                                                                                              \
                                                                                                   \
    static const float_operation op##_float = {op##_rn_f32, op##_modified_f32, op##_any_f64,       \
                                               sources, can_saturate};

/* All ones for a NaN, else 0. */
#define IS_NAN_F64(bits) (f64_of_bits(bits) != f64_of_bits(bits) ? ~(uint64_t)0 : 0)

#define FLOAT_FUNCTION(op, T, result)                                                              \
    static inline T op(T a, T b, T c) {                                                            \
        (void)b, (void)c;                                                                          \
        return result;                                                                             \
    }

#define ROUNDED_FUNCTION(op, result)                                                               \
    static inline double op(double a, double b, double c, uint32_t rounding) {                     \
        (void)b, (void)c, (void)rounding;                                                          \
        return result;                                                                             \
    }

/* A sum of numbers that are not both zeros of one sign is -0 if it is rounded down and zero. */
static inline double sum_to_odd(double a, double b, uint32_t rounding) {
    const double sum = add_to_odd(a, b);
    return rounding == ROUND_DOWN && sum == 0 ? -add_to_odd(-a, -b) : sum;
}

FLOAT_FUNCTION(add_f32, float, a + b)
FLOAT_FUNCTION(add_f64, double, a + b)
ROUNDED_FUNCTION(add_odd, sum_to_odd(a, b, rounding))
ROUNDED_FUNCTION(add_directed, directed_add(a, b, rounding))
FLOAT_FUNCTION(sub_f32, float, a - b)
FLOAT_FUNCTION(sub_f64, double, a - b)
ROUNDED_FUNCTION(sub_odd, sum_to_odd(a, -b, rounding))
ROUNDED_FUNCTION(sub_directed, directed_add(a, -b, rounding))
FLOAT_FUNCTION(mul_f32, float, a *b)
FLOAT_FUNCTION(mul_f64, double, a *b)
ROUNDED_FUNCTION(mul_odd, a *b) /* exact: 48 of 53 bits */
ROUNDED_FUNCTION(mul_directed, directed_mul(a, b, rounding))
FLOAT_FUNCTION(fma_f32, float, fused_f32(a, b, c))
FLOAT_FUNCTION(fma_f64, double, fused_f64(a, b, c))
ROUNDED_FUNCTION(fma_odd, sum_to_odd(a *b, c, rounding))
ROUNDED_FUNCTION(fma_directed, directed_fma(a, b, c, rounding))
FLOAT_FUNCTION(div_f32, float, a / b)
FLOAT_FUNCTION(div_f64, double, a / b)
/* f32 quotients and roots are never so close to a number that f32 rounds at that f64's rounding
 * could cross it. */
ROUNDED_FUNCTION(div_odd, a / b)
ROUNDED_FUNCTION(div_directed, directed_div(a, b, rounding))
FLOAT_FUNCTION(rcp_f32, float, 1 / a)
FLOAT_FUNCTION(rcp_f64, double, 1 / a)
ROUNDED_FUNCTION(rcp_odd, 1 / a)
ROUNDED_FUNCTION(rcp_directed, directed_div(1, a, rounding))
FLOAT_FUNCTION(sqrt_f32, float, sqrtf(a))
FLOAT_FUNCTION(sqrt_f64, double, sqrt(a))
ROUNDED_FUNCTION(sqrt_odd, sqrt(a))
ROUNDED_FUNCTION(sqrt_directed, directed_sqrt(a, rounding))

/* f32, to nearest, without modifiers. */
#define FLOAT_TO_NEAREST(op)                                                                       \
    LANEWISE(op##_rn_f32, u32, f32, f32, f32, canonical_f32(op##_f32(a, b, c)))

FLOAT_TO_NEAREST(add)
FLOAT_TO_NEAREST(sub)
FLOAT_TO_NEAREST(mul)
FLOAT_TO_NEAREST(div)
FLOAT_TO_NEAREST(rcp)
FLOAT_TO_NEAREST(sqrt)

#if HAS_FUSED_F32
FLOAT_TO_NEAREST(fma)
#else
static const insn *fma_rn_f32(warp *w, const insn *in) {
    const lane_f32 *pa = LANE_POINTER(f32, w, in->a), *pb = LANE_POINTER(f32, w, in->b);
    const lane_f32 *pc = LANE_POINTER(f32, w, in->c);
    lanes_u32 results;
    if (!lanes_multiply_add(pa, pb, pc, results))
        EACH_LANE results[lane] = canonical_f32(fused_f32(pa[lane], pb[lane], pc[lane]));
    STORE_LANES(u32, w, in->d, results);
    return in + 1;
}
#endif

/* f64, to nearest. */
#define FLOAT_LANES_F64(op)                                                                        \
    static inline void op##_lanes_f64(const lane_f64 *pa, const lane_f64 *pb, const lane_f64 *pc,  \
                                      uint64_t *results) {                                         \
        (void)pb, (void)pc;                                                                        \
        EACH_LANE results[lane] = bits_of_f64(op##_f64(pa[lane], pb[lane], pc[lane]));             \
    }

FLOAT_LANES_F64(add)
FLOAT_LANES_F64(sub)
FLOAT_LANES_F64(mul)
FLOAT_LANES_F64(div)
FLOAT_LANES_F64(rcp)
FLOAT_LANES_F64(sqrt)
#if LANES_FUSE_F64
static inline void fma_lanes_f64(const lane_f64 *pa, const lane_f64 *pb, const lane_f64 *pc,
                                 uint64_t *results) {
    if (!lanes_multiply_add_f64(pa, pb, pc, results))
        EACH_LANE results[lane] = bits_of_f64(fma_f64(pa[lane], pb[lane], pc[lane]));
}
#else
FLOAT_LANES_F64(fma)
#endif

FLOAT_HANDLERS(add, 2, true, b, a, a)
FLOAT_HANDLERS(sub, 2, true, b, a, a)
FLOAT_HANDLERS(mul, 2, true, b, a, a)
FLOAT_HANDLERS(fma, 3, true, b, c, a)
FLOAT_HANDLERS(div, 2, false, a, b, b)
FLOAT_HANDLERS(rcp, 1, false, a, a, a)
FLOAT_HANDLERS(sqrt, 1, false, a, a, a)

/* rounding: the instruction's, or its default; -1 if a required rounding modifier is missing. */
static exec_fn select_float(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t,
                            const float_operation *op, int rounding) {
    const ptx_type none = PTX_NO_TYPE;
    if (rounding < 0 || (t != PTX_F32 && t != PTX_F64)) return NULL;
    const bool f32 = t == PTX_F32;
    const bool ftz = f32 && decode_take(dc, "ftz");
    const bool sat = f32 && op->saturates && decode_take(dc, "sat");
    if (!alu_operands(dc, p, out, t, t, op->n_sources > 1 ? t : none, op->n_sources > 2 ? t : none,
                      none))
        return NULL;
    out->flags = (uint8_t)(rounding | (ftz ? FLAG_FTZ : 0) | (sat ? FLAG_SAT : 0));
    if (!f32) return op->any_f64;
    return out->flags == ROUND_NEAREST ? op->rn_f32 : op->modified_f32;
}

static exec_fn select_add_float(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    return select_float(dc, p, out, t, &add_float, take_rounding(dc, ROUND_NEAREST));
}

static exec_fn select_sub_float(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    return select_float(dc, p, out, t, &sub_float, take_rounding(dc, ROUND_NEAREST));
}

static exec_fn select_mul_float(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    return select_float(dc, p, out, t, &mul_float, take_rounding(dc, ROUND_NEAREST));
}

/* mad is fma since sm_20. */
static exec_fn select_fma_float(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    return select_float(dc, p, out, t, &fma_float, take_rounding(dc, -1));
}

/* ---- signs ---- */

/* PTX does not specify the result for a NaN. On an H200 it is the NaN of arithmetic. */
LANEWISE(abs_f32, u32, u32, u32, u32, canonical_f32(f32_of_bits(a & 0x7fffffff)))
LANEWISE(neg_f32, u32, u32, u32, u32, canonical_f32(f32_of_bits(a ^ 0x80000000)))
LANEWISE(abs_ftz_f32, u32, u32, u32, u32, canonical_f32(f32_of_bits(flush_f32(a) & 0x7fffffff)))
LANEWISE(neg_ftz_f32, u32, u32, u32, u32, canonical_f32(f32_of_bits(flush_f32(a) ^ 0x80000000)))
LANEWISE(abs_f64, u64, f64, f64, f64, propagate_nan_f64(fabs(a), a, a, a))
LANEWISE(neg_f64, u64, f64, f64, f64, propagate_nan_f64(-a, a, a, a))
LANEWISE(copysign_f32, u32, u32, u32, u32, (a & 0x80000000) | (b & 0x7fffffff))
LANEWISE(copysign_f64, u64, u64, u64, u64, (a & 0x8000000000000000) | (b & 0x7fffffffffffffff))
SELECT_UNIFORM(copysign, 2, [PTX_F32] = copysign_f32, [PTX_F64] = copysign_f64)

static exec_fn select_abs_float(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    static const exec_by_type table = {[PTX_F32] = abs_f32, [PTX_F64] = abs_f64};
    static const exec_by_type flushing = {[PTX_F32] = abs_ftz_f32};
    return alu_uniform(dc, p, out, t, 1, decode_take(dc, "ftz") ? flushing : table);
}

static exec_fn select_neg_float(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    static const exec_by_type table = {[PTX_F32] = neg_f32, [PTX_F64] = neg_f64};
    static const exec_by_type flushing = {[PTX_F32] = neg_ftz_f32};
    return alu_uniform(dc, p, out, t, 1, decode_take(dc, "ftz") ? flushing : table);
}

/* ---- min, max (the rule: alu_float.h) ---- */

MINMAX(min_of_f32, uint32_t, float, f32_of_bits, <, |, NAN_F32)
MINMAX(max_of_f32, uint32_t, float, f32_of_bits, >, &, NAN_F32)
MINMAX(min_of_f64, uint64_t, double, f64_of_bits, <, |, b | 0x0008000000000000)
MINMAX(max_of_f64, uint64_t, double, f64_of_bits, >, &, b | 0x0008000000000000)

LANEWISE(min_f32, u32, u32, u32, u32, min_of_f32(a, b))
LANEWISE(max_f32, u32, u32, u32, u32, max_of_f32(a, b))
LANEWISE(min_f64, u64, u64, u64, u64, min_of_f64(a, b))
LANEWISE(max_f64, u64, u64, u64, u64, max_of_f64(a, b))

static inline bool is_nan_f32(uint32_t bits) {
    return (bits & 0x7fffffff) > 0x7f800000;
}

static inline uint32_t minmax_f32(uint32_t a, uint32_t b, bool is_max, uint32_t flags) {
    uint32_t sign = 0;
    if (flags & FLAG_FTZ) a = flush_f32(a), b = flush_f32(b);
    if (flags & MINMAX_NAN && (is_nan_f32(a) || is_nan_f32(b))) return NAN_F32;
    if (flags & MINMAX_XORSIGN_ABS) {
        sign = (a ^ b) & 0x80000000;
        a &= 0x7fffffff, b &= 0x7fffffff;
    }
    const uint32_t result = is_max ? max_of_f32(a, b) : min_of_f32(a, b);
    return is_nan_f32(result) ? result : result | sign;
}

LANEWISE(min_modified_f32, u32, u32, u32, u32, minmax_f32(a, b, false, flags))
LANEWISE(max_modified_f32, u32, u32, u32, u32, minmax_f32(a, b, true, flags))

static exec_fn select_minmax_float(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t,
                                   const exec_by_type plain, exec_fn modified) {
    const exec_by_type with_flags = {[PTX_F32] = modified};
    const int flags = t == PTX_F32 ? take_minmax_flags(dc) : 0;
    if (flags < 0) return NULL;
    out->flags = (uint8_t)flags;
    return alu_uniform(dc, p, out, t, 2, flags ? with_flags : plain);
}

static exec_fn select_min_float(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    static const exec_by_type plain = {[PTX_F32] = min_f32, [PTX_F64] = min_f64};
    return select_minmax_float(dc, p, out, t, plain, min_modified_f32);
}

static exec_fn select_max_float(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    static const exec_by_type plain = {[PTX_F32] = max_f32, [PTX_F64] = max_f64};
    return select_minmax_float(dc, p, out, t, plain, max_modified_f32);
}

/* ---- testp: zeros count as normal ---- */

#define TESTP_F32(name, test) LANEWISE(testp_##name##_f32, u32, u32, u32, u32, test ? ~0u : 0)
#define TESTP_F64(name, test) LANEWISE(testp_##name##_f64, u32, u64, u32, u32, test ? ~0u : 0)
#define MAGNITUDE_F32         (a & 0x7fffffff)
#define MAGNITUDE_F64         (a & 0x7fffffffffffffff)
#define INFINITY_F32          0x7f800000
#define INFINITY_F64          0x7ff0000000000000
#define IS_SUBNORMAL(magnitude, min_normal) ((magnitude) - 1 < (min_normal) - 1)

TESTP_F32(finite, MAGNITUDE_F32 < INFINITY_F32)
TESTP_F64(finite, MAGNITUDE_F64 < INFINITY_F64)
TESTP_F32(infinite, MAGNITUDE_F32 == INFINITY_F32)
TESTP_F64(infinite, MAGNITUDE_F64 == INFINITY_F64)
TESTP_F32(number, MAGNITUDE_F32 <= INFINITY_F32)
TESTP_F64(number, MAGNITUDE_F64 <= INFINITY_F64)
TESTP_F32(notanumber, MAGNITUDE_F32 > INFINITY_F32)
TESTP_F64(notanumber, MAGNITUDE_F64 > INFINITY_F64)
TESTP_F32(subnormal, IS_SUBNORMAL(MAGNITUDE_F32, 0x00800000u))
TESTP_F64(subnormal, IS_SUBNORMAL(MAGNITUDE_F64, 0x0010000000000000u))
TESTP_F32(normal, (MAGNITUDE_F32 < INFINITY_F32 && !IS_SUBNORMAL(MAGNITUDE_F32, 0x00800000u)))
TESTP_F64(normal,
          (MAGNITUDE_F64 < INFINITY_F64 && !IS_SUBNORMAL(MAGNITUDE_F64, 0x0010000000000000u)))

static exec_fn select_testp(decoder *dc, const ptx_instruction *p, insn *out) {
    static const struct {
        const char *name;
        exec_fn f32, f64;
    } tests[] = {
#define TESTP(name) {#name, testp_##name##_f32, testp_##name##_f64}
        TESTP(finite),     TESTP(infinite), TESTP(number),
        TESTP(notanumber), TESTP(normal),   TESTP(subnormal),
#undef TESTP
    };
    const ptx_type t = decode_take_type(dc), none = PTX_NO_TYPE;
    for (size_t k = 0; k < sizeof tests / sizeof *tests; k++) {
        if (!decode_take(dc, tests[k].name)) continue;
        if ((t != PTX_F32 && t != PTX_F64) ||
            !alu_operands(dc, p, out, PTX_PRED, t, none, none, none))
            return NULL;
        return t == PTX_F32 ? tests[k].f32 : tests[k].f64;
    }
    return NULL;
}
