/* The files of cpu_template.h for x86-64 with AVX-512.
 *
 * x86-64-v4 without its 8- and 16-bit lanes (AVX512BW): gcc 12 fails on a masked minimum of those
 * ("unrecognizable insn"), and halves are as fast in AVX2.
 */
#include "base/cpu.h"

#if CPU_VARIANTS
#include "cpu_system.h"

#pragma GCC target("arch=x86-64-v4,no-avx512bw")
#define CPU_SUFFIX _v4
#include "cpu_template.h"
#endif
