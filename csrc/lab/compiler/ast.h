/* The syntax tree: expressions with their types, statements, symbols, functions.
 *
 * The parser inserts every conversion as a node LAB_CAST, so the operands of an operator have the
 * types that the code generator needs.
 */
#ifndef LAB_AST_H
#define LAB_AST_H

#include "token.h"
#include "type.h"

typedef enum lab_expression_kind {
    LAB_INT_CONSTANT,   /* integer */
    LAB_FLOAT_CONSTANT, /* real */
    LAB_VARIABLE,       /* symbol */
    LAB_SPECIAL,        /* threadIdx.x, ...: `op` is a row of lab_specials */
    LAB_DEREFERENCE,    /* *a */
    LAB_ADDRESS,        /* &a */
    LAB_DECAY,          /* an array as the pointer to its first element */
    LAB_LANE,           /* a.x: lane `op` of a vector */
    LAB_NEGATE,
    LAB_NOT, /* !a, of type bool */
    LAB_COMPLEMENT,
    LAB_BINARY,     /* a op b: arithmetic or comparison, of operands of one type */
    LAB_OFFSET,     /* pointer a + integer b (64 bits or 32) */
    LAB_DIFFERENCE, /* pointer - pointer */
    LAB_AND,
    LAB_OR,
    LAB_CONDITIONAL, /* a ? b : c */
    LAB_COMMA,
    LAB_ASSIGN,    /* a = b */
    LAB_UPDATE,    /* a = (type of a)((type of b)a op b) */
    LAB_INCREMENT, /* ++a, and with `post` a++; op is '+' or '-' */
    LAB_CAST,
    LAB_CALL,    /* of `function` */
    LAB_BUILTIN, /* of `builtin` */
    LAB_MAKE     /* a vector of its arguments */
} lab_expression_kind;

enum { LAB_MAX_ARGUMENTS = 16 };

struct lab_function;
struct lab_builtin;
struct lab_symbol;

typedef struct lab_expression {
    lab_expression_kind kind;
    const lab_type *type;
    lab_position at;
    uint32_t op; /* of LAB_BINARY and LAB_UPDATE: the punctuator */
    uint16_t depth;
    bool post;
    bool modifies;   /* assigns, or may */
    bool speculates; /* cheap and safe where it would not be evaluated */
    struct lab_expression *a, *b, *c;
    struct lab_symbol *symbol;
    int64_t integer;
    double real;
    struct lab_function *function;
    const struct lab_builtin *builtin;
    struct lab_expression **arguments;
    uint32_t n_arguments;
} lab_expression;

typedef enum lab_storage { LAB_LOCAL_STORAGE, LAB_SHARED_STORAGE, LAB_DYNAMIC_SHARED } lab_storage;

/* Where a pointer points. */
typedef enum lab_space {
    LAB_UNDECIDED,
    LAB_GENERIC,
    LAB_GLOBAL_SPACE,
    LAB_SHARED_SPACE,
    LAB_LOCAL_SPACE,
    LAB_CONST_SPACE
} lab_space;

/* An assignment to a pointer variable, whose space follows from all of them. */
typedef struct lab_assigned {
    const lab_expression *value;
    struct lab_assigned *next;
} lab_assigned;

typedef struct lab_symbol {
    lab_name *name;
    const lab_type *type;
    lab_position at;
    lab_storage storage;
    bool is_parameter, in_memory, is_assigned, is_module;
    lab_space module_space;         /* of a variable of the module */
    const lab_expression *constant; /* its value, if known when compiling */
    struct lab_expression **values; /* initializer of a module's array */
    uint32_t n_values;
    lab_assigned *assigned;          /* its values, if it is a pointer */
    struct lab_symbol *next_pointer; /* of its function */
    struct lab_symbol *outer;        /* what the name meant outside */
    struct lab_symbol *scope_next;   /* of the same scope */
    uint32_t depth;                  /* of its scope */
    struct lab_function *function;   /* what the name calls; NULL: a variable */
    /* of the code generator */
    const char *ptx;
    const void *declared_in;
    int registers[4]; /* or registers[0]: its address */
    lab_space space, argument_space;
} lab_symbol;

typedef enum lab_statement_kind {
    LAB_EXPRESSION_STATEMENT, /* a */
    LAB_DECLARATION,          /* symbol, values: the initializer's */
    LAB_BLOCK,                /* body */
    LAB_IF,                   /* a, body, other */
    LAB_LOOP,                 /* a: condition or NULL, body, step or NULL; test_last: do */
    LAB_BREAK,
    LAB_CONTINUE,
    LAB_RETURN /* a or NULL */
} lab_statement_kind;

typedef struct lab_statement {
    lab_statement_kind kind;
    lab_position at, end;      /* end: of a block, its '}' */
    bool test_last, has_value; /* has_value: a declaration with an initializer */
    lab_expression *a, *step;
    struct lab_statement *body, *other, *next;
    lab_symbol *symbol;
    lab_expression **values;
    uint32_t n_values;
} lab_statement;

typedef struct lab_function {
    lab_name *name;
    const lab_type *result;
    lab_position at;
    bool is_kernel;
    uint32_t max_threads;
    lab_symbol *parameters[LAB_MAX_PARAMETERS];
    uint32_t n_parameters;
    lab_statement *body;  /* NULL: only declared */
    lab_symbol *pointers; /* variables and parameters that are pointers */
    bool active;          /* being inlined */
    struct lab_function *next;
} lab_function;

typedef struct lab_module {
    lab_function *functions; /* in the order of the source */
    lab_symbol **variables;  /* __device__ and __constant__ */
    uint32_t n_variables;
} lab_module;

#endif
