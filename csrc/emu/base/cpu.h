/* One source, several instruction sets of the host. The files called *_template.h whose speed comes from vector
 * code are compiled three times: as they are (cpu_baseline.c), for x86-64 with AVX2 and FMA (cpu_v3.c), and
 * with AVX-512 (cpu_v4.c). cpu_template.h lists them. What such a file exports is named FOR_CPU(name), and
 * ON_EACH_CPU(name) is the array from which cpu_level() picks.
 *
 * setuptools has no flags for single files, hence a pragma in the including file. Clang has no such
 * pragma: it builds the baseline only (or everything for -march=..., if the user says so).
 */
#ifndef EMU_CPU_H
#define EMU_CPU_H

/* -DCPU_VARIANTS=0: the baseline only, so that a change to one of those files is compiled once. */
#ifndef CPU_VARIANTS
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CPU_VARIANTS 1
#else
#define CPU_VARIANTS 0
#endif
#endif

#define CPU_JOIN_(a, b) a##b
#define CPU_JOIN(a, b)  CPU_JOIN_(a, b)
#define FOR_CPU(name)   CPU_JOIN(name, CPU_SUFFIX) /* CPU_SUFFIX: the including file's */

enum cpu_level { CPU_BASELINE, CPU_V3, CPU_V4 };

#if CPU_VARIANTS
#define ON_EACH_CPU(name)                                                                          \
    {[CPU_BASELINE] = name##_baseline, [CPU_V3] = name##_v3, [CPU_V4] = name##_v4}
#else
#define ON_EACH_CPU(name) {[CPU_BASELINE] = name##_baseline}
#endif

/* The highest level that is compiled and that this CPU has. */
enum cpu_level cpu_level(void);

#endif
