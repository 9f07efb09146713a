/* Contraction of floating-point products and sums to fma, where NVVM does it.
 *
 * a * b + c becomes an fma if fewer than 5 instructions use the product, and all of these are sums
 * of the same basic block. Equal products count as one, because NVVM computes them once.
 * Differences stay: NVVM leaves them to ptxas.
 */
#include <string.h>

#include "code.h"

enum { MAX_USES = 4, RECENT = 16 };

typedef struct pass {
    code *c;
    uint32_t block;
    uint32_t recent[RECENT], n_recent; /* products since the last label */
} pass;

static code_insn *insn(const pass *p, uint32_t at) {
    return (code_insn *)p->c->insns.items + at;
}

static code_register *register_of(const pass *p, const code_operand *o) {
    return o->kind == CODE_REGISTER ? (code_register *)p->c->registers.items + o->integer : NULL;
}

static pass begin(code *c) {
    for (uint32_t r = 0; r < c->registers.count; r++) {
        code_register *own = (code_register *)c->registers.items + r;
        own->written_in = own->written_at = own->product = 0;
    }
    return (pass){.c = c, .block = 1};
}

static bool ends_block(const code_insn *i) {
    return i->kind == CODE_LABEL || i->kind == CODE_BRANCH;
}

/* The product that the operand holds, computed in this block; NULL: none. */
static code_insn *product(const pass *p, const code_operand *o) {
    const code_register *r = register_of(p, o);
    return r && r->product && r->written_in == p->block ? insn(p, r->product - 1) : NULL;
}

static bool is_copy(const code_insn *i) {
    return i->kind == CODE_PLAIN && i->n_to == 1 && i->n_from == 1 &&
           i->from[0].kind == CODE_REGISTER && strncmp(i->op, "mov.", 4) == 0;
}

static void note_writes(const pass *p, const code_insn *i, uint32_t at) {
    uint32_t held = i->kind == CODE_MULTIPLY ? at + 1 : 0;
    const code_insn *copied = is_copy(i) ? product(p, &i->from[0]) : NULL;
    if (copied) held = (uint32_t)(copied - insn(p, 0)) + 1;
    for (int k = 0; k < i->n_to; k++) {
        code_register *r = register_of(p, &i->to[k]);
        r->written_in = p->block;
        r->written_at = at;
        r->product = held;
    }
}

static void next_block(pass *p, const code_insn *i) {
    if (!ends_block(i)) return;
    p->block++;
    if (i->kind == CODE_LABEL) p->n_recent = 0;
}

/* ---- values that outlive their block ---- */

static void find_live(code *c) {
    pass p = begin(c);
    for (uint32_t k = 0; k < c->insns.count; k++) {
        const code_insn *i = insn(&p, k);
        if (i->kind == CODE_GONE) continue;
        for (int n = 0; n < i->n_from; n++) {
            code_register *r = register_of(&p, &i->from[n]);
            if (r && r->written_in != p.block) r->lives_on = true;
        }
        note_writes(&p, i, k);
        next_block(&p, i);
    }
}

/* ---- equal products ---- */

static bool same_operand(const code_operand *a, const code_operand *b) {
    return a->kind == b->kind && a->integer == b->integer; /* the bits of a real, too */
}

/* Whether no instruction from `at` on has written the product's factors. */
static bool factors_stand(const pass *p, const code_insn *i, uint32_t at) {
    for (int k = 0; k < i->n_from; k++) {
        const code_register *r = register_of(p, &i->from[k]);
        if (r && r->written_in && r->written_at >= at) return false;
    }
    return true;
}

static bool equal_products(const code_insn *a, const code_insn *b) {
    const bool straight =
        same_operand(&a->from[0], &b->from[0]) && same_operand(&a->from[1], &b->from[1]);
    const bool crossed =
        same_operand(&a->from[0], &b->from[1]) && same_operand(&a->from[1], &b->from[0]);
    return strcmp(a->op, b->op) == 0 && (straight || crossed);
}

static void find_leader(pass *p, code_insn *i, uint32_t at) {
    i->leader = at;
    i->block = p->block;
    const uint32_t n = p->n_recent < RECENT ? p->n_recent : RECENT;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t other = p->recent[k];
        code_insn *leader = insn(p, other);
        if (!equal_products(leader, i) || !factors_stand(p, leader, other)) continue;
        i->leader = other;
        leader->unfusable |= leader->block != p->block;
        return;
    }
    p->recent[p->n_recent++ % RECENT] = at;
}

/* ---- uses ---- */

/* At the end of a block: products in registers that a later block reads. */
static void mark_outliving(const pass *p, uint32_t first, uint32_t end) {
    for (uint32_t k = first; k < end; k++) {
        const code_insn *i = insn(p, k);
        for (int n = 0; n < i->n_to && i->kind != CODE_GONE; n++) {
            const code_register *r = register_of(p, &i->to[n]);
            if (!r->lives_on || r->written_at != k || !r->product) continue;
            insn(p, insn(p, r->product - 1)->leader)->unfusable = true;
        }
    }
}

static void count_uses(const pass *p, const code_insn *i) {
    for (int n = 0; n < i->n_from && !is_copy(i); n++) {
        const code_insn *used = product(p, &i->from[n]);
        if (!used) continue;
        code_insn *leader = insn(p, used->leader);
        leader->uses++;
        leader->unfusable |= i->kind != CODE_ADD;
    }
}

static void find_uses(code *c) {
    pass p = begin(c);
    uint32_t first = 0;
    for (uint32_t k = 0; k < c->insns.count; k++) {
        code_insn *i = insn(&p, k);
        if (i->kind == CODE_GONE) continue;
        count_uses(&p, i);
        if (i->kind == CODE_MULTIPLY) find_leader(&p, i, k);
        note_writes(&p, i, k);
        if (!ends_block(i)) continue;
        mark_outliving(&p, first, k);
        first = k + 1;
        next_block(&p, i);
    }
    mark_outliving(&p, first, c->insns.count);
}

/* ---- sums ---- */

static void contract_sum(const pass *p, code_insn *i) {
    for (int k = 0; k < 2; k++) {
        const code_insn *factor = product(p, &i->from[k]);
        if (!factor) continue;
        const code_insn *leader = insn(p, factor->leader);
        const bool stands = factors_stand(p, factor, (uint32_t)(factor - insn(p, 0)));
        if (leader->unfusable || leader->uses > MAX_USES || !stands) continue;
        const code_operand other = i->from[1 - k];
        const bool single = code_class_of(p->c, (int)i->to[0].integer) == CODE_F32;
        i->kind = CODE_PLAIN;
        i->op = single ? "fma.rn.f32" : "fma.rn.f64";
        i->from[0] = factor->from[0];
        i->from[1] = factor->from[1];
        i->from[2] = other;
        i->n_from = 3;
        return;
    }
}

void code_contract(code *c) {
    find_live(c);
    find_uses(c);
    pass p = begin(c);
    for (uint32_t k = 0; k < c->insns.count; k++) {
        code_insn *i = insn(&p, k);
        if (i->kind == CODE_GONE) continue;
        if (i->kind == CODE_ADD) contract_sum(&p, i);
        note_writes(&p, i, k);
        next_block(&p, i);
    }
}
