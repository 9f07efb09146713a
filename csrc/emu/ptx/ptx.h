/* The parsed PTX module: syntax and static analyses, nothing about execution. It owns one arena.
 *
 * ptx_parse parses the text. For each function it also finds the reconvergence point of each branch
 * (reconvergence.c, on the control-flow graph of cfg.c) and allocates registers
 * (register_allocation.c). A frame is a warp's register file for one function call. Registers with
 * disjoint live ranges share a slot of the frame, so that the frame stays in the host's cache.
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
    PTX_SHARED, /* .shared::cta */
    PTX_LOCAL,
    PTX_CONST,
    PTX_PARAM,
    PTX_SHARED_CLUSTER, /* of instructions only */
    PTX_N_SPACES
} ptx_space;

/* clang-format off */

/* Special registers. X(enumerator, spelling after the %). Components .x .y .z have separate
 * rows. */
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
    X(ENVREG1, "envreg1") X(ENVREG2, "envreg2")                                                   \
    X(CLUSTER_NCTAID_Z, "cluster_nctaid.z") X(IS_EXPLICIT_CLUSTER, "is_explicit_cluster")          \
    X(CLOCK_HI, "clock_hi") X(GLOBALTIMER_LO, "globaltimer_lo")                                    \
    X(GLOBALTIMER_HI, "globaltimer_hi") X(AGGR_SMEM_SIZE, "aggr_smem_size")                        \
    X(RESERVED_SMEM_OFFSET_BEGIN, "reserved_smem_offset_begin")                                    \
    X(RESERVED_SMEM_OFFSET_0, "reserved_smem_offset_0")                                            \
    X(RESERVED_SMEM_OFFSET_1, "reserved_smem_offset_1")                                            \
    X(RESERVED_SMEM_OFFSET_CAP, "reserved_smem_offset_cap")                                        \
    X(RESERVED_SMEM_OFFSET_END, "reserved_smem_offset_end")                                        \
    X(CURRENT_GRAPH_EXEC, "current_graph_exec")                                                    \
    X(OTHER, "") /* valid PTX that decode rejects: %pm0, ... */                                    \
    X(ZERO, "")  /* reads 0: %tid.w and other fourth components, %envreg3, ... */

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
    uint32_t slot;    /* byte offset in the frame, a multiple of ptx_slot_bytes */
    uint16_t used;    /* which bytes of its values are not only copied (copied.c), as a mask */
} ptx_register;

/* Bytes of a register's slot, which holds all 32 lanes: 64 for 8 and 16 bits (uint16_t per lane),
 * 128 for predicates (uint32_t per lane, 0 or ~0) and 32 bits, 256 for 64 bits, 512 for b128. */
uint32_t ptx_slot_bytes(ptx_type type);

typedef struct ptx_variable {
    const char *name;
    ptx_space space;
    ptx_type type; /* of an element */
    uint32_t align;
    uint64_t size;    /* bytes; 0 for an extern .shared array, sized at launch */
    uint64_t columns; /* the last dimension of an array that has several; else 0 */
    uint64_t rows;    /* the one before it, of an array that has three or more; else 0 */
    /* In the module's block (global, const) or the function's block (shared, local, param) of that
     * space. Module-level .shared variables precede a function's. A .shared variable has the same
     * offset in all entries that reach it. 0 for an extern .shared array: it starts at the end of
     * the launched entry's static block, rounded up to the array's align. */
    uint64_t offset;
    bool external;
    bool in_register;       /* a parameter or result declared .reg: it is moved to or from `reg` */
    uint32_t reg;           /* index of the first one into the function's registers */
    uint32_t vector;        /* a parameter declared .v2, .v4, ...: components; else 0 */
    bool call_site;         /* a .param declared in a body, for a call: part of the local block */
    unsigned char *init;    /* `size` bytes; NULL: all zero */
    struct ptx_relocation { /* an address in the initialiser */
        uint64_t at;        /* offset of its 8 bytes */
        const struct ptx_variable *variable; /* either this or function */
        const struct ptx_function *function;
        int64_t addend;
        bool generic;
    } *relocations;
    uint32_t n_relocations;
} ptx_variable;

static inline uint32_t ptx_components(const ptx_variable *v) {
    return v->vector ? v->vector : 1;
}

typedef enum ptx_operand_kind {
    PTX_REGISTER,  /* reg; negated: !%p */
    PTX_IMMEDIATE, /* bits: an integer or, if is_float, the bits of `value` */
    PTX_SPECIAL,   /* special */
    PTX_VECTOR,    /* items: {%r1, %r2}, or the (a, b) of a call */
    /* [variable + offset], [register + offset] or [offset]. items: what follows a comma in the
     * brackets; [%rd1, {%r1, %r2}] has one item, a VECTOR. */
    PTX_ADDRESS,
    PTX_SYMBOL,  /* the address of variable + offset, or of function, as a value */
    PTX_LABEL,   /* target */
    PTX_TARGETS, /* targets: a .branchtargets or .calltargets list */
    PTX_SINK     /* _ */
} ptx_operand_kind;

typedef struct ptx_operand {
    ptx_operand_kind kind;
    bool negated;        /* REGISTER: !%p */
    bool is_float;       /* IMMEDIATE: written as a float, such as 0f..., 0d... or 1.5 */
    bool has_register;   /* ADDRESS */
    uint32_t reg;        /* REGISTER, ADDRESS: index into function->registers */
    uint64_t bits;       /* IMMEDIATE: a two's complement integer, or the bits of `value` */
    double value;        /* IMMEDIATE, float */
    uint32_t float_bits; /* IMMEDIATE, float: as f32; for 0f... the exact bits */
    ptx_special special;
    int64_t offset;                      /* ADDRESS, SYMBOL */
    const ptx_variable *variable;        /* ADDRESS, SYMBOL */
    const struct ptx_function *function; /* SYMBOL */
    uint32_t target;                     /* LABEL: index into function->instructions */
    struct ptx_operand *items;           /* VECTOR, ADDRESS */
    uint32_t n_items;
    const struct ptx_targets *targets; /* TARGETS */
    struct ptx_operand *pair;          /* the %p1 of "%r1|%p1"; NULL: none */
    const char *selector;              /* the "b0" of "%r1.b0" in video instructions; NULL: none */
} ptx_operand;

/* A target list. Many instructions may share one. It is not part of `items`, so that traversals of
 * operands skip it and stay linear in the size of the text. Lists do not nest. */
typedef struct ptx_targets {
    ptx_operand *items; /* LABEL, or SYMBOL of a function */
    uint32_t n_items;
} ptx_targets;

enum {
    PTX_MAX_MODIFIERS = 16, /* the longest in PTX 9.0, mma.sp with block scales, has 14 */
    PTX_NO_TARGET = 0xffffffffu
};

/* A source position and, if the code was inlined, the chain of call sites. */
typedef struct ptx_position {
    const char *file; /* NULL: no .file directive for it */
    uint32_t file_number, line, column;
    const struct ptx_position *caller;
} ptx_position;

typedef struct ptx_instruction {
    const char *opcode;                       /* "fma" */
    const char *modifiers[PTX_MAX_MODIFIERS]; /* "rn", "ftz", "f32" */
    uint32_t n_modifiers;
    ptx_opcode op;
    uint64_t has;     /* modifiers, as PTX_HAS_... bits */
    uint32_t types;   /* modifiers that are types, as bits 1 << ptx_type */
    const char *text; /* the source of the instruction, white space collapsed, NUL-terminated */
    bool guarded, guard_negated;
    uint32_t guard; /* register index */
    ptx_operand *operands;
    uint32_t n_operands;
    uint32_t ptx_line;
    const char *file; /* source position from .loc, innermost inlined code; NULL/0: none */
    uint32_t line;
    uint32_t file_number;         /* as in .loc */
    const ptx_position *position; /* the same with its callers; NULL: none */
    /* Branches: index of the reconvergence point, the first instruction of the block's immediate
     * post-dominator when early exits are ignored (reconvergence.c). PTX_NO_TARGET: the paths do
     * not reconverge here; lanes that do not exit reconverge at an enclosing branch. */
    uint32_t reconvergence;
} ptx_instruction;

typedef struct ptx_function {
    const char *name;
    uint32_t number; /* 1 + index in module->functions; 0: a prototype, not a function */
    bool is_entry;
    bool is_declaration;
    ptx_variable **parameters; /* space PARAM; offsets follow CUDA's layout */
    uint32_t n_parameters;
    uint64_t parameters_bytes;
    ptx_variable **returns;
    uint32_t n_returns;
    uint64_t returns_bytes; /* returns form a separate block, from offset 0 */
    ptx_register *registers;
    uint32_t n_registers;
    ptx_variable **variables; /* .shared, .local, and .param of call sites */
    uint32_t n_variables;
    uint64_t shared_bytes;         /* static, including module-level variables */
    uint64_t local_bytes;          /* per thread: .local and call-site .param variables */
    ptx_instruction *instructions; /* the last never falls through: exit, ret, trap, bra or brx */
    uint32_t n_instructions;
    uint32_t frame_bytes;                         /* of all slots; a multiple of 256 */
    uint32_t max_threads[3], required_threads[3]; /* .maxntid, .reqntid; 0: not specified */
    uint32_t cluster[3];                          /* .reqnctapercluster; 0: not specified */
    uint32_t max_cluster_rank[3];                 /* [0]: .maxclusterrank; 0: not specified */
    uint32_t max_registers[3], min_blocks[3];     /* [0]: .maxnreg, .minnctapersm; likewise */
    bool explicit_cluster;                        /* .explicitcluster */
    bool blocks_are_clusters;                     /* .blocksareclusters: the grid counts clusters */
} ptx_function;

typedef struct ptx_module {
    struct ptx_arena *arena;
    uint32_t version;   /* 90 for 9.0 */
    const char *target; /* "sm_80" */
    ptx_variable **variables;
    uint32_t n_variables;
    uint64_t global_bytes, const_bytes; /* of all variables in that space */
    bool reserved_shared;               /* a function reads %reserved_smem_offset_... */
    ptx_function **functions;
    uint32_t n_functions;
} ptx_module;

/* Fails with SMK_KERNEL_IMAGE and the line if the text is not well-formed PTX, with SMK_INTERRUPTED
 * if the poller stops it. Opcodes and modifiers are not checked here: ../machine/decode.c does that
 * when a function first runs. */
struct interrupt_poller;
smk_code ptx_parse(const char *text, size_t size, struct interrupt_poller *poller, ptx_module **out,
                   smk_status *status);
void ptx_free(ptx_module *module);

const ptx_function *ptx_find_function(const ptx_module *module, const char *name);

static inline const ptx_opcode_facts *ptx_facts(const ptx_instruction *instruction) {
    return &ptx_opcode_facts_of[instruction->op];
}

/* Whether operand k is written, or read; this includes its items and its pair. wgmma's accumulators
 * are both. The registers of an address are always read. */
bool ptx_operand_is_destination(const ptx_instruction *instruction, uint32_t k);
bool ptx_operand_is_source(const ptx_instruction *instruction, uint32_t k);

/* Whether the register that it writes may share a slot with a source register that is dead
 * afterwards. True only for lane-wise instructions. Other instructions never overwrite a source's
 * slot, unless the text names the same register twice. */
bool ptx_may_write_in_place(const ptx_instruction *instruction);

/* The elements of a vector, or the operand itself. */
static inline uint32_t ptx_count_items(const ptx_operand *o) {
    return o->kind == PTX_VECTOR ? o->n_items : 1;
}

static inline const ptx_operand *ptx_item(const ptx_operand *o, uint32_t k) {
    return o->kind == PTX_VECTOR ? &o->items[k] : o;
}

/* Of ptx_register.used: also of registers with fewer bytes. */
enum { PTX_ALL_USED = 0xffff };

/* Sets `used` of the function's registers. */
void ptx_find_copied(ptx_function *f);

/* Whether it has a loop that may wait for what another block writes to memory (waits.c). */
bool ptx_waits(const ptx_function *function);

/* bra brx exit ret trap: if unguarded, control never falls through to the next instruction. */
bool ptx_leaves(const ptx_instruction *instruction);
/* bra brx */
bool ptx_branches(const ptx_instruction *instruction);
/* Whether lanes can diverge: a guarded branch, or a branch by a table. */
bool ptx_diverges(const ptx_instruction *instruction);

/* The bits of an immediate as an operand of that type: doubles are rounded to f32, integers
 * truncated. Predicates: 0 or 0xffffffff. */
uint64_t ptx_immediate_bits(const ptx_operand *operand, ptx_type type);

/* Interns a string: a copy that lives as long as the trace. NULL for NULL, and if out of memory. */
struct smk_trace;
const char *ptx_keep_text(struct smk_trace *trace, const char *text);

#endif
