/* One source, several instruction sets. Files whose speed comes from vector code (alu.c, memory.c, matrix.c,
 * hazards_row.c, hazards_lanes.c, observe_lanes.c, pattern.c) are compiled as they are for the baseline,
 * and again by exec_v3.c and exec_v4.c for x86-64 with AVX2 and FMA and with AVX-512; the first look at the CPU decides which are used.
 *
 * setuptools has no flags for single files, hence a pragma in the including file. Clang has no such
 * pragma: it builds the baseline only (or everything for -march=..., if the user says so).
 */
#ifndef EMU_ISA_H
#define EMU_ISA_H

#include "exec.h"

/* -DISA_VARIANTS=0: the baseline only, so that who changes one of those files compiles it once. */
#ifndef ISA_VARIANTS
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define ISA_VARIANTS 1
#else
#define ISA_VARIANTS 0
#endif
#endif

#ifndef ISA_SUFFIX
#define ISA_SUFFIX
#endif
#define ISA_JOIN_(a, b) a##b
#define ISA_JOIN(a, b)  ISA_JOIN_(a, b)
#define ISA(name)       ISA_JOIN(name, ISA_SUFFIX)

/* All tables of opcodes for this CPU, ended by NULL. A row's opcode may stand in several. */
const opcode_row *const *isa_opcodes(void);

#endif
