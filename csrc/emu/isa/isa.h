/* The instructions beyond control flow: what each does to registers and memory.
 *
 *     alu*        lane-wise: arithmetic, logic, comparison, conversion, mov
 *     matrix*     mma, wmma, wgmma; ldmatrix.c
 *     memory*     ld, st; atomics.c; address.c (cvta, isspacep, ...)
 *     sync.c      shfl, vote, match, redux, bar.warp
 *     async       copy_async.c (cp.async), bulk.c, tensor_copy.c, tile.c, tensor_map.c, mbarrier.c
 *
 * Control flow, calls and block barriers are the machine's (machine/machine.h). This is the header for the other
 * folders.
 */
#ifndef EMU_ISA_H
#define EMU_ISA_H

/* All of them, for this CPU. */
const struct instruction_set *isa_for_cpu(void);

#endif
