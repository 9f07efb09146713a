/* Which machine code ptxas selects for atomics on shared memory whose result is unused.
 *
 * Observed in machine code for sm_90 (CUDA 13.0):
 *
 *   add.u32 of 1; inc.u32 with limit 0xffffffff    ATOMS.POPC.INC (ATOMIC_COUNTING)
 *   add min max and or xor of 32-bit integers at   REDUX, then ATOMS by one lane (ATOMIC_ELECTED);
 *   an address that is provably warp-uniform       for add of a constant also if the result is used
 *
 * An address is provably uniform if it is computed from kernel parameters, constants, block index
 * and grid and block sizes. A register with several assignments counts as varying, because lanes
 * may leave a loop after different iterations.
 */
#include "atomic_form.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_ROUNDS = 64,          /* compiler output defines before it uses: two rounds */
    STEPS_PER_INSTRUCTION = 8 /* for interrupt_due */
};

typedef struct register_facts {
    const ptx_instruction *assigned; /* the last assignment in the text */
    uint32_t n_assigned;             /* number of assignments */
    bool read, uniform;
} register_facts;

/* ---- facts about registers ---- */

static void note_read(register_facts *facts, const ptx_operand *o) {
    if (o->kind == PTX_REGISTER || (o->kind == PTX_ADDRESS && o->has_register))
        facts[o->reg].read = true;
    for (uint32_t k = 0; k < o->n_items; k++)
        note_read(facts, &o->items[k]);
    if (o->pair) note_read(facts, o->pair);
}

static void note_assigned(register_facts *facts, const ptx_operand *o, const ptx_instruction *by) {
    if (o->kind == PTX_REGISTER) {
        facts[o->reg].assigned = by;
        facts[o->reg].n_assigned++;
    }
    for (uint32_t k = 0; o->kind == PTX_VECTOR && k < o->n_items; k++)
        note_assigned(facts, &o->items[k], by);
    if (o->pair) note_assigned(facts, o->pair, by);
}

static bool is_uniform(const ptx_operand *o, const register_facts *facts) {
    switch (o->kind) {
    case PTX_IMMEDIATE:
    case PTX_SYMBOL: return true;
    case PTX_REGISTER: return facts[o->reg].uniform;
    case PTX_ADDRESS: return !o->has_register || facts[o->reg].uniform;
    case PTX_SPECIAL: return o->special >= PTX_SPECIAL_NTID_X && o->special <= PTX_SPECIAL_NCTAID_Z;
    default: return false;
    }
}

static bool is_result_uniform(const ptx_instruction *p, const register_facts *facts) {
    if (p->guarded || ptx_facts(p)->uniform != UNIFORM_UNIFORM || p->has & PTX_HAS_VOLATILE)
        return false;
    for (uint32_t k = 1; k < p->n_operands; k++)
        if (!is_uniform(&p->operands[k], facts)) return false;
    return true;
}

static register_facts *facts_of(const ptx_function *f, interrupt_poller *poller) {
    register_facts *facts = calloc(f->n_registers + 1, sizeof *facts);
    if (!facts) return NULL;
    for (uint32_t i = 0; i < f->n_instructions; i++) {
        const ptx_instruction *p = &f->instructions[i];
        if (p->guarded) facts[p->guard].read = true;
        for (uint32_t k = 0; k < p->n_operands; k++) {
            if (ptx_operand_is_destination(p, k)) note_assigned(facts, &p->operands[k], p);
            if (ptx_operand_is_source(p, k)) note_read(facts, &p->operands[k]);
        }
    }
    /* A register with one assignment is uniform if that instruction's sources are. A register
     * never stops being uniform, so the iteration terminates. */
    bool changed = true;
    for (int round = 0; changed && round < MAX_ROUNDS; round++) {
        changed = false;
        for (uint32_t i = 0; i < f->n_instructions; i++) {
            const ptx_operand *to = f->instructions[i].operands;
            if (interrupt_due(poller, STEPS_PER_INSTRUCTION)) {
                free(facts);
                return NULL;
            }
            if (!f->instructions[i].n_operands || to->kind != PTX_REGISTER) continue;
            register_facts *it = &facts[to->reg];
            if (it->uniform || it->assigned != &f->instructions[i] || it->n_assigned != 1) continue;
            it->uniform = is_result_uniform(it->assigned, facts);
            changed |= it->uniform;
        }
    }
    return facts;
}

/* ---- forms ---- */

static bool is_constant(const ptx_operand *o, const register_facts *facts, uint32_t *value) {
    if (o->kind == PTX_IMMEDIATE && !o->is_float) {
        *value = (uint32_t)o->bits;
        return true;
    }
    if (o->kind != PTX_REGISTER || facts[o->reg].n_assigned != 1) return false;
    const ptx_instruction *p = facts[o->reg].assigned;
    return !p->guarded && p->op == PTX_OP_mov && p->n_operands == 2 &&
           p->operands[1].kind == PTX_IMMEDIATE && is_constant(&p->operands[1], facts, value);
}

static atomic_form select_form(const ptx_instruction *p, const register_facts *facts) {
    const bool returns = p->op == PTX_OP_atom;
    const uint32_t at = returns ? 1 : 0;
    if (ptx_facts(p)->shared != SHARED_ATOMIC || p->n_operands != at + 2 ||
        !(p->has & (PTX_HAS_SHARED | PTX_HAS_SHARED_CTA)))
        return ATOMIC_PLAIN;
    const bool is_read =
        returns && p->operands->kind == PTX_REGISTER && facts[p->operands->reg].read;
    uint32_t value = 0;
    const bool constant = is_constant(&p->operands[at + 1], facts, &value);
    if (!is_read && constant && p->types & 1u << PTX_U32 &&
        ((p->has & PTX_HAS_ADD && value == 1) || (p->has & PTX_HAS_INC && value == 0xffffffff)))
        return ATOMIC_COUNTING;
    const bool integer = p->types & (1u << PTX_U32 | 1u << PTX_S32 | 1u << PTX_B32);
    const bool combines =
        p->has & (PTX_HAS_ADD | PTX_HAS_MIN | PTX_HAS_MAX | PTX_HAS_AND | PTX_HAS_OR | PTX_HAS_XOR);
    const bool unread = !is_read || (p->has & PTX_HAS_ADD && constant);
    return integer && combines && unread && is_uniform(&p->operands[at], facts) ? ATOMIC_ELECTED
                                                                                : ATOMIC_PLAIN;
}

uint8_t *atomic_forms(const ptx_function *f, interrupt_poller *poller) {
    register_facts *facts = facts_of(f, poller);
    uint8_t *forms = calloc(f->n_instructions + 1, sizeof *forms);
    for (uint32_t k = 0; facts && forms && k < f->n_instructions; k++)
        forms[k] = (uint8_t)select_form(&f->instructions[k], facts);
    if (!facts) {
        free(forms);
        forms = NULL;
    }
    free(facts);
    return forms;
}
