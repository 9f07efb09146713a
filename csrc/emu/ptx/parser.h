/* What the parser's files share. Private to the reader.
 *
 *     parser.c               the module: directives, linkage, ptx_parse itself
 *     parser_function.c      .entry and .func: header, parameters, body, and what follows a body
 *     parser_statement.c     one instruction, label or directive of a body
 *     parser_operand.c       operands
 *     parser_variable.c      variables: type, size, place
 *     parser_initialiser.c   the values that they start with
 *     parser_constant.c      numbers and constant expressions
 *     scope.c                what a name means here
 *     layout.c               where .shared variables stand, once all functions are known
 *
 * A function that returns bool returns false after it (or one that it called) has recorded a
 * failure; a function that returns a pointer, NULL. From then on the text counts as ended, so every
 * loop over tokens ends too.
 */
#ifndef EMU_PARSER_H
#define EMU_PARSER_H

#include "../base/interrupt.h"
#include "lexer.h"
#include "names.h"

enum { MAX_DEPTH = 128 }; /* of braces, of parentheses in expressions, of initialiser lists */

/* An array that grows; its memory is malloc'ed and reused from one function to the next. */
typedef struct list {
    void *items;
    size_t count, capacity;
} list;

/* Who uses whom, for layout.c: a function or an initialiser names a variable or a function. */
typedef struct reference {
    struct variable_note *variable;
    struct function_note *function;
    struct reference *next;
} reference;

/* What the parser must know of a variable or function beyond what the module keeps. */
typedef struct variable_note {
    ptx_variable *variable;
    bool of_module;        /* not a .shared variable of a function */
    reference *references; /* of its initialiser */
    const void *last_user; /* whose references have it already */
    uint32_t used_line;    /* where it was first used, 0 for never */
    uint32_t visited;
    list entries; /* .shared: the kernels that reach it; layout.c's own */
} variable_note;

typedef struct function_note {
    ptx_function *function;
    reference *references;
    const void *last_user;
    uint32_t visited;
    struct function_note *alias_of;
} function_note;

typedef struct scope {
    binding *bindings;
    size_t first_pending;
    uint64_t local_bytes; /* to go back to when the scope ends */
} scope;

/* An operand that names what was not declared yet: a label further down. */
typedef struct pending {
    ptx_operand *operand;
    name *name;
    uint32_t line;
    bool of_list; /* an item of .branchtargets: a label, not another list */
} pending;

/* An operand on the way into its instruction. */
typedef struct draft {
    ptx_operand operand;
    name *pending; /* not NULL: a label to be found when its scope ends */
    uint32_t line;
    bool of_list; /* as in pending */
} draft;

typedef struct constant {
    bool is_float, is_unsigned;
    uint64_t bits;
    double value;
    uint32_t float_bits;
} constant;

typedef struct parser {
    lexer lexer;
    token token; /* the next one, not yet taken */
    smk_status *status;
    interrupt_poller *poller;
    bool failed;
    ptx_arena *arena;   /* the module's */
    ptx_arena *scratch; /* until the end of the parse */
    names names;
    scope scopes[MAX_DEPTH]; /* 0: the module; 1: a function's parameters; 2: its body; ... */
    uint32_t depth;
    uint32_t nesting; /* of expressions */
    ptx_module *module;
    list variables;      /* variable_note *, of the module and .shared ones of functions */
    list functions;      /* function_note * */
    list files;          /* const char *, by number */
    list positions;      /* ptx_position *, one a .loc */
    uint64_t text_bytes; /* bounds what initialisers may ask for */
    uint64_t initialised_bytes;

    /* the function being read */
    function_note *note;
    list registers;    /* ptx_register */
    list instructions; /* ptx_instruction */
    list locals;       /* ptx_variable * */
    list pending;
    list drafts;
    uint64_t local_bytes;          /* of the scopes open now */
    uint64_t function_local_bytes; /* the most so far */
    uint32_t file, line;           /* of the last .loc */
    const ptx_position *position;
    size_t first_position; /* in positions, of this function */
    bool label_at_end;     /* a label stands after the last instruction */
} parser;

/* ---- parser.c ---- */

bool parser_fail(parser *p, uint32_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool parser_unexpected(parser *p, const char *wanted);    /* names the token at hand */
void *parser_alloc(parser *p, size_t count, size_t size); /* from the module's arena */
void *parser_scratch(parser *p, size_t count, size_t size);
bool parser_no_memory(parser *p, size_t bytes);
bool parser_goes_on(parser *p, uint64_t work); /* unless the caller wants it to stop: a failure */
bool list_extend(parser *p, list *l, size_t more, size_t size); /* by items of zeros */
void *list_push(parser *p, list *l, size_t size);               /* one */
void list_free(list *l);
void *list_keep(parser *p, const list *l, size_t size); /* a copy in the module's arena */

void parser_advance(parser *p);
bool parser_at(const parser *p, char mark);
bool parser_at_dot(const parser *p, const char *word);
bool parser_take(parser *p, char mark); /* if it is there */
bool parser_take_dot(parser *p, const char *word);
bool parser_expect(parser *p, char mark);
name *parser_expect_name(parser *p, const char *what);
bool parser_skip_braces(parser *p);                   /* { ... } of a section */
bool parser_common_directive(parser *p, bool *known); /* those that stand in modules and bodies */
bool parser_take_space(parser *p, ptx_space *space);

/* ---- scope.c ---- */

bool scope_open(parser *p);
bool scope_close(parser *p); /* also finds the labels that were named in it */
/* Fails if the name has such a meaning at that depth already. */
binding *scope_declare(parser *p, name *n, binding_kind kind, uint32_t depth, uint32_t line);
/* Registers of .v2 .v4 .v8 are as many scalar ones; vector: 0 for a scalar. */
bool scope_declare_registers(parser *p, name *n, ptx_type type, uint32_t vector, uint32_t line);
binding *scope_find(parser *p, name *n); /* as a value; NULL without a failure if it has none */

/* ---- parser_constant.c ---- */

bool parser_constant(parser *p, constant *out);
bool parser_integer(parser *p, uint64_t most, const char *what, uint64_t *out);
bool parser_offset(parser *p, int64_t *offset); /* + 4 - 8 ..., possibly nothing */
void constant_to_immediate(const constant *c, ptx_operand *out);

/* ---- parser_variable.c ---- */

/* The declaration after its space: attributes, type, names, arrays, initialisers, semicolon. */
bool parser_variables(parser *p, ptx_space space, bool external);
/* One .param of a function header or prototype, after the word .param. */
ptx_variable *parser_parameter(parser *p, uint64_t *block_bytes);
ptx_type parser_take_type(parser *p);              /* PTX_NO_TYPE if the token is none */
uint32_t parser_take_vector(parser *p);            /* .v2 .v4 .v8; 0 if the token is none */
bool parser_alignment(parser *p, uint32_t *align); /* the number after .align */
void parser_note_use(parser *p, const binding *b, uint32_t line, reference **of, const void *user);

/* ---- parser_function.c ---- */

bool parser_function(parser *p, bool is_entry, bool external);
/* (parameters), of a header or a prototype */
bool parser_parameters(parser *p, bool bind, ptx_variable ***out, uint32_t *n, uint64_t *bytes);
function_note *parser_function_named(parser *p, name *n, uint32_t line);

/* ---- parser_statement.c ---- */

bool parser_statement(parser *p); /* anything of a body but braces */

/* ---- parser_operand.c ---- */

bool parser_operands(parser *p, ptx_instruction *out); /* up to the semicolon */
/* .branchtargets L0, L1; with what: "label"; .calltargets with what: "function" */
bool parser_target_list(parser *p, ptx_operand *out);

/* ---- layout.c ---- */

bool layout_shared(parser *p);

#endif
