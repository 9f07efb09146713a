/* Instructions as text. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code.h"

static bool make_room(code_text *t, size_t more) {
    if (t->size + more <= t->capacity) return true;
    const size_t capacity = 2 * t->capacity + more + 1024;
    char *bytes = realloc(t->bytes, capacity);
    if (!bytes) {
        t->failed = true;
        return false;
    }
    t->bytes = bytes;
    t->capacity = capacity;
    return true;
}

void code_printf(code_text *t, const char *format, ...) {
    enum { MAX_LINE = 1024 };
    if (t->failed || !make_room(t, MAX_LINE)) return;
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(t->bytes + t->size, MAX_LINE, format, list);
    va_end(list);
    if (length < 0 || length >= MAX_LINE)
        t->failed = true;
    else
        t->size += (size_t)length;
}

static const struct {
    const char *prefix, *type;
} classes[] = {[CODE_PRED] = {"p", "pred"},
               [CODE_B32] = {"r", "b32"},
               [CODE_B64] = {"rd", "b64"},
               [CODE_F32] = {"f", "f32"},
               [CODE_F64] = {"fd", "f64"}};

/* Numbers the registers that are left, in the order in which they appear. */
void code_print_registers(code *c, code_text *t) {
    uint32_t numbers[5] = {0};
    code_register *registers = c->registers.items;
    const code_insn *insns = c->insns.items;
    for (uint32_t k = 0; k < c->insns.count; k++) {
        const code_insn *i = &insns[k];
        if (i->kind == CODE_GONE) continue;
        for (int n = 0; n < i->n_to; n++) {
            code_register *r = &registers[i->to[n].integer];
            if (r->number) continue;
            r->number = r->name ? 1 : ++numbers[r->class];
            if (r->name) code_printf(t, "\t.reg .%s \t%%_%s;\n", classes[r->class].type, r->name);
        }
    }
    for (uint32_t k = 0; k < c->registers.count; k++) /* read, never written */
        if (registers[k].reads && !registers[k].number) {
            registers[k].number = registers[k].name ? 1 : ++numbers[registers[k].class];
            if (registers[k].name)
                code_printf(t, "\t.reg .%s \t%%_%s;\n", classes[registers[k].class].type,
                            registers[k].name);
        }
    for (int k = 0; k < 5; k++)
        if (numbers[k])
            code_printf(t, "\t.reg .%s \t%%%s<%u>;\n", classes[k].type, classes[k].prefix,
                        numbers[k] + 1);
}

static void print_register(const code *c, code_text *t, int64_t number) {
    const code_register *r = (const code_register *)c->registers.items + number;
    if (r->name)
        code_printf(t, "%%_%s", r->name);
    else
        code_printf(t, "%%%s%u", classes[r->class].prefix, r->number);
}

static void print_real(code_text *t, const code_operand *o) {
    uint64_t bits;
    uint32_t narrow;
    const float single = (float)o->real;
    if (o->kind == CODE_REAL32) {
        memcpy(&narrow, &single, sizeof narrow);
        code_printf(t, "0f%08X", narrow);
    } else {
        memcpy(&bits, &o->real, sizeof bits);
        code_printf(t, "0d%016llX", (unsigned long long)bits);
    }
}

static void print_operand(const code *c, code_text *t, const code_operand *o) {
    switch (o->kind) {
    case CODE_REGISTER: print_register(c, t, o->integer); break;
    case CODE_INTEGER: code_printf(t, "%lld", (long long)o->integer); break;
    case CODE_TEXT: code_printf(t, "%s", o->text); break;
    default: print_real(t, o); break;
    }
}

static void print_list(const code *c, code_text *t, const code_operand *o, int n, bool braces) {
    if (braces) code_printf(t, "{");
    for (int k = 0; k < n; k++) {
        if (k) code_printf(t, ", ");
        print_operand(c, t, &o[k]);
    }
    if (braces) code_printf(t, "}");
}

static void print_address(const code *c, code_text *t, const code_insn *i) {
    code_printf(t, "[");
    print_operand(c, t, &i->from[0]);
    if (i->offset) code_printf(t, "+%lld", (long long)i->offset);
    code_printf(t, "]");
}

static void print_operands(const code *c, code_text *t, const code_insn *i) {
    const bool memory = i->kind == CODE_LOAD || i->kind == CODE_MEMORY || i->kind == CODE_STORE;
    const int first = memory ? 1 : 0;
    print_list(c, t, i->to, i->n_to, i->braces && i->n_to > 1);
    if (memory) {
        if (i->n_to) code_printf(t, ", ");
        print_address(c, t, i);
    }
    if (i->n_from > first) {
        if (i->n_to || memory) code_printf(t, ", ");
        print_list(c, t, i->from + first, i->n_from - first, i->braces && i->n_to <= 1);
    }
}

static void print_insn(const code *c, code_text *t, const code_insn *i) {
    if (i->kind == CODE_LABEL) {
        code_printf(t, "$L_%u:\n", i->label);
        return;
    }
    code_printf(t, "\t");
    if (i->guard >= 0) {
        code_printf(t, i->guard_not ? "@!" : "@");
        print_register(c, t, i->guard);
        code_printf(t, " ");
    }
    code_printf(t, "%s", i->op);
    if (i->n_to || i->n_from || i->kind == CODE_BRANCH) code_printf(t, " \t");
    if (i->kind == CODE_BRANCH) code_printf(t, "$L_%u", i->label);
    print_operands(c, t, i);
    code_printf(t, ";\n");
}

void code_print(code *c, code_text *t) {
    uint32_t line = 0;
    const code_insn *insns = c->insns.items;
    for (uint32_t k = 0; k < c->insns.count; k++) {
        const code_insn *i = &insns[k];
        if (i->kind == CODE_GONE) continue;
        if (i->kind != CODE_LABEL && i->at.line != line) {
            code_printf(t, "\t.loc\t1 %u %u\n", i->at.line, i->at.column);
            line = i->at.line;
        }
        print_insn(c, t, i);
    }
}
