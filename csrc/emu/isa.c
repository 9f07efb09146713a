/* Which of the files that are compiled several times suit the CPU. */
#include "isa.h"

#include "hazards_row.h"
#include "observe_lanes.h"
#include "pattern.h"

extern const opcode_row address_opcodes[], atomic_opcodes[], barrier_opcodes[], call_opcodes[],
    copy_async_opcodes[], ldmatrix_opcodes[], mbarrier_opcodes[], matrix_opcodes[], sync_opcodes[];

#if ISA_VARIANTS
extern const row_functions hazards_row_v3, hazards_row_v4;
extern const lane_functions hazards_lanes_v3, hazards_lanes_v4;
extern const observe_functions observe_lanes_v3, observe_lanes_v4;
extern pattern_find_function *const pattern_find_v3, *const pattern_find_v4;
extern const opcode_row alu_opcodes_v3[], memory_opcodes_v3[], matrix_opcodes_v3[],
    alu_opcodes_v4[], memory_opcodes_v4[], matrix_opcodes_v4[];
#endif

extern const row_functions hazards_row;
extern const lane_functions hazards_lanes;
extern const observe_functions observe_lanes;
extern pattern_find_function *const pattern_find;

#if ISA_VARIANTS
enum level { BASELINE, V3, V4 };

static enum level level_of_cpu(void) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return V4;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2"))
        return V3;
    return BASELINE;
}
#endif

#define TABLES(alu, memory, matrix)                                                                \
    {alu,                                                                                          \
     memory,                                                                                       \
     matrix,                                                                                       \
     address_opcodes,                                                                              \
     atomic_opcodes,                                                                               \
     barrier_opcodes,                                                                              \
     call_opcodes,                                                                                 \
     control_opcodes,                                                                              \
     copy_async_opcodes,                                                                           \
     ldmatrix_opcodes,                                                                             \
     mbarrier_opcodes,                                                                             \
     sync_opcodes,                                                                                 \
     NULL}

const opcode_row *const *isa_opcodes(void) {
    static const opcode_row *const baseline[] = TABLES(alu_opcodes, memory_opcodes, matrix_opcodes);
#if ISA_VARIANTS
    static const opcode_row *const v3[] =
        TABLES(alu_opcodes_v3, memory_opcodes_v3, matrix_opcodes_v3);
    static const opcode_row *const v4[] =
        TABLES(alu_opcodes_v4, memory_opcodes_v4, matrix_opcodes_v4);
    static const opcode_row *const *const tables[] = {[BASELINE] = baseline, [V3] = v3, [V4] = v4};
    return tables[level_of_cpu()];
#else
    return baseline;
#endif
}

const row_functions *row_functions_for_cpu(void) {
#if ISA_VARIANTS
    static const row_functions *const functions[] = {
        [BASELINE] = &hazards_row, [V3] = &hazards_row_v3, [V4] = &hazards_row_v4};
    return functions[level_of_cpu()];
#else
    return &hazards_row;
#endif
}

const lane_functions *lane_functions_for_cpu(void) {
#if ISA_VARIANTS
    static const lane_functions *const functions[] = {
        [BASELINE] = &hazards_lanes, [V3] = &hazards_lanes_v3, [V4] = &hazards_lanes_v4};
    return functions[level_of_cpu()];
#else
    return &hazards_lanes;
#endif
}

const observe_functions *observe_functions_for_cpu(void) {
#if ISA_VARIANTS
    static const observe_functions *const functions[] = {
        [BASELINE] = &observe_lanes, [V3] = &observe_lanes_v3, [V4] = &observe_lanes_v4};
    return functions[level_of_cpu()];
#else
    return &observe_lanes;
#endif
}

pattern_find_function *pattern_find_for_cpu(void) {
#if ISA_VARIANTS
    pattern_find_function *const functions[] = {
        [BASELINE] = pattern_find, [V3] = pattern_find_v3, [V4] = pattern_find_v4};
    return functions[level_of_cpu()];
#else
    return pattern_find;
#endif
}
