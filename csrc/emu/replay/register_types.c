/* What a register of bits holds, by the instructions that use it: compilers declare most registers
 * as .b32 or .b64. A float type wins over a signed one, and that over others. */
#include <string.h>

#include "recorder.h"

static ptx_type modifier_type(const char *modifier) {
    for (int t = 0; t < PTX_N_TYPES; t++)
        if (!strcmp(ptx_type_spelling[t], modifier)) return (ptx_type)t;
    return PTX_NO_TYPE;
}

static bool is_of_bits(ptx_type type) {
    return type == PTX_B16 || type == PTX_B32 || type == PTX_B64;
}

static int rank(ptx_type type) {
    const char *const name = type == PTX_NO_TYPE ? "" : ptx_type_spelling[type];
    return strchr(name, 'f') ? 3 : *name == 's' ? 2 : *name == 'u';
}

static void note(const ptx_function *f, const ptx_operand *o, ptx_type type, uint8_t *types) {
    if (o->kind == PTX_REGISTER) {
        const ptx_type declared = f->registers[o->reg].type;
        if (is_of_bits(declared) && ptx_type_size[declared] == ptx_type_size[type] &&
            rank(type) > rank((ptx_type)types[o->reg]))
            types[o->reg] = (uint8_t)type;
    }
    for (uint32_t k = 0; o->kind == PTX_VECTOR && k < o->n_items; k++)
        note(f, &o->items[k], type, types);
}

/* Conversions name the types of their result and of their operand, in this order. The operands of
 * other instructions with several types are not told apart. */
static void note_instruction(const ptx_function *f, const ptx_instruction *p, uint8_t *types) {
    ptx_type named[PTX_MAX_MODIFIERS];
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_modifiers; k++)
        if ((named[n] = modifier_type(p->modifiers[k])) != PTX_NO_TYPE) n++;
    const bool converts = p->op == PTX_OP_cvt && n == 2;
    for (uint32_t k = 0; n && k < p->n_operands; k++)
        if (ptx_operand_is_destination(p, k))
            note(f, &p->operands[k], named[0], types);
        else if (n == 1 || converts)
            note(f, &p->operands[k], named[n - 1], types);
}

void register_types(const ptx_function *f, uint8_t *types) {
    for (uint32_t k = 0; k < f->n_registers; k++)
        types[k] = (uint8_t)f->registers[k].type;
    for (uint32_t k = 0; k < f->n_instructions; k++)
        if (f->instructions[k].types) note_instruction(f, &f->instructions[k], types);
}
