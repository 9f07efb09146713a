/* Statements, and calls, which are inlined. */
#include <string.h>

#include "generate.h"

static void statements(generator *g, const lab_statement *s) {
    for (; s && !g->l->failed; s = s->next)
        generate_statement(g, s);
}

/* ---- declarations ---- */

static void declare_registers(generator *g, lab_symbol *s) {
    const uint32_t lanes = generate_lanes(s->type);
    for (uint32_t k = 0; k < lanes; k++)
        s->registers[k] = generate_variable_register(g, s, generate_lane_type(s->type),
                                                     lanes > 1 ? "xyzw"[k] : '\0');
}

static const lab_type *element_of(const lab_type *type) {
    while (type->kind == LAB_ARRAY)
        type = type->of;
    return type;
}

/* Values of an array; those that are not written are 0. */
static void fill_array(generator *g, const lab_statement *s) {
    const lab_type *element = element_of(s->symbol->type);
    const uint32_t count = s->symbol->type->size / element->size;
    lab_expression object = {.kind = LAB_VARIABLE, .type = s->symbol->type, .at = s->at};
    object.symbol = s->symbol;
    address a = generate_address(g, &object);
    for (uint32_t k = 0; k < count && generate_step(g, s->at); k++) {
        value v = {.part = {code_int(0), code_int(0), code_int(0), code_int(0)}};
        if (k < s->n_values && element->kind == LAB_POINTER)
            v.part[0] = generate_in_space(g, generate_scalar(g, s->values[k]),
                                          generate_pointer_space(s->values[k]), LAB_GENERIC);
        else if (k < s->n_values)
            v = generate_value(g, s->values[k], NULL);
        else if (lab_is_float(element_of(element)) || element->kind == LAB_VECTOR)
            for (uint32_t n = 0; n < 4; n++)
                v.part[n] =
                    (code_operand){.kind = !lab_is_float(generate_lane_type(element)) ? CODE_INTEGER
                                           : generate_lane_type(element)->size == 4 ? CODE_REAL32
                                                                                    : CODE_REAL64};
        generate_store(g, element, a, &v);
        a.offset += element->size;
    }
}

static void assign_initial(generator *g, const lab_statement *s) {
    lab_expression object = {.kind = LAB_VARIABLE, .type = s->symbol->type, .at = s->at};
    lab_expression assignment = {.kind = LAB_ASSIGN, .type = s->symbol->type, .at = s->at};
    object.symbol = s->symbol;
    assignment.a = &object;
    assignment.b = s->values[0];
    generate_effect(g, &assignment);
}

static void declaration(generator *g, const lab_statement *s) {
    lab_symbol *symbol = s->symbol;
    if (symbol->constant && !symbol->in_memory) return;
    if (symbol->in_memory)
        generate_declare_memory(g, symbol);
    else
        declare_registers(g, symbol);
    if (!s->has_value) return;
    if (symbol->type->kind == LAB_ARRAY)
        fill_array(g, s);
    else
        assign_initial(g, s);
}

/* ---- control flow ---- */

static void if_statement(generator *g, const lab_statement *s) {
    const uint32_t other = code_new_label(&g->code);
    generate_branch(g, s->a, other, false);
    generate_statement(g, s->body);
    if (!s->other) {
        code_place(&g->code, other);
        return;
    }
    const uint32_t end = code_new_label(&g->code);
    code_branch(&g->code, end, -1, false);
    code_place(&g->code, other);
    generate_statement(g, s->other);
    code_place(&g->code, end);
}

/* The test is before the body, or for do after it. */
static void loop(generator *g, const lab_statement *s) {
    const uint32_t outer_break = g->break_label, outer_continue = g->continue_label;
    const uint32_t top = code_new_label(&g->code);
    g->break_label = code_new_label(&g->code);
    g->continue_label = code_new_label(&g->code);
    code_place(&g->code, top);
    if (s->a && !s->test_last) generate_branch(g, s->a, g->break_label, false);
    generate_statement(g, s->body);
    code_place(&g->code, g->continue_label);
    if (s->step) generate_effect(g, s->step);
    if (s->test_last)
        generate_branch(g, s->a, top, true);
    else
        code_branch(&g->code, top, -1, false);
    code_place(&g->code, g->break_label);
    g->break_label = outer_break;
    g->continue_label = outer_continue;
}

static void return_statement(generator *g, const lab_statement *s) {
    if (g->inlined == 0) {
        code_add(&g->code, CODE_EFFECT, "ret");
        g->code.unreachable = true;
        return;
    }
    if (s->a && g->result->kind == LAB_POINTER) {
        const code_operand o = generate_scalar(g, s->a);
        generate_move(g, g->result, g->results[0],
                      generate_in_space(g, o, generate_pointer_space(s->a), LAB_GENERIC));
    } else if (s->a && g->result->kind != LAB_VOID) {
        generate_into(g, s->a, g->results);
    } else if (s->a) {
        generate_effect(g, s->a);
    }
    code_branch(&g->code, g->return_label, -1, false);
}

void generate_statement(generator *g, const lab_statement *s) {
    if (!generate_step(g, s->at)) return;
    g->code.at = s->at;
    switch (s->kind) {
    case LAB_EXPRESSION_STATEMENT: generate_effect(g, s->a); break;
    case LAB_DECLARATION: declaration(g, s); break;
    case LAB_BLOCK: statements(g, s->body); break;
    case LAB_IF: if_statement(g, s); break;
    case LAB_LOOP: loop(g, s); break;
    case LAB_BREAK: code_branch(&g->code, g->break_label, -1, false); break;
    case LAB_CONTINUE: code_branch(&g->code, g->continue_label, -1, false); break;
    case LAB_RETURN: return_statement(g, s); break;
    }
}

/* ---- calls ---- */

/* A parameter that the function never assigns to is the argument itself. */
static void bind(generator *g, lab_symbol *parameter, const lab_expression *argument, value v) {
    const lab_type *type = parameter->type;
    const uint32_t lanes = generate_lanes(type);
    if (parameter->in_memory) {
        lab_expression object = {.kind = LAB_VARIABLE, .type = type, .at = argument->at};
        object.symbol = parameter;
        generate_store(g, type, generate_address(g, &object), &v);
        return;
    }
    bool copies = parameter->is_assigned;
    for (uint32_t k = 0; k < lanes; k++)
        copies |= v.part[k].kind != CODE_REGISTER ||
                  code_class_of(&g->code, (int)v.part[k].integer) == CODE_PRED;
    if (copies) declare_registers(g, parameter);
    for (uint32_t k = 0; k < lanes; k++)
        if (copies)
            generate_move(g, generate_lane_type(type), parameter->registers[k], v.part[k]);
        else
            parameter->registers[k] = (int)v.part[k].integer;
}

static void bind_all(generator *g, const lab_expression *e) {
    value values[LAB_MAX_ARGUMENTS];
    const lab_function *f = e->function;
    bool modifies = false;
    for (uint32_t k = 0; k < e->n_arguments; k++)
        modifies |= e->arguments[k]->modifies;
    for (uint32_t k = 0; k < e->n_arguments; k++) {
        const lab_type *type = e->arguments[k]->type;
        values[k] = generate_value(g, e->arguments[k], NULL);
        for (uint32_t n = 0; modifies && n < generate_lanes(type); n++)
            values[k].part[n] = generate_copy(g, generate_lane_type(type), values[k].part[n]);
    }
    for (uint32_t k = 0; k < e->n_arguments; k++)
        if (e->arguments[k]->type->kind == LAB_POINTER)
            f->parameters[k]->argument_space = generate_pointer_space(e->arguments[k]);
    generate_decide_spaces(g, f);
    for (uint32_t k = 0; k < e->n_arguments; k++) {
        lab_symbol *p = f->parameters[k];
        if (p->type->kind == LAB_POINTER)
            values[k].part[0] = generate_in_space(g, values[k].part[0], p->argument_space,
                                                  p->in_memory ? LAB_GENERIC : p->space);
        bind(g, p, e->arguments[k], values[k]);
    }
}

static bool may_inline(generator *g, const lab_expression *e) {
    const lab_function *f = e->function;
    if (!f->body)
        lab_fail(g->l, e->at, "'%s' is declared, but has no body", f->name->text);
    else if (f->active)
        lab_fail(g->l, e->at, "'%s' calls itself; recursion is not supported", f->name->text);
    else if (g->inlined >= LAB_MAX_INLINED)
        lab_fail(g->l, e->at, "calls nested deeper than %d", LAB_MAX_INLINED);
    return !g->l->failed;
}

value generate_call(generator *g, const lab_expression *e) {
    lab_function *f = e->function;
    value v = {0};
    if (!may_inline(g, e)) return v;
    bind_all(g, e);
    const uint32_t return_label = g->return_label;
    const lab_type *result = g->result;
    int results[4];
    memcpy(results, g->results, sizeof results);
    g->inlined++;
    g->result = f->result;
    g->return_label = code_new_label(&g->code);
    for (uint32_t k = 0; k < generate_lanes(f->result); k++)
        v.part[k] = code_reg(g->results[k] = generate_register(g, generate_lane_type(f->result)));
    f->active = true;
    generate_statement(g, f->body);
    f->active = false;
    code_place(&g->code, g->return_label);
    g->inlined--;
    g->result = result;
    g->return_label = return_label;
    memcpy(g->results, results, sizeof results);
    g->code.at = e->at;
    return v;
}
