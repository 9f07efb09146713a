/* Data-flow analysis: which of the low four bits of each register are statically known.
 *
 * ptxas merges loads only where it can prove that the address is a multiple of 8 or 16. It knows
 * the offsets of shared variables and follows shifts, products and sums. This analysis does the
 * same for the address arithmetic that compilers emit. If a register has several assignments, its
 * known bits are those in which all of them agree. Facts start as "unassigned" and only lose
 * known bits, so the iteration terminates.
 */
#include "alignment.h"

#include <stdlib.h>
#include <string.h>

enum {
    LOW_BITS = 15,            /* mask of the bits that are tracked */
    MAX_ROUNDS = 64,          /* compiler output needs two or three */
    STEPS_PER_INSTRUCTION = 8 /* for interrupt_due */
};

static const low_bits unknown = {0, 0, false};

static low_bits constant(uint64_t value) {
    return (low_bits){LOW_BITS, (uint8_t)(value & LOW_BITS), false};
}

/* How many consecutive bits are known, from bit 0 up. */
static int known_run(low_bits a) {
    return __builtin_ctz(~(uint32_t)a.known);
}

/* The low n bits of value (at most 4) are known. */
static low_bits low_n_bits(int n, uint32_t value) {
    const uint8_t known = (uint8_t)((1u << (n > 4 ? 4 : n)) - 1);
    return (low_bits){known, (uint8_t)(value & known), false};
}

low_bits alignment_sum(low_bits a, low_bits b) {
    const int n = known_run(a) < known_run(b) ? known_run(a) : known_run(b);
    return low_n_bits(n, (uint32_t)a.value + b.value);
}

static low_bits difference(low_bits a, low_bits b) {
    const int n = known_run(a) < known_run(b) ? known_run(a) : known_run(b);
    return low_n_bits(n, (uint32_t)a.value - b.value);
}

/* The part of a fact that says of which power of two the register is a multiple. */
static low_bits multiple(low_bits a) {
    const uint32_t ones = (uint32_t)(a.known & a.value) | (uint32_t)(LOW_BITS & ~a.known);
    return low_n_bits(ones ? __builtin_ctz(ones) : 4, 0);
}

/* If x = v + 2^n u, then x c = v c + 2^(n + trailing zeros of c) u'. So a factor c of which all
 * four bits are known adds its trailing zeros to the known bits of the other factor. Of other
 * factors ptxas multiplies only the powers of two: it does not know that (4 x + 1) (4 y + 3) is
 * one less than a multiple of 4. */
static low_bits product(low_bits a, low_bits b) {
    if (b.known != LOW_BITS) {
        const low_bits swapped = a;
        a = b, b = swapped;
    }
    if (b.known != LOW_BITS) return low_n_bits(known_run(multiple(a)) + known_run(multiple(b)), 0);
    const int zeros = b.value ? __builtin_ctz(b.value) : 4;
    return low_n_bits(known_run(a) + zeros, (uint32_t)a.value * b.value);
}

static low_bits bits_and(low_bits a, low_bits b) {
    const uint8_t zero = (uint8_t)((a.known & ~a.value) | (b.known & ~b.value));
    return (low_bits){(uint8_t)((a.known & b.known) | zero), a.value & b.value & (uint8_t)~zero,
                      false};
}

static low_bits bits_or(low_bits a, low_bits b) {
    const uint8_t one = (uint8_t)((a.known & a.value) | (b.known & b.value));
    return (low_bits){(uint8_t)((a.known & b.known) | one), (uint8_t)(a.value | b.value) & LOW_BITS,
                      false};
}

static low_bits bits_xor(low_bits a, low_bits b) {
    const uint8_t known = a.known & b.known;
    return (low_bits){known, (uint8_t)((a.value ^ b.value) & known), false};
}

/* The known bits in which a and b agree. */
static low_bits common_bits(low_bits a, low_bits b) {
    const uint8_t known = a.known & b.known & (uint8_t)~(a.value ^ b.value);
    return (low_bits){known, a.value & known, false};
}

low_bits alignment_of_symbol(const ptx_operand *address) {
    const ptx_variable *v = address->variable;
    if (!v) return constant((uint64_t)address->offset);
    if (v->space == PTX_SHARED && !v->external)
        return constant(v->offset + (uint64_t)address->offset);
    int n = 0;
    while (n < 4 && v->align >> (n + 1))
        n++;
    /* Dynamic shared memory is 16-byte aligned, whatever its declaration says. */
    if (v->space == PTX_SHARED) n = 4;
    return low_n_bits(n, (uint32_t)address->offset);
}

static low_bits of_operand(const ptx_operand *o, const low_bits *facts) {
    switch (o->kind) {
    case PTX_REGISTER: return facts[o->reg];
    case PTX_IMMEDIATE: return o->is_float ? unknown : constant(o->bits);
    case PTX_SYMBOL: return o->variable ? alignment_of_symbol(o) : unknown;
    default: return unknown;
    }
}

static bool is_integer(const ptx_instruction *p) {
    enum {
        FLOATS = 1 << PTX_F16 | 1 << PTX_BF16 | 1 << PTX_F32 | 1 << PTX_F64 | 1 << PTX_TF32 |
        1 << PTX_F16X2 | 1 << PTX_BF16X2
    };
    return !(p->types & FLOATS);
}

/* The number of sources that a rule applies to. An instruction with another number is an unknown
 * form. */
static uint32_t source_count(ptx_low_bits rule) {
    switch (rule) {
    case LOW_BITS_NONE: return 0;
    case LOW_BITS_COPY: return 1;
    case LOW_BITS_MAD:
    case LOW_BITS_SELECT: return 3;
    default: return 2;
    }
}

static low_bits shift_left(low_bits a, const ptx_operand *by) {
    if (by->kind != PTX_IMMEDIATE) return unknown;
    const uint64_t bits = by->bits < 4 ? by->bits : 4;
    return low_n_bits(known_run(a) + (int)bits, (uint32_t)a.value << bits);
}

static low_bits result_of(const ptx_instruction *p, const low_bits *facts) {
    const ptx_low_bits rule = ptx_facts(p)->low_bits;
    if (!is_integer(p) || p->has & PTX_HAS_HI) return unknown;
    low_bits in[3] = {unknown, unknown, unknown};
    for (uint32_t k = 1; k < p->n_operands && k <= 3; k++)
        in[k - 1] = of_operand(&p->operands[k], facts);
    const uint32_t n = p->n_operands - 1;
    for (uint32_t k = 0; k < n && k < 3; k++)
        if (in[k].unassigned) return in[k]; /* a later round has the source's value */
    if (n != source_count(rule)) return unknown;
    switch (rule) {
    case LOW_BITS_NONE: return unknown;
    case LOW_BITS_COPY: return in[0];
    case LOW_BITS_ADD: return alignment_sum(in[0], in[1]);
    case LOW_BITS_SUB: return difference(in[0], in[1]);
    case LOW_BITS_MUL: return product(in[0], in[1]);
    case LOW_BITS_MAD: return alignment_sum(product(in[0], in[1]), in[2]);
    case LOW_BITS_AND: return bits_and(in[0], in[1]);
    case LOW_BITS_OR: return bits_or(in[0], in[1]);
    case LOW_BITS_XOR: return bits_xor(in[0], in[1]);
    case LOW_BITS_SELECT: return common_bits(in[0], in[1]);
    case LOW_BITS_SHIFT: return shift_left(in[0], &p->operands[2]);
    }
    return unknown;
}

/* Merges one more assignment into a fact. Returns whether the fact changed.
 *
 * Of a register with several assignments, such as a pointer that a loop advances, ptxas knows only
 * of which power of two it is a multiple: loads around a pointer of the form 16 n + 8 become loads
 * of 8 bytes, not 16. */
static bool merge(low_bits *fact, low_bits by, bool several) {
    if (by.unassigned) return false;
    if (several) by = multiple(by);
    const low_bits old = *fact;
    *fact = old.unassigned ? by : common_bits(old, by);
    return old.unassigned || fact->known != old.known;
}

/* A call may assign vectors in its list of results. */
static bool merge_unknown(low_bits *facts, const ptx_operand *to) {
    bool changed = to->kind == PTX_REGISTER && merge(&facts[to->reg], unknown, true);
    for (uint32_t i = 0; to->kind == PTX_VECTOR && i < to->n_items; i++)
        changed |= merge_unknown(facts, &to->items[i]);
    return changed;
}

/* How often registers are assigned in the text: at most 2, which stands for more. */
static void count_assignments(const ptx_operand *to, uint8_t *n) {
    if (to->kind == PTX_REGISTER && n[to->reg] < 2) n[to->reg]++;
}

low_bits *alignment_of_registers(const ptx_function *f, interrupt_poller *poller) {
    low_bits *facts = calloc(f->n_registers + 1, sizeof *facts);
    uint8_t *assignments = calloc(f->n_registers + 1, sizeof *assignments);
    if (!facts || !assignments) {
        free(facts);
        free(assignments);
        return NULL;
    }
    for (uint32_t k = 0; k < f->n_instructions; k++)
        if (f->instructions[k].n_operands)
            count_assignments(f->instructions[k].operands, assignments);
    for (uint32_t k = 0; k < f->n_registers; k++)
        facts[k].unassigned = true;
    bool changed = true;
    for (int round = 0; changed && round < MAX_ROUNDS; round++) {
        changed = false;
        for (uint32_t k = 0; k < f->n_instructions; k++) {
            const ptx_instruction *p = &f->instructions[k];
            const ptx_operand *to = p->operands;
            if (interrupt_due(poller, STEPS_PER_INSTRUCTION)) {
                free(facts);
                free(assignments);
                return NULL;
            }
            if (!p->n_operands) continue;
            if (to->kind == PTX_REGISTER)
                changed |= merge(&facts[to->reg], result_of(p, facts), assignments[to->reg] > 1);
            for (uint32_t i = 0; to->kind == PTX_VECTOR && i < to->n_items; i++)
                changed |= merge_unknown(facts, &to->items[i]);
        }
    }
    for (uint32_t k = 0; k < f->n_registers; k++)
        /* Without a fixed point (changed) the facts are not proven. */
        if (facts[k].unassigned || changed) facts[k] = unknown;
    free(assignments);
    return facts;
}
