/* Loops that wait for a value in global memory, which another block may have to write:
 *
 *     while (*(volatile int *)flag == 0);      while (atomicCAS(lock, 0, 1) != 0);
 *
 * Each loop with a strong load may be one: a graph's nodes that wait for their neighbours are many
 * loads and stores, whose addresses change. A loop with an atomic is one if it is short, writes no
 * memory but by the atomic, and asks for the same each time: no register of the atomic changes in
 * it. So a loop around atomicCAS that computes a new value from the old one is none, nor is one
 * that takes numbers from a counter.
 */
#include "ptx.h"

enum { MOST_INSTRUCTIONS = 64 };

typedef struct loop {
    const ptx_function *function;
    uint32_t first, last;
} loop;

static bool names(const ptx_operand *o, uint32_t reg) {
    if ((o->kind == PTX_REGISTER || (o->kind == PTX_ADDRESS && o->has_register)) && o->reg == reg)
        return true;
    for (uint32_t k = 0; k < o->n_items; k++)
        if (names(&o->items[k], reg)) return true;
    return o->pair && names(o->pair, reg);
}

/* Whether it gives its register the same value each time. */
static bool is_constant(const ptx_instruction *p) {
    return p->op == PTX_OP_mov && !p->guarded && p->n_operands == 2 &&
           (p->operands[1].kind == PTX_IMMEDIATE || p->operands[1].kind == PTX_SYMBOL);
}

static bool changes(const loop *l, uint32_t reg) {
    for (uint32_t i = l->first; i <= l->last; i++) {
        const ptx_instruction *p = &l->function->instructions[i];
        if (ptx_operand_is_destination(p, 0) && names(&p->operands[0], reg) && !is_constant(p))
            return true;
    }
    return false;
}

/* Whether a register of the operand changes in the loop. */
static bool varies(const loop *l, const ptx_operand *o) {
    if ((o->kind == PTX_REGISTER || (o->kind == PTX_ADDRESS && o->has_register)) &&
        changes(l, o->reg))
        return true;
    for (uint32_t k = 0; k < o->n_items; k++)
        if (varies(l, &o->items[k])) return true;
    return false;
}

/* Whether the operand is 0 in the loop: an immediate, or a register that only becomes 0 there. */
static bool is_zero(const loop *l, const ptx_operand *o) {
    if (o->kind != PTX_REGISTER) return o->kind == PTX_IMMEDIATE && o->bits == 0;
    bool any = false;
    for (uint32_t i = l->first; i <= l->last; i++) {
        const ptx_instruction *p = &l->function->instructions[i];
        if (!ptx_operand_is_destination(p, 0) || !names(&p->operands[0], o->reg)) continue;
        any = is_constant(p) && is_zero(l, &p->operands[1]);
        if (!any) return false;
    }
    return any;
}

static bool is_of_others(const ptx_instruction *p) {
    const uint64_t own = PTX_HAS_SHARED | PTX_HAS_SHARED_CTA | PTX_HAS_LOCAL | PTX_HAS_PARAM;
    return !(p->has & own);
}

static bool is_strong_load(const ptx_instruction *p) {
    const uint64_t strong = PTX_HAS_VOLATILE | PTX_HAS_RELAXED | PTX_HAS_ACQUIRE | PTX_HAS_MMIO;
    return p->op == PTX_OP_ld && (p->has & strong) && is_of_others(p);
}

/* An atomic that only reads or takes a lock. */
static bool may_wait(const loop *l, const ptx_instruction *p) {
    const uint64_t changes_always = PTX_HAS_INC | PTX_HAS_MIN | PTX_HAS_MAX | PTX_HAS_AND;
    if (p->op != PTX_OP_atom || !is_of_others(p) || p->has & changes_always || p->n_operands < 3)
        return false;
    return !(p->has & (PTX_HAS_ADD | PTX_HAS_OR | PTX_HAS_XOR)) || is_zero(l, &p->operands[2]);
}

static bool stores(const ptx_instruction *p) {
    return (ptx_facts(p)->shared == SHARED_STORE && !(p->has & PTX_HAS_LOCAL)) ||
           p->op == PTX_OP_red || ptx_facts(p)->sync == SYNC_BARRIER;
}

static bool waits_by_atomic(const loop *l) {
    bool any = false;
    for (uint32_t i = l->first; i <= l->last; i++) {
        const ptx_instruction *p = &l->function->instructions[i];
        if (stores(p)) return false;
        if (p->op != PTX_OP_atom) continue;
        if (!may_wait(l, p)) return false;
        for (uint32_t k = 0; k < p->n_operands; k++)
            if (ptx_operand_is_source(p, k) && varies(l, &p->operands[k])) return false;
        any = true;
    }
    return any;
}

bool ptx_waits(const ptx_function *f) {
    uint32_t loads_end = 0; /* after the last strong load so far */
    for (uint32_t i = 0; i < f->n_instructions; i++) {
        const ptx_instruction *p = &f->instructions[i];
        if (is_strong_load(p)) loads_end = i + 1;
        for (uint32_t k = 0; ptx_branches(p) && k < p->n_operands; k++) {
            const ptx_operand *to = &p->operands[k];
            if (to->kind != PTX_LABEL || to->target > i) continue;
            if (to->target < loads_end) return true;
            if (i - to->target < MOST_INSTRUCTIONS && waits_by_atomic(&(loop){f, to->target, i}))
                return true;
        }
    }
    return false;
}
