/* Pointers, their spaces, loads and stores. */
#include <string.h>

#include "build.h"
#include "generate.h"

static const code_operand none = {.kind = CODE_NONE};

const char *generate_space_text(lab_space space) {
    switch (space) {
    case LAB_GLOBAL_SPACE: return ".global";
    case LAB_SHARED_SPACE: return ".shared";
    case LAB_LOCAL_SPACE: return ".local";
    case LAB_CONST_SPACE: return ".const";
    default: return "";
    }
}

/* ---- spaces ---- */

static lab_space joined(lab_space a, lab_space b) {
    if (a == LAB_UNDECIDED || a == b) return b;
    return b == LAB_UNDECIDED ? a : LAB_GENERIC;
}

static lab_space variable_space(const lab_symbol *s) {
    if (s->storage != LAB_LOCAL_STORAGE) return LAB_SHARED_SPACE;
    return s->is_module ? s->module_space : LAB_LOCAL_SPACE;
}

/* Of an object in memory. */
static lab_space object_space(const lab_expression *e) {
    while (e->kind == LAB_LANE)
        e = e->a;
    return e->kind == LAB_VARIABLE ? variable_space(e->symbol) : generate_pointer_space(e->a);
}

lab_space generate_pointer_space(const lab_expression *e) {
    for (;;) {
        switch (e->kind) {
        case LAB_VARIABLE: return e->symbol->in_memory ? LAB_GENERIC : e->symbol->space;
        case LAB_DECAY:
        case LAB_ADDRESS: return object_space(e->a);
        case LAB_CAST:
            if (e->a->type->kind != LAB_POINTER) return LAB_GENERIC;
            e = e->a;
            break;
        case LAB_OFFSET:
        case LAB_ASSIGN:
        case LAB_UPDATE:
        case LAB_INCREMENT: e = e->a; break;
        case LAB_COMMA: e = e->b; break;
        case LAB_CONDITIONAL:
            return joined(generate_pointer_space(e->a), generate_pointer_space(e->b));
        default: return LAB_GENERIC;
        }
    }
}

static bool decide_once(generator *g, const lab_function *f) {
    bool changed = false;
    for (lab_symbol *s = f->pointers; s; s = s->next_pointer) {
        lab_space space = s->is_parameter ? s->argument_space : LAB_UNDECIDED;
        for (const lab_assigned *a = s->assigned; a; a = a->next) {
            space = joined(space, generate_pointer_space(a->value));
            if (!generate_step(g, s->at)) return false;
        }
        changed |= space != s->space;
        s->space = space;
    }
    return changed;
}

void generate_decide_spaces(generator *g, const lab_function *f) {
    enum { PASSES = 12 };
    bool changed = true;
    for (lab_symbol *s = f->pointers; s; s = s->next_pointer)
        s->space = LAB_UNDECIDED;
    for (int n = 0; n < PASSES && changed; n++)
        changed = decide_once(g, f);
    for (lab_symbol *s = f->pointers; s; s = s->next_pointer)
        if (changed || s->space == LAB_UNDECIDED) s->space = LAB_GENERIC;
}

code_operand generate_in_space(generator *g, code_operand pointer, lab_space from, lab_space to) {
    if (to != LAB_GENERIC || from == LAB_GENERIC || from == LAB_UNDECIDED) return pointer;
    const int r = code_new_register(&g->code, CODE_B64, NULL);
    const char *op = lab_text(g->l, "cvta%s.u64", generate_space_text(from));
    if (pointer.kind != CODE_REGISTER) {
        const int plain = code_new_register(&g->code, CODE_B64, NULL);
        generate_move(g, lab_scalar(LAB_U64), plain, pointer);
        pointer = code_reg(plain);
    }
    code_plain(&g->code, CODE_PLAIN, op, r, pointer, none, none);
    return code_reg(r);
}

/* ---- addresses ---- */

/* Adds index * size to the base. */
static void add_index(generator *g, address *a, const lab_expression *index, int64_t size) {
    const lab_type *type = index->type;
    const bool wide = type->size == 8;
    code_operand i = generate_integer(g, generate_scalar(g, index));
    const int scaled = code_new_register(&g->code, CODE_B64, NULL);
    const char *sign = lab_is_signed(type) ? "s" : "u";
    if (i.kind == CODE_INTEGER) {
        a->offset += i.integer * size;
        return;
    }
    if (wide && size == 1)
        generate_move(g, type, scaled, i);
    else if (wide)
        code_plain(&g->code, CODE_PLAIN, "mul.lo.s64", scaled, i, code_int(size), none);
    else if (size == 1)
        code_plain(&g->code, CODE_PLAIN, *sign == 's' ? "cvt.s64.s32" : "cvt.u64.u32", scaled, i,
                   none, none);
    else
        code_plain(&g->code, CODE_PLAIN, *sign == 's' ? "mul.wide.s32" : "mul.wide.u32", scaled, i,
                   code_int(size), none);
    code_operand base = a->base;
    if (base.kind != CODE_REGISTER) {
        const int r = code_new_register(&g->code, CODE_B64, NULL);
        generate_move(g, lab_scalar(LAB_U64), r, base);
        base = code_reg(r);
    }
    const int sum = code_new_register(&g->code, CODE_B64, NULL);
    code_plain(&g->code, CODE_PLAIN, "add.s64", sum, base, code_reg(scaled), none);
    a->base = code_reg(sum);
}

/* index + constant: the constant joins the offset, if the sum cannot wrap. */
static const lab_expression *split_constant(const lab_expression *index, int64_t *constant) {
    *constant = 0;
    if (index->kind == LAB_INT_CONSTANT) {
        *constant = index->integer;
        return NULL;
    }
    const bool splits = index->kind == LAB_BINARY && (index->op == '+' || index->op == '-') &&
                        index->b->kind == LAB_INT_CONSTANT && lab_is_signed(index->type);
    if (!splits) return index;
    *constant = index->op == '+' ? index->b->integer : -index->b->integer;
    return index->a;
}

static address offset_address(generator *g, const lab_expression *e) {
    address a = generate_pointer(g, e->a);
    const int64_t size = e->type->of->size;
    int64_t constant, bytes;
    const lab_expression *index = split_constant(e->b, &constant);
    /* offsets stay small, so that their sums cannot overflow */
    if (constant < -(1 << 24) || constant > 1 << 24 ||
        __builtin_mul_overflow(constant, size, &bytes) || a.offset + bytes > INT32_MAX ||
        a.offset + bytes < INT32_MIN) {
        index = e->b;
        bytes = 0;
    }
    if (e->b->modifies) a.base = generate_copy(g, lab_scalar(LAB_U64), a.base);
    a.offset += bytes;
    if (index && index->kind == LAB_INT_CONSTANT) { /* too large for an offset */
        const int r = code_new_register(&g->code, CODE_B64, NULL);
        const uint64_t product = (uint64_t)index->integer * (uint64_t)size;
        generate_move(g, lab_scalar(LAB_U64), r, a.base);
        const int sum = code_new_register(&g->code, CODE_B64, NULL);
        code_plain(&g->code, CODE_PLAIN, "add.s64", sum, code_reg(r), code_int((int64_t)product),
                   none);
        a.base = code_reg(sum);
    } else if (index) {
        add_index(g, &a, index, size);
    }
    return a;
}

address generate_pointer(generator *g, const lab_expression *e) {
    if (!generate_step(g, e->at)) return (address){.base = code_int(0)};
    switch (e->kind) {
    case LAB_DECAY:
    case LAB_ADDRESS: return generate_address(g, e->a);
    case LAB_OFFSET: return offset_address(g, e);
    case LAB_CAST:
        if (e->a->type->kind == LAB_POINTER) return generate_pointer(g, e->a);
        break;
    default: break;
    }
    address a = {.space = generate_pointer_space(e), .base = generate_scalar(g, e)};
    if (a.base.kind != CODE_REGISTER) {
        const int r = code_new_register(&g->code, CODE_B64, NULL);
        generate_move(g, lab_scalar(LAB_U64), r, a.base);
        a.base = code_reg(r);
    }
    return a;
}

static address symbol_address(generator *g, lab_symbol *s) {
    generate_declare_memory(g, s);
    address a = {.space = variable_space(s)};
    a.base = code_symbol(s->ptx ? s->ptx : "");
    return a;
}

address generate_address(generator *g, const lab_expression *e) {
    if (e->kind == LAB_VARIABLE) return symbol_address(g, e->symbol);
    if (e->kind == LAB_DEREFERENCE) return generate_pointer(g, e->a);
    address a = generate_address(g, e->a); /* LAB_LANE */
    a.offset += (int64_t)e->op * e->type->size;
    return a;
}

/* The address as one register. */
static code_operand materialized(generator *g, address a, const int *target) {
    if (a.base.kind == CODE_REGISTER && a.offset == 0) return a.base;
    const int r = target ? target[0] : code_new_register(&g->code, CODE_B64, NULL);
    if (a.base.kind == CODE_REGISTER) {
        code_plain(&g->code, CODE_PLAIN, "add.s64", r, a.base, code_int(a.offset), none);
        return code_reg(r);
    }
    if (a.offset == 0) {
        generate_move(g, lab_scalar(LAB_U64), r, a.base);
        return code_reg(r);
    }
    const int base = code_new_register(&g->code, CODE_B64, NULL);
    generate_move(g, lab_scalar(LAB_U64), base, a.base);
    code_plain(&g->code, CODE_PLAIN, "add.s64", r, code_reg(base), code_int(a.offset), none);
    return code_reg(r);
}

code_operand generate_pointer_value(generator *g, const lab_expression *e, const int *target) {
    return materialized(g, generate_pointer(g, e), target);
}

/* ---- loads and stores ---- */

/* Of memory: narrow types have their width. */
static const char *memory_type(const lab_type *type) {
    switch (type->kind) {
    case LAB_BOOL:
    case LAB_U8: return "u8";
    case LAB_I8: return "s8";
    case LAB_U16: return "u16";
    case LAB_I16: return "s16";
    case LAB_I32:
    case LAB_U32: return "u32";
    case LAB_F32: return "f32";
    case LAB_F64: return "f64";
    default: return "u64";
    }
}

static const char *access(generator *g, const char *op, const lab_type *type, address a,
                          uint32_t lanes) {
    const char *is_volatile = type->is_volatile && a.space != LAB_CONST_SPACE ? ".volatile" : "";
    const char *vector = lanes == 4 ? ".v4" : lanes == 2 ? ".v2" : "";
    return lab_text(g->l, "%s%s%s%s.%s", op, is_volatile, generate_space_text(a.space), vector,
                    memory_type(generate_lane_type(type)));
}

void generate_load(generator *g, const lab_type *type, address a, const int *to) {
    const uint32_t lanes = generate_lanes(type), step = lanes == 3 ? 1 : lanes;
    for (uint32_t first = 0; first < lanes; first += step) {
        const code_kind kind = type->is_volatile ? CODE_MEMORY : CODE_LOAD;
        code_insn *i = code_add(&g->code, kind, access(g, "ld", type, a, step));
        i->from[i->n_from++] = a.base;
        i->offset = a.offset + first * generate_lane_type(type)->size;
        i->braces = true;
        for (uint32_t k = 0; k < step; k++)
            i->to[i->n_to++] = code_reg(to[first + k]);
    }
}

void generate_store(generator *g, const lab_type *type, address a, const value *v) {
    const uint32_t lanes = generate_lanes(type), step = lanes == 3 ? 1 : lanes;
    code_operand parts[4];
    for (uint32_t k = 0; k < lanes; k++)
        parts[k] = generate_integer(g, v->part[k]);
    for (uint32_t first = 0; first < lanes; first += step) {
        code_insn *i = code_add(&g->code, CODE_STORE, access(g, "st", type, a, step));
        i->from[i->n_from++] = a.base;
        i->offset = a.offset + first * generate_lane_type(type)->size;
        i->braces = step > 1;
        for (uint32_t k = 0; k < step; k++)
            i->from[i->n_from++] = parts[first + k];
    }
}

/* ---- declarations ---- */

static const char *unique_name(generator *g, lab_symbol *s) {
    const uint32_t n = ++s->name->ptx_names;
    return n == 1 ? s->name->text : lab_text(g->l, "%s$%u", s->name->text, n);
}

static void dynamic_shared(generator *g, lab_symbol *s) {
    if (s->ptx) return;
    s->ptx = unique_name(g, s);
    code_printf(&g->module, ".extern .shared .align 16 .b8 %s[];\n", s->ptx);
}

void generate_declare_memory(generator *g, lab_symbol *s) {
    if (s->storage == LAB_DYNAMIC_SHARED) {
        dynamic_shared(g, s);
        return;
    }
    if (s->declared_in == g->kernel || (s->is_module && s->storage == LAB_LOCAL_STORAGE)) return;
    s->declared_in = g->kernel;
    s->ptx = unique_name(g, s);
    code_printf(&g->variables, "\t%s .align %u .b8 %s[%u];\n",
                generate_space_text(variable_space(s)), s->type->align, s->ptx, s->type->size);
}
