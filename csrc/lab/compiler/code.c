#include "code.h"

int code_new_register(code *c, code_class class, const char *name) {
    code_register *r = lab_push(c->l, &c->registers, sizeof *r);
    r->class = class;
    r->name = name;
    return c->l->failed ? 0 : (int)c->registers.count - 1;
}

static code_register *registers(const code *c) {
    return c->registers.items;
}

code_class code_class_of(const code *c, int r) {
    return registers(c)[r].class;
}

uint32_t code_new_label(code *c) {
    lab_push(c->l, &c->labels, sizeof(uint32_t));
    return c->l->failed ? 0 : c->labels.count - 1;
}

static uint32_t *branches_to(const code *c, uint32_t label) {
    return (uint32_t *)c->labels.items + label;
}

code_insn *code_add(code *c, code_kind kind, const char *op) {
    if (!c->unreachable && !c->l->failed && ++*c->total > LAB_MAX_CODE)
        lab_fail(c->l, c->at, "the kernels are longer than %d instructions", LAB_MAX_CODE);
    const bool keep = !c->unreachable && !c->l->failed;
    code_insn *i = keep ? lab_push(c->l, &c->insns, sizeof *i) : &c->dropped;
    *i = (code_insn){.kind = kind, .op = op, .guard = -1, .at = c->at};
    return i;
}

void code_place(code *c, uint32_t label) {
    if (c->l->failed || (c->unreachable && *branches_to(c, label) == 0)) return;
    c->unreachable = false;
    code_add(c, CODE_LABEL, "")->label = label;
}

void code_branch(code *c, uint32_t label, int guard, bool guard_not) {
    if (c->unreachable || c->l->failed) return;
    code_insn *i = code_add(c, CODE_BRANCH, "bra");
    i->label = label;
    i->guard = guard;
    i->guard_not = guard_not;
    if (c->l->failed) return;
    ++*branches_to(c, label);
    if (guard < 0) c->unreachable = true;
}

void code_plain(code *c, code_kind kind, const char *op, int to, code_operand a, code_operand b,
                code_operand d) {
    code_insn *i = code_add(c, kind, op);
    const code_operand from[] = {a, b, d};
    if (to >= 0) i->to[i->n_to++] = code_reg(to);
    for (int k = 0; k < 3 && from[k].kind != CODE_NONE; k++)
        i->from[i->n_from++] = from[k];
}

/* ---- passes ---- */

static code_insn *insns(const code *c) {
    return c->insns.items;
}

static code_register *read_register(const code *c, const code_operand *o) {
    return o->kind == CODE_REGISTER ? &registers(c)[o->integer] : NULL;
}

/* Adds n to the reads of what the instruction reads. */
static void count_reads(const code *c, const code_insn *i, uint32_t n) {
    for (int k = 0; k < i->n_from; k++) {
        code_register *r = read_register(c, &i->from[k]);
        if (r) r->reads += n;
    }
    if (i->guard >= 0) registers(c)[i->guard].reads += n;
}

static bool removable(const code *c, const code_insn *i) {
    if (i->kind > CODE_LOAD) return false;
    for (int k = 0; k < i->n_to; k++)
        if (registers(c)[i->to[k].integer].reads) return false;
    return true;
}

/* Backwards, so that what only removed instructions read is removed, too. */
static void remove_unread(code *c) {
    for (uint32_t r = 0; r < c->registers.count; r++)
        registers(c)[r].reads = 0;
    for (uint32_t k = 0; k < c->insns.count; k++)
        if (insns(c)[k].kind != CODE_GONE) count_reads(c, &insns(c)[k], 1);
    for (uint32_t k = c->insns.count; k-- > 0;) {
        code_insn *i = &insns(c)[k];
        if (!removable(c, i)) continue;
        count_reads(c, i, UINT32_MAX); /* one less */
        i->kind = CODE_GONE;
    }
}

/* Branches to the next instruction, then labels that nothing leads to. */
static void remove_branches(code *c) {
    code_insn *branch = NULL;
    for (uint32_t k = 0; k < c->insns.count; k++) {
        code_insn *i = &insns(c)[k];
        if (branch && i->kind == CODE_LABEL && i->label == branch->label) {
            branch->kind = CODE_GONE;
            --*branches_to(c, i->label);
            branch = NULL;
        } else if (i->kind != CODE_LABEL && i->kind != CODE_GONE) {
            branch = i->kind == CODE_BRANCH ? i : NULL;
        }
    }
    for (uint32_t k = 0; k < c->insns.count; k++) {
        code_insn *i = &insns(c)[k];
        if (i->kind == CODE_LABEL && *branches_to(c, i->label) == 0) i->kind = CODE_GONE;
    }
}

void code_finish(code *c) {
    if (c->l->failed) return;
    remove_branches(c);
    remove_unread(c);
    code_contract(c);
    remove_unread(c);
}
