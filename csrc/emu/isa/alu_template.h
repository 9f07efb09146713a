/* The opcode table of lane-wise instructions: arithmetic, logic, comparison, conversion, mov.
 *
 * The files included below define the handlers and select functions. These are static; only the
 * table is exported.
 */
#if defined(__GNUC__) && !defined(__clang__)
/* No floating-point exception flags are read, so gcc may vectorise loops that could set them. */
#pragma GCC push_options
#pragma GCC optimize("no-trapping-math")
#endif

#include "alu_integer_template.h"
#include "alu_extended_template.h"
#include "alu_bits_template.h"
#include "alu_float_template.h"
#include "alu_special_template.h"
#include "alu_half_template.h"
#include "alu_compare_template.h"
#include "alu_pack_template.h"
#include "alu_narrow_template.h"
#include "alu_convert_template.h"
#include "alu_move_template.h"
#include "alu_video_template.h"

SELECT_BY_KIND(mul, select_mul_integer, select_mul_float, select_mul_half)
SELECT_BY_KIND(fma, NULL, select_fma_float, select_fma_half)
SELECT_BY_KIND(div, select_div_integer, select_div_float, NULL)
SELECT_BY_KIND(rcp, NULL, select_rcp_float, NULL)
SELECT_BY_KIND(rsqrt, NULL, select_rsqrt_float, NULL)
SELECT_BY_KIND(sqrt, NULL, select_sqrt_float, NULL)
SELECT_BY_KIND(sin, NULL, select_sin_float, NULL)
SELECT_BY_KIND(cos, NULL, select_cos_float, NULL)
SELECT_BY_KIND(lg2, NULL, select_lg2_float, NULL)
SELECT_BY_KIND(ex2, NULL, select_ex2_float, select_ex2_half)
SELECT_BY_KIND(tanh, NULL, select_tanh_float, select_tanh_half)
SELECT_BY_KIND(abs, select_abs_integer, select_abs_float, select_abs_half)
SELECT_BY_KIND(neg, select_neg_integer, select_neg_float, select_neg_half)
SELECT_BY_KIND(min, select_min_integer, select_min_float, select_min_half)
SELECT_BY_KIND(max, select_max_integer, select_max_float, select_max_half)

/* add, sub and mad have a .cc form, which writes the carry. */
static exec_fn select_add(decoder *dc, const ptx_instruction *p, insn *out) {
    if (decode_take(dc, "cc")) return select_carrying(dc, p, out, false, true, 2, add_carry_table);
    return alu_by_kind(dc, p, out, select_add_integer, select_add_float, select_add_half);
}

static exec_fn select_sub(decoder *dc, const ptx_instruction *p, insn *out) {
    if (decode_take(dc, "cc")) return select_carrying(dc, p, out, false, true, 2, sub_carry_table);
    return alu_by_kind(dc, p, out, select_sub_integer, select_sub_float, select_sub_half);
}

static exec_fn select_mad(decoder *dc, const ptx_instruction *p, insn *out) {
    if (decode_take(dc, "cc")) return select_mad_carrying(dc, p, out, false, true);
    return alu_by_kind(dc, p, out, select_mad_integer, select_fma_float, NULL);
}

opcode_table FOR_CPU(alu_opcodes) = {
#define ALU(name, ...) [PTX_OP_##name] = select_##name,
#define OPCODE(...)
#include "../ptx/opcodes.def"
};

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
