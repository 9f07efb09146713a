/* Nodes of expressions: checks operand types, inserts conversions, folds constants. */
#ifndef LAB_BUILD_H
#define LAB_BUILD_H

#include "ast.h"

lab_expression *lab_node(lab *l, lab_expression_kind kind, const lab_type *type, lab_position at,
                         lab_expression *a, lab_expression *b);
lab_expression *lab_int_node(lab *l, const lab_type *type, lab_position at, int64_t value);
lab_expression *lab_float_node(lab *l, const lab_type *type, lab_position at, double value);
lab_expression *lab_error_node(lab *l, lab_position at);

/* An array becomes a pointer; everything else stays. */
lab_expression *lab_value(lab *l, lab_expression *e);

/* Implicit and explicit conversion. */
lab_expression *lab_convert(lab *l, lab_expression *e, const lab_type *to);
lab_expression *lab_cast(lab *l, lab_expression *e, const lab_type *to, lab_position at);
lab_expression *lab_truth(lab *l, lab_expression *e);

lab_expression *lab_unary(lab *l, uint32_t op, lab_expression *a, lab_position at);
lab_expression *lab_binary(lab *l, uint32_t op, lab_expression *a, lab_expression *b,
                           lab_position at);
lab_expression *lab_conditional(lab *l, lab_expression *c, lab_expression *a, lab_expression *b,
                                lab_position at);
lab_expression *lab_assign(lab *l, uint32_t op, lab_expression *a, lab_expression *b,
                           lab_position at);
lab_expression *lab_increment(lab *l, uint32_t op, bool post, lab_expression *a, lab_position at);
lab_expression *lab_subscript(lab *l, lab_expression *a, lab_expression *b, lab_position at);
lab_expression *lab_dereference(lab *l, lab_expression *a, lab_position at);
lab_expression *lab_address(lab *l, lab_expression *a, lab_position at);
lab_expression *lab_lane(lab *l, lab_expression *a, const lab_name *lane, lab_position at);
lab_expression *lab_make(lab *l, const lab_type *type, lab_expression **values, uint32_t n,
                         lab_position at);
lab_expression *lab_call(lab *l, const lab_name *name, lab_expression **values, uint32_t n,
                         lab_position at);

/* Keeps that `value` is assigned to the variable, if it is a pointer. */
void lab_note_pointer(lab *l, lab_symbol *s, const lab_expression *value);

/* fold.c: the node of a constant result, or NULL. */
lab_expression *lab_fold_binary(lab *l, uint32_t op, const lab_type *type, const lab_expression *a,
                                const lab_expression *b, lab_position at);
lab_expression *lab_fold_cast(lab *l, const lab_expression *a, const lab_type *to);
bool lab_is_constant(const lab_expression *e);

/* "+", "<<=": of a punctuator. `room` has 4 bytes. */
const char *lab_operator_text(uint32_t op, char *room);
bool lab_is_comparison(uint32_t op);

#endif
