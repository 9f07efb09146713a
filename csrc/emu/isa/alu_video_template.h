/* The video instructions: vadd, vsub, vabsdiff, vmin, vmax, vshl, vshr, vset and vmad, on one word
 * or a byte or half of it; and vadd2, vadd4, ..., on all halves or bytes of a word.
 *
 * They compute as the PTX ISA's pseudocode says. ptxas expands them to code for sm_90 that differs
 * from it where results exceed 32 bits: .min and .max after an overflow without .sat, and vmad with
 * unsigned operands from 2^31 on.
 */
#include "alu.h"

enum { MAX_VIDEO_ELEMENTS = 4 };

typedef enum video_operation {
    VIDEO_ADD,
    VIDEO_SUB,
    VIDEO_ABSDIFF,
    VIDEO_MIN,
    VIDEO_MAX,
    VIDEO_AVRG,
    VIDEO_SET,
    VIDEO_SHL,
    VIDEO_SHR,
    VIDEO_MAD
} video_operation;

typedef enum video_compare {
    VIDEO_EQ,
    VIDEO_NE,
    VIDEO_LT,
    VIDEO_LE,
    VIDEO_GT,
    VIDEO_GE
} video_compare;

/* What is done with c. MERGE: replaces fields of c by the results. */
typedef enum video_secondary {
    SECONDARY_MERGE,
    SECONDARY_ADD,
    SECONDARY_MIN,
    SECONDARY_MAX
} video_secondary;

/* A field of the 64 bits b:a, or of d. */
typedef struct video_field {
    uint8_t shift, bits;
} video_field;

typedef struct video_form {
    video_operation operation;
    video_compare compare;
    video_secondary secondary;
    uint32_t elements;
    video_field a[MAX_VIDEO_ELEMENTS], b[MAX_VIDEO_ELEMENTS], d[MAX_VIDEO_ELEMENTS];
    uint32_t mask; /* of the elements that are written or added */
    bool a_signed, b_signed, d_signed, saturate;
    bool wrap;                               /* vshl, vshr: the amount modulo 32 */
    bool plus_one, negate_product, negate_c; /* vmad */
    int scale;                               /* vmad: right shift */
} video_form;

/* ---- one element ---- */

typedef __int128 wide_int;

static inline int64_t video_extract(uint64_t pair, video_field field, bool is_signed) {
    const uint64_t raised = pair << (64 - field.shift - field.bits);
    return is_signed ? (int64_t)raised >> (64 - field.bits)
                     : (int64_t)(raised >> (64 - field.bits));
}

static inline wide_int video_clamp(wide_int x, int bits, bool is_signed) {
    const wide_int one = 1, max = (one << (bits - is_signed)) - 1, min = is_signed ? -max - 1 : 0;
    return x < min ? min : x > max ? max : x;
}

static bool video_holds(video_compare compare, int64_t a, int64_t b) {
    switch (compare) {
    case VIDEO_EQ: return a == b;
    case VIDEO_NE: return a != b;
    case VIDEO_LT: return a < b;
    case VIDEO_LE: return a <= b;
    case VIDEO_GT: return a > b;
    case VIDEO_GE: return a >= b;
    }
    return false;
}

/* The PTX ISA's intermediate result has 34 bits with a sign. */
static int64_t video_shift_left(int64_t a, int64_t amount) {
    enum { UNUSED = 64 - 34 };
    return (int64_t)((uint64_t)a << amount << UNUSED) >> UNUSED;
}

static int64_t video_amount(const video_form *f, int64_t b) {
    return f->wrap ? b & 31 : b > 32 ? 32 : b;
}

static int64_t video_compute(const video_form *f, int64_t a, int64_t b) {
    switch (f->operation) {
    case VIDEO_ADD: return a + b;
    case VIDEO_SUB: return a - b;
    case VIDEO_ABSDIFF: return a > b ? a - b : b - a;
    case VIDEO_MIN: return a < b ? a : b;
    case VIDEO_MAX: return a > b ? a : b;
    case VIDEO_AVRG: return (a + b + (a + b >= 0)) >> 1; /* rounds away from zero */
    case VIDEO_SET: return video_holds(f->compare, a, b);
    case VIDEO_SHL: return video_shift_left(a, video_amount(f, b));
    case VIDEO_SHR: return a >> video_amount(f, b);
    case VIDEO_MAD: break; /* video_multiply_add */
    }
    return 0;
}

/* ---- all elements ---- */

/* As c in vop.min and vop.max: with dtype's sign. */
static uint32_t video_extreme(const video_form *f, int64_t result, uint32_t word) {
    const int64_t c = f->d_signed ? (int32_t)word : (int64_t)word;
    const bool take_c = f->secondary == SECONDARY_MIN ? c < result : c > result;
    return take_c ? word : (uint32_t)result;
}

static uint32_t video_word(const video_form *f, uint32_t a, uint32_t b, uint32_t c) {
    const uint64_t pair = (uint64_t)b << 32 | a;
    uint32_t d = c;
    for (uint32_t k = 0; k < f->elements; k++) {
        if (!(f->mask >> k & 1)) continue;
        int64_t result = video_compute(f, video_extract(pair, f->a[k], f->a_signed),
                                       video_extract(pair, f->b[k], f->b_signed));
        if (f->saturate) result = (int64_t)video_clamp(result, f->d[k].bits, f->d_signed);
        const uint32_t field = (uint32_t)(((uint64_t)1 << f->d[k].bits) - 1) << f->d[k].shift;
        switch (f->secondary) {
        case SECONDARY_MERGE: d = (d & ~field) | ((uint32_t)result << f->d[k].shift & field); break;
        case SECONDARY_ADD: d += (uint32_t)result; break;
        default: d = video_extreme(f, result, c);
        }
    }
    return d;
}

/* a * b + c, negated and shifted as f says. Its final result has a sign if an operand has. */
static uint32_t video_multiply_add(const video_form *f, uint32_t a, uint32_t b, uint32_t c) {
    const uint64_t pair = (uint64_t)b << 32 | a;
    const bool is_signed = f->a_signed || f->b_signed || f->negate_product || f->negate_c;
    wide_int sum = (wide_int)video_extract(pair, f->a[0], f->a_signed) *
                   video_extract(pair, f->b[0], f->b_signed);
    const uint32_t addend = f->negate_c ? ~c : c;
    if (f->negate_product) sum = ~sum;
    sum += is_signed ? (wide_int)(int32_t)addend : (wide_int)addend;
    sum += f->plus_one || f->negate_product || f->negate_c;
    sum >>= f->scale;
    return (uint32_t)(f->saturate ? video_clamp(sum, 32, is_signed) : sum);
}

static const insn *video_any(warp *w, const insn *in) {
    const video_form *f = in->extra;
    const lane_u32 *a = LANE_POINTER(u32, w, in->a), *b = LANE_POINTER(u32, w, in->b);
    const lane_u32 *c = LANE_POINTER(u32, w, in->c);
    lanes_u32 results;
    for (int lane = 0; lane < LANES; lane++)
        results[lane] = f->operation == VIDEO_MAD ? video_multiply_add(f, a[lane], b[lane], c[lane])
                                                  : video_word(f, a[lane], b[lane], c[lane]);
    STORE_LANES(u32, w, in->d, results);
    return in + 1;
}

/* ---- selectors ---- */

/* b0 to b3, h0 and h1, of the word at `base`; without one, the word. */
static bool video_part(const char *selector, int base, video_field *out) {
    *out = (video_field){(uint8_t)base, 32};
    if (!selector) return true;
    const int bits = *selector == 'b' ? 8 : *selector == 'h' ? 16 : 0;
    const int number = selector[0] ? selector[1] - '0' : -1;
    if (!bits || number < 0 || number >= 32 / bits || selector[2]) return false;
    *out = (video_field){(uint8_t)(base + number * bits), (uint8_t)bits};
    return true;
}

static bool has_video_letter(const char *selector, uint32_t elements) {
    return *selector == (elements == 2 ? 'h' : 'b');
}

/* b7531: the parts of b:a that are the elements 3 to 0. `base`: those of the default. */
static bool video_parts(const char *selector, uint32_t elements, uint32_t base, video_field *out) {
    const uint32_t bits = 32 / elements;
    for (uint32_t k = 0; k < elements; k++)
        out[k] = (video_field){(uint8_t)((base + k) * bits), (uint8_t)bits};
    if (!selector) return true;
    if (!has_video_letter(selector, elements) || strlen(selector) != elements + 1) return false;
    for (uint32_t k = 0; k < elements; k++) {
        const uint32_t part = (uint32_t)(selector[elements - k] - '0');
        if (part >= 2 * elements) return false;
        out[k].shift = (uint8_t)(part * bits);
    }
    return true;
}

/* b31: elements 3 and 1. All of them without one. */
static bool video_mask(const char *selector, uint32_t elements, uint32_t *mask) {
    *mask = (1u << elements) - 1;
    if (!selector) return true;
    if (!has_video_letter(selector, elements) || !selector[1]) return false;
    *mask = 0;
    for (uint32_t before = elements; *++selector;) {
        const uint32_t element = (uint32_t)(*selector - '0');
        if (element >= before) return false;
        *mask |= 1u << element;
        before = element;
    }
    return true;
}

/* ---- decoding ---- */

static bool take_sign(decoder *dc, bool *is_signed) {
    const ptx_type type = decode_take_type(dc);
    *is_signed = type == PTX_S32;
    return type == PTX_S32 || type == PTX_U32;
}

static bool take_video_types(decoder *dc, video_form *f) {
    return (f->operation == VIDEO_SET || take_sign(dc, &f->d_signed)) &&
           take_sign(dc, &f->a_signed) && take_sign(dc, &f->b_signed);
}

static bool take_video_comparison(decoder *dc, video_form *f) {
    static const char *const names[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    for (int k = 0; k < 6; k++) {
        if (!decode_take(dc, names[k])) continue;
        f->compare = (video_compare)k;
        return true;
    }
    return false;
}

static bool take_video_modifiers(decoder *dc, video_form *f) {
    const bool is_shift = f->operation == VIDEO_SHL || f->operation == VIDEO_SHR;
    if (!take_video_types(dc, f) || (is_shift && f->b_signed)) return false;
    if (f->operation == VIDEO_SET && !take_video_comparison(dc, f)) return false;
    if (is_shift && !(f->wrap = decode_take(dc, "wrap")) && !decode_take(dc, "clamp")) return false;
    f->saturate = f->operation != VIDEO_SET && decode_take(dc, "sat");
    if (f->operation == VIDEO_MAD) {
        f->plus_one = decode_take(dc, "po");
        f->scale = decode_take(dc, "shr7") ? 7 : decode_take(dc, "shr15") ? 15 : 0;
        return true;
    }
    if (decode_take(dc, "add")) f->secondary = SECONDARY_ADD;
    if (f->elements > 1) return !(f->saturate && f->secondary == SECONDARY_ADD);
    if (decode_take(dc, "min")) f->secondary = SECONDARY_MIN;
    if (decode_take(dc, "max")) f->secondary = SECONDARY_MAX;
    return true;
}

static bool decode_selectors(const ptx_operand *o, video_form *f) {
    if (f->elements > 1) {
        for (uint32_t k = 0; k < f->elements; k++)
            f->d[k] = (video_field){(uint8_t)(k * 32 / f->elements), (uint8_t)(32 / f->elements)};
        return video_mask(o[0].selector, f->elements, &f->mask) &&
               video_parts(o[1].selector, f->elements, 0, f->a) &&
               video_parts(o[2].selector, f->elements, f->elements, f->b);
    }
    f->mask = 1;
    return video_part(o[0].selector, 0, f->d) && video_part(o[1].selector, 0, f->a) &&
           video_part(o[2].selector, 32, f->b);
}

/* Signs before operands, which only vmad has. */
static bool decode_negations(const ptx_instruction *p, video_form *f) {
    bool negated[4] = {false};
    for (uint32_t k = 1; k < p->n_operands; k++)
        negated[k] = p->operands[k].kind == PTX_REGISTER && p->operands[k].negated;
    f->negate_product = negated[1] != negated[2];
    f->negate_c = negated[3];
    const bool any = negated[1] || negated[2] || negated[3];
    return !any ||
           (f->operation == VIDEO_MAD && !f->plus_one && !(f->negate_product && f->negate_c));
}

static exec_fn select_video(decoder *dc, const ptx_instruction *p, insn *out,
                            video_operation operation, uint32_t elements) {
    video_form *f = decode_alloc(dc, sizeof *f);
    const ptx_operand *o = p->operands;
    *f = (video_form){.operation = operation, .elements = elements};
    out->extra = f;
    if (!take_video_modifiers(dc, f)) return NULL;
    const bool needs_c = elements > 1 || operation == VIDEO_MAD || f->secondary != SECONDARY_MERGE;
    if (p->n_operands != 4 && (needs_c || p->n_operands != 3)) return NULL;
    if (!decode_selectors(o, f) || !decode_negations(p, f)) return NULL;
    if (o[0].selector && elements == 1 &&
        (f->secondary != SECONDARY_MERGE || p->n_operands == 3 || operation == VIDEO_MAD))
        return NULL;
    if (p->n_operands == 4 && o[3].selector) return NULL;
    for (uint32_t k = 0; k < p->n_operands; k++)
        if (o[k].pair || (o[k].kind != PTX_REGISTER && o[k].kind != PTX_IMMEDIATE)) return NULL;
    out->d = decode_destination(dc, &o[0], PTX_U32);
    out->a = decode_source(dc, &o[1], PTX_U32);
    out->b = decode_source(dc, &o[2], PTX_U32);
    out->c = p->n_operands == 4 ? decode_source(dc, &o[3], PTX_U32) : out->a;
    return video_any;
}

#define SELECT_VIDEO(name, operation, elements)                                                    \
    static exec_fn select_##name(decoder *dc, const ptx_instruction *p, insn *out) {               \
        return select_video(dc, p, out, operation, elements);                                      \
    }
#define SELECT_VIDEO_SIMD(name, operation)                                                         \
    SELECT_VIDEO(name##2, operation, 2)                                                            \
    SELECT_VIDEO(name##4, operation, 4)

SELECT_VIDEO(vadd, VIDEO_ADD, 1)
SELECT_VIDEO(vsub, VIDEO_SUB, 1)
SELECT_VIDEO(vabsdiff, VIDEO_ABSDIFF, 1)
SELECT_VIDEO(vmin, VIDEO_MIN, 1)
SELECT_VIDEO(vmax, VIDEO_MAX, 1)
SELECT_VIDEO(vset, VIDEO_SET, 1)
SELECT_VIDEO(vshl, VIDEO_SHL, 1)
SELECT_VIDEO(vshr, VIDEO_SHR, 1)
SELECT_VIDEO(vmad, VIDEO_MAD, 1)
SELECT_VIDEO_SIMD(vadd, VIDEO_ADD)
SELECT_VIDEO_SIMD(vsub, VIDEO_SUB)
SELECT_VIDEO_SIMD(vabsdiff, VIDEO_ABSDIFF)
SELECT_VIDEO_SIMD(vmin, VIDEO_MIN)
SELECT_VIDEO_SIMD(vmax, VIDEO_MAX)
SELECT_VIDEO_SIMD(vavrg, VIDEO_AVRG)
SELECT_VIDEO_SIMD(vset, VIDEO_SET)
