/* The files of cpu_template.h, compiled for x86-64-v3 (AVX2, FMA). */
#include "base/cpu.h"

#if CPU_VARIANTS & CPU_BUILDS_V3
#include "cpu_system.h"

#pragma GCC target("arch=x86-64-v3")
#define CPU_SUFFIX _v3
#include "cpu_template.h"
#endif
