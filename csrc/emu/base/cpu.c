/* See cpu.h. */
#include "cpu.h"

enum cpu_level cpu_level(void) {
#if CPU_VARIANTS
    __builtin_cpu_init();
#endif
#if CPU_VARIANTS & CPU_BUILDS_V4
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return CPU_V4;
#endif
#if CPU_VARIANTS & CPU_BUILDS_V3
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2"))
        return CPU_V3;
#endif
    return CPU_BASELINE;
}
