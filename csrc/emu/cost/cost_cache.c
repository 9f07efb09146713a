/* Selects the version of cost_cache_template.h for the CPU. */
#include "cost_cache.h"

#include "../base/cpu.h"

extern cost_cache_find_function cost_cache_find_baseline, cost_cache_find_v3, cost_cache_find_v4;

cost_cache_find_function *cost_cache_find_for_cpu(void) {
    static cost_cache_find_function *const functions[] = ON_EACH_CPU(cost_cache_find);
    return functions[cpu_level()];
}
