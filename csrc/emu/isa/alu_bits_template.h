/* Bit operations: logic, shifts, byte permutes, bit fields, bit counts. */
#include "alu.h"

/* ---- logic ---- */

#define AND(name, T)         LANEWISE(name, T, T, T, T, a &b)
#define OR(name, T)          LANEWISE(name, T, T, T, T, a | b)
#define XOR(name, T)         LANEWISE(name, T, T, T, T, a ^ b)
#define NOT(name, T)         LANEWISE(name, T, T, T, T, ~a)
#define LOGICAL_NOT(name, T) LANEWISE(name, T, T, T, T, a == 0)
FOR_UNSIGNED(AND, and)
FOR_UNSIGNED(OR, or)
FOR_UNSIGNED(XOR, xor)
FOR_UNSIGNED(NOT, invert)
FOR_UNSIGNED(LOGICAL_NOT, cnot)
SELECT_UNIFORM(cnot, 1, TYPES_UNTYPED(cnot))

/* Predicate sources may be negated (!%p). flags: bit 0 negates a, bit 1 negates b. */
#define NEGATABLE_A (a ^ (0 - (flags & 1)))
#define NEGATABLE_B (b ^ (0 - (flags >> 1 & 1)))
LANEWISE(and_pred, u32, u32, u32, u32, NEGATABLE_A &NEGATABLE_B)
LANEWISE(or_pred, u32, u32, u32, u32, NEGATABLE_A | NEGATABLE_B)
LANEWISE(xor_pred, u32, u32, u32, u32, NEGATABLE_A ^ NEGATABLE_B)
LANEWISE(not_pred, u32, u32, u32, u32, ~NEGATABLE_A)
LANEWISE(mov_pred, u32, u32, u32, u32, NEGATABLE_A)

static exec_fn alu_predicates(decoder *dc, const ptx_instruction *p, insn *out, uint32_t n,
                              exec_fn exec) {
    if (p->n_operands != n + 1) return NULL;
    for (uint32_t k = 0; k <= n; k++) {
        const ptx_operand *o = &p->operands[k];
        if (o->pair || !alu_fits(dc, o, PTX_PRED)) return NULL;
        if (k == 0) out->d = decode_destination(dc, o, PTX_PRED);
        if (k == 1) out->a = decode_source(dc, o, PTX_PRED);
        if (k == 2) out->b = decode_source(dc, o, PTX_PRED);
        if (k > 0 && o->kind == PTX_REGISTER && o->negated) out->flags |= (uint8_t)(1 << (k - 1));
    }
    return exec;
}

#define SELECT_LOGIC(op, n_sources, handlers)                                                      \
    static exec_fn select_##op(decoder *dc, const ptx_instruction *p, insn *out) {                 \
        static const exec_by_type table = {TYPES_UNTYPED(handlers)};                               \
        const ptx_type t = decode_take_type(dc);                                                   \
        if (t == PTX_PRED) return alu_predicates(dc, p, out, n_sources, op##_pred);                \
        return alu_uniform(dc, p, out, t, n_sources, table);                                       \
    }

SELECT_LOGIC(and, 2, and)
SELECT_LOGIC(or, 2, or)
SELECT_LOGIC(xor, 2, xor)
SELECT_LOGIC(not, 1, invert)

/* Each result bit is bit 4a + 2b + c of the table. It is selected by c, then b, then a. */
static inline uint32_t lop3_lookup(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
    uint32_t by_c[4];
    for (int k = 0; k < 4; k++) {
        const uint32_t low = 0 - (table >> 2 * k & 1), high = 0 - (table >> (2 * k + 1) & 1);
        by_c[k] = low ^ (c & (low ^ high));
    }
    const uint32_t b0 = by_c[0] ^ (b & (by_c[0] ^ by_c[1]));
    const uint32_t b1 = by_c[2] ^ (b & (by_c[2] ^ by_c[3]));
    return b0 ^ (a & (b0 ^ b1));
}

LANEWISE(lop3_u32, u32, u32, u32, u32, lop3_lookup(a, b, c, (uint32_t)imm))

enum { LOP3_AND = 1, LOP3_NEGATED = 2 };

/* lop3.and, lop3.or: p = (d != 0) op q. insn.list: p, q */
static const insn *lop3_predicate(warp *w, const insn *in) {
    const lane_u32 *pa = LANE_POINTER(u32, w, in->a), *pb = LANE_POINTER(u32, w, in->b);
    const lane_u32 *pc = LANE_POINTER(u32, w, in->c), *pq = LANE_POINTER(u32, w, in->list[1]);
    const uint32_t negate = in->flags & LOP3_NEGATED ? ~0u : 0;
    lanes_u32 results, predicates;
    EACH_LANE {
        const uint32_t q = pq[lane] ^ negate;
        const uint32_t result = lop3_lookup(pa[lane], pb[lane], pc[lane], (uint32_t)in->imm);
        const uint32_t nonzero = result ? ~0u : 0;
        results[lane] = result;
        predicates[lane] = in->flags & LOP3_AND ? nonzero & q : nonzero | q;
    }
    STORE_LANES(u32, w, in->d, results);
    STORE_LANES(u32, w, in->list[0], predicates);
    return in + 1;
}

static exec_fn select_lop3(decoder *dc, const ptx_instruction *p, insn *out) {
    const bool is_and = decode_take(dc, "and"), with_predicate = is_and || decode_take(dc, "or");
    if (decode_take_type(dc) != PTX_B32) return NULL;
    if (p->n_operands != (with_predicate ? 6u : 5u)) return NULL;
    const ptx_operand *o = p->operands;
    if (o[4].kind != PTX_IMMEDIATE || o[4].is_float || o[4].bits > 255) return NULL;
    if ((o[0].pair != NULL) != with_predicate) return NULL;
    for (int k = 0; k < 4; k++)
        if (!alu_fits(dc, &o[k], PTX_B32)) return NULL;
    out->imm = (int64_t)o[4].bits;
    out->a = decode_source(dc, &o[1], PTX_B32);
    out->b = decode_source(dc, &o[2], PTX_B32);
    out->c = decode_source(dc, &o[3], PTX_B32);
    if (with_predicate) {
        if (!alu_fits(dc, o[0].pair, PTX_PRED) || !alu_fits(dc, &o[5], PTX_PRED)) return NULL;
        uint32_t *list = decode_alloc(dc, 2 * sizeof *list);
        list[0] = decode_destination(dc, o[0].pair, PTX_PRED);
        list[1] = decode_source(dc, &o[5], PTX_PRED);
        out->list = list;
        out->flags = (uint8_t)((is_and ? LOP3_AND : 0) |
                               (o[5].kind == PTX_REGISTER && o[5].negated ? LOP3_NEGATED : 0));
    }
    out->d = decode_destination(dc, &o[0], PTX_B32);
    return with_predicate ? lop3_predicate : lop3_u32;
}

/* ---- shifts: the amount is unsigned and clamped, not wrapped ---- */

LANEWISE(shl_u16, u16, u16, u32, u32, b > 15 ? 0 : (uint32_t)a << (b & 15))
LANEWISE(shl_u32, u32, u32, u32, u32, b > 31 ? 0 : a << (b & 31))
LANEWISE(shl_u64, u64, u64, u32, u32, b > 63 ? 0 : a << (b & 63))
LANEWISE(shr_u16, u16, u16, u32, u32, b > 15 ? 0 : (uint32_t)a >> (b & 15))
LANEWISE(shr_u32, u32, u32, u32, u32, b > 31 ? 0 : a >> (b & 31))
LANEWISE(shr_u64, u64, u64, u32, u32, b > 63 ? 0 : a >> (b & 63))
LANEWISE(shr_s16, s16, s16, u32, u32, (int32_t)a >> (b > 15 ? 15 : b))
LANEWISE(shr_s32, s32, s32, u32, u32, a >> (b > 31 ? 31 : b))
LANEWISE(shr_s64, s64, s64, u32, u32, a >> (b > 63 ? 63 : b))

static exec_fn select_shift(decoder *dc, const ptx_instruction *p, insn *out,
                            const exec_by_type table) {
    const ptx_type t = decode_take_type(dc);
    if (t == PTX_NO_TYPE || !table[t] ||
        !alu_operands(dc, p, out, t, t, PTX_U32, PTX_NO_TYPE, PTX_NO_TYPE))
        return NULL;
    return table[t];
}

static exec_fn select_shl(decoder *dc, const ptx_instruction *p, insn *out) {
    static const exec_by_type table = {TYPES_UNTYPED(shl)};
    return select_shift(dc, p, out, table);
}

static exec_fn select_shr(decoder *dc, const ptx_instruction *p, insn *out) {
    static const exec_by_type table = {TYPES_UNTYPED(shr), TYPES_INTEGER(shr)};
    return select_shift(dc, p, out, table);
}

/* Funnel shifts of the 64-bit value {b, a} by c. */
static inline uint64_t concat_words(uint32_t low, uint32_t high) {
    return (uint64_t)high << 32 | low;
}

LANEWISE(shf_l_clamp, u32, u32, u32, u32, concat_words(a, b) << (c > 32 ? 32 : c) >> 32)
LANEWISE(shf_l_wrap, u32, u32, u32, u32, concat_words(a, b) << (c & 31) >> 32)
LANEWISE(shf_r_clamp, u32, u32, u32, u32, concat_words(a, b) >> (c > 32 ? 32 : c))
LANEWISE(shf_r_wrap, u32, u32, u32, u32, concat_words(a, b) >> (c & 31))

static exec_fn select_shf(decoder *dc, const ptx_instruction *p, insn *out) {
    const bool left = decode_take(dc, "l");
    if (!left && !decode_take(dc, "r")) return NULL;
    const bool clamp = decode_take(dc, "clamp");
    if (!clamp && !decode_take(dc, "wrap")) return NULL;
    if (decode_take_type(dc) != PTX_B32 ||
        !alu_operands(dc, p, out, PTX_B32, PTX_B32, PTX_B32, PTX_U32, PTX_NO_TYPE))
        return NULL;
    if (left) return clamp ? shf_l_clamp : shf_l_wrap;
    return clamp ? shf_r_clamp : shf_r_wrap;
}

/* ---- byte permutes ---- */

/* control has four selectors of 4 bits. Bits 0-2 choose a byte of {b, a}; bit 3 replaces it by
 * copies of its sign bit. */
static inline uint32_t byte_permute(uint32_t a, uint32_t b, uint32_t control) {
    const uint64_t bytes = concat_words(a, b);
    uint32_t result = 0;
    for (int k = 0; k < 4; k++) {
        const uint32_t selector = control >> 4 * k & 15;
        const uint32_t byte = (uint32_t)(bytes >> 8 * (selector & 7)) & 0xff;
        const uint32_t sign = byte & 0x80 ? 0xff : 0;
        result |= (selector & 8 ? sign : byte) << 8 * k;
    }
    return result;
}

/* The selectors of each mode, by the two low bits of c. */
static const char *const prmt_modes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
static const uint16_t prmt_controls[][4] = {
    {0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123},
    {0x0000, 0x1111, 0x2222, 0x3333}, {0x3210, 0x3211, 0x3222, 0x3333},
    {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232},
};

LANEWISE(prmt_any, u32, u32, u32, u32, byte_permute(a, b, c))
LANEWISE(prmt_mode, u32, u32, u32, u32, byte_permute(a, b, prmt_controls[imm][c & 3]))

static exec_fn select_prmt(decoder *dc, const ptx_instruction *p, insn *out) {
    const exec_by_type any = {[PTX_B32] = prmt_any}, mode = {[PTX_B32] = prmt_mode};
    bool has_mode = false;
    for (int k = 0; k < 6 && !has_mode; k++) {
        has_mode = decode_take(dc, prmt_modes[k]);
        out->imm = k;
    }
    return alu_uniform(dc, p, out, decode_take_type(dc), 3, has_mode ? mode : any);
}

/* ---- counts and positions: results are u32 ---- */

static inline uint32_t leading_zeros(uint64_t x) {
    return x ? (uint32_t)__builtin_clzll(x) : 64;
}

/* Position of the highest set bit; ~0 if none. */
static inline uint32_t highest_set_bit(uint64_t x) {
    return 63 - leading_zeros(x);
}

/* bfind.shiftamt: the left shift that moves the highest set bit to bit `top`; ~0 if none. */
static inline uint32_t shift_to_top(uint64_t x, uint32_t top) {
    return x ? top - highest_set_bit(x) : ~0u;
}

#define NONSIGN(x) ((x) < 0 ? ~(x) : (x))

LANEWISE(popc_u32, u32, u32, u32, u32, __builtin_popcount(a))
LANEWISE(popc_u64, u32, u64, u32, u32, __builtin_popcountll(a))
LANEWISE(clz_u32, u32, u32, u32, u32, leading_zeros(a) - 32)
LANEWISE(clz_u64, u32, u64, u32, u32, leading_zeros(a))
LANEWISE(bfind_u32, u32, u32, u32, u32, highest_set_bit(a))
LANEWISE(bfind_u64, u32, u64, u32, u32, highest_set_bit(a))
LANEWISE(bfind_s32, u32, s32, u32, u32, highest_set_bit((uint32_t)NONSIGN(a)))
LANEWISE(bfind_s64, u32, s64, u32, u32, highest_set_bit((uint64_t)NONSIGN(a)))
LANEWISE(bfind_shift_u32, u32, u32, u32, u32, shift_to_top(a, 31))
LANEWISE(bfind_shift_u64, u32, u64, u32, u32, shift_to_top(a, 63))
LANEWISE(bfind_shift_s32, u32, s32, u32, u32, shift_to_top((uint32_t)NONSIGN(a), 31))
LANEWISE(bfind_shift_s64, u32, s64, u32, u32, shift_to_top((uint64_t)NONSIGN(a), 63))

static exec_fn select_count(decoder *dc, const ptx_instruction *p, insn *out,
                            const exec_by_type table) {
    const ptx_type t = decode_take_type(dc);
    if (t == PTX_NO_TYPE || !table[t] ||
        !alu_operands(dc, p, out, PTX_U32, t, PTX_NO_TYPE, PTX_NO_TYPE, PTX_NO_TYPE))
        return NULL;
    return table[t];
}

static exec_fn select_popc(decoder *dc, const ptx_instruction *p, insn *out) {
    static const exec_by_type table = {[PTX_B32] = popc_u32, [PTX_B64] = popc_u64};
    return select_count(dc, p, out, table);
}

static exec_fn select_clz(decoder *dc, const ptx_instruction *p, insn *out) {
    static const exec_by_type table = {[PTX_B32] = clz_u32, [PTX_B64] = clz_u64};
    return select_count(dc, p, out, table);
}

static exec_fn select_bfind(decoder *dc, const ptx_instruction *p, insn *out) {
    static const exec_by_type position = {
        [PTX_U32] = bfind_u32, [PTX_U64] = bfind_u64, [PTX_S32] = bfind_s32, [PTX_S64] = bfind_s64};
    static const exec_by_type shift = {[PTX_U32] = bfind_shift_u32,
                                       [PTX_U64] = bfind_shift_u64,
                                       [PTX_S32] = bfind_shift_s32,
                                       [PTX_S64] = bfind_shift_s64};
    return select_count(dc, p, out, decode_take(dc, "shiftamt") ? shift : position);
}

/* fns: the position of the offset-th set bit of mask, counted from bit base upwards, or downwards
 * if offset < 0. Offset 0: base, if that bit is set. ~0 if there is no such bit. */
static inline uint32_t find_nth_set(uint32_t mask, uint32_t base, int32_t offset) {
    if (base > 31) return ~0u;
    if (offset == 0) return mask >> base & 1 ? base : ~0u;
    const int step = offset > 0 ? 1 : -1;
    uint32_t left = offset > 0 ? (uint32_t)offset : 0 - (uint32_t)offset;
    for (int at = (int)base; at >= 0 && at < 32; at += step)
        if (mask >> at & 1 && --left == 0) return (uint32_t)at;
    return ~0u;
}

LANEWISE(fns_u32, u32, u32, u32, s32, find_nth_set(a, b, c))

static exec_fn select_fns(decoder *dc, const ptx_instruction *p, insn *out) {
    if (decode_take_type(dc) != PTX_B32 ||
        !alu_operands(dc, p, out, PTX_B32, PTX_B32, PTX_B32, PTX_S32, PTX_NO_TYPE))
        return NULL;
    return fns_u32;
}

static inline uint64_t reverse_bits(uint64_t x) {
    x = (x >> 1 & 0x5555555555555555) | (x & 0x5555555555555555) << 1;
    x = (x >> 2 & 0x3333333333333333) | (x & 0x3333333333333333) << 2;
    x = (x >> 4 & 0x0f0f0f0f0f0f0f0f) | (x & 0x0f0f0f0f0f0f0f0f) << 4;
    return __builtin_bswap64(x);
}

LANEWISE(brev_u32, u32, u32, u32, u32, reverse_bits(a) >> 32)
LANEWISE(brev_u64, u64, u64, u64, u64, reverse_bits(a))
SELECT_UNIFORM(brev, 1, [PTX_B32] = brev_u32, [PTX_B64] = brev_u64)

/* ---- bit fields: position and length are taken modulo 256 ---- */

/* The lowest `length` bits set; all bits from 64 on. */
static inline uint64_t low_ones(uint32_t length) {
    return length > 63 ? ~(uint64_t)0 : ((uint64_t)1 << length) - 1;
}

static inline uint64_t extract_unsigned(uint64_t x, uint32_t position, uint32_t length) {
    position &= 0xff, length &= 0xff;
    return position > 63 ? 0 : x >> position & low_ones(length);
}

/* A 32-bit x arrives sign-extended to 64 bits, so the bits above its top are already its sign. */
static inline uint64_t extract_signed(int64_t x, uint32_t position, uint32_t length) {
    position &= 0xff, length &= 0xff;
    const uint64_t shifted = (uint64_t)(x >> (position > 63 ? 63 : position));
    if (length == 0) return 0;
    if (length > 63) return shifted;
    return (uint64_t)((int64_t)(shifted << (64 - length)) >> (64 - length));
}

static inline uint64_t insert_field(uint64_t field, uint64_t into, uint32_t position,
                                    uint32_t length) {
    position &= 0xff, length &= 0xff;
    if (position > 63) return into;
    const uint64_t where = low_ones(length) << position;
    return (into & ~where) | (field << position & where);
}

LANEWISE(bfe_u32, u32, u32, u32, u32, extract_unsigned(a, b, c))
LANEWISE(bfe_u64, u64, u64, u32, u32, extract_unsigned(a, b, c))
LANEWISE(bfe_s32, u32, s32, u32, u32, extract_signed(a, b, c))
LANEWISE(bfe_s64, u64, s64, u32, u32, extract_signed(a, b, c))
LANEWISE(bfi_u32, u32, u32, u32, u32, insert_field(a, b, c, e))
LANEWISE(bfi_u64, u64, u64, u64, u32, insert_field(a, b, c, e))

static exec_fn select_bfe(decoder *dc, const ptx_instruction *p, insn *out) {
    static const exec_by_type table = {
        [PTX_U32] = bfe_u32, [PTX_U64] = bfe_u64, [PTX_S32] = bfe_s32, [PTX_S64] = bfe_s64};
    const ptx_type t = decode_take_type(dc);
    if (t == PTX_NO_TYPE || !table[t] ||
        !alu_operands(dc, p, out, t, t, PTX_U32, PTX_U32, PTX_NO_TYPE))
        return NULL;
    return table[t];
}

static exec_fn select_bfi(decoder *dc, const ptx_instruction *p, insn *out) {
    static const exec_by_type table = {[PTX_B32] = bfi_u32, [PTX_B64] = bfi_u64};
    const ptx_type t = decode_take_type(dc);
    if (t == PTX_NO_TYPE || !table[t] || !alu_operands(dc, p, out, t, t, t, PTX_U32, PTX_U32))
        return NULL;
    return table[t];
}

/* bmsk: b set bits from bit a upwards. .clamp: an a or b of 32 or more reaches past the top. .wrap:
 * a and b are taken modulo 32. */
static inline uint32_t bit_mask(uint32_t a, uint32_t b, bool clamp) {
    if (clamp && a > 31) return 0;
    const uint64_t width = clamp && b > 31 ? 32 : b & 31;
    return (uint32_t)(low_ones((uint32_t)width) << (a & 31));
}

LANEWISE(bmsk_clamp, u32, u32, u32, u32, bit_mask(a, b, true))
LANEWISE(bmsk_wrap, u32, u32, u32, u32, bit_mask(a, b, false))

/* szext: the low b bits of a, sign- or zero-extended. .clamp: a b of 32 or more keeps all of a.
 * .wrap: b is taken modulo 32. */
LANEWISE(szext_clamp_u32, u32, u32, u32, u32, a &low_ones(b > 31 ? 32 : b))
LANEWISE(szext_wrap_u32, u32, u32, u32, u32, a &low_ones(b & 31))
LANEWISE(szext_clamp_s32, u32, s32, u32, u32, extract_signed(a, 0, b > 31 ? 32 : b))
LANEWISE(szext_wrap_s32, u32, s32, u32, u32, extract_signed(a, 0, b & 31))

/* 1: .clamp; 0: .wrap; -1: neither. */
static int take_clamp(decoder *dc) {
    return decode_take(dc, "clamp") ? 1 : decode_take(dc, "wrap") ? 0 : -1;
}

static exec_fn select_bmsk(decoder *dc, const ptx_instruction *p, insn *out) {
    const exec_by_type clamped = {[PTX_B32] = bmsk_clamp}, wrapped = {[PTX_B32] = bmsk_wrap};
    const int clamp = take_clamp(dc);
    if (clamp < 0) return NULL;
    return alu_uniform(dc, p, out, decode_take_type(dc), 2, clamp ? clamped : wrapped);
}

static exec_fn select_szext(decoder *dc, const ptx_instruction *p, insn *out) {
    const int clamp = take_clamp(dc);
    const ptx_type t = decode_take_type(dc);
    if (clamp < 0 || (t != PTX_U32 && t != PTX_S32) ||
        !alu_operands(dc, p, out, t, t, PTX_U32, PTX_NO_TYPE, PTX_NO_TYPE))
        return NULL;
    if (t == PTX_U32) return clamp ? szext_clamp_u32 : szext_wrap_u32;
    return clamp ? szext_clamp_s32 : szext_wrap_s32;
}
