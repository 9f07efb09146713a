/* The rules of flops.h. */
#include "flops.h"

#include <stdio.h>
#include <string.h>

/* Elements per lane of the instruction's last type modifier; 0 if that is not a floating-point
 * type. */
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

/* 2mnk by the shape modifier; 0 without a shape, or for integer matrices. m8n8k4 of f16 is four
 * products. */
static uint64_t matrix_flops(const ptx_instruction *p) {
    unsigned m, n, k;
    const bool halves = (p->types & (1u << PTX_F16 | 1u << PTX_F64)) == 1u << PTX_F16;
    if (p->types & 1u << PTX_S32) return 0;
    for (uint32_t i = 0; i < p->n_modifiers; i++)
        if (sscanf(p->modifiers[i], "m%4un%4uk%4u", &m, &n, &k) == 3) {
            const bool four = halves && m == 8 && n == 8 && k == 4;
            return (four ? 4 : 1) * 2 * (uint64_t)m * n * k;
        }
    return 0;
}

uint64_t flops_of(const ptx_instruction *p, uint64_t warps, uint64_t lanes) {
    switch (ptx_facts(p)->flops) {
    case FLOPS_NONE: return 0;
    case FLOPS_ONE: return lanes * float_elements(p);
    case FLOPS_TWO: return 2 * lanes * float_elements(p);
    case FLOPS_IF_ADD: return p->has & PTX_HAS_ADD ? lanes * float_elements(p) : 0;
    case FLOPS_MMA: return warps * matrix_flops(p);
    case FLOPS_WMMA: return p->has & PTX_HAS_MMA ? warps * matrix_flops(p) : 0;
    case FLOPS_WGMMA: return p->has & PTX_HAS_MMA_ASYNC ? warps * matrix_flops(p) / 4 : 0;
    }
    return 0;
}
