/* What each instruction does to registers and memory, except control flow.
 *
 *   alu*        lane-wise: arithmetic, logic, comparison, conversion, mov
 *   matrix*     mma, wmma, wgmma; ldmatrix.c
 *   memory*     ld, st; atomics.c; address.c (cvta, isspacep, ...)
 *   sync.c      shfl, vote, match, redux, bar.warp
 *   texture.c   tex, tld4, queries; surface.c: suld, sust, sured; sampler.c, texel.c
 *   async       copies.c (cp): copy_async.c, bulk_queue.c, bulk.c, tensor_copy.c; tile.c,
 *               tensor_map.c, tensor_map_edit.c (tensormap), mbarrier.c
 *
 * Control flow, calls and block barriers are in machine/ (machine/machine.h). Other folders include
 * only this header.
 */
#ifndef EMU_ISA_H
#define EMU_ISA_H

/* The instruction set, compiled for the highest level that the host CPU has (base/cpu.h). */
const struct instruction_set *isa_for_cpu(void);

#endif
