/* The rule of flops.h. */
#include "flops.h"

#include <stdio.h>
#include <string.h>

static bool has(const ptx_instruction *p, const char *modifier) {
    for (uint32_t k = 0; k < p->n_modifiers; k++)
        if (!strcmp(p->modifiers[k], modifier)) return true;
    return false;
}

/* Elements in the last type that is named, 0 if that is not floating-point. */
static uint64_t float_elements(const ptx_instruction *p) {
    static const char *const single[] = {"f32", "f64", "f16", "bf16"};
    static const char *const pair[] = {"f16x2", "bf16x2", "f32x2"};
    const char *type = p->n_modifiers ? p->modifiers[p->n_modifiers - 1] : "";
    for (size_t k = 0; k < sizeof single / sizeof *single; k++)
        if (!strcmp(type, single[k])) return 1;
    for (size_t k = 0; k < sizeof pair / sizeof *pair; k++)
        if (!strcmp(type, pair[k])) return 2;
    return 0;
}

/* 2mnk, 0 if no shape is named or the numbers are integers. */
static uint64_t matrix_flops(const ptx_instruction *p) {
    unsigned m, n, k;
    if (has(p, "s32")) return 0;
    for (uint32_t i = 0; i < p->n_modifiers; i++)
        if (sscanf(p->modifiers[i], "m%4un%4uk%4u", &m, &n, &k) == 3)
            return 2 * (uint64_t)m * n * k;
    return 0;
}

uint64_t flops_of(const ptx_instruction *p, uint64_t warps, uint64_t lanes) {
    static const char *const one[] = {"add",   "sub", "mul", "div", "sqrt", "rcp",
                                      "rsqrt", "ex2", "lg2", "sin", "cos",  "tanh"};
    const char *name = p->opcode;
    if (!strcmp(name, "mma") || (!strcmp(name, "wmma") && has(p, "mma")))
        return warps * matrix_flops(p);
    if (!strcmp(name, "wgmma") && has(p, "mma_async")) return warps * matrix_flops(p) / 4;
    if (!strcmp(name, "fma") || !strcmp(name, "mad")) return 2 * lanes * float_elements(p);
    if ((!strcmp(name, "atom") || !strcmp(name, "red")) && has(p, "add"))
        return lanes * float_elements(p);
    for (size_t k = 0; k < sizeof one / sizeof *one; k++)
        if (!strcmp(name, one[k])) return lanes * float_elements(p);
    return 0;
}
