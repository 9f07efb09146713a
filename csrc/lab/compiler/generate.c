/* Kernels and the module. */
#include "generate.h"

#include <stdlib.h>
#include <string.h>

#include "compiler.h"

static const code_operand none = {.kind = CODE_NONE};

static const char *parameter_type(const lab_type *type) {
    static const char *const names[] = {
        [LAB_BOOL] = "u8", [LAB_I8] = "u8",   [LAB_U8] = "u8",   [LAB_I16] = "u16",
        [LAB_U16] = "u16", [LAB_I32] = "u32", [LAB_U32] = "u32", [LAB_I64] = "u64",
        [LAB_U64] = "u64", [LAB_F32] = "f32", [LAB_F64] = "f64", [LAB_POINTER] = "u64"};
    return names[type->kind];
}

/* ld.param sign-extends narrow integers. */
static const char *load_type(const lab_type *type) {
    if (type->kind == LAB_I8) return "s8";
    return type->kind == LAB_I16 ? "s16" : parameter_type(type);
}

static const char *parameter_name(generator *g, const lab_function *f, uint32_t n) {
    return lab_text(g->l, "%s_param_%u", f->name->text, n);
}

static void load_parameter(generator *g, const lab_function *f, uint32_t n) {
    lab_symbol *s = f->parameters[n];
    const lab_type *type = s->type;
    const bool converts =
        type->kind == LAB_POINTER && !s->in_memory && s->space == LAB_GLOBAL_SPACE;
    const bool temporary = s->in_memory || converts;
    g->code.at = s->at;
    if (!s->in_memory) s->registers[0] = generate_variable_register(g, s, type, '\0');
    const int to = temporary ? generate_register(g, type) : s->registers[0];
    code_insn *i = code_add(&g->code, CODE_LOAD, lab_text(g->l, "ld.param.%s", load_type(type)));
    i->to[i->n_to++] = code_reg(to);
    i->from[i->n_from++] = code_symbol(parameter_name(g, f, n));
    if (converts) {
        code_plain(&g->code, CODE_PLAIN, "cvta.to.global.u64", s->registers[0], code_reg(to), none,
                   none);
    } else if (s->in_memory) {
        lab_expression object = {.kind = LAB_VARIABLE, .type = type, .at = s->at, .symbol = s};
        const value v = {.part = {code_reg(to)}};
        generate_store(g, type, generate_address(g, &object), &v);
    }
}

static void print_kernel(generator *g, const lab_function *f) {
    code_text *t = &g->module;
    code_printf(t, "\n.visible .entry %s(", f->name->text);
    for (uint32_t k = 0; k < f->n_parameters; k++)
        code_printf(t, "%s\n\t.param .%s %s_param_%u", k ? "," : "",
                    parameter_type(f->parameters[k]->type), f->name->text, k);
    code_printf(t, "\n)\n");
    if (f->max_threads) code_printf(t, ".maxntid %u, 1, 1\n", f->max_threads);
    code_printf(t, "{\n");
    code_print_registers(&g->code, t);
    for (size_t at = 0; at < g->variables.size;) { /* line by line */
        const char *line = g->variables.bytes + at;
        const char *end = memchr(line, '\n', g->variables.size - at);
        const size_t length = (size_t)(end - line) + 1;
        code_printf(t, "%.*s", (int)length, line);
        at += length;
    }
    code_print(&g->code, t);
    code_printf(t, "}\n");
}

static void kernel(generator *g, const lab_function *f) {
    g->kernel = f;
    g->code = (code){.l = g->l, .total = &g->total};
    g->variables.size = 0;
    g->inlined = 0;
    for (uint32_t k = 0; k < f->n_parameters; k++)
        f->parameters[k]->argument_space = LAB_GLOBAL_SPACE;
    generate_decide_spaces(g, f);
    for (uint32_t k = 0; k < f->n_parameters; k++)
        load_parameter(g, f, k);
    generate_statement(g, f->body);
    g->code.at = f->body->end;
    if (!g->code.unreachable) code_add(&g->code, CODE_EFFECT, "ret");
    code_finish(&g->code);
    if (!g->l->failed) print_kernel(g, f);
}

/* ---- variables of the module ---- */

static const lab_type *element_of(const lab_type *type) {
    while (type->kind == LAB_ARRAY)
        type = type->of;
    return type;
}

static void print_constant(code_text *t, const lab_type *type, const lab_expression *e) {
    if (type->kind == LAB_F32) {
        const float real = (float)e->real;
        uint32_t bits;
        memcpy(&bits, &real, sizeof bits);
        code_printf(t, "0f%08X", bits);
    } else if (type->kind == LAB_F64) {
        uint64_t bits;
        memcpy(&bits, &e->real, sizeof bits);
        code_printf(t, "0d%016llX", (unsigned long long)bits);
    } else {
        code_printf(t, "%lld", (long long)e->integer);
    }
}

static void module_variable(generator *g, lab_symbol *s) {
    const lab_type *element = element_of(s->type);
    const uint32_t count = s->type->size / element->size;
    code_text *t = &g->module;
    s->ptx = ++s->name->ptx_names == 1 ? s->name->text : lab_text(g->l, "%s$1", s->name->text);
    code_printf(t, ".visible %s .align %u .%s %s",
                s->module_space == LAB_CONST_SPACE ? ".const" : ".global", s->type->align,
                parameter_type(element), s->ptx);
    if (s->type->kind == LAB_ARRAY) code_printf(t, "[%u]", count);
    if (s->n_values) code_printf(t, s->type->kind == LAB_ARRAY ? " = {" : " = ");
    for (uint32_t k = 0; k < s->n_values; k++) {
        if (k) code_printf(t, ", ");
        print_constant(t, element, s->values[k]);
    }
    code_printf(t, s->n_values && s->type->kind == LAB_ARRAY ? "};\n" : ";\n");
}

static void print_file(generator *g) {
    char name[256];
    size_t n = 0;
    for (const char *at = g->l->file; *at && n + 1 < sizeof name; at++)
        name[n++] = *at == '"' || *at == '\\' || (unsigned char)*at < 32 ? '_' : *at;
    name[n] = '\0';
    code_printf(&g->module, "\n\t.file\t1 \"%s\"\n", name);
}

static char *finished(generator *g) {
    code_text *t = &g->module;
    free(g->variables.bytes);
    if (t->failed || g->variables.failed) lab_fail(g->l, (lab_position){1, 1}, "out of memory");
    if (!g->l->failed) return t->bytes;
    free(t->bytes);
    return NULL;
}

char *lab_generate(lab *l, lab_module *m) {
    generator g = {.l = l};
    uint32_t kernels = 0;
    code_printf(&g.module, "//\n// Generated by smemkern's compiler for the laboratory\n//\n\n"
                           ".version 7.8\n.target sm_80\n.address_size 64\n\n");
    for (uint32_t k = 0; k < m->n_variables; k++)
        module_variable(&g, m->variables[k]);
    for (lab_function *f = m->functions; f && !l->failed; f = f->next) {
        if (!f->is_kernel || !f->body) continue;
        kernel(&g, f);
        kernels++;
    }
    if (kernels == 0)
        lab_fail(l, (lab_position){1, 1},
                 "expected a kernel such as __global__ void k(float *x) { }, "
                 "found none");
    print_file(&g);
    return finished(&g);
}
