/* Bytes of registers that are only copied: ptx_register.used has the others.
 *
 * A register with such bytes gets its values from ld and from mov, and gives these bytes to st, to
 * mov whose destinations are copied as well, or to nothing. So what nobody wrote is not used there.
 * The hazard detector follows it (hazards/undefined.c). Some instructions use a part of a register:
 * a conversion to fewer bytes, a shift, a mask.
 */
#include <string.h>

#include "ptx.h"

/* Rounds over the instructions, in the order in which most text settles at once. Text that takes
 * more, such as a chain of mov in an odd order, gets the answer that is right for all text. */
enum { MAX_ROUNDS = 8 };

static uint32_t first_bytes(uint32_t n) {
    return (1u << n) - 1;
}

static uint32_t size_of(const ptx_register *r) {
    return ptx_type_size[r->type];
}

/* Adds bytes to those that are used. True if there are more now. */
static bool use_bytes(ptx_register *r, uint32_t bytes) {
    const uint32_t all = first_bytes(size_of(r)), now = (r->used | bytes) & PTX_ALL_USED;
    const uint16_t before = r->used;
    r->used = (uint16_t)((now & all) == all ? PTX_ALL_USED : now);
    return r->used != before;
}

static void set_used(ptx_function *f, const ptx_operand *o) {
    const bool has_register =
        o->kind == PTX_REGISTER || (o->kind == PTX_ADDRESS && o->has_register);
    if (has_register) f->registers[o->reg].used = PTX_ALL_USED;
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

/* Bytes that an instruction uses of the register that is its operand 1. */
static uint32_t bytes_of_source(const ptx_instruction *p) {
    static const uint32_t integers = 1u << PTX_U8 | 1u << PTX_S8 | 1u << PTX_U16 | 1u << PTX_S16 |
                                     1u << PTX_U32 | 1u << PTX_S32 | 1u << PTX_U64 | 1u << PTX_S64;
    const ptx_operand *last = &p->operands[p->n_operands - 1];
    const bool constant = last->kind == PTX_IMMEDIATE && !last->is_float;
    uint32_t bytes = 0;
    switch (p->op) {
    case PTX_OP_cvt: /* between integers: the bytes of the smaller one */
        if (!p->types || p->types & ~integers || p->n_modifiers != 2) break; /* .sat */
        for (uint32_t type = 0, least = 16; type < PTX_N_TYPES; type++) {
            if (!(p->types >> type & 1) || ptx_type_size[type] >= least) continue;
            least = ptx_type_size[type];
            bytes = first_bytes(least);
        }
        return bytes;
    case PTX_OP_shr:
        if (constant && last->bits < 64)
            return PTX_ALL_USED & ~first_bytes((uint32_t)last->bits / 8);
        break;
    case PTX_OP_and:
        for (uint32_t k = 0; constant && k < 8; k++)
            if (last->bits >> 8 * k & 0xff) bytes |= 1u << k;
        if (constant) return bytes;
        break;
    default: break;
    }
    return PTX_ALL_USED;
}

static void set_used_directly(ptx_function *f) {
    for (uint32_t k = 0; k < f->n_registers; k++)
        f->registers[k].used = f->registers[k].type == PTX_PRED ? PTX_ALL_USED : 0;
    for (uint32_t k = 0; k < f->n_parameters + f->n_returns; k++) {
        const ptx_variable *v =
            k < f->n_parameters ? f->parameters[k] : f->returns[k - f->n_parameters];
        for (uint32_t c = 0; v->in_register && c < ptx_components(v); c++)
            f->registers[v->reg + c].used = PTX_ALL_USED;
    }
    for (uint32_t i = 0; i < f->n_instructions; i++) {
        const ptx_instruction *p = &f->instructions[i];
        if (p->guarded) f->registers[p->guard].used = PTX_ALL_USED;
        for (uint32_t k = 0; k < p->n_operands; k++) {
            const ptx_operand *o = &p->operands[k];
            if (is_copy(p, k)) continue;
            if (k == 1 && o->kind == PTX_REGISTER && !o->selector)
                use_bytes(&f->registers[o->reg], bytes_of_source(p));
            else
                set_used(f, o);
        }
    }
}

/* The bytes of a mov's value that its destinations use, of `width` each. */
static uint32_t used_by(const ptx_function *f, const ptx_operand *to, uint32_t width) {
    uint32_t used = 0;
    for (uint32_t k = 0; k < ptx_count_items(to); k++) {
        const ptx_operand *item = ptx_item(to, k);
        if (item->kind == PTX_REGISTER)
            used |= (f->registers[item->reg].used & first_bytes(width)) << k * width;
    }
    return used;
}

/* What a mov gives to bytes that are used is used. */
static bool use_moved(ptx_function *f, const ptx_instruction *p, bool all) {
    const ptx_operand *to = &p->operands[0], *from = &p->operands[1];
    const uint32_t n_to = ptx_count_items(to), n_from = ptx_count_items(from);
    const uint32_t elements = p->has & PTX_HAS_V2 ? 2 : p->has & PTX_HAS_V4 ? 4 : 1;
    const uint32_t bytes = p->types ? elements * ptx_type_size[__builtin_ctz(p->types)] : 0;
    bool changed = false;
    if (!n_to || !n_from || bytes > 16) all = true;
    const uint32_t used = all ? 0 : used_by(f, to, bytes / n_to), width = all ? 0 : bytes / n_from;
    for (uint32_t k = 0; k < n_from; k++) {
        const ptx_operand *item = ptx_item(from, k);
        if (item->kind != PTX_REGISTER) continue;
        changed |= use_bytes(&f->registers[item->reg],
                             all ? PTX_ALL_USED : used >> k * width & first_bytes(width));
    }
    return changed;
}

void ptx_find_copied(ptx_function *f) {
    bool changed = true;
    set_used_directly(f);
    for (int round = 0; changed && round <= MAX_ROUNDS; round++) {
        changed = false;
        for (uint32_t i = f->n_instructions; i-- > 0;) {
            const ptx_instruction *p = &f->instructions[i];
            if (p->op == PTX_OP_mov && p->n_operands == 2)
                changed |= use_moved(f, p, round == MAX_ROUNDS);
        }
    }
}
