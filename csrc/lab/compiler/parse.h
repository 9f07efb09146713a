/* What the files of the parser share. */
#ifndef LAB_PARSE_H
#define LAB_PARSE_H

#include "build.h"
#include "parser.h"

typedef struct parser {
    lab *l;
    const lab_token *tokens;
    uint32_t at, count;
    uint32_t depth;       /* of nested syntax */
    lab_symbol *scope;    /* symbols of the innermost scope, by scope_next */
    uint32_t scopes;      /* how many are open */
    uint32_t loops;       /* how many enclose the statement */
    lab_function *inside; /* NULL: outside of functions */
    lab_vector variables; /* of the module */
} parser;

/* The token `ahead` of the next one; the end of the text after an error. */
const lab_token *parse_look(const parser *p, uint32_t ahead);
void parse_skip(parser *p);
bool parse_is(const parser *p, uint32_t punctuator);
bool parse_accept(parser *p, uint32_t punctuator);
bool parse_accept_keyword(parser *p, lab_keyword keyword);
void parse_expect(parser *p, uint32_t punctuator);
void parse_unexpected(parser *p, const char *expected);

/* Counts nesting; false, with an error, if there is too much. Leave after a success. */
bool parse_enter(parser *p);
void parse_leave(parser *p);

lab_expression *parse_expression(parser *p);
lab_expression *parse_assignment(parser *p);
int64_t parse_constant(parser *p, const char *of);

/* Specifiers of a declaration. */
typedef struct specifiers {
    const lab_type *type; /* NULL: auto */
    lab_position at;
    bool is_extern, is_static, is_kernel, is_device, is_shared, is_constant, is_constexpr;
    uint32_t max_threads, align;
} specifiers;

bool parse_starts_type(const parser *p);
specifiers parse_specifiers(parser *p);
/* *const *name[2][3]; `name` NULL: a type as in casts, without a name. */
const lab_type *parse_declarator(parser *p, const lab_type *base, lab_name **name);
lab_symbol *parse_declare(parser *p, lab_name *name, const lab_type *type, lab_position at);

/* { 1, 2 } or = expression, for an object of `type`; the values in `s`. */
typedef struct initializer {
    lab_expression **values;
    uint32_t count;
    bool braces;
} initializer;

/* Appends declarations to *last and returns the new end. */
lab_statement **parse_local_declaration(parser *p, lab_statement **last);
lab_statement *parse_block(parser *p);
void parse_module_variable(parser *p, const specifiers *s, lab_name *name, const lab_type *type,
                           lab_position at);
lab_symbol *parse_open_scope(parser *p);
void parse_close_scope(parser *p, lab_symbol *outer);

/* What to say of a keyword that is not in the subset; NULL: it is. */
const char *parse_refused(int keyword);

#endif
