/* Opcodes and modifiers as enumerators, so that other code need not compare spellings. The facts
 * about each opcode are in opcodes.def. */
#ifndef EMU_OPCODE_H
#define EMU_OPCODE_H

#include <stddef.h>
#include <stdint.h>

typedef enum ptx_opcode {
    PTX_OP_unknown,
#define ALU(name, ...)    PTX_OP_##name,
#define OPCODE(name, ...) PTX_OP_##name,
#include "opcodes.def"
    PTX_N_OPCODES
} ptx_opcode;

/* How the instruction accesses operand 0; it reads all others. */
typedef enum ptx_operands {
    /* Reads and writes. Also the default where this is unknown: a register's live range is then
     * longer than necessary, which is safe. */
    OPERANDS_UPDATES,
    OPERANDS_LANEWISE, /* writes; a lane's result depends only on that lane's sources */
    OPERANDS_WRITES,
    OPERANDS_READS,
    /* Writes it if it is a list of results; otherwise it is the callee, which is read. */
    OPERANDS_CALLS,
    /* With .red it is the reduction's result, written; otherwise the barrier number, read. */
    OPERANDS_REDUCES
} ptx_operands;

/* Floating-point operations: per lane and element, or per instruction (../cost/flops.h). */
typedef enum ptx_flops {
    FLOPS_NONE,
    FLOPS_ONE,
    FLOPS_TWO,
    FLOPS_IF_ADD, /* one if .add, else none */
    FLOPS_MMA,    /* 2mnk of the shape, per warp */
    FLOPS_WMMA,   /* the same if .mma, else none */
    FLOPS_WGMMA   /* 2mnk per four warps if .mma_async, else none */
} ptx_flops;

/* How the lowest bits of an integer result follow from its sources' (../cost/alignment.c). */
typedef enum ptx_low_bits {
    LOW_BITS_NONE,
    LOW_BITS_COPY,
    LOW_BITS_ADD,
    LOW_BITS_SUB,
    LOW_BITS_MUL,
    LOW_BITS_MAD,
    LOW_BITS_AND,
    LOW_BITS_OR,
    LOW_BITS_XOR,
    LOW_BITS_SELECT,
    LOW_BITS_SHIFT
} ptx_low_bits;

/* Whether ptxas treats the result as warp-uniform if the sources are (../cost/atomic_form.c). */
typedef enum ptx_uniform { UNIFORM_VARYING, UNIFORM_UNIFORM } ptx_uniform;

/* Effect on shared memory, for ptxas's merging of accesses (../cost/ptxas_vectorize.c). */
typedef enum ptx_shared {
    SHARED_NONE,   /* none, or reads that ptxas does not merge */
    SHARED_LOAD,   /* a load that ptxas may merge; no effect if in another state space */
    SHARED_STORE,  /* a store that ptxas may merge; no effect if in another state space */
    SHARED_ATOMIC, /* modifies shared memory, unless in another state space */
    SHARED_SYNC    /* ptxas moves no access across it */
} ptx_shared;

/* How it orders memory accesses (../hazards/sites.c). */
typedef enum ptx_sync {
    SYNC_NONE,
    SYNC_ATOMIC,
    SYNC_BARRIER,
    SYNC_FENCE,
    SYNC_MEMBAR,
    SYNC_MBARRIER,
    SYNC_WGMMA
} ptx_sync;

typedef enum ptx_control {
    CONTROL_NEXT,
    CONTROL_BRANCH,
    CONTROL_BRANCH_TABLE,
    CONTROL_CALL,
    CONTROL_RETURN,
    CONTROL_EXIT,
    CONTROL_TRAP
} ptx_control;

typedef struct ptx_opcode_facts {
    const char *name;
    ptx_operands operands;
    ptx_flops flops;
    ptx_low_bits low_bits;
    ptx_uniform uniform;
    ptx_shared shared;
    ptx_sync sync;
    ptx_control control;
} ptx_opcode_facts;

extern const ptx_opcode_facts ptx_opcode_facts_of[PTX_N_OPCODES];

/* PTX_OP_unknown: not in opcodes.def. */
ptx_opcode ptx_opcode_named(const char *name);

/* clang-format off */

/* Modifiers that code outside the instruction's own decoding tests. X(enumerator, spelling) */
#define PTX_MODIFIER_MAP(X)                                                                        \
    X(ACQUIRE, "acquire") X(RELEASE, "release") X(ACQ_REL, "acq_rel") X(RELAXED, "relaxed")        \
    X(VOLATILE, "volatile") X(MMIO, "mmio") X(REDUCE, "reduce") X(BULK, "bulk") X(SC, "sc")        \
    X(CTA, "cta") X(CLUSTER, "cluster") X(SYS, "sys") X(WARP, "warp") X(ALIGNED, "aligned")        \
    X(ARRIVE, "arrive") X(RED, "red") X(MBARRIER, "mbarrier")                                      \
    X(MBARRIER_INIT, "mbarrier_init") X(PROXY, "proxy")                                            \
    X(GLOBAL, "global") X(SHARED, "shared") X(SHARED_CTA, "shared::cta") X(LOCAL, "local")         \
    X(PARAM, "param") X(CONST, "const") X(V2, "v2") X(V4, "v4") X(V8, "v8") X(HI, "hi")            \
    X(ADD, "add") X(INC, "inc") X(MIN, "min") X(MAX, "max") X(AND, "and") X(OR, "or")              \
    X(XOR, "xor") X(CAS, "cas") X(MMA, "mma") X(MMA_ASYNC, "mma_async")

/* clang-format on */

typedef enum ptx_modifier {
#define X(name, spelling) PTX_##name##_BIT,
    PTX_MODIFIER_MAP(X)
#undef X
        PTX_N_MODIFIERS
} ptx_modifier;

/* As bits of ptx_instruction.has. */
#define X(name, spelling) static const uint64_t PTX_HAS_##name = (uint64_t)1 << PTX_##name##_BIT;
PTX_MODIFIER_MAP(X)
#undef X

/* The modifier's bit; 0: not in the list above. */
uint64_t ptx_modifier_bit(const char *name);

#endif
