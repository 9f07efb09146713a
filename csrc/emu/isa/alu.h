/* What the lane-wise instructions share: lane types, the macro LANEWISE, operand decoding.
 *
 * LANEWISE defines a handler from an expression. A handler has two loops over 32 lanes: one for a
 * full warp, and one that keeps the old value of inactive lanes. Both loops must vectorise. So the
 * trip count is constant, all calls can be inlined, and lanes are independent (d may be the same
 * register as a, b or c).
 *
 * alu_template.h includes the alu_*_template.h files. Together they are compiled once per
 * instruction set of the host (base/cpu.h).
 */
#ifndef EMU_ALU_H
#define EMU_ALU_H

#include <string.h>

#include "../machine/machine.h"

/* A register's slot in the frame may hold floats now and integers later, hence may_alias. */
typedef uint16_t lane_u16 __attribute__((may_alias));
typedef int16_t lane_s16 __attribute__((may_alias));
typedef uint32_t lane_u32 __attribute__((may_alias));
typedef int32_t lane_s32 __attribute__((may_alias));
typedef uint64_t lane_u64 __attribute__((may_alias));
typedef int64_t lane_s64 __attribute__((may_alias));
typedef float lane_f32 __attribute__((may_alias));
typedef double lane_f64 __attribute__((may_alias));

#define LANE_POINTER(type, w, offset)                                                              \
    ((lane_##type *)__builtin_assume_aligned((w)->frame + (offset), 64))

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* a loop of library calls does not vectorise */
#define EACH_LANE                                                                                  \
    _Pragma("clang loop vectorize(assume_safety)") for (int lane = 0; lane < LANES; lane++)
#else
#define EACH_LANE _Pragma("GCC ivdep") for (int lane = 0; lane < LANES; lane++)
#endif

/* LANEWISE(add_u32, u32, u32, u32, u32, a + b) defines the handler add_u32. The types are those of
 * d, a, b and c. The expression may use a, b, c, a fourth source e (always u32), and flags and imm,
 * which the select function has set in the insn. */
#define LANEWISE(name, D, A, B, C, ...)                                                            \
    static const insn *name(warp *w, const insn *in) {                                             \
        lane_##D *pd = LANE_POINTER(D, w, in->d);                                                  \
        const lane_##A *pa = LANE_POINTER(A, w, in->a);                                            \
        const lane_##B *pb = LANE_POINTER(B, w, in->b);                                            \
        const lane_##C *pc = LANE_POINTER(C, w, in->c);                                            \
        const lane_u32 *pe = LANE_POINTER(u32, w, in->e);                                          \
        const uint32_t flags = in->flags;                                                          \
        const int64_t imm = in->imm;                                                               \
        (void)flags, (void)imm;                                                                    \
        if (w->active == FULL) {                                                                   \
            EACH_LANE {                                                                            \
                LANE_SOURCES(A, B, C);                                                             \
                pd[lane] = (lane_##D)(__VA_ARGS__);                                                \
            }                                                                                      \
        } else {                                                                                   \
            const uint32_t *mask = w->mask;                                                        \
            EACH_LANE {                                                                            \
                LANE_SOURCES(A, B, C);                                                             \
                const lane_##D old = pd[lane];                                                     \
                const lane_##D new = (lane_##D)(__VA_ARGS__);                                      \
                pd[lane] = mask[lane] ? new : old;                                                 \
            }                                                                                      \
        }                                                                                          \
        return in + 1;                                                                             \
    }

#define LANE_SOURCES(A, B, C)                                                                      \
    const lane_##A a = pa[lane];                                                                   \
    const lane_##B b = pb[lane];                                                                   \
    const lane_##C c = pc[lane];                                                                   \
    const uint32_t e = pe[lane];                                                                   \
    (void)a, (void)b, (void)c, (void)e

/* Stores results, an array of 32 lanes, to a register's active lanes. */
#define STORE_LANES(type, w, offset, results)                                                      \
    do {                                                                                           \
        lane_##type *stored = LANE_POINTER(type, w, offset);                                       \
        if ((w)->active == FULL)                                                                   \
            EACH_LANE stored[lane] = (lane_##type)(results)[lane];                                 \
        else                                                                                       \
            EACH_LANE stored[lane] =                                                               \
                (w)->mask[lane] ? (lane_##type)(results)[lane] : stored[lane];                     \
    } while (0)

/* ---- forms of an instruction ---- */

/* Handlers by type; NULL: the opcode does not have this type. */
typedef exec_fn exec_by_type[PTX_N_TYPES];

#define TYPES_UNTYPED(op)  [PTX_B16] = op##_u16, [PTX_B32] = op##_u32, [PTX_B64] = op##_u64
#define TYPES_SIGNED(op)   [PTX_S16] = op##_s16, [PTX_S32] = op##_s32, [PTX_S64] = op##_s64
#define TYPES_UNSIGNED(op) [PTX_U16] = op##_u16, [PTX_U32] = op##_u32, [PTX_U64] = op##_u64
#define TYPES_INTEGER(op)  TYPES_UNSIGNED(op), TYPES_SIGNED(op)
/* Signed types use the unsigned handlers: the result has the same bits. */
#define TYPES_SIGNLESS(op)                                                                         \
    TYPES_UNSIGNED(op), [PTX_S16] = op##_u16, [PTX_S32] = op##_u32, [PTX_S64] = op##_u64
/* Types whose values are only moved: the handler depends on the size alone. */
#define TYPES_ANY(op)                                                                              \
    TYPES_UNTYPED(op), TYPES_SIGNLESS(op), [PTX_F32] = op##_u32, [PTX_F64] = op##_u64

/* Expands define(name, type) for unsigned, signed or all integer types. */
#define FOR_UNSIGNED(define, op) define(op##_u16, u16) define(op##_u32, u32) define(op##_u64, u64)
#define FOR_SIGNED(define, op)   define(op##_s16, s16) define(op##_s32, s32) define(op##_s64, s64)
#define FOR_INTEGERS(define, op) FOR_UNSIGNED(define, op) FOR_SIGNED(define, op)

/* Whether the operand can be used as type t: it is a register of that size, or no register at all.
 * Predicates fit predicates only. */
static inline bool alu_fits(decoder *dc, const ptx_operand *o, ptx_type t) {
    const ptx_type declared = decode_register_type(dc, o);
    if (declared == PTX_NO_TYPE) return true;
    return ptx_slot_bytes(declared) == ptx_slot_bytes(t) &&
           (declared == PTX_PRED) == (t == PTX_PRED);
}

/* Decodes d and the sources with these types; PTX_NO_TYPE ends the list. False if the instruction
 * has other operands, which makes its form unsupported. A `d|p` is refused, too. */
static inline bool alu_operands(decoder *dc, const ptx_instruction *p, insn *out, ptx_type d,
                                ptx_type a, ptx_type b, ptx_type c, ptx_type e) {
    const ptx_type sources[4] = {a, b, c, e};
    uint32_t *const offsets[4] = {&out->a, &out->b, &out->c, &out->e};
    uint32_t n = 0;
    while (n < 4 && sources[n] != PTX_NO_TYPE)
        n++;
    if (p->n_operands != n + 1) return false;
    for (uint32_t k = 0; k <= n; k++) {
        const ptx_operand *o = &p->operands[k];
        if (o->pair || o->selector || (o->negated && o->kind == PTX_REGISTER)) return false;
        if (!alu_fits(dc, o, k ? sources[k - 1] : d)) return false;
    }
    for (uint32_t k = 0; k < n; k++)
        *offsets[k] = decode_source(dc, &p->operands[k + 1], sources[k]);
    out->d = decode_destination(dc, &p->operands[0], d);
    return true;
}

/* For a destination and n sources of type t: the table's handler, or NULL. */
static inline exec_fn alu_uniform(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t,
                                  int n, const exec_by_type table) {
    const ptx_type none = PTX_NO_TYPE;
    if (t == none || !table[t]) return NULL;
    if (!alu_operands(dc, p, out, t, t, n > 1 ? t : none, n > 2 ? t : none, none)) return NULL;
    return table[t];
}

/* Defines the select function of an opcode whose only modifier is a type. */
#define SELECT_UNIFORM(op, n_sources, ...)                                                         \
    static exec_fn select_##op(decoder *dc, const ptx_instruction *p, insn *out) {                 \
        static const exec_by_type table = {__VA_ARGS__};                                           \
        return alu_uniform(dc, p, out, decode_take_type(dc), n_sources, table);                    \
    }

/* An opcode with integer, float and half types (add, min, ...) has one select function per kind. */
typedef exec_fn (*typed_select_fn)(decoder *dc, const ptx_instruction *p, insn *out, ptx_type t);

static inline bool is_half(ptx_type t) {
    return t == PTX_F16 || t == PTX_F16X2 || t == PTX_BF16 || t == PTX_BF16X2;
}

static inline exec_fn alu_by_kind(decoder *dc, const ptx_instruction *p, insn *out,
                                  typed_select_fn integer, typed_select_fn floating,
                                  typed_select_fn half) {
    const ptx_type t = decode_take_type(dc);
    if (t == PTX_NO_TYPE) return NULL;
    const typed_select_fn select = is_half(t)                     ? half
                                   : t == PTX_F32 || t == PTX_F64 ? floating
                                                                  : integer;
    return select ? select(dc, p, out, t) : NULL;
}

#define SELECT_BY_KIND(op, integer, floating, half)                                                \
    static exec_fn select_##op(decoder *dc, const ptx_instruction *p, insn *out) {                 \
        return alu_by_kind(dc, p, out, integer, floating, half);                                   \
    }

/* ---- the upper half of a product ---- */

static inline uint16_t high_u16(uint16_t a, uint16_t b) {
    return (uint16_t)((uint32_t)a * b >> 16);
}
static inline int16_t high_s16(int16_t a, int16_t b) {
    return (int16_t)((int32_t)a * b >> 16);
}
static inline uint32_t high_u32(uint32_t a, uint32_t b) {
    return (uint32_t)((uint64_t)a * b >> 32);
}
static inline int32_t high_s32(int32_t a, int32_t b) {
    return (int32_t)((int64_t)a * b >> 32);
}

static inline uint64_t high_u64(uint64_t a, uint64_t b) {
    return (uint64_t)((unsigned __int128)a * b >> 64);
}

static inline int64_t high_s64(int64_t a, int64_t b) {
    return (int64_t)((__int128)a * b >> 64);
}

/* ---- two 16-bit values in a word ---- */

static inline uint32_t packed_u16x2(uint32_t low, uint32_t high) {
    return (low & 0xffff) | high << 16;
}

#endif
