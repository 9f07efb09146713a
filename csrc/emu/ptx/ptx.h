/* What PTX says: the parsed module. Knows nothing of execution; everything lives in one arena.
 *
 * ptx_parse reads text; per function it also builds the control-flow graph (cfg.c: the point where
 * diverged lanes meet again) and gives every virtual register a place in the frame (slots.c:
 * registers whose lives do not overlap share one, so that a warp's frame stays in cache).
 */
#ifndef EMU_PTX_H
#define EMU_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../core/status.h"
#include "opcode.h"

/* clang-format off */

/* X(enumerator, spelling after the dot, bytes) */
#define PTX_TYPE_MAP(X)                                                                            \
    X(PRED, pred, 4)                                                                               \
    X(B8, b8, 1) X(U8, u8, 1) X(S8, s8, 1)                                                         \
    X(B16, b16, 2) X(U16, u16, 2) X(S16, s16, 2) X(F16, f16, 2) X(BF16, bf16, 2)                   \
    X(B32, b32, 4) X(U32, u32, 4) X(S32, s32, 4) X(F32, f32, 4) X(TF32, tf32, 4)                   \
    X(F16X2, f16x2, 4) X(BF16X2, bf16x2, 4) X(U16X2, u16x2, 4) X(S16X2, s16x2, 4)                  \
    X(B64, b64, 8) X(U64, u64, 8) X(S64, s64, 8) X(F64, f64, 8)                                    \
    X(F32X2, f32x2, 8) X(B128, b128, 16)                                                           \
    X(E4M3X2, e4m3x2, 2) X(E5M2X2, e5m2x2, 2) X(TEXREF, texref, 8)

typedef enum ptx_type {
#define X(name, spelling, bytes) PTX_##name,
    PTX_TYPE_MAP(X)
#undef X
    PTX_N_TYPES,
    PTX_NO_TYPE = PTX_N_TYPES
} ptx_type;

/* clang-format on */

extern const char *const ptx_type_spelling[PTX_N_TYPES];
extern const unsigned char ptx_type_size[PTX_N_TYPES];

typedef enum ptx_space {
    PTX_GENERIC,
    PTX_GLOBAL,
    PTX_SHARED,
    PTX_LOCAL,
    PTX_CONST,
    PTX_PARAM
} ptx_space;

/* clang-format off */

/* Special registers. X(enumerator, spelling after the %) ; .x .y .z are separate ones. */
#define PTX_SPECIAL_MAP(X)                                                                         \
    X(TID_X, "tid.x") X(TID_Y, "tid.y") X(TID_Z, "tid.z")                                          \
    X(NTID_X, "ntid.x") X(NTID_Y, "ntid.y") X(NTID_Z, "ntid.z")                                    \
    X(CTAID_X, "ctaid.x") X(CTAID_Y, "ctaid.y") X(CTAID_Z, "ctaid.z")                              \
    X(NCTAID_X, "nctaid.x") X(NCTAID_Y, "nctaid.y") X(NCTAID_Z, "nctaid.z")                        \
    X(LANEID, "laneid") X(WARPID, "warpid") X(NWARPID, "nwarpid")                                  \
    X(SMID, "smid") X(NSMID, "nsmid") X(GRIDID, "gridid")                                          \
    X(LANEMASK_EQ, "lanemask_eq") X(LANEMASK_LE, "lanemask_le") X(LANEMASK_LT, "lanemask_lt")      \
    X(LANEMASK_GE, "lanemask_ge") X(LANEMASK_GT, "lanemask_gt")                                    \
    X(CLOCK, "clock") X(CLOCK64, "clock64") X(GLOBALTIMER, "globaltimer")                          \
    X(DYNAMIC_SMEM_SIZE, "dynamic_smem_size") X(TOTAL_SMEM_SIZE, "total_smem_size")                \
    X(CLUSTERID_X, "clusterid.x") X(CLUSTER_CTARANK, "cluster_ctarank")                            \
    X(CLUSTER_NCTARANK, "cluster_nctarank")                                                        \
    X(CLUSTERID_Y, "clusterid.y") X(CLUSTERID_Z, "clusterid.z")                                    \
    X(NCLUSTERID_X, "nclusterid.x") X(NCLUSTERID_Y, "nclusterid.y")                                \
    X(NCLUSTERID_Z, "nclusterid.z")                                                                \
    X(CLUSTER_CTAID_X, "cluster_ctaid.x") X(CLUSTER_CTAID_Y, "cluster_ctaid.y")                    \
    X(CLUSTER_CTAID_Z, "cluster_ctaid.z")                                                          \
    X(CLUSTER_NCTAID_X, "cluster_nctaid.x") X(CLUSTER_NCTAID_Y, "cluster_nctaid.y")                \
    X(CLUSTER_NCTAID_Z, "cluster_nctaid.z") X(IS_EXPLICIT_CLUSTER, "is_explicit_cluster")          \
    X(CLOCK_HI, "clock_hi") X(GLOBALTIMER_LO, "globaltimer_lo")                                    \
    X(GLOBALTIMER_HI, "globaltimer_hi") X(AGGR_SMEM_SIZE, "aggr_smem_size")                        \
    X(OTHER, "") /* %envreg3, %pm0, ...: the machine has it, decode refuses it */

typedef enum ptx_special {
#define X(name, spelling) PTX_SPECIAL_##name,
    PTX_SPECIAL_MAP(X)
#undef X
    PTX_N_SPECIALS
} ptx_special;

/* clang-format on */

typedef struct ptx_register {
    const char *name; /* "%r12" */
    ptx_type type;    /* as declared */
    uint32_t slot;    /* byte offset in the frame, aligned to its vector (below) */
} ptx_register;

/* Bytes of a register's 32-lane vector in the frame: 8- and 16-bit registers are 32 x uint16_t
 * (64), predicates are 32 x uint32_t, each 0 or ~0 (128), 32-bit 128, 64-bit 256, b128 512. */
uint32_t ptx_slot_bytes(ptx_type type);

typedef struct ptx_variable {
    const char *name;
    ptx_space space;
    ptx_type type; /* of an element */
    uint32_t align;
    uint64_t size;   /* bytes; 0 for an extern .shared array, sized at launch */
    uint64_t offset; /* within the module's (global, const) or function's (shared, local, param)
                      * block of that space. Module-level .shared variables come before a
                      * function's. One .shared variable has one offset in all entries that reach
                      * it. An extern .shared array has 0 here: it starts where the static block of
                      * the launched entry ends, rounded up to the array's align. */
    bool external;
    bool call_site;      /* PARAM declared in a body, to pass to a call: lives in the local block */
    unsigned char *init; /* size bytes, or NULL for zeros */
    struct ptx_relocation {                  /* addresses of other variables in the initialiser */
        uint64_t at;                         /* 8 bytes from here on */
        const struct ptx_variable *variable; /* or: */
        const struct ptx_function *function;
        int64_t addend;
        bool generic;
    } *relocations;
    uint32_t n_relocations;
} ptx_variable;

typedef enum ptx_operand_kind {
    PTX_REGISTER,  /* index; negated for !%p */
    PTX_IMMEDIATE, /* bits: an integer, or, if is_float, the bits of a double (value) */
    PTX_SPECIAL,   /* special */
    PTX_VECTOR,    /* items: {%r1, %r2} ; also call lists (%p1, %p2) */
    PTX_ADDRESS,   /* [variable + register + offset]: either may be absent. items: what stands after
                    * a comma in the brackets, [%rd1, {%r1, %r2}] has one item, a VECTOR */
    PTX_SYMBOL,    /* variable + offset, its address as a value; or function */
    PTX_LABEL,     /* target instruction index */
    PTX_TARGETS,   /* targets: what the .branchtargets or .calltargets named here lists */
    PTX_SINK       /* _ */
} ptx_operand_kind;

typedef struct ptx_operand {
    ptx_operand_kind kind;
    bool negated;      /* !%p, or -imm already folded into bits */
    bool is_float;     /* immediate written as a float: 0f..., 0d..., 1.5 ; value holds it */
    bool has_register; /* ADDRESS */
    uint32_t reg;      /* REGISTER, ADDRESS: index into function->registers */
    uint64_t bits;     /* IMMEDIATE, integers, two's complement */
    double value;      /* IMMEDIATE, floats. 0f keeps exact bits in float_bits */
    uint32_t float_bits;
    ptx_special special;
    int64_t offset;                      /* ADDRESS, SYMBOL */
    const ptx_variable *variable;        /* ADDRESS, SYMBOL */
    const struct ptx_function *function; /* SYMBOL */
    uint32_t target;                     /* LABEL: index into function->instructions */
    struct ptx_operand *items;           /* VECTOR, ADDRESS */
    uint32_t n_items;
    const struct ptx_targets *targets; /* TARGETS */
    struct ptx_operand *pair;          /* "%r1|%p1": what stands after the bar, else NULL */
    const char *selector; /* "%r1.b0", "%r1.h1" of video instructions: "b0", else NULL */
} ptx_operand;

/* A list of targets. Many instructions may name one list, and a list names no other list: so what walks
 * over operands does not walk over these. */
typedef struct ptx_targets {
    ptx_operand *items; /* LABEL, or SYMBOL of a function */
    uint32_t n_items;
} ptx_targets;

enum {
    PTX_MAX_MODIFIERS = 16, /* the longest in PTX 9.0, mma.sp with block scales, has 14 */
    PTX_NO_TARGET = 0xffffffffu
};

/* Where code was written and, if it was inlined, where its function was called from, and so on. */
typedef struct ptx_position {
    const char *file; /* NULL: the text does not name it */
    uint32_t file_number, line, column;
    const struct ptx_position *caller;
} ptx_position;

typedef struct ptx_instruction {
    const char *opcode;                       /* "fma" */
    const char *modifiers[PTX_MAX_MODIFIERS]; /* "rn", "ftz", "f32" */
    uint32_t n_modifiers;
    ptx_opcode op;
    uint64_t has;     /* modifiers, as PTX_HAS_... */
    uint32_t types;   /* modifiers that are types: bit 1 << ptx_type for each */
    const char *text; /* the whole instruction as written, white space folded, NUL-terminated */
    bool guarded, guard_negated;
    uint32_t guard; /* register index */
    ptx_operand *operands;
    uint32_t n_operands;
    uint32_t ptx_line;
    const char *file; /* source position from .loc, NULL/0 if none: that of the code itself */
    uint32_t line;
    uint32_t file_number;         /* as in .loc */
    const ptx_position *position; /* the same with its callers; NULL if none */
    uint32_t reconvergence; /* branches: instruction index of the block's immediate post-dominator,
                             * early exits left out (reconvergence.c). PTX_NO_TARGET: the arms do
                             * not meet; lanes that stay go on to where an outer branch meets */
} ptx_instruction;

typedef struct ptx_function {
    const char *name;
    uint32_t number; /* in module->functions, from 1; 0: a prototype, which is no function */
    bool is_entry;
    bool is_declaration;
    ptx_variable **parameters; /* space PARAM, offsets as CUDA lays them out */
    uint32_t n_parameters;
    uint64_t parameters_bytes;
    ptx_variable **returns;
    uint32_t n_returns;
    uint64_t returns_bytes; /* returns have a block of their own, from offset 0 */
    ptx_register *registers;
    uint32_t n_registers;
    ptx_variable **variables; /* .shared, .local, and .param of call sites */
    uint32_t n_variables;
    uint64_t shared_bytes;         /* static, module-level ones included */
    uint64_t local_bytes;          /* a thread: .local and call-site .param variables */
    ptx_instruction *instructions; /* the last one always leaves: exit, ret, trap, bra or brx */
    uint32_t n_instructions;
    uint32_t frame_bytes;                         /* registers' slots; multiple of 256 */
    uint32_t max_threads[3], required_threads[3]; /* .maxntid, .reqntid; 0 if not said */
    uint32_t cluster[3];                          /* .reqnctapercluster; 0 if not said */
} ptx_function;

typedef struct ptx_module {
    struct ptx_arena *arena;
    uint32_t version;   /* 90 for 9.0 */
    const char *target; /* "sm_80" */
    ptx_variable **variables;
    uint32_t n_variables;
    uint64_t global_bytes, const_bytes; /* totals of the module's variables in that space */
    ptx_function **functions;
    uint32_t n_functions;
} ptx_module;

/* SMK_KERNEL_IMAGE, with the line, for text that is not well-formed PTX. Opcodes and modifiers are
 * not judged here: decode.c does, when a function is first run. SMK_INTERRUPTED if the poller says so. */
struct interrupt_poller;
smk_code ptx_parse(const char *text, size_t size, struct interrupt_poller *poller, ptx_module **out,
                   smk_status *status);
void ptx_free(ptx_module *module);

const ptx_function *ptx_find_function(const ptx_module *module, const char *name);

static inline const ptx_opcode_facts *ptx_facts(const ptx_instruction *instruction) {
    return &ptx_opcode_facts_of[instruction->op];
}

/* Whether operand k is written, or read, and with it its items and its pair. wgmma's accumulators
 * are both. The registers of an address are read in any case. */
bool ptx_operand_is_destination(const ptx_instruction *instruction, uint32_t k);
bool ptx_operand_is_source(const ptx_instruction *instruction, uint32_t k);

/* Whether the one register that it writes may have the slot of one that it reads (and that nobody
 * reads later): arithmetic on one lane's values. Of all other instructions no result has the slot
 * of a source, unless the text names the same register. */
bool ptx_may_write_in_place(const ptx_instruction *instruction);

/* Whether control cannot get past this instruction (if it is not guarded): bra brx exit ret trap. */
bool ptx_leaves(const ptx_instruction *instruction);
/* bra brx */
bool ptx_branches(const ptx_instruction *instruction);
/* A branch at which lanes can go different ways: under a guard, or by a table. */
bool ptx_diverges(const ptx_instruction *instruction);

/* The bits that an immediate has as an operand of that type (rounds doubles to f32, truncates).
 * Predicates: 0 or 0xffffffff. */
uint64_t ptx_immediate_bits(const ptx_operand *operand, ptx_type type);

/* A copy of a text of the module that lives as long as the trace, one for equal texts; NULL for NULL, and
 * if out of memory. */
struct smk_trace;
const char *ptx_keep_text(struct smk_trace *trace, const char *text);

#endif
