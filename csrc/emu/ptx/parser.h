/* The parser's internal interface: a recursive-descent parser with one token of lookahead.
 *
 *     parser.c               the module: directives, linkage, ptx_parse itself
 *     parser_function.c      .entry and .func: header, parameters, body, analyses after the body
 *     parser_statement.c     one instruction, label or directive of a body
 *     parser_operand.c       operands
 *     parser_rewrite.c       forms that become several instructions
 *     parser_defaults.c      modifiers that old versions of PTX leave out
 *     parser_variable.c      variables: type, size, offset
 *     parser_initialiser.c   initial values of variables
 *     parser_constant.c      numbers and constant expressions
 *     parser_directive.c     directives that modules and bodies share
 *     parser_tokens.c        errors, memory, tokens: what all of these use
 *     scope.c                scopes and name lookup
 *     layout.c               offsets of .shared variables, once all functions are parsed
 *
 * On failure a function records the error (or its callee has) and returns false or NULL. The lexer
 * then returns only TOKEN_END, so every loop over tokens terminates.
 */
#ifndef EMU_PARSER_H
#define EMU_PARSER_H

#include "../../core/interrupt.h"
#include "lexer.h"
#include "names.h"

enum { MAX_DEPTH = 128 }; /* of scopes, and of nested expressions */

/* A growable array on the heap; the lists of a function are reused for the next function. */
typedef struct list {
    void *items;
    size_t count, capacity;
} list;

/* An edge of the reference graph for layout.c: a function or an initialiser names a variable or a
 * function. */
typedef struct reference {
    struct variable_info *variable;
    struct function_info *function;
    struct reference *next;
} reference;

/* What the parser needs about a variable or function beyond what the module stores. */
typedef struct variable_info {
    ptx_variable *variable;
    bool module_level;     /* false: a .shared variable of a function */
    reference *references; /* from its initialiser */
    const void *last_user; /* the last user whose references include it: avoids duplicates */
    uint32_t used_line;    /* line of the first use; 0: unused */
    uint32_t visited;      /* the last search that reached it (layout.c) */
    list entries;          /* .shared: indices of the entries that reach it (layout.c) */
} variable_info;

typedef struct function_info {
    ptx_function *function;
    reference *references;
    const void *last_user;
    uint32_t visited;
    struct function_info *alias_of;
} function_info;

typedef struct scope {
    binding *bindings;
    size_t first_forward_reference;
    uint64_t local_bytes; /* parser.local_bytes before the scope; restored when it ends */
} scope;

/* An operand that names a label, which may be declared later. */
typedef struct forward_reference {
    ptx_operand *operand;
    name *name;
    uint32_t line;
    bool in_target_list; /* an item of .branchtargets: must be a label, not another list */
} forward_reference;

/* An operand of an instruction that is still being parsed. */
typedef struct draft {
    ptx_operand operand;
    name *label; /* not NULL: a label, resolved when its scope ends */
    uint32_t line;
    bool in_target_list; /* as in forward_reference */
} draft;

/* A .reg or .local outside of functions: where its text is. */
typedef struct declaration {
    lexer lexer;
    token first;
} declaration;

typedef struct constant {
    bool is_float, is_unsigned;
    uint64_t bits;
    double value;
    uint32_t float_bits;
} constant;

typedef struct parser {
    lexer lexer;
    token token; /* the lookahead: not yet consumed */
    smk_status *status;
    interrupt_poller *poller;
    bool failed;
    ptx_arena *arena;   /* the module's */
    ptx_arena *scratch; /* freed at the end of the parse */
    names names;
    scope scopes[MAX_DEPTH]; /* 0: the module; 1: a function's parameters; 2: its body; ... */
    uint32_t depth;
    uint32_t nesting; /* depth of expressions */
    ptx_module *module;
    list variables;      /* variable_info *: module-level ones, and .shared ones of functions */
    list functions;      /* function_info * */
    list files;          /* const char *, by number */
    list positions;      /* ptx_position *, one per .loc */
    uint64_t text_bytes; /* part of the limit on initialised_bytes */
    uint64_t initialised_bytes;
    list module_declarations; /* declaration */

    /* the function being parsed */
    function_info *current;
    list registers;    /* ptx_register */
    list instructions; /* ptx_instruction */
    list locals;       /* ptx_variable * */
    list forward_references;
    list drafts;
    uint64_t local_bytes;          /* in all open scopes */
    uint64_t function_local_bytes; /* maximum of local_bytes */
    uint32_t file, line;           /* from the last .loc */
    const ptx_position *position;
    size_t first_position;      /* index in positions of this function's first */
    uint32_t header_parameters; /* the others are declared in the body (PTX 1.x) */
    bool label_at_end;          /* a label follows the last instruction */
} parser;

/* ---- parser_tokens.c ---- */

bool parser_fail(parser *p, uint32_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool parser_unexpected(parser *p, const char *expected); /* "expected X, found <lookahead>" */
bool parser_unexpected_token(parser *p, const token *found, const char *expected);
void *parser_alloc(parser *p, uint64_t count, size_t size); /* in the module's arena */
void *parser_scratch(parser *p, size_t count, size_t size); /* in the scratch arena */
bool parser_no_memory(parser *p, size_t bytes);
/* Polls for interruption after `work` steps; false, and a failure, if interrupted. */
bool parser_poll(parser *p, uint64_t work);
bool list_extend(parser *p, list *l, uint64_t more, size_t size); /* by `more` zeroed items */
void *list_push(parser *p, list *l, size_t size);                 /* one zeroed item */
void list_free(list *l);
void *list_to_arena(parser *p, const list *l, size_t size); /* a copy, in the module's arena */

void parser_advance(parser *p);
/* at: tests the lookahead. accept: consumes it if it matches. expect: otherwise fails. */
bool parser_at(const parser *p, char punctuator);
bool parser_at_dot(const parser *p, const char *word);
bool parser_accept(parser *p, char punctuator);
bool parser_accept_dot(parser *p, const char *word);
bool parser_expect(parser *p, char punctuator);
name *parser_expect_name(parser *p, const char *what);
bool parser_skip_braces(parser *p); /* { ... } */

/* ---- parser_directive.c ---- */

/* Directives allowed in modules and in bodies; *known: whether the lookahead was one. */
bool parser_common_directive(parser *p, bool *known);
bool parser_accept_space(parser *p, ptx_space *space);

/* ---- scope.c ---- */

bool scope_open(parser *p);
bool scope_close(parser *p); /* also resolves labels used in it */
/* Fails if the name is already declared in that scope, in the same name space. */
binding *scope_declare(parser *p, name *n, binding_kind kind, uint32_t depth, uint32_t line);
/* A .v2, .v4 or .v8 register becomes that many scalar registers; vector: 0 for a scalar. */
bool scope_declare_registers(parser *p, name *n, ptx_type type, uint32_t vector, uint32_t line);
/* A register that no name is bound to. */
bool scope_add_register(parser *p, const char *name, ptx_type type);
/* The name as a value. NULL if undeclared (not a failure), or on failure. */
binding *scope_find(parser *p, name *n);

/* ---- parser_constant.c ---- */

bool parser_constant(parser *p, constant *out);
bool parser_integer(parser *p, uint64_t max, const char *what, uint64_t *out);
bool parser_offset(parser *p, int64_t *offset); /* adds + 4 - 8 ..., possibly empty */
void constant_to_immediate(const constant *c, ptx_operand *out);

/* ---- parser_variable.c ---- */

/* A declaration after its state space: attributes, type, names, arrays, initialisers, semicolon. */
bool parser_variables(parser *p, ptx_space space, bool external, bool weak);
bool parser_textures(parser *p, bool external); /* after .tex */
/* One .param of a function header or prototype, after the word .param. */
ptx_variable *parser_parameter(parser *p, uint64_t *block_bytes);
ptx_type parser_accept_type(parser *p);   /* PTX_NO_TYPE: not a type */
uint32_t parser_accept_vector(parser *p); /* .v2 .v4 .v8; 0: not a vector */
/* Adds a reference to the variable or function to `references`, once per user. */
void parser_record_use(parser *p, const binding *b, uint32_t line, reference **references,
                       const void *user);

/* ---- parser_function.c ---- */

/* Of the definitions of a .weak function the first counts: linked texts have one each. */
bool parser_function(parser *p, bool is_entry, bool external, bool weak);
/* (parameters) of a header or a prototype; bind: declare their names in the current scope. */
bool parser_parameters(parser *p, bool bind, ptx_variable ***out, uint32_t *n, uint64_t *bytes);
bool parser_body_parameter(parser *p);
/* Finds the function or declares it. */
function_info *parser_function_named(parser *p, name *n, uint32_t line);

/* ---- parser_statement.c ---- */

bool parser_statement(parser *p); /* anything in a body except braces */

/* The name's meanings as an opcode and as a modifier. */
const name *parser_classify(name *n);

/* ---- parser_rewrite.c ---- */

/* Forms that have no instruction of their own become more than one. */

/* Parameters and results declared .reg: loads at the start of the body, and stores before the
 * return `before`, whose guard they have. */
bool parser_load_parameters(parser *p);
bool parser_store_results(parser *p, const ptx_instruction *before);
/* %r1+4 as a value: an addition to a new register, which becomes the operand. The lookahead is the
 * sign. */
bool parser_add_constant(parser *p, const ptx_instruction *in, ptx_operand *reg);
/* Fails if the operand is such a sum. */
bool parser_check_destination(parser *p, const ptx_instruction *in, const ptx_operand *o);

/* ---- parser_defaults.c ---- */

/* Adds the modifiers that the instruction has by default in this module's version and target. */
bool parser_add_defaults(parser *p, ptx_instruction *in);

/* ---- parser_operand.c ---- */

bool parser_operands(parser *p, ptx_instruction *out); /* up to the semicolon */
/* The items of .branchtargets L0, L1; or .calltargets f, g; */
bool parser_target_list(parser *p, ptx_operand *out);

/* ---- layout.c ---- */

/* Sets offsets of static .shared variables and each entry's shared_bytes. */
bool layout_shared(parser *p);

#endif
