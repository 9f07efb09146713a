/* Opcodes and modifiers as numbers, so that nothing compares their spellings. opcodes.def has the facts. */
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

/* What it does with operand 0; it reads the others. */
typedef enum ptx_operands {
    OPERANDS_UPDATES, /* reads and writes: a register then lives longer than need be, which is never wrong */
    OPERANDS_LANEWISE, /* writes, and a lane's result depends on nothing but that lane's sources */
    OPERANDS_WRITES,
    OPERANDS_READS,
    OPERANDS_CALLS,  /* writes a list of results; anything else is the callee */
    OPERANDS_REDUCES /* .red writes the threads' answer; the others read a barrier's number */
} ptx_operands;

/* Floating-point operations: per lane and element, or of the whole instruction (../cost/flops.h). */
typedef enum ptx_flops {
    FLOPS_NONE,
    FLOPS_ONE,
    FLOPS_TWO,
    FLOPS_IF_ADD, /* one, with .add */
    FLOPS_MMA,    /* 2mnk by the shape */
    FLOPS_WMMA,   /* ... with .mma */
    FLOPS_WGMMA   /* ... with .mma_async, by four warps */
} ptx_flops;

/* How an integer result's lowest bits follow from those of its sources (../cost/alignment.c). */
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

/* Whether ptxas takes the result for uniform in a warp if the sources are (../cost/atomic_form.c). */
typedef enum ptx_uniform { UNIFORM_VARYING, UNIFORM_UNIFORM } ptx_uniform;

/* What it does to shared memory, or to another thread's view of it (../cost/ptxas_vectorize.c). */
typedef enum ptx_shared {
    SHARED_NONE,   /* nothing, or it reads in a way that ptxas does not join */
    SHARED_LOAD,   /* ptxas joins these ... */
    SHARED_STORE,  /* ... and these; to other spaces they do nothing */
    SHARED_ATOMIC, /* changes it, unless the space is another one */
    SHARED_SYNC    /* no access moves across it */
} ptx_shared;

/* How it orders accesses (../hazards/sites.c). */
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

/* PTX_OP_unknown for any other name. */
ptx_opcode ptx_opcode_named(const char *name);

/* clang-format off */

/* Modifiers that something asks for beside the instruction's own decoding. X(enumerator, spelling) */
#define PTX_MODIFIER_MAP(X)                                                                        \
    X(ACQUIRE, "acquire") X(RELEASE, "release") X(ACQ_REL, "acq_rel") X(RELAXED, "relaxed")        \
    X(VOLATILE, "volatile") X(MMIO, "mmio") X(REDUCE, "reduce") X(BULK, "bulk")                    \
    X(CTA, "cta") X(CLUSTER, "cluster") X(WARP, "warp") X(ALIGNED, "aligned")                      \
    X(ARRIVE, "arrive") X(RED, "red") X(MBARRIER, "mbarrier")                                      \
    X(MBARRIER_INIT, "mbarrier_init") X(PROXY, "proxy")                                            \
    X(GLOBAL, "global") X(SHARED, "shared") X(SHARED_CTA, "shared::cta") X(LOCAL, "local")         \
    X(PARAM, "param") X(CONST, "const") X(V2, "v2") X(V4, "v4") X(HI, "hi")                        \
    X(ADD, "add") X(INC, "inc") X(MIN, "min") X(MAX, "max") X(AND, "and") X(OR, "or")              \
    X(XOR, "xor") X(MMA, "mma") X(MMA_ASYNC, "mma_async")

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

/* Its bit; 0 for any other. */
uint64_t ptx_modifier_bit(const char *name);

#endif
