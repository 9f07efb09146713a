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

static bool ends_block(const code_insn *i) {
    return i->kind == CODE_LABEL || i->kind == CODE_BRANCH;
}

/* ---- contraction ----
 *
 * As NVVM does it: within a basic block a * b + c becomes an fma if fewer than 5 instructions use
 * the product, and all of these are sums. Differences stay: NVVM leaves them to ptxas.
 */

static void begin_pass(code *c) {
    for (uint32_t r = 0; r < c->registers.count; r++)
        registers(c)[r].written_in = 0;
}

/* The product that was last written to the operand in this block. */
static code_insn *product(const code *c, const code_operand *o, uint32_t block) {
    const code_register *r = read_register(c, o);
    if (!r || r->written_in != block) return NULL;
    code_insn *i = &insns(c)[r->written_at];
    return i->kind == CODE_MULTIPLY ? i : NULL;
}

static void note_writes(const code *c, const code_insn *i, uint32_t block, uint32_t at) {
    for (int k = 0; k < i->n_to; k++) {
        code_register *r = &registers(c)[i->to[k].integer];
        r->written_in = block;
        r->written_at = at;
    }
}

static void find_live(code *c) {
    uint32_t block = 1;
    begin_pass(c);
    for (uint32_t k = 0; k < c->insns.count; k++) {
        const code_insn *i = &insns(c)[k];
        if (i->kind == CODE_GONE) continue;
        for (int n = 0; n < i->n_from; n++) {
            code_register *r = read_register(c, &i->from[n]);
            if (r && r->written_in != block) r->lives_on = true;
        }
        note_writes(c, i, block, k);
        block += ends_block(i);
    }
}

/* What uses each product: sums only, or others; a value that outlives its block has others. */
static void find_uses(code *c) {
    uint32_t block = 1, first = 0;
    begin_pass(c);
    for (uint32_t k = 0; k <= c->insns.count; k++) {
        const bool end = k == c->insns.count || ends_block(&insns(c)[k]);
        for (uint32_t m = first; end && m < k; m++) {
            code_insn *i = &insns(c)[m];
            const code_register *r =
                i->kind == CODE_MULTIPLY ? &registers(c)[i->to[0].integer] : NULL;
            if (r && r->lives_on && r->written_at == m) i->unfusable = true;
        }
        if (k == c->insns.count) break;
        const code_insn *i = &insns(c)[k];
        if (i->kind == CODE_GONE) continue;
        for (int n = 0; n < i->n_from; n++) {
            code_insn *p = product(c, &i->from[n], block);
            if (!p) continue;
            p->uses++;
            p->unfusable |= i->kind != CODE_ADD;
        }
        note_writes(c, i, block, k);
        if (!end) continue;
        block++;
        first = k + 1;
    }
}

/* Whether the product's factors still have the values that it had. */
static bool factors_stand(const code *c, const code_insn *p, uint32_t block) {
    for (int k = 0; k < p->n_from; k++) {
        const code_register *r = read_register(c, &p->from[k]);
        const uint32_t at = (uint32_t)(p - insns(c));
        if (r && r->written_in == block && r->written_at >= at) return false;
    }
    return true;
}

static void contract_sum(code *c, code_insn *i, uint32_t block) {
    for (int k = 0; k < 2; k++) {
        const code_insn *p = product(c, &i->from[k], block);
        if (!p || p->unfusable || p->uses >= 5 || !factors_stand(c, p, block)) continue;
        const code_operand other = i->from[1 - k];
        i->kind = CODE_PLAIN;
        i->op = code_class_of(c, (int)i->to[0].integer) == CODE_F32 ? "fma.rn.f32" : "fma.rn.f64";
        i->from[0] = p->from[0];
        i->from[1] = p->from[1];
        i->from[2] = other;
        i->n_from = 3;
        return;
    }
}

static void contract(code *c) {
    uint32_t block = 1;
    begin_pass(c);
    for (uint32_t k = 0; k < c->insns.count; k++) {
        code_insn *i = &insns(c)[k];
        if (i->kind == CODE_GONE) continue;
        if (i->kind == CODE_ADD) contract_sum(c, i, block);
        note_writes(c, i, block, k);
        block += ends_block(i);
    }
}

void code_finish(code *c) {
    if (c->l->failed) return;
    remove_branches(c);
    remove_unread(c);
    find_live(c);
    find_uses(c);
    contract(c);
    remove_unread(c);
}
