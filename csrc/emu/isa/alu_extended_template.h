/* Extended-precision integer arithmetic: add.cc, addc, sub.cc, subc, mad.cc, madc. Their carry is
 * PTX's condition code register CC.CF (warp.carry). Also the packed dot products dp4a and dp2a.
 */
#include "alu.h"

enum { CARRY_IN = 1, CARRY_OUT = 2 };

/* x + y + the carry in, which is `initial` for instructions that do not read CC.CF. Subtraction is
 * x + ~y + 1, as in the hardware: so CC.CF is a carry and never a borrow, also where subc follows
 * add.cc. Reads a lane's sources before it writes d, which may be one of them. */
#define DEFINE_CARRY_OP(name, T, U, initial, x_expression, y_expression)                           \
    static const insn *name(warp *w, const insn *in) {                                             \
        const lane_##T *pa = LANE_POINTER(T, w, in->a), *pb = LANE_POINTER(T, w, in->b);           \
        const lane_##T *pc = LANE_POINTER(T, w, in->c);                                            \
        lane_##U *pd = LANE_POINTER(U, w, in->d);                                                  \
        for (int lane = 0; lane < LANES; lane++) {                                                 \
            if (!w->mask[lane]) continue;                                                          \
            const lane_##T a = pa[lane], b = pb[lane], c = pc[lane];                               \
            (void)c;                                                                               \
            const lane_##U x = (lane_##U)(x_expression), y = (lane_##U)(y_expression);             \
            const lane_##U carry = in->flags & CARRY_IN ? w->carry[lane] : initial;                \
            const lane_##U partial = x + y, sum = partial + carry;                                 \
            pd[lane] = sum;                                                                        \
            if (in->flags & CARRY_OUT) w->carry[lane] = partial < x || sum < partial;              \
        }                                                                                          \
        return in + 1;                                                                             \
    }

DEFINE_CARRY_OP(add_carry_u32, u32, u32, 0, a, b)
DEFINE_CARRY_OP(add_carry_u64, u64, u64, 0, a, b)
DEFINE_CARRY_OP(sub_carry_u32, u32, u32, 1, a, ~b)
DEFINE_CARRY_OP(sub_carry_u64, u64, u64, 1, a, ~b)
DEFINE_CARRY_OP(mad_lo_carry_u32, u32, u32, 0, a *b, c)
DEFINE_CARRY_OP(mad_lo_carry_u64, u64, u64, 0, a *b, c)
DEFINE_CARRY_OP(mad_hi_carry_u32, u32, u32, 0, high_u32(a, b), c)
DEFINE_CARRY_OP(mad_hi_carry_u64, u64, u64, 0, high_u64(a, b), c)
DEFINE_CARRY_OP(mad_hi_carry_s32, s32, u32, 0, high_s32(a, b), c)
DEFINE_CARRY_OP(mad_hi_carry_s64, s64, u64, 0, high_s64(a, b), c)

#define TYPES_CARRYING(op)                                                                         \
    [PTX_U32] = op##_u32, [PTX_S32] = op##_u32, [PTX_U64] = op##_u64, [PTX_S64] = op##_u64

static const exec_by_type add_carry_table = {TYPES_CARRYING(add_carry)};
static const exec_by_type sub_carry_table = {TYPES_CARRYING(sub_carry)};
static const exec_by_type mad_lo_carry_table = {TYPES_CARRYING(mad_lo_carry)};
static const exec_by_type mad_hi_carry_table = {[PTX_U32] = mad_hi_carry_u32,
                                                [PTX_S32] = mad_hi_carry_s32,
                                                [PTX_U64] = mad_hi_carry_u64,
                                                [PTX_S64] = mad_hi_carry_s64};

/* carry_in: reads CC.CF (addc, subc, madc). carry_out: writes it (.cc). */
static exec_fn select_carrying(decoder *dc, const ptx_instruction *p, insn *out, bool carry_in,
                               bool carry_out, int n_sources, const exec_by_type table) {
    out->flags = (uint8_t)((carry_in ? CARRY_IN : 0) | (carry_out ? CARRY_OUT : 0));
    return alu_uniform(dc, p, out, decode_take_type(dc), n_sources, table);
}

static exec_fn select_addc(decoder *dc, const ptx_instruction *p, insn *out) {
    return select_carrying(dc, p, out, true, decode_take(dc, "cc"), 2, add_carry_table);
}

static exec_fn select_subc(decoder *dc, const ptx_instruction *p, insn *out) {
    return select_carrying(dc, p, out, true, decode_take(dc, "cc"), 2, sub_carry_table);
}

static exec_fn select_mad_carrying(decoder *dc, const ptx_instruction *p, insn *out, bool carry_in,
                                   bool carry_out) {
    const bool low = decode_take(dc, "lo");
    if (!low && !decode_take(dc, "hi")) return NULL;
    return select_carrying(dc, p, out, carry_in, carry_out, 3,
                           low ? mad_lo_carry_table : mad_hi_carry_table);
}

static exec_fn select_madc(decoder *dc, const ptx_instruction *p, insn *out) {
    return select_mad_carrying(dc, p, out, true, decode_take(dc, "cc"));
}

/* ---- dot products ---- */

static inline uint32_t byte_of(uint32_t word, int k, bool is_signed) {
    const uint32_t byte = word >> 8 * k & 0xff;
    return is_signed ? (uint32_t)(int8_t)byte : byte;
}

static inline uint32_t half_of(uint32_t word, int k, bool is_signed) {
    const uint32_t half = word >> 16 * k & 0xffff;
    return is_signed ? (uint32_t)(int16_t)half : half;
}

static inline uint32_t dot4(uint32_t a, uint32_t b, uint32_t c, bool a_signed, bool b_signed) {
    for (int k = 0; k < 4; k++)
        c += byte_of(a, k, a_signed) * byte_of(b, k, b_signed);
    return c;
}

/* b is shifted so that the two bytes in use are its low ones. */
static inline uint32_t dot2(uint32_t a, uint32_t b, uint32_t c, bool a_signed, bool b_signed) {
    for (int k = 0; k < 2; k++)
        c += half_of(a, k, a_signed) * byte_of(b, k, b_signed);
    return c;
}

LANEWISE(dp4a_uu, u32, u32, u32, u32, dot4(a, b, c, false, false))
LANEWISE(dp4a_us, u32, u32, u32, u32, dot4(a, b, c, false, true))
LANEWISE(dp4a_su, u32, u32, u32, u32, dot4(a, b, c, true, false))
LANEWISE(dp4a_ss, u32, u32, u32, u32, dot4(a, b, c, true, true))
LANEWISE(dp2a_uu, u32, u32, u32, u32, dot2(a, b >> flags, c, false, false))
LANEWISE(dp2a_us, u32, u32, u32, u32, dot2(a, b >> flags, c, false, true))
LANEWISE(dp2a_su, u32, u32, u32, u32, dot2(a, b >> flags, c, true, false))
LANEWISE(dp2a_ss, u32, u32, u32, u32, dot2(a, b >> flags, c, true, true))

/* handlers[a is signed][b is signed] */
static exec_fn select_dot(decoder *dc, const ptx_instruction *p, insn *out,
                          const exec_fn handlers[2][2]) {
    const ptx_type ta = decode_take_type(dc), tb = decode_take_type(dc);
    if ((ta != PTX_U32 && ta != PTX_S32) || (tb != PTX_U32 && tb != PTX_S32)) return NULL;
    const ptx_type tc = ta == PTX_U32 && tb == PTX_U32 ? PTX_U32 : PTX_S32;
    if (!alu_operands(dc, p, out, tc, ta, tb, tc, PTX_NO_TYPE)) return NULL;
    return handlers[ta == PTX_S32][tb == PTX_S32];
}

static exec_fn select_dp4a(decoder *dc, const ptx_instruction *p, insn *out) {
    static const exec_fn handlers[2][2] = {{dp4a_uu, dp4a_us}, {dp4a_su, dp4a_ss}};
    return select_dot(dc, p, out, handlers);
}

static exec_fn select_dp2a(decoder *dc, const ptx_instruction *p, insn *out) {
    static const exec_fn handlers[2][2] = {{dp2a_uu, dp2a_us}, {dp2a_su, dp2a_ss}};
    const bool low = decode_take(dc, "lo");
    if (!low && !decode_take(dc, "hi")) return NULL;
    out->flags = low ? 0 : 16; /* right shift of b in bits */
    return select_dot(dc, p, out, handlers);
}
