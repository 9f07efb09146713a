/* Constant folding, with the values that the device would compute. */
#include <math.h>

#include "build.h"

bool lab_is_constant(const lab_expression *e) {
    return e->kind == LAB_INT_CONSTANT || e->kind == LAB_FLOAT_CONSTANT;
}

bool lab_is_comparison(uint32_t op) {
    return op == '<' || op == '>' || op == LAB_2('<', '=') || op == LAB_2('>', '=') ||
           op == LAB_2('=', '=') || op == LAB_2('!', '=');
}

#define COMPARE(x, y)                                                                              \
    (op == '<'               ? (x) < (y)                                                           \
     : op == '>'             ? (x) > (y)                                                           \
     : op == LAB_2('<', '=') ? (x) <= (y)                                                          \
     : op == LAB_2('>', '=') ? (x) >= (y)                                                          \
     : op == LAB_2('=', '=') ? (x) == (y)                                                          \
                             : (x) != (y))

static bool compare(uint32_t op, const lab_expression *a, const lab_expression *b) {
    if (lab_is_float(a->type)) return COMPARE(a->real, b->real);
    if (lab_is_signed(a->type)) return COMPARE(a->integer, b->integer);
    return COMPARE((uint64_t)a->integer, (uint64_t)b->integer);
}

/* NaNs are left to the device, whose bits differ from the host's. */
static lab_expression *fold_float(lab *l, uint32_t op, const lab_type *type, double x, double y,
                                  lab_position at) {
    double value;
    const bool single = type->kind == LAB_F32;
    const float fx = (float)x, fy = (float)y;
    switch (op) {
    case '+': value = single ? (double)(fx + fy) : x + y; break;
    case '-': value = single ? (double)(fx - fy) : x - y; break;
    case '*': value = single ? (double)(fx * fy) : x * y; break;
    case '/': value = single ? (double)(fx / fy) : x / y; break;
    default: return NULL;
    }
    return isnan(value) ? NULL : lab_float_node(l, type, at, value);
}

static bool divide(uint32_t op, const lab_type *type, int64_t x, int64_t y, int64_t *value) {
    if (y == 0) return false;
    if (lab_is_signed(type))
        if (y == -1)
            *value = op == '/' ? (int64_t)(0 - (uint64_t)x) : 0;
        else
            *value = op == '/' ? x / y : x % y;
    else
        *value = (int64_t)(op == '/' ? (uint64_t)x / (uint64_t)y : (uint64_t)x % (uint64_t)y);
    return true;
}

static bool shift(uint32_t op, const lab_type *type, int64_t x, int64_t y, int64_t *value) {
    if (y < 0 || y >= 8 * (int64_t)type->size) return false;
    if (op == LAB_2('<', '<'))
        *value = (int64_t)((uint64_t)x << y);
    else
        *value = lab_is_signed(type) ? x >> y : (int64_t)((uint64_t)x >> y);
    return true;
}

static bool fold_integer(uint32_t op, const lab_type *type, int64_t x, int64_t y, int64_t *value) {
    const uint64_t a = (uint64_t)x, b = (uint64_t)y;
    switch (op) {
    case '+': *value = (int64_t)(a + b); return true;
    case '-': *value = (int64_t)(a - b); return true;
    case '*': *value = (int64_t)(a * b); return true;
    case '&': *value = x & y; return true;
    case '|': *value = x | y; return true;
    case '^': *value = x ^ y; return true;
    case '/':
    case '%': return divide(op, type, x, y, value);
    case LAB_2('<', '<'):
    case LAB_2('>', '>'): return shift(op, type, x, y, value);
    default: return false;
    }
}

lab_expression *lab_fold_binary(lab *l, uint32_t op, const lab_type *type, const lab_expression *a,
                                const lab_expression *b, lab_position at) {
    if (!lab_is_constant(a) || !lab_is_constant(b)) return NULL;
    if (lab_is_comparison(op)) return lab_int_node(l, type, at, compare(op, a, b));
    if (lab_is_float(type)) return fold_float(l, op, type, a->real, b->real, at);
    int64_t value;
    if (!fold_integer(op, type, a->integer, b->integer, &value)) return NULL;
    return lab_int_node(l, type, at, lab_wrapped(type, value));
}

lab_expression *lab_fold_cast(lab *l, const lab_expression *a, const lab_type *to) {
    if (!lab_is_constant(a) || !lab_is_arithmetic(to)) return NULL;
    const bool from_real = a->kind == LAB_FLOAT_CONSTANT;
    if (lab_is_float(to)) {
        double value = from_real                ? a->real
                       : lab_is_signed(a->type) ? (double)a->integer
                                                : (double)(uint64_t)a->integer;
        if (to->kind == LAB_F32 && !from_real) /* rounded once */
            value = lab_is_signed(a->type) ? (float)a->integer : (float)(uint64_t)a->integer;
        return lab_float_node(l, to, a->at, to->kind == LAB_F32 ? (double)(float)value : value);
    }
    if (!from_real) return lab_int_node(l, to, a->at, lab_wrapped(to, a->integer));
    if (to->kind == LAB_BOOL) return lab_int_node(l, to, a->at, a->real != 0);
    if (!(fabs(a->real) < 2147483648.0)) return NULL; /* left to the device */
    const int64_t value = (int64_t)a->real;
    if (lab_wrapped(to, value) != value) return NULL;
    return lab_int_node(l, to, a->at, value);
}
