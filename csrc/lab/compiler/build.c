#include "build.h"

#include <string.h>

const char *lab_operator_text(uint32_t op, char *room) {
    char *at = room;
    for (int shift = 16; shift >= 0; shift -= 8)
        if (op >> shift & 0xff) *at++ = (char)(op >> shift);
    *at = '\0';
    return room;
}

/* ---- nodes ---- */

static uint16_t deeper(uint16_t depth, const lab_expression *e) {
    return e && e->depth > depth ? e->depth : depth;
}

/* What may be computed where the source would not: cheap, and without loads or effects. */
static bool speculates(lab_expression_kind kind, const lab_type *type) {
    switch (kind) {
    case LAB_INT_CONSTANT:
    case LAB_FLOAT_CONSTANT:
    case LAB_VARIABLE:
    case LAB_SPECIAL:
    case LAB_NEGATE:
    case LAB_NOT:
    case LAB_COMPLEMENT:
    case LAB_BINARY:
    case LAB_AND:
    case LAB_OR:
    case LAB_CAST: return type->kind < LAB_POINTER;
    default: return false;
    }
}

lab_expression *lab_node(lab *l, lab_expression_kind kind, const lab_type *type, lab_position at,
                         lab_expression *a, lab_expression *b) {
    lab_expression *e = lab_new(l, sizeof *e);
    e->kind = kind;
    e->type = type;
    e->at = at;
    e->a = a;
    e->b = b;
    e->depth = (uint16_t)(1 + deeper(deeper(0, a), b));
    e->modifies = (a && a->modifies) || (b && b->modifies);
    e->speculates =
        e->depth <= 5 && speculates(kind, type) && (!a || a->speculates) && (!b || b->speculates);
    if (e->depth > LAB_MAX_DEPTH)
        lab_fail(l, at, "an expression of more than %d levels; split it", LAB_MAX_DEPTH);
    if (l->failed) e->depth = 0;
    return e;
}

lab_expression *lab_int_node(lab *l, const lab_type *type, lab_position at, int64_t value) {
    lab_expression *e = lab_node(l, LAB_INT_CONSTANT, type, at, NULL, NULL);
    e->integer = value;
    return e;
}

lab_expression *lab_float_node(lab *l, const lab_type *type, lab_position at, double value) {
    lab_expression *e = lab_node(l, LAB_FLOAT_CONSTANT, type, at, NULL, NULL);
    e->real = value;
    return e;
}

lab_expression *lab_error_node(lab *l, lab_position at) {
    return lab_int_node(l, lab_scalar(LAB_I32), at, 0);
}

lab_expression *lab_value(lab *l, lab_expression *e) {
    if (e->type->kind != LAB_ARRAY) return e;
    return lab_node(l, LAB_DECAY, lab_pointer_to(l, e->type->of), e->at, e, NULL);
}

/* ---- conversions ---- */

static bool is_null(const lab_expression *e) {
    return e->kind == LAB_INT_CONSTANT && e->integer == 0;
}

static bool drops_qualifier(const lab_type *from, const lab_type *to) {
    for (from = from->of, to = to->of; from && to; from = from->of, to = to->of)
        if ((from->is_const && !to->is_const) || (from->is_volatile && !to->is_volatile))
            return true;
    return false;
}

static bool converts(const lab_expression *e, const lab_type *to) {
    const lab_type *from = e->type;
    if (lab_is_arithmetic(to))
        return lab_is_arithmetic(from) || (to->kind == LAB_BOOL && from->kind == LAB_POINTER);
    if (to->kind != LAB_POINTER) return lab_same_type(from, to);
    if (is_null(e) && from->kind == LAB_I32) return true;
    if (from->kind != LAB_POINTER || drops_qualifier(from, to)) return false;
    return lab_same_type(from, to) || to->of->kind == LAB_VOID;
}

static lab_expression *cast_node(lab *l, lab_expression *e, const lab_type *to) {
    if (lab_same_type(e->type, to) && to->kind != LAB_POINTER) return e;
    lab_expression *folded = lab_fold_cast(l, e, to);
    return folded ? folded : lab_node(l, LAB_CAST, to, e->at, e, NULL);
}

lab_expression *lab_convert(lab *l, lab_expression *e, const lab_type *to) {
    e = lab_value(l, e);
    if (l->failed) return e;
    if (!converts(e, to)) {
        lab_fail(l, e->at, "cannot convert '%s' to '%s'", lab_type_text(l, e->type),
                 lab_type_text(l, to));
        return e;
    }
    return cast_node(l, e, to);
}

lab_expression *lab_cast(lab *l, lab_expression *e, const lab_type *to, lab_position at) {
    e = lab_value(l, e);
    if (l->failed) return e;
    const bool from_pointer = e->type->kind == LAB_POINTER, to_pointer = to->kind == LAB_POINTER;
    const bool good = to->kind == LAB_VOID || converts(e, to) || (from_pointer && to_pointer) ||
                      (from_pointer && lab_is_integer(to) && to->size == 8) ||
                      (to_pointer && lab_is_integer(e->type) && e->type->size == 8);
    if (!good) {
        lab_fail(l, at, "cannot cast '%s' to '%s'", lab_type_text(l, e->type),
                 lab_type_text(l, to));
        return e;
    }
    return cast_node(l, e, to);
}

lab_expression *lab_truth(lab *l, lab_expression *e) {
    return lab_convert(l, e, lab_scalar(LAB_BOOL));
}

/* ---- operators ---- */

static lab_expression *bad_operands(lab *l, uint32_t op, const lab_expression *a,
                                    const lab_expression *b, lab_position at) {
    char room[4];
    if (b)
        lab_fail(l, at, "'%s' does not take '%s' and '%s'", lab_operator_text(op, room),
                 lab_type_text(l, a->type), lab_type_text(l, b->type));
    else
        lab_fail(l, at, "'%s' does not take '%s'", lab_operator_text(op, room),
                 lab_type_text(l, a->type));
    return lab_error_node(l, at);
}

lab_expression *lab_unary(lab *l, uint32_t op, lab_expression *a, lab_position at) {
    a = lab_value(l, a);
    if (l->failed) return lab_error_node(l, at);
    if (op == '!') {
        a = lab_truth(l, a);
        if (a->kind == LAB_INT_CONSTANT) return lab_int_node(l, a->type, at, !a->integer);
        return lab_node(l, LAB_NOT, lab_scalar(LAB_BOOL), at, a, NULL);
    }
    if (!lab_is_arithmetic(a->type) || (op == '~' && lab_is_float(a->type)))
        return bad_operands(l, op, a, NULL, at);
    a = lab_convert(l, a, lab_promoted(a->type));
    if (op == '+') return a;
    if (a->kind == LAB_FLOAT_CONSTANT) return lab_float_node(l, a->type, at, -a->real);
    if (a->kind == LAB_INT_CONSTANT) {
        const uint64_t x = (uint64_t)a->integer;
        return lab_int_node(l, a->type, at,
                            lab_wrapped(a->type, (int64_t)(op == '-' ? 0 - x : ~x)));
    }
    return lab_node(l, op == '-' ? LAB_NEGATE : LAB_COMPLEMENT, a->type, at, a, NULL);
}

static bool is_shift(uint32_t op) {
    return op == LAB_2('<', '<') || op == LAB_2('>', '>');
}

static bool only_integers(uint32_t op) {
    return is_shift(op) || op == '%' || op == '&' || op == '|' || op == '^';
}

static lab_expression *offset(lab *l, uint32_t op, lab_expression *a, lab_expression *b,
                              lab_position at) {
    if (a->type->of->kind == LAB_VOID) return bad_operands(l, op, a, b, at);
    const bool narrow = b->type->size < 8;
    b = lab_convert(l, b, narrow ? lab_promoted(b->type) : b->type);
    if (op == '-') {
        b = lab_convert(l, b, lab_scalar(LAB_I64));
        b = lab_unary(l, '-', b, at);
    }
    return lab_node(l, LAB_OFFSET, a->type, at, a, b);
}

static lab_expression *pointer_operation(lab *l, uint32_t op, lab_expression *a, lab_expression *b,
                                         lab_position at) {
    const bool pa = a->type->kind == LAB_POINTER, pb = b->type->kind == LAB_POINTER;
    if (op == '+' && pa && lab_is_integer(b->type)) return offset(l, op, a, b, at);
    if (op == '+' && pb && lab_is_integer(a->type)) return offset(l, op, b, a, at);
    if (op == '-' && pa && lab_is_integer(b->type)) return offset(l, op, a, b, at);
    if (op == '-' && pa && pb && lab_same_type(a->type, b->type) && a->type->of->kind != LAB_VOID)
        return lab_node(l, LAB_DIFFERENCE, lab_scalar(LAB_I64), at, a, b);
    const bool alike = pa && pb ? lab_same_type(a->type, b->type) : is_null(pa ? b : a);
    if (!lab_is_comparison(op) || !alike) return bad_operands(l, op, a, b, at);
    if (!pa) a = cast_node(l, a, b->type);
    if (!pb) b = cast_node(l, b, a->type);
    lab_expression *e = lab_node(l, LAB_BINARY, lab_scalar(LAB_BOOL), at, a, b);
    e->op = op;
    return e;
}

static lab_expression *logical(lab *l, uint32_t op, lab_expression *a, lab_expression *b,
                               lab_position at) {
    a = lab_truth(l, a);
    b = lab_truth(l, b);
    const bool is_and = op == LAB_2('&', '&');
    if (a->kind == LAB_INT_CONSTANT) {
        if ((a->integer != 0) == is_and) return b;
        return lab_int_node(l, lab_scalar(LAB_BOOL), at, !is_and);
    }
    return lab_node(l, is_and ? LAB_AND : LAB_OR, lab_scalar(LAB_BOOL), at, a, b);
}

/* x / 2.0f is x * 0.5f, which nvcc then may contract. */
static lab_expression *reciprocal(lab *l, const lab_expression *b) {
    union {
        double value;
        uint64_t bits;
    } d = {.value = b->real};
    const int exponent = (int)(d.bits >> 52 & 0x7ff) - 1023;
    const int limit = b->type->kind == LAB_F32 ? 126 : 1022;
    const bool power = (d.bits & 0xfffffffffffff) == 0 && exponent >= -limit && exponent <= limit;
    return power ? lab_float_node(l, b->type, b->at, 1 / b->real) : NULL;
}

/* x - 6 * y is x + -6 * y for nvcc, which then may contract it: the product with the constant's
 * sign changed, or NULL. */
static lab_expression *negated_product(lab *l, const lab_expression *b) {
    const bool product = b->kind == LAB_BINARY && b->op == '*' && lab_is_float(b->type);
    if (!product || (b->a->kind != LAB_FLOAT_CONSTANT && b->b->kind != LAB_FLOAT_CONSTANT))
        return NULL;
    lab_expression *copy = lab_new(l, sizeof *copy);
    *copy = *b;
    lab_expression **factor = b->b->kind == LAB_FLOAT_CONSTANT ? &copy->b : &copy->a;
    *factor = lab_float_node(l, (*factor)->type, (*factor)->at, -(*factor)->real);
    return copy;
}

static lab_expression *arithmetic(lab *l, uint32_t op, const lab_type *type, lab_expression *a,
                                  lab_expression *b, lab_position at) {
    const lab_type *result = lab_is_comparison(op) ? lab_scalar(LAB_BOOL) : type;
    lab_expression *folded = lab_fold_binary(l, op, result, a, b, at);
    if (folded) return folded;
    if ((op == '/' || op == '%') && lab_is_integer(type) && is_null(b))
        lab_fail(l, at, "division by zero");
    if (b->kind == LAB_FLOAT_CONSTANT && op == '-') { /* x - 1 is x + -1 for nvcc, too */
        op = '+';
        b = lab_float_node(l, b->type, b->at, -b->real);
    }
    lab_expression *negated = op == '-' ? negated_product(l, b) : NULL;
    if (negated) {
        op = '+';
        b = negated;
    }
    lab_expression *inverse = b->kind == LAB_FLOAT_CONSTANT && op == '/' ? reciprocal(l, b) : NULL;
    if (inverse) {
        op = '*';
        b = inverse;
    }
    lab_expression *e = lab_node(l, LAB_BINARY, result, at, a, b);
    e->op = op;
    if ((op == '/' || op == '%') && lab_is_integer(type)) e->speculates = false;
    return e;
}

lab_expression *lab_binary(lab *l, uint32_t op, lab_expression *a, lab_expression *b,
                           lab_position at) {
    a = lab_value(l, a);
    b = lab_value(l, b);
    if (l->failed) return lab_error_node(l, at);
    if (op == ',') return lab_node(l, LAB_COMMA, b->type, at, a, b);
    if (op == LAB_2('&', '&') || op == LAB_2('|', '|')) return logical(l, op, a, b, at);
    if (a->type->kind == LAB_POINTER || b->type->kind == LAB_POINTER)
        return pointer_operation(l, op, a, b, at);
    if (!lab_is_arithmetic(a->type) || !lab_is_arithmetic(b->type))
        return bad_operands(l, op, a, b, at);
    const lab_type *type = is_shift(op) ? lab_promoted(a->type) : lab_common(a->type, b->type);
    if (only_integers(op) && (lab_is_float(type) || lab_is_float(b->type)))
        return bad_operands(l, op, a, b, at);
    a = lab_convert(l, a, type);
    b = lab_convert(l, b, is_shift(op) ? lab_scalar(LAB_U32) : type);
    return arithmetic(l, op, type, a, b, at);
}

lab_expression *lab_conditional(lab *l, lab_expression *c, lab_expression *a, lab_expression *b,
                                lab_position at) {
    a = lab_value(l, a);
    b = lab_value(l, b);
    c = lab_truth(l, c);
    if (l->failed) return lab_error_node(l, at);
    const lab_type *type = a->type;
    if (lab_is_arithmetic(a->type) && lab_is_arithmetic(b->type))
        type = lab_same_type(a->type, b->type) ? a->type : lab_common(a->type, b->type);
    else if (a->type->kind != LAB_POINTER && b->type->kind == LAB_POINTER)
        type = b->type;
    a = lab_convert(l, a, type);
    b = lab_convert(l, b, type);
    if (c->kind == LAB_INT_CONSTANT) return c->integer ? a : b;
    lab_expression *e = lab_node(l, LAB_CONDITIONAL, type, at, a, b);
    e->c = c;
    e->modifies |= c->modifies;
    if (c->depth >= e->depth) e->depth = c->depth + 1;
    if (e->depth > LAB_MAX_DEPTH) lab_fail(l, at, "an expression of too many levels; split it");
    return e;
}

/* ---- objects ---- */

/* The variable of which e is the value or a lane; NULL: e is in memory. */
static lab_symbol *variable_of(const lab_expression *e) {
    while (e->kind == LAB_LANE)
        e = e->a;
    return e->kind == LAB_VARIABLE ? e->symbol : NULL;
}

static bool is_object(const lab_expression *e) {
    while (e->kind == LAB_LANE)
        e = e->a;
    return e->kind == LAB_VARIABLE || e->kind == LAB_DEREFERENCE;
}

static bool assignable(lab *l, const lab_expression *a, lab_position at) {
    if (l->failed) return false;
    if (!is_object(a) || a->type->kind == LAB_ARRAY)
        lab_fail(l, at, "expected a variable or an element to assign to");
    else if (a->type->is_const)
        lab_fail(l, at, "cannot assign to '%s'", lab_type_text(l, a->type));
    lab_symbol *s = variable_of(a);
    if (s) s->is_assigned = true;
    return !l->failed;
}

void lab_note_pointer(lab *l, lab_symbol *s, const lab_expression *value) {
    if (s->type->kind != LAB_POINTER) return;
    lab_assigned *n = lab_new(l, sizeof *n);
    n->value = value;
    n->next = s->assigned;
    s->assigned = n;
}

/* a op= b as a sum or product with another constant, where nvcc makes it one. */
static void fold_update(lab *l, lab_expression *e) {
    lab_expression *b = e->b;
    lab_expression *negated = e->op == '-' ? negated_product(l, b) : NULL;
    lab_expression *inverse = NULL;
    if (b->kind == LAB_FLOAT_CONSTANT && e->op == '-')
        negated = lab_float_node(l, b->type, b->at, -b->real);
    if (b->kind == LAB_FLOAT_CONSTANT && e->op == '/') inverse = reciprocal(l, b);
    if (negated) {
        e->op = '+';
        e->b = negated;
    } else if (inverse) {
        e->op = '*';
        e->b = inverse;
    }
}

/* a op= b: b has the type in which the operation is done. */
static lab_expression *update(lab *l, uint32_t op, lab_expression *a, lab_expression *b,
                              lab_position at) {
    lab_expression *trial = lab_binary(l, op, a, b, at); /* checks the types */
    b = lab_value(l, b);
    if (!l->failed && a->type->kind != LAB_POINTER) lab_convert(l, trial, a->type);
    if (l->failed) return lab_error_node(l, at);
    const lab_type *type = a->type->kind == LAB_POINTER ? lab_scalar(LAB_I64)
                           : is_shift(op)               ? lab_scalar(LAB_U32)
                                                        : lab_common(a->type, b->type);
    lab_expression *e = lab_node(l, LAB_UPDATE, a->type, at, a, lab_convert(l, b, type));
    e->op = op;
    fold_update(l, e);
    return e;
}

lab_expression *lab_assign(lab *l, uint32_t op, lab_expression *a, lab_expression *b,
                           lab_position at) {
    if (!assignable(l, a, at)) return lab_error_node(l, at);
    lab_expression *e;
    if (op == '=') {
        b = lab_convert(l, b, a->type);
        if (a->kind == LAB_VARIABLE) lab_note_pointer(l, a->symbol, b);
        e = lab_node(l, LAB_ASSIGN, a->type, at, a, b);
    } else {
        e = update(l, op >> 8, a, b, at);
    }
    e->modifies = true;
    return e;
}

lab_expression *lab_increment(lab *l, uint32_t op, bool post, lab_expression *a, lab_position at) {
    if (!assignable(l, a, at)) return lab_error_node(l, at);
    const bool pointer = a->type->kind == LAB_POINTER && a->type->of->kind != LAB_VOID;
    if ((!lab_is_arithmetic(a->type) && !pointer) || a->type->kind == LAB_BOOL)
        return bad_operands(l, op, a, NULL, at);
    lab_expression *e = lab_node(l, LAB_INCREMENT, a->type, at, a, NULL);
    e->op = op & 0xff;
    e->post = post;
    e->modifies = true;
    return e;
}

lab_expression *lab_dereference(lab *l, lab_expression *a, lab_position at) {
    a = lab_value(l, a);
    if (l->failed) return lab_error_node(l, at);
    if (a->type->kind != LAB_POINTER || a->type->of->kind == LAB_VOID)
        return bad_operands(l, '*', a, NULL, at);
    return lab_node(l, LAB_DEREFERENCE, a->type->of, at, a, NULL);
}

lab_expression *lab_subscript(lab *l, lab_expression *a, lab_expression *b, lab_position at) {
    a = lab_value(l, a);
    b = lab_value(l, b);
    if (l->failed) return lab_error_node(l, at);
    if (a->type->kind != LAB_POINTER || !lab_is_integer(b->type)) {
        lab_fail(l, at, "expected an array and an integer index, found '%s' and '%s'",
                 lab_type_text(l, a->type), lab_type_text(l, b->type));
        return lab_error_node(l, at);
    }
    return lab_dereference(l, lab_binary(l, '+', a, b, at), at);
}

lab_expression *lab_address(lab *l, lab_expression *a, lab_position at) {
    if (l->failed) return lab_error_node(l, at);
    if (!is_object(a)) return bad_operands(l, '&', a, NULL, at);
    if (a->kind == LAB_DEREFERENCE) return a->a;
    lab_symbol *s = variable_of(a);
    if (s) s->in_memory = s->is_assigned = true;
    return lab_node(l, LAB_ADDRESS, lab_pointer_to(l, a->type), at, a, NULL);
}

lab_expression *lab_lane(lab *l, lab_expression *a, const lab_name *lane, lab_position at) {
    if (l->failed) return lab_error_node(l, at);
    const char *found = lane->length == 1 ? strchr("xyzw", lane->text[0]) : NULL;
    if (a->type->kind != LAB_VECTOR || !found) {
        lab_fail(l, at, "'%s' has no member '%s'", lab_type_text(l, a->type), lane->text);
        return lab_error_node(l, at);
    }
    const uint32_t index = lane->text[0] == 'w' ? 3 : (uint32_t)(lane->text[0] - 'x');
    if (index >= a->type->count) {
        lab_fail(l, at, "'%s' has no member '%s'", lab_type_text(l, a->type), lane->text);
        return lab_error_node(l, at);
    }
    const lab_type *type = lab_qualified(l, a->type->of, a->type->is_const, a->type->is_volatile);
    lab_expression *e = lab_node(l, LAB_LANE, type, at, a, NULL);
    e->op = index;
    return e;
}
