/* Floating-point operations (FLOPs) of an instruction.
 *
 * Per lane and element of the type (f16x2 has two): 2 for fma; 1 for add, sub, mul, div, sqrt,
 * rcp, rsqrt, ex2, lg2, sin, cos, tanh and atomic additions; 0 for moves, conversions,
 * comparisons, min, max, neg, abs, copysign.
 *
 * Per warp: 2mnk for a matrix instruction of that shape. The shape of wgmma is the work of four
 * warps. Integer matrix instructions have no FLOPs. A sparse one counts as the dense one of its
 * shape, zeros included: NVIDIA states the peak of sparse products in the same unit.
 */
#ifndef EMU_FLOPS_H
#define EMU_FLOPS_H

#include "../ptx/ptx.h"

/* FLOPs of an instruction that ran `warps` times, with `lanes` active lanes in total. */
uint64_t flops_of(const ptx_instruction *p, uint64_t warps, uint64_t lanes);

#endif
