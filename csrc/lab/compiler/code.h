/* PTX instructions of one kernel, before they are printed.
 *
 * A variable of the source is one register, which several instructions write; everything else is
 * a temporary, which one instruction writes.
 */
#ifndef LAB_CODE_H
#define LAB_CODE_H

#include "lab.h"

typedef enum code_class { CODE_PRED, CODE_B32, CODE_B64, CODE_F32, CODE_F64 } code_class;

typedef enum code_operand_kind {
    CODE_NONE,
    CODE_REGISTER, /* integer: its number */
    CODE_INTEGER,
    CODE_REAL32, /* real */
    CODE_REAL64,
    CODE_TEXT /* a variable of the PTX, or a special register */
} code_operand_kind;

typedef struct code_operand {
    code_operand_kind kind;
    union {
        int64_t integer;
        double real;
        const char *text;
    };
} code_operand;

typedef struct code_register {
    code_class class;
    const char *name; /* NULL: a temporary */
    uint32_t reads;
    uint32_t number; /* in the text; 0: not yet numbered */
    /* of contraction: the block and the instruction that wrote it last, and the product that it
     * holds since; blocks and products count from 1 */
    uint32_t written_in, written_at, product;
    bool lives_on; /* some block reads it before writing it */
} code_register;

typedef enum code_kind {
    CODE_PLAIN,    /* op to, from...: removed if nothing reads `to` */
    CODE_MULTIPLY, /* a product of floats, which may become part of an fma */
    CODE_ADD,      /* a sum of floats */
    CODE_LOAD,     /* op to, [from0 + offset]: removed if nothing reads `to` */
    CODE_EFFECT,   /* as CODE_PLAIN, but stays */
    CODE_MEMORY,   /* op to, [from0 + offset], from1...: stays */
    CODE_STORE,    /* op [from0 + offset], from1... */
    CODE_BRANCH,
    CODE_LABEL,
    CODE_GONE
} code_kind;

typedef struct code_insn {
    code_kind kind;
    uint8_t n_to, n_from;
    bool braces, guard_not; /* braces: around several results or values */
    int guard;              /* a predicate register; -1: none */
    uint32_t label;
    /* of contraction: a product's block, the first equal product, and what uses these */
    uint32_t block, leader, uses;
    bool unfusable; /* something other than a sum of the same block uses it */
    const char *op;
    int64_t offset;
    lab_position at;
    code_operand to[4], from[5];
} code_insn;

typedef struct code {
    lab *l;
    lab_vector insns, registers, labels; /* labels: uint32_t, how many branches lead there */
    bool unreachable;                    /* after a branch: what is added is dropped */
    lab_position at;                     /* of what is added */
    uint32_t *total;                     /* instructions of the module */
    code_insn dropped;                   /* what an unreachable instruction is written to */
} code;

static inline code_operand code_reg(int r) {
    return (code_operand){.kind = CODE_REGISTER, .integer = r};
}
static inline code_operand code_int(int64_t value) {
    return (code_operand){.kind = CODE_INTEGER, .integer = value};
}
static inline code_operand code_symbol(const char *text) {
    return (code_operand){.kind = CODE_TEXT, .text = text};
}

int code_new_register(code *c, code_class class, const char *name);
code_class code_class_of(const code *c, int r);

uint32_t code_new_label(code *c);
void code_place(code *c, uint32_t label);
/* guard -1: always. */
void code_branch(code *c, uint32_t label, int guard, bool guard_not);

/* A further instruction, to be completed; never NULL. */
code_insn *code_add(code *c, code_kind kind, const char *op);
/* With one result and up to 3 sources, CODE_NONE: none. */
void code_plain(code *c, code_kind kind, const char *op, int to, code_operand a, code_operand b,
                code_operand d);

/* Contracts products and sums, removes what nothing reads. */
void code_finish(code *c);
void code_contract(code *c); /* contract.c */

/* Text that grows; `failed` stays if memory is out. */
typedef struct code_text {
    char *bytes;
    size_t size, capacity;
    bool failed;
} code_text;

void code_printf(code_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void code_print_registers(code *c, code_text *t);
void code_print(code *c, code_text *t);

#endif
