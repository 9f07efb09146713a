/* atom and red. Active lanes are processed in ascending order.
 *
 * All blocks of a cluster run on one host thread, so shared memory is updated with plain loads and
 * stores. Global memory is shared with other host threads, so it is updated by compare-and-swap.
 */
#include <string.h>

#include "alu_format.h"
#include "atomics.h"
#include "../machine/machine.h"
#include "../base/lanes.h"
#include "memory.h"
#include "../observe/observer.h"

#define COMBINE(name, expression)                                                                  \
    static uint64_t name(uint64_t old, uint64_t b, uint64_t c) {                                   \
        (void)old, (void)b, (void)c;                                                               \
        return (uint64_t)(expression);                                                             \
    }

COMBINE(add, old + b)
COMBINE(and, old &b)
COMBINE(or, old | b)
COMBINE(xor, old ^ b)
COMBINE(exchange, b)
COMBINE(compare_and_swap, old == b ? c : old)
COMBINE(increment, (uint32_t)old >= (uint32_t)b ? 0 : old + 1)
COMBINE(decrement, (uint32_t)old == 0 || (uint32_t)old > (uint32_t)b ? b : old - 1)
COMBINE(min_u64, old < b ? old : b)
COMBINE(max_u64, old > b ? old : b)
COMBINE(min_s32, (int32_t)old < (int32_t)b ? old : b)
COMBINE(max_s32, (int32_t)old > (int32_t)b ? old : b)
COMBINE(min_s64, (int64_t)old < (int64_t)b ? old : b)
COMBINE(max_s64, (int64_t)old > (int64_t)b ? old : b)
COMBINE(add_f32, canonical_f32(f32_of_bits((uint32_t)old) + f32_of_bits((uint32_t)b)))
COMBINE(add_f64, bits_of_f64(f64_of_bits(old) + f64_of_bits(b)))

/* Hardware flushes subnormals in global memory but not in shared memory. */
COMBINE(add_f32_global,
        flush_f32((uint32_t)add_f32(flush_f32((uint32_t)old), flush_f32((uint32_t)b), 0)))

/* The bits of a half are sign and magnitude; this maps them to integers of the same order. */
static int32_t half_sort_key(uint16_t h) {
    return h & 0x8000 ? -(h & 0x7fff) - 1 : h;
}

static uint16_t half_minmax(uint16_t x, uint16_t y, bool bf16, bool is_max) {
    const uint16_t infinity = bf16 ? 0x7f80 : 0x7c00;
    if ((x & 0x7fff) > infinity) return (y & 0x7fff) > infinity ? NAN_HALF : y;
    if ((y & 0x7fff) > infinity) return x;
    return (half_sort_key(x) < half_sort_key(y)) != is_max ? x : y;
}

static uint16_t half_sum(uint16_t x, uint16_t y, bool bf16) {
    const double a = bf16 ? value_bf16(x) : value_f16(x), b = bf16 ? value_bf16(y) : value_f16(y);
    return (uint16_t)round_to_format(round_sum_to_odd(a, b, a + b), bf16 ? format_bf16 : format_f16,
                                     ROUND_NEAREST, false);
}

#define HALF_COMBINES(op, result)                                                                  \
    static uint16_t op##_half(uint16_t x, uint16_t y, bool bf16) {                                 \
        return result;                                                                             \
    }                                                                                              \
    COMBINE(op##_f16, op##_half((uint16_t)old, (uint16_t)b, false))                                \
    COMBINE(op##_bf16, op##_half((uint16_t)old, (uint16_t)b, true))                                \
    COMBINE(op##_f16x2, (uint32_t)op##_half((uint16_t)(old >> 16), (uint16_t)(b >> 16), false)     \
                                << 16 |                                                            \
                            op##_half((uint16_t)old, (uint16_t)b, false))                          \
    COMBINE(op##_bf16x2, (uint32_t)op##_half((uint16_t)(old >> 16), (uint16_t)(b >> 16), true)     \
                                 << 16 |                                                           \
                             op##_half((uint16_t)old, (uint16_t)b, true))

HALF_COMBINES(add, half_sum(x, y, bf16))
HALF_COMBINES(min, half_minmax(x, y, bf16, false))
HALF_COMBINES(max, half_minmax(x, y, bf16, true))

/* ---- handler ---- */

/* insn.list: frame offsets of `count` destinations, then of `count` operands b. insn.c: operand c
 * of cas. */
typedef struct atomic_operation {
    combine_fn shared, global;
    bool has_result;
} atomic_operation;

static uint64_t slot_value(const warp *w, uint32_t slot, uint32_t bytes, int lane) {
    uint64_t value = 0;
    memcpy(&value, w->frame + slot + (size_t)lane * bytes, bytes);
    return value;
}

#define CAS_LOOP(type, p, combine, b, c)                                                           \
    do {                                                                                           \
        type seen = __atomic_load_n((type *)(p), __ATOMIC_RELAXED);                                \
        while (!__atomic_compare_exchange_n((type *)(p), &seen, (type)combine(seen, b, c), false,  \
                                            __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {                 \
        }                                                                                          \
        return seen;                                                                               \
    } while (0)

static uint64_t update_with_cas(unsigned char *p, uint32_t width, combine_fn combine, uint64_t b,
                                uint64_t c) {
    switch (width) {
    case 2: CAS_LOOP(uint16_t, p, combine, b, c);
    case 4: CAS_LOOP(uint32_t, p, combine, b, c);
    default: CAS_LOOP(uint64_t, p, combine, b, c);
    }
}

static uint64_t update_plain(unsigned char *p, uint32_t width, combine_fn combine, uint64_t b,
                             uint64_t c) {
    uint64_t old = 0;
    memcpy(&old, p, width);
    const uint64_t new = combine(old, b, c);
    memcpy(p, &new, width);
    return old;
}

static const insn *exec_atomic(warp *w, const insn *i) {
    const atomic_operation *operation = i->extra;
    const uint32_t slot_bytes = i->width;
    w->polled = true;
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        const uint64_t address = lane_address(w, i, lane);
        const uint64_t full = space_address((ptx_space)i->space, address);
        const bool shared = REGION_OF(full) == REGION_SHARED;
        const combine_fn combine = shared ? operation->shared : operation->global;
        const uint64_t c = slot_value(w, i->c, slot_bytes, lane);
        for (uint32_t k = 0; k < i->count; k++) {
            unsigned char *p =
                lane_reach(w, i, (ptx_space)i->space, lane, address + k * i->width, i->width, true);
            if (!p) return NULL;
            const uint64_t b = slot_value(w, i->list[i->count + k], slot_bytes, lane);
            const uint64_t old =
                (shared ? update_plain : update_with_cas)(p, i->width, combine, b, c);
            if (operation->has_result)
                memcpy(w->frame + i->list[k] + (size_t)lane * slot_bytes, &old, slot_bytes);
        }
    }
    return i + 1;
}

/* ---- decoding ---- */

typedef struct atomic_form {
    const char *op;
    ptx_type type;
    combine_fn shared, global;
} atomic_form;

#define SAME(op, type, combine) {op, PTX_##type, combine, combine}
static const atomic_form forms[] = {
    SAME("add", U32, add),
    SAME("add", S32, add),
    SAME("add", U64, add),
    SAME("add", S64, add),
    {"add", PTX_F32, add_f32, add_f32_global},
    SAME("add", F64, add_f64),
    SAME("add", F16, add_f16),
    SAME("add", BF16, add_bf16),
    SAME("add", F16X2, add_f16x2),
    SAME("add", BF16X2, add_bf16x2),
    SAME("min", U32, min_u64),
    SAME("min", U64, min_u64),
    SAME("min", S32, min_s32),
    SAME("min", S64, min_s64),
    SAME("min", F16, min_f16),
    SAME("min", BF16, min_bf16),
    SAME("min", F16X2, min_f16x2),
    SAME("min", BF16X2, min_bf16x2),
    SAME("max", U32, max_u64),
    SAME("max", U64, max_u64),
    SAME("max", S32, max_s32),
    SAME("max", S64, max_s64),
    SAME("max", F16, max_f16),
    SAME("max", BF16, max_bf16),
    SAME("max", F16X2, max_f16x2),
    SAME("max", BF16X2, max_bf16x2),
    SAME("and", B32, and),
    SAME("and", B64, and),
    SAME("or", B32, or),
    SAME("or", B64, or),
    SAME("xor", B32, xor),
    SAME("xor", B64, xor),
    SAME("exch", B32, exchange),
    SAME("exch", B64, exchange),
    SAME("cas", B16, compare_and_swap),
    SAME("cas", B32, compare_and_swap),
    SAME("cas", B64, compare_and_swap),
    SAME("inc", U32, increment),
    SAME("dec", U32, decrement),
};

static const atomic_form *take_form(decoder *dc) {
    const atomic_form *found = NULL;
    const ptx_type type = decode_take_type(dc);
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
        if (forms[k].type == type && decode_take(dc, forms[k].op)) found = &forms[k];
    return found;
}

static atomic_reduction reduction_of(const atomic_form *form, bool shared) {
    if (!form || !strcmp(form->op, "cas") || !strcmp(form->op, "exch"))
        return (atomic_reduction){0};
    return (atomic_reduction){shared ? form->shared : form->global, ptx_type_size[form->type],
                              shared};
}

atomic_reduction atomic_take_reduction(decoder *dc, bool shared, ptx_type *type) {
    const atomic_form *form = take_form(dc);
    *type = form ? form->type : PTX_NO_TYPE;
    return reduction_of(form, shared);
}

atomic_reduction atomic_find_reduction(const char *op, ptx_type type, bool shared) {
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
        if (forms[k].type == type && !strcmp(forms[k].op, op))
            return reduction_of(&forms[k], shared);
    return (atomic_reduction){0};
}

void atomic_reduce(const atomic_reduction *reduction, unsigned char *at, uint64_t value) {
    (reduction->shared ? update_plain : update_with_cas)(at, reduction->width, reduction->combine,
                                                         value, 0);
}

static exec_fn select_atomic(decoder *dc, const ptx_instruction *p, insn *out, bool has_result) {
    static const char *const ignored[] = {"relaxed", "acquire",       "release", "acq_rel",
                                          "cta",     "cluster",       "gpu",     "sys",
                                          "noftz",   "L2::cache_hint"};
    static const ptx_operand sink = {.kind = PTX_SINK};
    for (size_t k = 0; k < sizeof ignored / sizeof *ignored; k++)
        decode_take(dc, ignored[k]);
    out->space = (uint8_t)decode_take_space(dc);
    out->count = decode_take(dc, "v2")   ? 2
                 : decode_take(dc, "v4") ? 4
                 : decode_take(dc, "v8") ? 8
                                         : 1;
    const atomic_form *form = take_form(dc);
    const uint32_t n_sources = form && !strcmp(form->op, "cas") ? 2 : 1;
    decoded_address at;
    if (!form || p->n_operands < 1u + has_result + n_sources) return NULL;
    if (!has_result && (!strcmp(form->op, "cas") || !strcmp(form->op, "exch"))) return NULL;
    const ptx_operand *result = has_result ? p->operands : &sink;
    const ptx_operand *address = p->operands + has_result, *source = address + 1;
    if (!decode_address(dc, address, &at)) return NULL;
    out->a = at.slot, out->wide = at.wide, out->imm = at.imm;
    out->width = ptx_type_size[form->type];
    out->operation = EMU_ATOMIC;
    if (out->count > 1 && (source->kind != PTX_VECTOR || source->n_items != out->count ||
                           (result->kind == PTX_VECTOR && result->n_items != out->count)))
        return NULL;
    uint32_t *list = decode_alloc(dc, 2 * out->count * sizeof *list);
    for (uint32_t k = 0; k < out->count; k++) {
        const ptx_operand *d = result->kind == PTX_VECTOR ? &result->items[k] : result;
        const ptx_operand *b = source->kind == PTX_VECTOR ? &source->items[k] : source;
        list[k] = decode_destination(dc, d, form->type);
        list[out->count + k] = decode_source(dc, b, form->type);
    }
    out->c = n_sources == 2 ? decode_source(dc, source + 1, form->type) : list[out->count];
    atomic_operation *operation = decode_alloc(dc, sizeof *operation);
    *operation = (atomic_operation){form->shared, form->global, has_result};
    out->list = list;
    out->extra = operation;
    out->unobserved = exec_atomic;
    return exec_observed;
}

static exec_fn select_atom(decoder *dc, const ptx_instruction *p, insn *out) {
    return select_atomic(dc, p, out, true);
}

static exec_fn select_red(decoder *dc, const ptx_instruction *p, insn *out) {
    return select_atomic(dc, p, out, false);
}

opcode_table atomic_opcodes = {
    [PTX_OP_atom] = select_atom,
    [PTX_OP_red] = select_red,
};
