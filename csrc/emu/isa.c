/* Which tables of opcodes suit the CPU. */
#include "isa.h"

extern const opcode_row address_opcodes[], atomic_opcodes[], barrier_opcodes[], call_opcodes[],
    copy_async_opcodes[], ldmatrix_opcodes[], matrix_opcodes[], sync_opcodes[];

#if ISA_VARIANTS
extern const opcode_row alu_opcodes_v3[], memory_opcodes_v3[], matrix_opcodes_v3[],
    alu_opcodes_v4[], memory_opcodes_v4[], matrix_opcodes_v4[];
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
     sync_opcodes,                                                                                 \
     NULL}

const opcode_row *const *isa_opcodes(void) {
    static const opcode_row *const baseline[] = TABLES(alu_opcodes, memory_opcodes, matrix_opcodes);
#if ISA_VARIANTS
    static const opcode_row *const v3[] =
        TABLES(alu_opcodes_v3, memory_opcodes_v3, matrix_opcodes_v3);
    static const opcode_row *const v4[] =
        TABLES(alu_opcodes_v4, memory_opcodes_v4, matrix_opcodes_v4);
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return v4;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2"))
        return v3;
#endif
    return baseline;
}
