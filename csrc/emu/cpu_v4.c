/* The files of cpu_template.h, compiled for x86-64 with AVX-512.
 *
 * The target is x86-64-v4 without AVX512BW (8- and 16-bit lanes): gcc 12 fails on a masked 8- or
 * 16-bit min ("unrecognizable insn"), and code for half precision is as fast in AVX2.
 */
#include "base/cpu.h"

#if CPU_VARIANTS & CPU_BUILDS_V4
#include "cpu_system.h"

#pragma GCC target("arch=x86-64-v4,no-avx512bw")
#define CPU_SUFFIX _v4
#include "cpu_template.h"
#endif
