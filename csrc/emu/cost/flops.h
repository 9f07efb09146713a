/* Floating-point operations of an instruction.
 *
 * A lane's: 2 for fma, 1 for add, sub, mul, div, sqrt, rcp, rsqrt, ex2, lg2, sin, cos, tanh and atomic
 * additions, each times the elements of packed types (f16x2). None for moves, conversions, comparisons,
 * min, max, neg, abs, copysign. Of a warp's matrix instruction: 2mnk by its shape; wgmma's shape is the
 * work of four warps. Integer matrix instructions are no floating-point operations.
 */
#ifndef EMU_FLOPS_H
#define EMU_FLOPS_H

#include "../ptx/ptx.h"

/* Of an instruction that ran in so many warps, and in so many lanes altogether. */
uint64_t flops_of(const ptx_instruction *p, uint64_t warps, uint64_t lanes);

#endif
