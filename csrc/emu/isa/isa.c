/* The instruction set per CPU level: opcode tables, and the functions that machine/ calls. */
#include "isa.h"

#include "../base/cpu.h"
#include "bulk.h"
#include "copy_async.h"
#include "mbarrier.h"
#include "tensor_map.h"

extern opcode_table address_opcodes, atomic_opcodes, cache_policy_opcodes, copy_opcodes,
    ldmatrix_opcodes, mbarrier_opcodes, store_async_opcodes, surface_opcodes, sync_opcodes,
    tensor_map_opcodes, texture_opcodes;

/* Compiled once per CPU level (base/cpu.h). */
extern opcode_table alu_opcodes_baseline, alu_opcodes_v3, alu_opcodes_v4;
extern opcode_table matrix_opcodes_baseline, matrix_opcodes_v3, matrix_opcodes_v4;
extern opcode_table memory_opcodes_baseline, memory_opcodes_v3, memory_opcodes_v4;

static bool allocate_copies(block *b) {
    bulk_clear(b);
    return copy_queues_new(b);
}

static void free_copies(block *b) {
    bulk_clear(b);
    copy_queues_free(b);
}

/* clang-format off */
#define INSTRUCTION_SET(cpu)                                                                       \
    static const select_fn *const opcodes##cpu[] = {                                              \
        alu_opcodes##cpu, memory_opcodes##cpu, matrix_opcodes##cpu, address_opcodes,               \
        atomic_opcodes, barrier_opcodes, cache_policy_opcodes, call_opcodes, control_opcodes,      \
        copy_opcodes,                                                                              \
        ldmatrix_opcodes, mbarrier_opcodes, register_opcodes, store_async_opcodes,                 \
        surface_opcodes, sync_opcodes, tensor_map_opcodes, texture_opcodes, NULL};                 \
    static const instruction_set set##cpu = {                                                      \
        .opcodes = opcodes##cpu,                                                                   \
        .allocate_copies = allocate_copies,                                                        \
        .begin_copies = copy_queues_clear,                                                         \
        .end_copies = bulk_end_block,                                                              \
        .free_copies = free_copies,                                                                \
        .describe_failed_wait = mbarrier_describe,                                                 \
        .encode_tensor_map = tensor_map_encode};
/* clang-format on */

INSTRUCTION_SET(_baseline)
#if CPU_VARIANTS & CPU_BUILDS_V3
INSTRUCTION_SET(_v3)
#endif
#if CPU_VARIANTS & CPU_BUILDS_V4
INSTRUCTION_SET(_v4)
#endif

const instruction_set *isa_for_cpu(void) {
    static const instruction_set *const sets[] = ON_EACH_CPU(&set);
    return sets[cpu_level()];
}
