/* The approximate functions: rcp sqrt rsqrt div sin cos lg2 ex2 tanh with .approx or .full.
 *
 * PTX bounds their error and specifies special values; every result within the bound is correct.
 * Here they are computed in double (alu_functions.h), and the result is rounded. So they are more
 * accurate than hardware's, and the same on every host. .ftz flushes the source and the result.
 */
#include "alu_functions.h"

#define APPROXIMATE(name, result)                                                                  \
    static inline uint32_t name##_approximate(uint32_t a_bits, uint32_t b_bits, uint32_t flags) {  \
        const uint32_t keep_mask = flags & FLAG_FTZ ? 0 : ~0u;                                     \
        const double a = f32_of_bits(flush_f32_unless(a_bits, keep_mask));                         \
        const double b = f32_of_bits(flush_f32_unless(b_bits, keep_mask));                         \
        (void)b;                                                                                   \
        return flush_f32_unless(canonical_f32((float)(result)), keep_mask);                        \
    }                                                                                              \
    LANEWISE(name##_approx_f32, u32, u32, u32, u32, name##_approximate(a, b, flags))

/* a * (1 / b). If b is beyond 2^126, its reciprocal is zero. */
static inline double approximate_quotient(double a, double b) {
    const double magnitude = fabs(b);
    return magnitude > 0x1p126 && magnitude < INFINITY ? a * copysign(0.0, b) : a / b;
}

APPROXIMATE(rcp, 1 / a)
APPROXIMATE(sqrt, sqrt(a))
APPROXIMATE(rsqrt, 1 / sqrt(a))
APPROXIMATE(sin, function_sin(a))
APPROXIMATE(cos, function_cos(a))
APPROXIMATE(lg2, function_log2(a))
APPROXIMATE(ex2, function_exp2(a))
APPROXIMATE(tanh, function_tanh(a))
APPROXIMATE(div, approximate_quotient(a, b))
APPROXIMATE(div_full, a / b)

static exec_fn select_approximate(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t,
                                  int n, exec_fn exec) {
    const exec_by_type table = {[PTX_F32] = exec};
    out->flags = decode_take(dc, "ftz") ? FLAG_FTZ : 0;
    return alu_uniform(dc, p, out, t, n, table);
}

/* ---- f64: rcp and rsqrt.ftz use only the upper 32 bits of source and result ---- */

static inline double upper_word(double x) {
    const uint64_t bits = bits_of_f64(x), magnitude = bits & 0x7fffffffffffffff;
    const bool subnormal = magnitude < 0x0010000000000000;
    return f64_of_bits(bits & (subnormal ? 0x8000000000000000 : 0xffffffff00000000));
}

static inline uint64_t upper_result(double x) {
    return x != x ? 0x7fffffff00000000 : bits_of_f64(upper_word(x));
}

LANEWISE(rcp_approx_f64, u64, f64, f64, f64, upper_result(1 / upper_word(a)))
LANEWISE(rsqrt_approx_ftz_f64, u64, f64, f64, f64, upper_result(1 / sqrt(upper_word(a))))
LANEWISE(rsqrt_approx_f64, u64, f64, f64, f64, propagate_nan_f64(1 / sqrt(a), a, 0, 0))

static exec_fn select_rcp_float(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    static const exec_by_type f64 = {[PTX_F64] = rcp_approx_f64};
    if (!decode_take(dc, "approx"))
        return select_float(dc, p, out, t, &rcp_float, take_rounding(dc, -1));
    if (t == PTX_F64) return decode_take(dc, "ftz") ? alu_uniform(dc, p, out, t, 1, f64) : NULL;
    return select_approximate(dc, p, out, t, 1, rcp_approx_f32);
}

static exec_fn select_rsqrt_float(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    static const exec_by_type f64 = {[PTX_F64] = rsqrt_approx_f64};
    static const exec_by_type ftz_f64 = {[PTX_F64] = rsqrt_approx_ftz_f64};
    if (!decode_take(dc, "approx")) return NULL;
    if (t == PTX_F64) return alu_uniform(dc, p, out, t, 1, decode_take(dc, "ftz") ? ftz_f64 : f64);
    return select_approximate(dc, p, out, t, 1, rsqrt_approx_f32);
}

static exec_fn select_sqrt_float(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    if (decode_take(dc, "approx")) return select_approximate(dc, p, out, t, 1, sqrt_approx_f32);
    return select_float(dc, p, out, t, &sqrt_float, take_rounding(dc, -1));
}

static exec_fn select_div_float(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    if (decode_take(dc, "approx")) return select_approximate(dc, p, out, t, 2, div_approx_f32);
    if (decode_take(dc, "full")) return select_approximate(dc, p, out, t, 2, div_full_approx_f32);
    return select_float(dc, p, out, t, &div_float, take_rounding(dc, -1));
}

#define SELECT_APPROXIMATE(op)                                                                     \
    static exec_fn select_##op##_float(decoder *dc, const ptx_instruction *p, insn *out,           \
                                       ptx_type t) {                                               \
        if (!decode_take(dc, "approx")) return NULL;                                               \
        return select_approximate(dc, p, out, t, 1, op##_approx_f32);                              \
    }

SELECT_APPROXIMATE(sin)
SELECT_APPROXIMATE(cos)
SELECT_APPROXIMATE(lg2)
SELECT_APPROXIMATE(ex2)

/* tanh has no .ftz: subnormals are kept. */
static exec_fn select_tanh_float(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t) {
    static const exec_by_type table = {[PTX_F32] = tanh_approx_f32};
    return decode_take(dc, "approx") ? alu_uniform(dc, p, out, t, 1, table) : NULL;
}
