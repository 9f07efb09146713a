/* Values of expressions. */
#include "build.h"
#include "generate.h"

static const code_operand none = {.kind = CODE_NONE};

bool generate_step(generator *g, lab_position at) {
    if (!g->l->failed && ++g->work > LAB_MAX_WORK)
        lab_fail(g->l, at, "the kernels are too large after inlining of calls");
    return !g->l->failed;
}

static value one(code_operand o) {
    return (value){.part = {o}};
}

static void temporaries(generator *g, const lab_type *type, int *registers) {
    for (uint32_t k = 0; k < generate_lanes(type); k++)
        registers[k] = generate_register(g, generate_lane_type(type));
}

static value of_registers(const lab_type *type, const int *registers) {
    value v = {0};
    for (uint32_t k = 0; k < generate_lanes(type); k++)
        v.part[k] = code_reg(registers[k]);
    return v;
}

static value copied(generator *g, const lab_type *type, value v) {
    for (uint32_t k = 0; k < generate_lanes(type); k++)
        v.part[k] = generate_copy(g, generate_lane_type(type), v.part[k]);
    return v;
}

static void move_all(generator *g, const lab_type *type, const int *to, const value *v) {
    for (uint32_t k = 0; k < generate_lanes(type); k++)
        generate_move(g, generate_lane_type(type), to[k], v->part[k]);
}

/* A value that stays although `later` may assign to its variable. */
static code_operand kept(generator *g, const lab_expression *e, const lab_expression *later) {
    const code_operand o = generate_scalar(g, e);
    return later->modifies ? generate_copy(g, e->type, o) : o;
}

static code_operand constant(const lab_expression *e) {
    if (e->kind == LAB_INT_CONSTANT) return code_int(e->integer);
    const bool single = e->type->kind == LAB_F32;
    return (code_operand){.kind = single ? CODE_REAL32 : CODE_REAL64, .real = e->real};
}

static code_operand special(generator *g, const lab_expression *e) {
    static const char *const names[] = {"%tid.x",   "%tid.y",    "%tid.z",    "%ctaid.x",
                                        "%ctaid.y", "%ctaid.z",  "%ntid.x",   "%ntid.y",
                                        "%ntid.z",  "%nctaid.x", "%nctaid.y", "%nctaid.z"};
    const int r = generate_register(g, e->type);
    generate_move(g, e->type, r, code_symbol(names[e->op]));
    return code_reg(r);
}

static value variable(generator *g, const lab_expression *e) {
    lab_symbol *s = e->symbol;
    if (!s->in_memory) return of_registers(e->type, s->registers);
    int to[4];
    temporaries(g, e->type, to);
    generate_load(g, e->type, generate_address(g, e), to);
    return of_registers(e->type, to);
}

static value load(generator *g, const lab_expression *e, const int *target) {
    int own[4];
    const address a = generate_address(g, e);
    const int *to = target;
    if (!to) {
        temporaries(g, e->type, own);
        to = own;
    }
    g->code.at = e->at;
    generate_load(g, e->type, a, to);
    return of_registers(e->type, to);
}

static value lane(generator *g, const lab_expression *e, const int *target) {
    const lab_expression *base = e;
    while (base->kind == LAB_LANE)
        base = base->a;
    const bool in_memory =
        base->kind == LAB_DEREFERENCE || (base->kind == LAB_VARIABLE && base->symbol->in_memory);
    if (in_memory) return load(g, e, target);
    return one(generate_value(g, e->a, NULL).part[e->op]);
}

static code_operand unary(generator *g, const lab_expression *e, const int *target) {
    code_operand a = generate_integer(g, generate_scalar(g, e->a));
    const int to = target ? target[0] : generate_register(g, e->type);
    const char *op = "not.b32";
    if (e->kind == LAB_COMPLEMENT && e->type->size == 8) op = "not.b64";
    if (e->kind == LAB_NEGATE) {
        const bool narrow = e->type->size == 4;
        op = lab_is_float(e->type) ? (narrow ? "neg.f32" : "neg.f64")
                                   : (narrow ? "neg.s32" : "neg.s64");
    }
    code_plain(&g->code, CODE_PLAIN, op, to, a, none, none);
    return code_reg(to);
}

static code_operand logical_not(generator *g, const lab_expression *e) {
    const int a = generate_predicate(g, generate_scalar(g, e->a));
    const int p = code_new_register(&g->code, CODE_PRED, NULL);
    code_plain(&g->code, CODE_PLAIN, "not.pred", p, code_reg(a), none, none);
    return code_reg(p);
}

/* && and ||: of predicates where the right side is cheap, else with branches. */
static code_operand logical(generator *g, const lab_expression *e) {
    if (e->b->speculates) {
        const int a = generate_predicate(g, generate_scalar(g, e->a));
        const int b = generate_predicate(g, generate_scalar(g, e->b));
        const int p = code_new_register(&g->code, CODE_PRED, NULL);
        code_plain(&g->code, CODE_PLAIN, e->kind == LAB_AND ? "and.pred" : "or.pred", p,
                   code_reg(a), code_reg(b), none);
        return code_reg(p);
    }
    const int r = code_new_register(&g->code, CODE_B32, NULL);
    const uint32_t end = code_new_label(&g->code);
    generate_move(g, e->type, r, code_int(0));
    generate_branch(g, e, end, false);
    generate_move(g, e->type, r, code_int(1));
    code_place(&g->code, end);
    return code_reg(r);
}

/* Two pointers in one space. */
static void pointer_pair(generator *g, const lab_expression *e, code_operand *a, code_operand *b) {
    const lab_space sa = generate_pointer_space(e->a), sb = generate_pointer_space(e->b);
    *a = kept(g, e->a, e->b);
    *b = generate_scalar(g, e->b);
    if (sa == sb) return;
    *a = generate_in_space(g, *a, sa, LAB_GENERIC);
    *b = generate_in_space(g, *b, sb, LAB_GENERIC);
}

static code_operand binary(generator *g, const lab_expression *e, const int *target) {
    code_operand a, b;
    if (e->a->type->kind == LAB_POINTER) {
        pointer_pair(g, e, &a, &b);
    } else {
        a = kept(g, e->a, e->b);
        b = generate_scalar(g, e->b);
    }
    g->code.at = e->at;
    return generate_binary(g, e->op, e->a->type, a, b, target ? target[0] : -1);
}

static code_operand difference(generator *g, const lab_expression *e) {
    code_operand a, b;
    pointer_pair(g, e, &a, &b);
    a = generate_binary(g, '-', e->type, a, b, -1);
    return generate_binary(g, '/', e->type, a, code_int(e->a->type->of->size), -1);
}

static code_operand cast(generator *g, const lab_expression *e, const int *target) {
    const lab_type *from = e->a->type, *to = e->type;
    if (to->kind == LAB_VOID) {
        generate_effect(g, e->a);
        return none;
    }
    if (to->kind == LAB_POINTER) {
        if (from->kind == LAB_POINTER) return generate_pointer_value(g, e, target);
        return generate_scalar(g, e->a);
    }
    /* int and unsigned are the same bits */
    const bool same =
        lab_is_integer(from) && lab_is_integer(to) && from->size == to->size && to->size >= 4;
    if (same) return generate_value(g, e->a, target).part[0];
    code_operand o = generate_scalar(g, e->a);
    if (from->kind == LAB_POINTER) {
        o = generate_in_space(g, o, generate_pointer_space(e->a), LAB_GENERIC);
        from = lab_scalar(LAB_U64);
    }
    g->code.at = e->at;
    return generate_converted(g, o, from, to, target ? target[0] : -1);
}

/* ---- conditional ---- */

static code_operand select(generator *g, const lab_expression *e, const int *target) {
    const int p = generate_predicate(g, generate_scalar(g, e->c));
    const code_operand a = generate_integer(g, generate_scalar(g, e->a));
    const code_operand b = generate_integer(g, generate_scalar(g, e->b));
    static const char *const ops[] = {"", "selp.b32", "selp.b64", "selp.f32", "selp.f64"};
    const int to = target ? target[0] : generate_register(g, e->type);
    code_plain(&g->code, CODE_PLAIN, ops[generate_class(e->type)], to, a, b, code_reg(p));
    return code_reg(to);
}

/* A pointer goes into the space of the whole. */
static void arm(generator *g, const lab_expression *e, const lab_expression *value, const int *to) {
    if (e->type->kind != LAB_POINTER) {
        generate_into(g, value, to);
        return;
    }
    const code_operand o = generate_scalar(g, value);
    const lab_space space = generate_pointer_space(e);
    generate_move(g, e->type, to[0], generate_in_space(g, o, generate_pointer_space(value), space));
}

static value conditional(generator *g, const lab_expression *e) {
    int to[4];
    const uint32_t other = code_new_label(&g->code), end = code_new_label(&g->code);
    temporaries(g, e->type, to);
    generate_branch(g, e->c, other, false);
    arm(g, e, e->a, to);
    code_branch(&g->code, end, -1, false);
    code_place(&g->code, other);
    arm(g, e, e->b, to);
    code_place(&g->code, end);
    return of_registers(e->type, to);
}

/* ---- assignments ---- */

/* Stores to an object in memory or assigns to registers; *v becomes the object's value. */
static void assign(generator *g, const lab_expression *object, value *v) {
    const lab_expression *base = object;
    while (base->kind == LAB_LANE)
        base = base->a;
    lab_symbol *s = base->kind == LAB_VARIABLE && !base->symbol->in_memory ? base->symbol : NULL;
    if (!s) {
        const address a = generate_address(g, object);
        g->code.at = object->at;
        generate_store(g, object->type, a, v);
    } else if (base == object) {
        move_all(g, object->type, s->registers, v);
        *v = of_registers(object->type, s->registers);
    } else {
        move_all(g, object->type, &s->registers[object->op], v);
        *v = of_registers(object->type, &s->registers[object->op]);
    }
}

/* A pointer's value in the space that the object holds. */
static code_operand for_object(generator *g, const lab_expression *object,
                               const lab_expression *e) {
    const lab_space to = generate_pointer_space(object);
    return generate_in_space(g, generate_scalar(g, e), generate_pointer_space(e), to);
}

static bool in_registers(const lab_expression *object) {
    return object->kind == LAB_VARIABLE && !object->symbol->in_memory;
}

static value assignment(generator *g, const lab_expression *e) {
    const lab_expression *object = e->a;
    value v;
    if (e->type->kind == LAB_POINTER) {
        v = one(for_object(g, object, e->b));
    } else if (in_registers(object) && generate_lanes(e->type) == 1) {
        generate_into(g, e->b, object->symbol->registers);
        return of_registers(e->type, object->symbol->registers);
    } else {
        v = generate_value(g, e->b, NULL);
        if (object->modifies || generate_lanes(e->type) > 1) v = copied(g, e->type, v);
    }
    assign(g, object, &v);
    return v;
}

/* The object's new value from its old one. */
static code_operand updated(generator *g, const lab_expression *e, code_operand old, code_operand b,
                            const int *target) {
    const lab_type *type = e->type;
    if (type->kind == LAB_POINTER) {
        b = generate_binary(g, '*', lab_scalar(LAB_I64), b, code_int(type->of->size), -1);
        return generate_binary(g, e->op, lab_scalar(LAB_I64), old, b, target ? target[0] : -1);
    }
    const bool shift = e->op == LAB_2('<', '<') || e->op == LAB_2('>', '>');
    const lab_type *common = shift ? lab_promoted(type) : e->b->type;
    old = generate_converted(g, old, type, common, -1);
    const bool direct = type->kind == common->kind;
    old = generate_binary(g, e->op, common, old, b, direct && target ? target[0] : -1);
    return generate_converted(g, old, common, type, target ? target[0] : -1);
}

/* Object op= b, and ++ and --: reads, computes, writes; the address is computed once. */
static value read_modify_write(generator *g, const lab_expression *e, code_operand b) {
    const lab_expression *object = e->a;
    const lab_type *type = e->type;
    code_operand old;
    if (in_registers(object)) {
        const int *own = object->symbol->registers;
        old = e->post ? generate_copy(g, type, code_reg(own[0])) : code_reg(own[0]);
        generate_move(g, type, own[0], updated(g, e, code_reg(own[0]), b, own));
        return one(e->post ? old : code_reg(own[0]));
    }
    const lab_expression *base = object;
    while (base->kind == LAB_LANE)
        base = base->a;
    if (base->kind == LAB_VARIABLE && !base->symbol->in_memory) {
        const int own = base->symbol->registers[object->op];
        old = e->post ? generate_copy(g, type, code_reg(own)) : code_reg(own);
        generate_move(g, type, own, updated(g, e, code_reg(own), b, &own));
        return one(e->post ? old : code_reg(own));
    }
    const address a = generate_address(g, object);
    int loaded;
    temporaries(g, type, &loaded);
    g->code.at = object->at;
    generate_load(g, type, a, &loaded);
    value v = one(updated(g, e, code_reg(loaded), b, NULL));
    g->code.at = object->at;
    generate_store(g, type, a, &v);
    return e->post ? one(code_reg(loaded)) : v;
}

static value update(generator *g, const lab_expression *e) {
    code_operand b = generate_scalar(g, e->b);
    b = generate_integer(g, b);
    if (e->a->modifies) b = generate_copy(g, e->b->type, b);
    return read_modify_write(g, e, b);
}

/* ++a is a += 1 in the type that the sum has. */
static value increment(generator *g, const lab_expression *e) {
    lab_expression one_node = {.kind = LAB_INT_CONSTANT, .at = e->at};
    lab_expression as_update = *e;
    const lab_type *type =
        e->type->kind == LAB_POINTER ? lab_scalar(LAB_I64) : lab_promoted(e->type);
    one_node.type = type;
    as_update.b = &one_node;
    code_operand b = code_int(1);
    if (lab_is_float(type)) {
        b = (code_operand){.kind = type->size == 4 ? CODE_REAL32 : CODE_REAL64, .real = 1};
        if (e->op == '-') {
            as_update.op = '+';
            b.real = -1;
        }
    }
    return read_modify_write(g, &as_update, b);
}

static value make(generator *g, const lab_expression *e) {
    value v = {0};
    for (uint32_t k = 0; k < e->n_arguments; k++) {
        const code_operand o = generate_integer(g, generate_scalar(g, e->arguments[k]));
        v.part[k] = e->modifies ? generate_copy(g, e->type->of, o) : o;
    }
    return v;
}

/* ---- all ---- */

static value scalar_value(generator *g, const lab_expression *e, const int *target) {
    switch (e->kind) {
    case LAB_INT_CONSTANT:
    case LAB_FLOAT_CONSTANT: return one(constant(e));
    case LAB_SPECIAL: return one(special(g, e));
    case LAB_DECAY:
    case LAB_ADDRESS:
    case LAB_OFFSET: return one(generate_pointer_value(g, e, target));
    case LAB_NEGATE:
    case LAB_COMPLEMENT: return one(unary(g, e, target));
    case LAB_NOT: return one(logical_not(g, e));
    case LAB_BINARY: return one(binary(g, e, target));
    case LAB_DIFFERENCE: return one(difference(g, e));
    case LAB_AND:
    case LAB_OR: return one(logical(g, e));
    case LAB_CAST: return one(cast(g, e, target));
    default: return one(none);
    }
}

value generate_value(generator *g, const lab_expression *e, const int *target) {
    if (!generate_step(g, e->at)) return one(code_int(0));
    g->code.at = e->at;
    switch (e->kind) {
    case LAB_VARIABLE: return variable(g, e);
    case LAB_DEREFERENCE: return load(g, e, target);
    case LAB_LANE: return lane(g, e, target);
    case LAB_CONDITIONAL:
        if (e->a->speculates && e->b->speculates && lab_is_arithmetic(e->type))
            return one(select(g, e, target));
        return conditional(g, e);
    case LAB_COMMA: generate_effect(g, e->a); return generate_value(g, e->b, target);
    case LAB_ASSIGN: return assignment(g, e);
    case LAB_UPDATE: return update(g, e);
    case LAB_INCREMENT: return increment(g, e);
    case LAB_CALL: return generate_call(g, e);
    case LAB_BUILTIN: return generate_builtin(g, e);
    case LAB_MAKE: return make(g, e);
    default: return scalar_value(g, e, target);
    }
}

code_operand generate_scalar(generator *g, const lab_expression *e) {
    return generate_value(g, e, NULL).part[0];
}

void generate_into(generator *g, const lab_expression *e, const int *registers) {
    const bool scalar = generate_lanes(e->type) == 1;
    const value v = generate_value(g, e, scalar ? registers : NULL);
    move_all(g, e->type, registers, &v);
}

void generate_effect(generator *g, const lab_expression *e) {
    generate_value(g, e, NULL);
}

static void branch_logical(generator *g, const lab_expression *e, uint32_t label, bool sense) {
    const bool is_and = e->kind == LAB_AND;
    if (is_and != sense) { /* either side decides */
        generate_branch(g, e->a, label, sense);
        generate_branch(g, e->b, label, sense);
        return;
    }
    const uint32_t skip = code_new_label(&g->code);
    generate_branch(g, e->a, skip, !sense);
    generate_branch(g, e->b, label, sense);
    code_place(&g->code, skip);
}

void generate_branch(generator *g, const lab_expression *e, uint32_t label, bool sense) {
    if (!generate_step(g, e->at)) return;
    if (e->kind == LAB_NOT) {
        generate_branch(g, e->a, label, !sense);
    } else if (e->kind == LAB_INT_CONSTANT) {
        if ((e->integer != 0) == sense) code_branch(&g->code, label, -1, false);
    } else if ((e->kind == LAB_AND || e->kind == LAB_OR) && !e->b->speculates) {
        branch_logical(g, e, label, sense);
    } else {
        const int p = generate_predicate(g, generate_scalar(g, e));
        code_branch(&g->code, label, p, !sense);
    }
}
