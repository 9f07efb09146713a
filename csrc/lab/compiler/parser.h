/* Tokens to a typed syntax tree. */
#ifndef LAB_PARSER_H
#define LAB_PARSER_H

#include "ast.h"

/* The functions of a text. */
lab_module *lab_parse(lab *l, const lab_vector *tokens);

/* The value of a constant expression, for #if. */
int64_t lab_constant(lab *l, const lab_vector *tokens);

#endif
