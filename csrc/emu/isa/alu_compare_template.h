/* Comparison (setp, set) and selection (selp, slct).
 *
 * A relation compares two vectors and gives 0 or ~0 per lane. A setp with one destination and no
 * modifier but the relation has its own handler, made from the same expression.
 */
#include "alu_format.h"

typedef void (*relation_fn)(const void *a, const void *b, uint32_t *holds);

typedef struct relation {
    exec_fn setp;
    relation_fn compare;
} relation;

#define DEFINE_RELATION(name, T, ...)                                                              \
    LANEWISE(setp_##name##_##T, u32, T, T, u32, (__VA_ARGS__) ? ~0u : 0)                           \
    static void name##_##T(const void *x, const void *y, uint32_t *holds) {                        \
        const lane_##T *pa = __builtin_assume_aligned(x, 64);                                      \
        const lane_##T *pb = __builtin_assume_aligned(y, 64);                                      \
        EACH_LANE {                                                                                \
            const lane_##T a = pa[lane], b = pb[lane];                                             \
            holds[lane] = (__VA_ARGS__) ? ~0u : 0;                                                 \
        }                                                                                          \
    }

#define DEFINE_INTEGER_RELATIONS(T)                                                                \
    DEFINE_RELATION(eq, T, a == b)                                                                 \
    DEFINE_RELATION(ne, T, a != b)                                                                 \
    DEFINE_RELATION(lt, T, a < b)                                                                  \
    DEFINE_RELATION(le, T, a <= b)

#define DEFINE_FLOAT_RELATIONS(T)                                                                  \
    DEFINE_RELATION(eq, T, a == b)                                                                 \
    DEFINE_RELATION(ne, T, a<b || a> b)                                                            \
    DEFINE_RELATION(lt, T, a < b)                                                                  \
    DEFINE_RELATION(le, T, a <= b)                                                                 \
    DEFINE_RELATION(equ, T, !(a < b || a > b))                                                     \
    DEFINE_RELATION(neu, T, a != b)                                                                \
    DEFINE_RELATION(ltu, T, !(a >= b))                                                             \
    DEFINE_RELATION(leu, T, !(a > b))                                                              \
    DEFINE_RELATION(num, T, a == a && b == b)                                                      \
    DEFINE_RELATION(nan, T, a != a || b != b)

DEFINE_INTEGER_RELATIONS(u16)
DEFINE_INTEGER_RELATIONS(u32)
DEFINE_INTEGER_RELATIONS(u64)
DEFINE_INTEGER_RELATIONS(s16)
DEFINE_INTEGER_RELATIONS(s32)
DEFINE_INTEGER_RELATIONS(s64)
DEFINE_FLOAT_RELATIONS(f32)
DEFINE_FLOAT_RELATIONS(f64)

enum relation_name { EQ, NE, LT, LE, EQU, NEU, LTU, LEU, NUM, NOT_A_NUMBER, N_RELATIONS };

#define RELATION(name, T)     {setp_##name##_##T, name##_##T}
#define EQUALITY_RELATIONS(T) {[EQ] = RELATION(eq, T), [NE] = RELATION(ne, T)}
#define INTEGER_RELATIONS(T)                                                                       \
    {[EQ] = RELATION(eq, T), [NE] = RELATION(ne, T), [LT] = RELATION(lt, T), [LE] = RELATION(le, T)}
#define FLOAT_RELATIONS(T)                                                                         \
    {[EQ] = RELATION(eq, T),           [NE] = RELATION(ne, T),   [LT] = RELATION(lt, T),           \
     [LE] = RELATION(le, T),           [EQU] = RELATION(equ, T), [NEU] = RELATION(neu, T),         \
     [LTU] = RELATION(ltu, T),         [LEU] = RELATION(leu, T), [NUM] = RELATION(num, T),         \
     [NOT_A_NUMBER] = RELATION(nan, T)}

/* Half types are compared as f32, to which they convert exactly. */
static const relation relations[PTX_N_TYPES][N_RELATIONS] = {
    [PTX_B16] = EQUALITY_RELATIONS(u16), [PTX_B32] = EQUALITY_RELATIONS(u32),
    [PTX_B64] = EQUALITY_RELATIONS(u64), [PTX_U16] = INTEGER_RELATIONS(u16),
    [PTX_U32] = INTEGER_RELATIONS(u32),  [PTX_U64] = INTEGER_RELATIONS(u64),
    [PTX_S16] = INTEGER_RELATIONS(s16),  [PTX_S32] = INTEGER_RELATIONS(s32),
    [PTX_S64] = INTEGER_RELATIONS(s64),  [PTX_F32] = FLOAT_RELATIONS(f32),
    [PTX_F64] = FLOAT_RELATIONS(f64),    [PTX_F16] = FLOAT_RELATIONS(f32),
    [PTX_BF16] = FLOAT_RELATIONS(f32),   [PTX_F16X2] = FLOAT_RELATIONS(f32),
    [PTX_BF16X2] = FLOAT_RELATIONS(f32),
};

/* Relations by their names in PTX. `swapped`: a and b are exchanged. The last four are for unsigned
 * integers only. */
static const struct {
    const char *name;
    enum relation_name relation;
    bool swapped;
} relation_spellings[] = {
    {"eq", EQ, false},   {"ne", NE, false},
    {"lt", LT, false},   {"le", LE, false},
    {"gt", LT, true},    {"ge", LE, true},
    {"equ", EQU, false}, {"neu", NEU, false},
    {"ltu", LTU, false}, {"leu", LEU, false},
    {"gtu", LTU, true},  {"geu", LEU, true},
    {"num", NUM, false}, {"nan", NOT_A_NUMBER, false},
    {"lo", LT, false},   {"ls", LE, false},
    {"hi", LT, true},    {"hs", LE, true},
};

enum {
    N_SPELLINGS = sizeof relation_spellings / sizeof *relation_spellings,
    FIRST_UNSIGNED = N_SPELLINGS - 4
};

static bool is_unsigned(ptx_type t) {
    return t == PTX_U16 || t == PTX_U32 || t == PTX_U64;
}

static bool is_packed(ptx_type t) {
    return t == PTX_F16X2 || t == PTX_BF16X2;
}

/* insn.extra of setp_general and set_general. */
typedef struct comparison {
    relation_fn compare;
    ptx_type type; /* of the sources */
    bool ftz;
    enum { NO_COMBINE, COMBINE_AND, COMBINE_OR, COMBINE_XOR } combine;
    uint32_t c_xor; /* ~0: the third source is negated (!c) */
    uint32_t q;     /* setp's second destination */
    bool has_q;
    ptx_type result; /* set: type of the destination */
} comparison;

/* A 16-bit source as f32; of a packed source the lower (part 0) or upper (part 1) half. */
static void half_to_f32(const warp *w, uint32_t offset, const comparison *cmp, int part,
                        lane_f32 *values) {
    const bool bf16 = cmp->type == PTX_BF16 || cmp->type == PTX_BF16X2;
    const lane_u16 *narrow = LANE_POINTER(u16, w, offset);
    const lane_u32 *packed = LANE_POINTER(u32, w, offset);
    for (int lane = 0; lane < LANES; lane++) {
        uint16_t bits = is_packed(cmp->type) ? (uint16_t)(packed[lane] >> 16 * part) : narrow[lane];
        if (cmp->ftz && !(bits & 0x7c00)) bits &= 0x8000;
        values[lane] = bf16 ? value_bf16(bits) : value_f16(bits);
    }
}

/* The relation of a and b, or its complement, combined with the third source. Of packed sources the
 * lower (part 0) or upper (part 1) halves are compared. */
static void compare_lanes(const warp *w, const insn *in, int part, bool complement,
                          uint32_t *holds) {
    const comparison *cmp = in->extra;
    const void *a = w->frame + in->a, *b = w->frame + in->b;
    lanes_u32 flushed_a, flushed_b;
    if (is_half(cmp->type)) {
        half_to_f32(w, in->a, cmp, part, (lane_f32 *)flushed_a);
        half_to_f32(w, in->b, cmp, part, (lane_f32 *)flushed_b);
        a = flushed_a, b = flushed_b;
    } else if (cmp->ftz) {
        const lane_u32 *pa = a, *pb = b;
        EACH_LANE {
            flushed_a[lane] = flush_f32(pa[lane]);
            flushed_b[lane] = flush_f32(pb[lane]);
        }
        a = flushed_a, b = flushed_b;
    }
    cmp->compare(a, b, holds);
    const lane_u32 *c_source = LANE_POINTER(u32, w, in->c);
    EACH_LANE {
        const uint32_t t = complement ? ~holds[lane] : holds[lane];
        const uint32_t c = c_source[lane] ^ cmp->c_xor;
        holds[lane] = cmp->combine == NO_COMBINE    ? t
                      : cmp->combine == COMBINE_AND ? t & c
                      : cmp->combine == COMBINE_OR  ? t | c
                                                    : t ^ c;
    }
}

static const insn *setp_general(warp *w, const insn *in) {
    const comparison *cmp = in->extra;
    lanes_u32 p, q;
    compare_lanes(w, in, 0, false, p);
    /* The second predicate is the complement's; of packed sources it is the upper halves'. */
    if (cmp->has_q) compare_lanes(w, in, 1, !is_packed(cmp->type), q);
    STORE_LANES(u32, w, in->d, p);
    if (cmp->has_q) STORE_LANES(u32, w, cmp->q, q);
    return in + 1;
}

static const insn *set_general(warp *w, const insn *in) {
    const comparison *cmp = in->extra;
    lanes_u32 low, high;
    compare_lanes(w, in, 0, false, low);
    uint32_t one = ~0u;
    if (cmp->result == PTX_F32) one = 0x3f800000;
    if (cmp->result == PTX_F16 || cmp->result == PTX_F16X2) one = 0x3c003c00;
    if (cmp->result == PTX_BF16 || cmp->result == PTX_BF16X2) one = 0x3f803f80;
    if (is_packed(cmp->type)) {
        compare_lanes(w, in, 1, false, high);
        EACH_LANE low[lane] = (low[lane] & 0xffff) | (high[lane] & 0xffff0000);
    }
    EACH_LANE low[lane] &= one;
    if (ptx_type_size[cmp->result] == 2)
        STORE_LANES(u16, w, in->d, low);
    else
        STORE_LANES(u32, w, in->d, low);
    return in + 1;
}

/* Takes the relation, the boolean operator and .ftz. Returns an index of relation_spellings, or
 * -1. */
static int take_comparison(decoder *dc, comparison *cmp) {
    int spelling = -1;
    for (int k = 0; k < N_SPELLINGS && spelling < 0; k++)
        if (decode_take(dc, relation_spellings[k].name)) spelling = k;
    cmp->combine = decode_take(dc, "and")   ? COMBINE_AND
                   : decode_take(dc, "or")  ? COMBINE_OR
                   : decode_take(dc, "xor") ? COMBINE_XOR
                                            : NO_COMBINE;
    cmp->ftz = decode_take(dc, "ftz");
    return spelling;
}

/* Decodes the sources. False if the type lacks the relation, or the operands do not match. */
static bool decode_comparison(decoder *dc, const ptx_instruction *p, insn *out, comparison *cmp,
                              int spelling) {
    const ptx_type t = cmp->type;
    if (spelling < 0 || t == PTX_NO_TYPE || (spelling >= FIRST_UNSIGNED && !is_unsigned(t)))
        return false;
    if (cmp->ftz && t != PTX_F32 && t != PTX_F16 && t != PTX_F16X2) return false;
    cmp->compare = relations[t][relation_spellings[spelling].relation].compare;
    if (!cmp->compare || p->n_operands != (cmp->combine == NO_COMBINE ? 3u : 4u)) return false;

    if (!alu_fits(dc, &p->operands[1], t) || !alu_fits(dc, &p->operands[2], t) ||
        (cmp->combine != NO_COMBINE && !alu_fits(dc, &p->operands[3], PTX_PRED)))
        return false;

    const bool swapped = relation_spellings[spelling].swapped;
    out->a = decode_source(dc, &p->operands[swapped ? 2 : 1], t);
    out->b = decode_source(dc, &p->operands[swapped ? 1 : 2], t);
    if (cmp->combine != NO_COMBINE) {
        const ptx_operand *c_source = &p->operands[3];
        out->c = decode_source(dc, c_source, PTX_PRED);
        cmp->c_xor = c_source->kind == PTX_REGISTER && c_source->negated ? ~0u : 0;
    }
    return true;
}

static exec_fn select_setp(decoder *dc, const ptx_instruction *p, insn *out) {
    comparison *cmp = decode_alloc(dc, sizeof *cmp);
    *cmp = (comparison){0};
    const int spelling = take_comparison(dc, cmp);
    cmp->type = decode_take_type(dc);
    if (!decode_comparison(dc, p, out, cmp, spelling)) return NULL;
    const ptx_operand *d = &p->operands[0];
    if (!alu_fits(dc, d, PTX_PRED) || (d->pair && !alu_fits(dc, d->pair, PTX_PRED))) return NULL;
    out->d = decode_destination(dc, d, PTX_PRED);
    cmp->has_q = d->pair != NULL;
    /* Packed sources have two destination predicates, single halves have one. */
    if (is_packed(cmp->type) ? !cmp->has_q : is_half(cmp->type) && cmp->has_q) return NULL;
    if (cmp->has_q) cmp->q = decode_destination(dc, d->pair, PTX_PRED);
    out->extra = cmp;
    if (is_half(cmp->type) || cmp->ftz || cmp->combine != NO_COMBINE || cmp->has_q)
        return setp_general;
    return relations[cmp->type][relation_spellings[spelling].relation].setp;
}

/* Packed sources give a result per half, as the same packed type or in a 32-bit integer. A single
 * half may also give a 16-bit integer. */
static bool is_set_result_type(ptx_type result, ptx_type source) {
    switch (result) {
    case PTX_U32:
    case PTX_S32: return true;
    case PTX_F32: return !is_half(source);
    case PTX_F16:
    case PTX_BF16: return !is_packed(source);
    case PTX_U16:
    case PTX_S16: return source == PTX_F16 || source == PTX_BF16;
    case PTX_F16X2:
    case PTX_BF16X2: return source == result;
    default: return false;
    }
}

static exec_fn select_set(decoder *dc, const ptx_instruction *p, insn *out) {
    comparison *cmp = decode_alloc(dc, sizeof *cmp);
    *cmp = (comparison){0};
    const int spelling = take_comparison(dc, cmp);
    cmp->result = decode_take_type(dc);
    cmp->type = decode_take_type(dc);
    if (cmp->result == PTX_NO_TYPE || cmp->type == PTX_NO_TYPE ||
        !is_set_result_type(cmp->result, cmp->type) || p->operands[0].pair ||
        !decode_comparison(dc, p, out, cmp, spelling) ||
        !alu_fits(dc, &p->operands[0], cmp->result))
        return NULL;
    out->d = decode_destination(dc, &p->operands[0], cmp->result);
    out->extra = cmp;
    return set_general;
}

/* ---- selection ---- */

LANEWISE(selp_u16, u16, u16, u16, u32, c ? a : b)
LANEWISE(selp_u32, u32, u32, u32, u32, c ? a : b)
LANEWISE(selp_u64, u64, u64, u64, u32, c ? a : b)

/* A negated predicate (!c) exchanges a and b. */
static exec_fn select_selp(decoder *dc, const ptx_instruction *p, insn *out) {
    static const exec_by_type table = {TYPES_ANY(selp)};
    const ptx_type t = decode_take_type(dc);
    if (t == PTX_NO_TYPE || !table[t] || p->n_operands != 4) return NULL;
    const ptx_operand *o = p->operands;
    for (int k = 0; k < 4; k++)
        if (o[k].pair || !alu_fits(dc, &o[k], k < 3 ? t : PTX_PRED)) return NULL;
    const bool negated = o[3].kind == PTX_REGISTER && o[3].negated;
    out->a = decode_source(dc, &o[negated ? 2 : 1], t);
    out->b = decode_source(dc, &o[negated ? 1 : 2], t);
    out->c = decode_source(dc, &o[3], PTX_PRED);
    out->d = decode_destination(dc, &o[0], t);
    return table[t];
}

LANEWISE(slct_s32_u16, u16, u16, u16, s32, c >= 0 ? a : b)
LANEWISE(slct_s32_u32, u32, u32, u32, s32, c >= 0 ? a : b)
LANEWISE(slct_s32_u64, u64, u64, u64, s32, c >= 0 ? a : b)
/* flags: .ftz. A negative subnormal c then counts as -0, which is not below 0. */
#define SLCT_F32(T)                                                                                \
    LANEWISE(slct_f32_##T, T, T, T, u32,                                                           \
             f32_of_bits(flush_f32_unless(c, flags ? 0 : ~0u)) >= 0 ? a : b)
SLCT_F32(u16)
SLCT_F32(u32)
SLCT_F32(u64)

static exec_fn select_slct(decoder *dc, const ptx_instruction *p, insn *out) {
    static const exec_by_type by_s32 = {TYPES_ANY(slct_s32)}, by_f32 = {TYPES_ANY(slct_f32)};
    const ptx_type t = decode_take_type(dc), tc = decode_take_type(dc);
    if (t == PTX_NO_TYPE || !by_s32[t] || (tc != PTX_S32 && tc != PTX_F32) ||
        !alu_operands(dc, p, out, t, t, t, tc, PTX_NO_TYPE))
        return NULL;
    out->flags = tc == PTX_F32 && decode_take(dc, "ftz");
    return tc == PTX_S32 ? by_s32[t] : by_f32[t];
}
