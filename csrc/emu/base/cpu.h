/* Run-time dispatch on the host CPU's instruction set.
 *
 * The *_template.h files listed in ../cpu_template.h gain from vector code. They are compiled up to
 * three times: for the baseline (../cpu_baseline.c), for x86-64-v3 with AVX2 and FMA (../cpu_v3.c),
 * and for x86-64-v4 with AVX-512 (../cpu_v4.c). Such a file exports FOR_CPU(name).
 * ON_EACH_CPU(name) is the array of all variants, indexed by cpu_level().
 *
 * setuptools has no compiler flags per file, so each including file sets the target with a pragma.
 * Clang has no such pragma: it builds only the baseline, or everything for the user's -march=...
 */
#ifndef EMU_CPU_H
#define EMU_CPU_H

/* The variants beside the baseline: a sum of these, 0 for none. The build sets it to what its own
 * machine needs, or to both (SMEMKERN_CPU, docs/install.md). */
#define CPU_BUILDS_V3 1
#define CPU_BUILDS_V4 2
#if !defined(__x86_64__) || !defined(__GNUC__) || defined(__clang__)
#undef CPU_VARIANTS
#define CPU_VARIANTS 0
#elif !defined(CPU_VARIANTS)
#define CPU_VARIANTS (CPU_BUILDS_V3 + CPU_BUILDS_V4)
#endif

#define CPU_JOIN_(a, b) a##b
#define CPU_JOIN(a, b)  CPU_JOIN_(a, b)
/* The including file defines CPU_SUFFIX. */
#define FOR_CPU(name) CPU_JOIN(name, CPU_SUFFIX)

enum cpu_level { CPU_BASELINE, CPU_V3, CPU_V4 };

#if CPU_VARIANTS & CPU_BUILDS_V3
#define CPU_V3_ENTRY(name) [CPU_V3] = name##_v3,
#else
#define CPU_V3_ENTRY(name)
#endif
#if CPU_VARIANTS & CPU_BUILDS_V4
#define CPU_V4_ENTRY(name) [CPU_V4] = name##_v4,
#else
#define CPU_V4_ENTRY(name)
#endif
#define ON_EACH_CPU(name) {[CPU_BASELINE] = name##_baseline, CPU_V3_ENTRY(name) CPU_V4_ENTRY(name)}

/* The highest level that was compiled and that this CPU supports. */
enum cpu_level cpu_level(void);

#endif
