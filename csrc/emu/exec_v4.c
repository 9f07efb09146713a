/* The files of isa.h for x86-64 with AVX-512.
 *
 * x86-64-v4 without its 8- and 16-bit lanes (AVX512BW): gcc 12 fails on a masked minimum of those
 * ("unrecognizable insn"), and halves are as fast in AVX2.
 */
#include "isa.h"

#if ISA_VARIANTS
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#pragma GCC target("arch=x86-64-v4,no-avx512bw")
#undef ISA_SUFFIX
#define ISA_SUFFIX  _v4
#define alu_opcodes alu_opcodes_v4
#include "alu.c"
#include "matrix.c"
#include "memory.c"
#include "hazards_row.c"
#include "hazards_lanes.c"
#include "observe_lanes.c"
#include "pattern.c"
#endif
