/* Small functions of ptx.h: types, operands, modules. */
#include "ptx.h"

#include <string.h>

#include "../base/arena.h"

const char *const ptx_type_spelling[PTX_N_TYPES] = {
#define X(name, spelling, bytes) #spelling,
    PTX_TYPE_MAP(X)
#undef X
};

const unsigned char ptx_type_size[PTX_N_TYPES] = {
#define X(name, spelling, bytes) bytes,
    PTX_TYPE_MAP(X)
#undef X
};

uint32_t ptx_slot_bytes(ptx_type type) {
    uint32_t size = ptx_type_size[type];
    return 32 * (size < 2 ? 2 : size);
}

void ptx_free(ptx_module *module) {
    if (module) arena_free(module->arena);
}

const ptx_function *ptx_find_function(const ptx_module *module, const char *name) {
    for (uint32_t i = 0; i < module->n_functions; i++)
        if (strcmp(module->functions[i]->name, name) == 0) return module->functions[i];
    return NULL;
}

/* Float immediates have 32 or 64 bits: PTX has none of the narrower types. */
uint64_t ptx_immediate_bits(const ptx_operand *operand, ptx_type type) {
    uint32_t size = ptx_type_size[type];
    if (type == PTX_PRED) return operand->bits ? 0xffffffffu : 0;
    if (!operand->is_float)
        return size >= 8 ? operand->bits : operand->bits & ((1ull << 8 * size) - 1);
    if (size < 8) return operand->float_bits;
    uint64_t bits;
    memcpy(&bits, &operand->value, sizeof bits);
    return bits;
}
