/* The lowest four bits of registers, as far as the text of a function tells them.
 *
 * ptxas joins loads only where it can prove that the address is a multiple of 8 or 16. It knows where
 * shared variables lie and follows shifts, products and sums; this does the same, as far as address
 * arithmetic of compilers goes. A register with several assignments has the bits that all of them agree
 * on: facts start as "unset" and only ever get weaker, so going round until nothing changes ends.
 */
#include "alignment.h"

#include <stdlib.h>
#include <string.h>

enum {
    BITS = 15,
    MAX_ROUNDS = 64,
    STEPS_PER_INSTRUCTION = 8
}; /* real code needs two or three rounds */

static const low_bits unknown = {0, 0, false};

static low_bits exactly(uint64_t value) {
    return (low_bits){BITS, (uint8_t)(value & BITS), false};
}

/* Bits known from the lowest on, without a gap. */
static int run(low_bits a) {
    return __builtin_ctz(~(uint32_t)a.known);
}

static low_bits lowest(int n, uint32_t value) {
    const uint8_t known = (uint8_t)((1u << (n > 4 ? 4 : n)) - 1);
    return (low_bits){known, (uint8_t)(value & known), false};
}

low_bits alignment_sum(low_bits a, low_bits b) {
    const int n = run(a) < run(b) ? run(a) : run(b);
    return lowest(n, (uint32_t)a.value + b.value);
}

static low_bits difference(low_bits a, low_bits b) {
    const int n = run(a) < run(b) ? run(a) : run(b);
    return lowest(n, (uint32_t)a.value - b.value);
}

/* x = v + 2^n u, so x c = v c + 2^(n + trailing zeros of c) u'. */
static low_bits product(low_bits a, low_bits b) {
    if (b.known != BITS) {
        const low_bits swapped = a;
        a = b, b = swapped;
    }
    if (b.known != BITS) return unknown;
    const int zeros = b.value ? __builtin_ctz(b.value) : 4;
    return lowest(run(a) + zeros, (uint32_t)a.value * b.value);
}

static low_bits both(low_bits a, low_bits b) {
    const uint8_t zero = (uint8_t)((a.known & ~a.value) | (b.known & ~b.value));
    return (low_bits){(uint8_t)((a.known & b.known) | zero), a.value & b.value & (uint8_t)~zero,
                      false};
}

static low_bits either(low_bits a, low_bits b) {
    const uint8_t one = (uint8_t)((a.known & a.value) | (b.known & b.value));
    return (low_bits){(uint8_t)((a.known & b.known) | one), (uint8_t)(a.value | b.value) & BITS,
                      false};
}

static low_bits unequal(low_bits a, low_bits b) {
    const uint8_t known = a.known & b.known;
    return (low_bits){known, (uint8_t)((a.value ^ b.value) & known), false};
}

/* The bits on which they agree. */
static low_bits one_of(low_bits a, low_bits b) {
    const uint8_t known = a.known & b.known & (uint8_t)~(a.value ^ b.value);
    return (low_bits){known, a.value & known, false};
}

low_bits alignment_of_place(const ptx_operand *address) {
    const ptx_variable *v = address->variable;
    if (!v) return exactly((uint64_t)address->offset);
    if (v->space == PTX_SHARED && !v->external)
        return exactly(v->offset + (uint64_t)address->offset);
    int n = 0; /* a dynamic array starts on 16 bytes whatever it is declared with */
    while (n < 4 && v->align >> (n + 1))
        n++;
    if (v->space == PTX_SHARED) n = 4;
    return lowest(n, (uint32_t)address->offset);
}

static low_bits of_operand(const ptx_operand *o, const low_bits *facts) {
    switch (o->kind) {
    case PTX_REGISTER: return facts[o->reg];
    case PTX_IMMEDIATE: return o->is_float ? unknown : exactly(o->bits);
    case PTX_SYMBOL: return o->variable ? alignment_of_place(o) : unknown;
    default: return unknown;
    }
}

static bool is_of_integers(const ptx_instruction *p) {
    enum {
        FLOATS = 1 << PTX_F16 | 1 << PTX_BF16 | 1 << PTX_F32 | 1 << PTX_F64 | 1 << PTX_TF32 |
        1 << PTX_F16X2 | 1 << PTX_BF16X2
    };
    return !(p->types & FLOATS);
}

/* How many sources it takes; with another number of operands it is a form that is not known. */
static uint32_t sources_of(ptx_low_bits rule) {
    switch (rule) {
    case LOW_BITS_NONE: return 0;
    case LOW_BITS_COPY: return 1;
    case LOW_BITS_MAD:
    case LOW_BITS_SELECT: return 3;
    default: return 2;
    }
}

static low_bits shifted(low_bits a, const ptx_operand *by) {
    if (by->kind != PTX_IMMEDIATE) return unknown;
    const uint64_t bits = by->bits < 4 ? by->bits : 4;
    return lowest(run(a) + (int)bits, (uint32_t)a.value << bits);
}

static low_bits result_of(const ptx_instruction *p, const low_bits *facts) {
    const ptx_low_bits rule = ptx_facts(p)->low_bits;
    if (!is_of_integers(p) || p->has & PTX_HAS_HI) return unknown;
    low_bits in[3] = {unknown, unknown, unknown};
    for (uint32_t k = 1; k < p->n_operands && k <= 3; k++)
        in[k - 1] = of_operand(&p->operands[k], facts);
    const uint32_t n = p->n_operands - 1;
    for (uint32_t k = 0; k < n && k < 3; k++)
        if (in[k].unset) return in[k]; /* it will be looked at again */
    if (n != sources_of(rule)) return unknown;
    switch (rule) {
    case LOW_BITS_NONE: return unknown;
    case LOW_BITS_COPY: return in[0];
    case LOW_BITS_ADD: return alignment_sum(in[0], in[1]);
    case LOW_BITS_SUB: return difference(in[0], in[1]);
    case LOW_BITS_MUL: return product(in[0], in[1]);
    case LOW_BITS_MAD: return alignment_sum(product(in[0], in[1]), in[2]);
    case LOW_BITS_AND: return both(in[0], in[1]);
    case LOW_BITS_OR: return either(in[0], in[1]);
    case LOW_BITS_XOR: return unequal(in[0], in[1]);
    case LOW_BITS_SELECT: return one_of(in[0], in[1]);
    case LOW_BITS_SHIFT: return shifted(in[0], &p->operands[2]);
    }
    return unknown;
}

static bool weaken(low_bits *fact, low_bits by) {
    if (by.unset) return false;
    const low_bits old = *fact;
    *fact = old.unset ? by : one_of(old, by);
    return old.unset || fact->known != old.known;
}

low_bits *alignment_of_registers(const ptx_function *f, interrupt_poller *poller) {
    low_bits *facts = calloc(f->n_registers + 1, sizeof *facts);
    if (!facts) return NULL;
    for (uint32_t k = 0; k < f->n_registers; k++)
        facts[k].unset = true;
    bool changed = true;
    for (int round = 0; changed && round < MAX_ROUNDS; round++) {
        changed = false;
        for (uint32_t k = 0; k < f->n_instructions; k++) {
            const ptx_instruction *p = &f->instructions[k];
            const ptx_operand *to = p->operands;
            if (interrupt_due(poller, STEPS_PER_INSTRUCTION)) {
                free(facts);
                return NULL;
            }
            if (!p->n_operands) continue;
            if (to->kind == PTX_REGISTER) changed |= weaken(&facts[to->reg], result_of(p, facts));
            for (uint32_t i = 0; to->kind == PTX_VECTOR && i < to->n_items; i++)
                if (to->items[i].kind == PTX_REGISTER)
                    changed |= weaken(&facts[to->items[i].reg], unknown);
        }
    }
    for (uint32_t k = 0; k < f->n_registers; k++)
        if (facts[k].unset || changed) facts[k] = unknown; /* changed: not settled, not true yet */
    return facts;
}
