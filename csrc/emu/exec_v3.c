/* The files of isa.h for x86-64-v3 (AVX2, FMA). */
#include "isa.h"

#if ISA_VARIANTS
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#pragma GCC target("arch=x86-64-v3")
#undef ISA_SUFFIX
#define ISA_SUFFIX  _v3
#define alu_opcodes alu_opcodes_v3
#include "alu.c"
#include "matrix.c"
#include "memory.c"
#include "hazards_row.c"
#include "hazards_lanes.c"
#include "observe_lanes.c"
#include "pattern.c"
#endif
