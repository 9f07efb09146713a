/* Registers whose values are only copied: ptx_register.is_copied.
 *
 * Such a register gets its values from ld and from mov, and gives them to st and to mov whose
 * destinations are copied as well, or to nothing. So a value in it that nobody wrote is not used.
 * The hazard detector follows it (hazards/undefined.c).
 */
#include <string.h>

#include "ptx.h"

/* Rounds over the instructions, in the order in which most text settles at once. Text that takes
 * more, such as a chain of mov in an odd order, gets the answer that is right for all text. */
enum { MAX_ROUNDS = 8 };

static void set_used(ptx_function *f, const ptx_operand *o) {
    const bool has_register =
        o->kind == PTX_REGISTER || (o->kind == PTX_ADDRESS && o->has_register);
    if (has_register) f->registers[o->reg].is_copied = false;
    for (uint32_t k = 0; k < o->n_items; k++)
        set_used(f, &o->items[k]);
    if (o->pair) set_used(f, o->pair);
}

/* st.async stores later, and st.bulk has a size where others have a value. Parameters of calls and
 * constants are not followed. */
static bool is_plain(const ptx_instruction *p) {
    const bool async = p->n_modifiers && strcmp(p->modifiers[0], "async") == 0;
    return !async && !(p->has & (PTX_HAS_BULK | PTX_HAS_PARAM | PTX_HAS_CONST));
}

/* Whether operand k of the instruction is a value that it copies. */
static bool is_copy(const ptx_instruction *p, uint32_t k) {
    switch (p->op) {
    case PTX_OP_mov: return true;
    case PTX_OP_ld: return k == 0 && is_plain(p);
    case PTX_OP_st: return k == 1 && is_plain(p);
    default: return false;
    }
}

static bool any_copied(const ptx_function *f, const ptx_operand *o) {
    if (o->kind == PTX_REGISTER) return f->registers[o->reg].is_copied;
    for (uint32_t k = 0; k < o->n_items; k++)
        if (any_copied(f, &o->items[k])) return true;
    return false;
}

static bool all_copied(const ptx_function *f, const ptx_operand *o) {
    if (o->kind == PTX_REGISTER) return f->registers[o->reg].is_copied;
    for (uint32_t k = 0; k < o->n_items; k++)
        if (!all_copied(f, &o->items[k])) return false;
    return true;
}

static void set_used_directly(ptx_function *f) {
    for (uint32_t k = 0; k < f->n_registers; k++)
        f->registers[k].is_copied = f->registers[k].type != PTX_PRED;
    for (uint32_t k = 0; k < f->n_parameters + f->n_returns; k++) {
        const ptx_variable *v =
            k < f->n_parameters ? f->parameters[k] : f->returns[k - f->n_parameters];
        for (uint32_t c = 0; v->in_register && c < ptx_components(v); c++)
            f->registers[v->reg + c].is_copied = false;
    }
    for (uint32_t i = 0; i < f->n_instructions; i++) {
        const ptx_instruction *p = &f->instructions[i];
        if (p->guarded) f->registers[p->guard].is_copied = false;
        for (uint32_t k = 0; k < p->n_operands; k++)
            if (!is_copy(p, k)) set_used(f, &p->operands[k]);
    }
}

/* What a mov gives to a register that is used is used. Each mov moves all of its values. */
static void set_used_by_mov(ptx_function *f) {
    bool changed = true;
    for (int round = 0; changed; round++) {
        changed = false;
        for (uint32_t i = f->n_instructions; i-- > 0;) {
            const ptx_instruction *p = &f->instructions[i];
            if (p->op != PTX_OP_mov || p->n_operands != 2) continue;
            const bool used = round == MAX_ROUNDS || !all_copied(f, &p->operands[0]);
            if (!used || !any_copied(f, &p->operands[1])) continue;
            set_used(f, &p->operands[1]);
            changed = true;
        }
    }
}

void ptx_find_copied(ptx_function *f) {
    set_used_directly(f);
    set_used_by_mov(f);
}
