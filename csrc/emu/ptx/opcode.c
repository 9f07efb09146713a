/* The tables behind opcode.h, and their look-up by name. */
#include "opcode.h"

#include <stdlib.h>
#include <string.h>

const ptx_opcode_facts ptx_opcode_facts_of[PTX_N_OPCODES] = {
    [PTX_OP_unknown] = {.name = ""},
#define OPCODE(name, operands, flops, low_bits, uniform, shared, sync, control)                    \
    [PTX_OP_##name] = {#name,                                                                      \
                       OPERANDS_##operands,                                                        \
                       FLOPS_##flops,                                                              \
                       LOW_BITS_##low_bits,                                                        \
                       UNIFORM_##uniform,                                                          \
                       SHARED_##shared,                                                            \
                       SYNC_##sync,                                                                \
                       CONTROL_##control},
#define ALU OPCODE
#include "opcodes.def"
};

static int compare(const void *name, const void *facts) {
    return strcmp(name, ((const ptx_opcode_facts *)facts)->name);
}

ptx_opcode ptx_opcode_named(const char *name) {
    const ptx_opcode_facts *found =
        bsearch(name, ptx_opcode_facts_of, PTX_N_OPCODES, sizeof *ptx_opcode_facts_of, compare);
    return found ? (ptx_opcode)(found - ptx_opcode_facts_of) : PTX_OP_unknown;
}

uint64_t ptx_modifier_bit(const char *name) {
    static const char *const names[] = {
#define X(name, spelling) spelling,
        PTX_MODIFIER_MAP(X)
#undef X
    };
    for (int k = 0; k < PTX_N_MODIFIERS; k++)
        if (!strcmp(name, names[k])) return (uint64_t)1 << k;
    return 0;
}
