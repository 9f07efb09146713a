/* Operands, conversions and operators on registers. */
#include <string.h>

#include "build.h"
#include "generate.h"

static const code_operand none = {.kind = CODE_NONE};

code_class generate_class(const lab_type *type) {
    switch (type->kind) {
    case LAB_F32: return CODE_F32;
    case LAB_F64: return CODE_F64;
    case LAB_I64:
    case LAB_U64:
    case LAB_POINTER: return CODE_B64;
    default: return CODE_B32;
    }
}

uint32_t generate_lanes(const lab_type *type) {
    return type->kind == LAB_VECTOR ? type->count : type->kind == LAB_VOID ? 0 : 1;
}

const lab_type *generate_lane_type(const lab_type *type) {
    return type->kind == LAB_VECTOR ? type->of : type;
}

/* Of registers: narrow integers are kept in 32 bits, extended with their sign. */
/* "s32" */
static const char *suffix_of(const lab_type *type) {
    switch (type->kind) {
    case LAB_BOOL:
    case LAB_U8:
    case LAB_U16:
    case LAB_U32: return "u32";
    case LAB_I64: return "s64";
    case LAB_U64:
    case LAB_POINTER: return "u64";
    case LAB_F32: return "f32";
    case LAB_F64: return "f64";
    default: return "s32";
    }
}

int generate_register(generator *g, const lab_type *type) {
    return code_new_register(&g->code, generate_class(type), NULL);
}

int generate_variable_register(generator *g, const lab_symbol *s, const lab_type *type, char lane) {
    const uint32_t n = ++s->name->ptx_names;
    const char *name = s->name->text;
    if (lane)
        name = n == 1 ? lab_text(g->l, "%s$%c", name, lane)
                      : lab_text(g->l, "%s$%u$%c", name, n, lane);
    else if (n > 1)
        name = lab_text(g->l, "%s$%u", name, n);
    return code_new_register(&g->code, generate_class(type), name);
}

static bool is_predicate(const generator *g, code_operand o) {
    return o.kind == CODE_REGISTER && code_class_of(&g->code, (int)o.integer) == CODE_PRED;
}

code_operand generate_integer(generator *g, code_operand o) {
    if (!is_predicate(g, o)) return o;
    const int r = code_new_register(&g->code, CODE_B32, NULL);
    code_plain(&g->code, CODE_PLAIN, "selp.b32", r, code_int(1), code_int(0), o);
    return code_reg(r);
}

int generate_predicate(generator *g, code_operand o) {
    if (is_predicate(g, o)) return (int)o.integer;
    const int p = code_new_register(&g->code, CODE_PRED, NULL);
    if (o.kind != CODE_REGISTER) {
        const int r = code_new_register(&g->code, CODE_B32, NULL);
        code_plain(&g->code, CODE_PLAIN, "mov.b32", r, o, none, none);
        o = code_reg(r);
    }
    code_plain(&g->code, CODE_PLAIN, "setp.ne.s32", p, o, code_int(0), none);
    return p;
}

void generate_move(generator *g, const lab_type *type, int to, code_operand from) {
    static const char *const ops[] = {"mov.pred", "mov.b32", "mov.b64", "mov.f32", "mov.f64"};
    if (from.kind == CODE_REGISTER && from.integer == to) return;
    if (is_predicate(g, from)) {
        code_plain(&g->code, CODE_PLAIN, "selp.b32", to, code_int(1), code_int(0), from);
        return;
    }
    const char *op = from.kind == CODE_TEXT
                         ? (generate_class(type) == CODE_B64 ? "mov.u64" : "mov.u32")
                         : ops[generate_class(type)];
    code_plain(&g->code, CODE_PLAIN, op, to, from, none, none);
}

code_operand generate_copy(generator *g, const lab_type *type, code_operand o) {
    if (o.kind != CODE_REGISTER || is_predicate(g, o)) return o;
    const int r = generate_register(g, type);
    generate_move(g, type, r, o);
    return code_reg(r);
}

/* ---- operators ---- */

static const char *comparison(uint32_t op, bool is_float) {
    switch (op) {
    case '<': return "lt";
    case '>': return "gt";
    case LAB_2('<', '='): return "le";
    case LAB_2('>', '='): return "ge";
    case LAB_2('=', '='): return "eq";
    default: return is_float ? "neu" : "ne";
    }
}

/* The name before the type: "add.", "mul.lo.", "div.rn.". Types of bits say b32. */
static const char *operation(uint32_t op, bool is_float, bool *bits) {
    *bits = op == '&' || op == '|' || op == '^' || op == LAB_2('<', '<');
    switch (op) {
    case '+': return "add";
    case '-': return "sub";
    case '*': return is_float ? "mul" : "mul.lo";
    case '/': return is_float ? "div.rn" : "div";
    case '%': return "rem";
    case '&': return "and";
    case '|': return "or";
    case '^': return "xor";
    case LAB_2('<', '<'): return "shl";
    default: return "shr";
    }
}

static code_operand compare(generator *g, uint32_t op, const lab_type *type, code_operand a,
                            code_operand b) {
    const int p = code_new_register(&g->code, CODE_PRED, NULL);
    const char *text =
        lab_text(g->l, "setp.%s.%s", comparison(op, lab_is_float(type)), suffix_of(type));
    code_plain(&g->code, CODE_PLAIN, text, p, a, b, none);
    return code_reg(p);
}

/* PTX wants a register in some places where both are constants. */
static code_operand as_register(generator *g, const lab_type *type, code_operand o) {
    if (o.kind == CODE_REGISTER) return o;
    const int r = generate_register(g, type);
    generate_move(g, type, r, o);
    return code_reg(r);
}

code_operand generate_binary(generator *g, uint32_t op, const lab_type *type, code_operand a,
                             code_operand b, int target) {
    bool bits;
    a = generate_integer(g, a);
    b = generate_integer(g, b);
    if (a.kind != CODE_REGISTER && b.kind != CODE_REGISTER) a = as_register(g, type, a);
    if (lab_is_comparison(op)) return compare(g, op, type, a, b);
    const bool is_float = lab_is_float(type);
    const char *name = operation(op, is_float, &bits);
    const char *suffix = bits ? (type->size == 8 ? "b64" : "b32") : suffix_of(type);
    const int to = target >= 0 ? target : generate_register(g, type);
    if (is_float && op == '*') { /* x *= y: contraction needs the old x */
        if (a.kind == CODE_REGISTER && a.integer == to) a = generate_copy(g, type, a);
        if (b.kind == CODE_REGISTER && b.integer == to) b = generate_copy(g, type, b);
    }
    const code_kind kind = is_float && op == '*'   ? CODE_MULTIPLY
                           : is_float && op == '+' ? CODE_ADD
                                                   : CODE_PLAIN;
    code_plain(&g->code, kind, lab_text(g->l, "%s.%s", name, suffix), to, a, b, none);
    return code_reg(to);
}

/* ---- conversions ---- */

static code_operand unary(generator *g, const char *op, const lab_type *to, code_operand o,
                          int target) {
    const int r = target >= 0 ? target : generate_register(g, to);
    code_plain(&g->code, CODE_PLAIN, op, r, o, none, none);
    return code_reg(r);
}

static code_operand to_bool(generator *g, code_operand o, const lab_type *from) {
    const bool is_float = lab_is_float(from);
    const code_operand zero =
        is_float ? (code_operand){.kind = from->size == 4 ? CODE_REAL32 : CODE_REAL64, .real = 0}
                 : code_int(0);
    return generate_binary(g, LAB_2('!', '='), from, o, zero, -1);
}

/* Integers: a narrow type takes the low bits of 32, extended again. */
static code_operand to_integer(generator *g, code_operand o, const lab_type *from,
                               const lab_type *to, int target) {
    const bool is_signed = lab_is_signed(to);
    static const char *const narrow[] = {"cvt.u32.u8", "cvt.s32.s8", "cvt.u32.u16", "cvt.s32.s16"};
    if (to->size == 8) {
        if (from->size == 8) return o;
        return unary(g, lab_is_signed(from) ? "cvt.s64.s32" : "cvt.u64.u32", to, o, target);
    }
    if (from->size == 8) o = unary(g, "cvt.u32.u64", to, o, to->size == 4 ? target : -1);
    if (to->size == 4) return o;
    const bool fits = from->size < to->size && (is_signed || !lab_is_signed(from));
    if (fits || (from->size == to->size && is_signed == lab_is_signed(from))) return o;
    return unary(g, narrow[(to->size == 2 ? 2 : 0) + is_signed], to, o, target);
}

static code_operand float_to_integer(generator *g, code_operand o, const lab_type *from,
                                     const lab_type *to, int target) {
    const lab_type *wide = to->size < 4 ? lab_scalar(LAB_I32) : to;
    const char *op = lab_text(g->l, "cvt.rzi.%s.%s", suffix_of(wide), suffix_of(from));
    o = unary(g, op, wide, o, to->size < 4 ? -1 : target);
    return to->size < 4 ? to_integer(g, o, wide, to, target) : o;
}

code_operand generate_converted(generator *g, code_operand o, const lab_type *from,
                                const lab_type *to, int target) {
    if (to->kind == LAB_BOOL) return from->kind == LAB_BOOL ? o : to_bool(g, o, from);
    o = generate_integer(g, o);
    if (lab_is_float(to)) {
        if (from->kind == to->kind) return o;
        const char *rounding = lab_is_float(from) && to->size == 8 ? "" : ".rn";
        const char *op = lab_text(g->l, "cvt%s.%s.%s", rounding, suffix_of(to), suffix_of(from));
        return unary(g, op, to, o, target);
    }
    if (lab_is_float(from)) return float_to_integer(g, o, from, to, target);
    return to_integer(g, o, from, to, target);
}
