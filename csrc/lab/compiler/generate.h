/* Syntax tree to PTX instructions.
 *
 * Scalars live in registers, one per variable, vectors in one per lane. What has its address taken
 * and arrays live in memory. Calls are inlined.
 */
#ifndef LAB_GENERATE_H
#define LAB_GENERATE_H

#include "ast.h"
#include "code.h"

/* PTX of the module, for the caller to free; NULL after an error. */
char *lab_generate(lab *l, lab_module *m);

/* ---- between the files generate*.c ---- */

typedef struct value {
    code_operand part[4]; /* one per lane */
} value;

/* A place in memory. */
typedef struct address {
    lab_space space;
    code_operand base;
    int64_t offset;
} address;

typedef struct generator {
    lab *l;
    code code;           /* of the kernel */
    code_text variables; /* its .shared and .local variables */
    code_text module;    /* the text so far */
    const lab_function *kernel;
    uint32_t work, inlined, total;
    uint32_t continue_label, break_label;
    /* of the function that is being inlined; return_label is unused in a kernel */
    const lab_type *result;
    uint32_t return_label;
    int results[4];
} generator;

/* Counts work; false if there was an error or too much. */
bool generate_step(generator *g, lab_position at);

value generate_value(generator *g, const lab_expression *e, const int *target);
code_operand generate_scalar(generator *g, const lab_expression *e);
/* Into registers of its own or of a variable. */
void generate_into(generator *g, const lab_expression *e, const int *registers);
void generate_effect(generator *g, const lab_expression *e);
/* Jumps to the label if e is `sense`. */
void generate_branch(generator *g, const lab_expression *e, uint32_t label, bool sense);
void generate_statement(generator *g, const lab_statement *s);
value generate_call(generator *g, const lab_expression *e);
value generate_builtin(generator *g, const lab_expression *e);

/* Memory and pointers: generate_memory.c */
address generate_address(generator *g, const lab_expression *object);
address generate_pointer(generator *g, const lab_expression *pointer);
code_operand generate_pointer_value(generator *g, const lab_expression *e, const int *target);
void generate_load(generator *g, const lab_type *type, address a, const int *to);
void generate_store(generator *g, const lab_type *type, address a, const value *v);
const char *generate_space_text(lab_space space); /* ".shared"; generic: "" */
lab_space generate_pointer_space(const lab_expression *e);
/* Decides the spaces of a function's pointers. */
void generate_decide_spaces(generator *g, const lab_function *f);
code_operand generate_in_space(generator *g, code_operand pointer, lab_space from, lab_space to);
void generate_declare_memory(generator *g, lab_symbol *s);

/* Operands */
int generate_register(generator *g, const lab_type *type); /* a temporary */
int generate_variable_register(generator *g, const lab_symbol *s, const lab_type *type, char lane);
code_operand generate_integer(generator *g, code_operand o); /* a predicate as 0 or 1 */
int generate_predicate(generator *g, code_operand o);
void generate_move(generator *g, const lab_type *type, int to, code_operand from);
code_operand generate_copy(generator *g, const lab_type *type, code_operand o);
code_class generate_class(const lab_type *type);
uint32_t generate_lanes(const lab_type *type);
const lab_type *generate_lane_type(const lab_type *type);
code_operand generate_binary(generator *g, uint32_t op, const lab_type *type, code_operand a,
                             code_operand b, int target);
code_operand generate_converted(generator *g, code_operand o, const lab_type *from,
                                const lab_type *to, int target);

#endif
