/* Functions of CUDA. */
#include <string.h>

#include "builtin.h"
#include "generate.h"

static const code_operand none = {.kind = CODE_NONE};

enum { MAX_VALUES = 5 };

static value one(code_operand o) {
    return (value){.part = {o}};
}

/* The arguments, kept from what later ones assign. */
static void arguments(generator *g, const lab_expression *e, code_operand *values) {
    bool modifies = false;
    for (uint32_t k = 0; k < e->n_arguments; k++)
        modifies |= e->arguments[k]->modifies;
    for (uint32_t k = 0; k < e->n_arguments && k < MAX_VALUES; k++) {
        values[k] = generate_scalar(g, e->arguments[k]);
        if (e->arguments[k]->type->kind != LAB_BOOL) values[k] = generate_integer(g, values[k]);
        if (modifies) values[k] = generate_copy(g, e->arguments[k]->type, values[k]);
    }
    g->code.at = e->at;
}

static code_operand in_register(generator *g, const lab_type *type, code_operand o) {
    if (o.kind == CODE_REGISTER) return o;
    const int r = generate_register(g, type);
    generate_move(g, type, r, o);
    return code_reg(r);
}

static value plain(generator *g, const lab_expression *e) {
    code_operand v[MAX_VALUES] = {0};
    arguments(g, e, v);
    v[0] = in_register(g, e->arguments[0]->type, v[0]);
    const code_kind kind = e->builtin->kind == LAB_PLAIN ? CODE_PLAIN : CODE_EFFECT;
    const int r = generate_register(g, e->type);
    if (kind == CODE_EFFECT) { /* __reduce_..._sync(mask, value): the mask comes last */
        const code_operand mask = v[0];
        v[0] = in_register(g, e->arguments[1]->type, v[1]);
        v[1] = mask;
    }
    code_plain(&g->code, kind, e->builtin->ptx, r, v[0], v[1], v[2]);
    return one(code_reg(r));
}

static value warp_sync(generator *g, const lab_expression *e) {
    code_operand v[MAX_VALUES] = {code_int(-1)};
    arguments(g, e, v);
    code_plain(&g->code, CODE_EFFECT, "bar.warp.sync", -1, v[0], none, none);
    return one(none);
}

/* ---- shuffles and votes ---- */

/* Segments of `width` lanes: the mask of the lanes' upper bits, and the last lane. */
static code_operand segment(generator *g, const lab_expression *e, code_operand width) {
    const int64_t last = strcmp(e->builtin->ptx, "up") == 0 ? 0 : 31;
    if (width.kind == CODE_INTEGER) return code_int(((32 - width.integer) << 8 & 0x1f00) | last);
    const lab_type *type = e->arguments[3]->type;
    code_operand o = generate_binary(g, '-', type, code_int(32), width, -1);
    o = generate_binary(g, LAB_2('<', '<'), type, o, code_int(8), -1);
    return generate_binary(g, '|', type, o, code_int(last), -1);
}

static code_operand shuffle_word(generator *g, const lab_expression *e, code_operand word,
                                 code_class class, const code_operand *v) {
    code_insn *i;
    const int r = code_new_register(&g->code, class, NULL);
    i = code_add(&g->code, CODE_EFFECT, lab_text(g->l, "shfl.sync.%s.b32", e->builtin->ptx));
    i->to[i->n_to++] = code_reg(r);
    i->from[i->n_from++] = word;
    i->from[i->n_from++] = v[2];
    i->from[i->n_from++] = v[3];
    i->from[i->n_from++] = v[0];
    return code_reg(r);
}

/* 64 bits are two words. */
static code_operand shuffle_wide(generator *g, const lab_expression *e, const code_operand *v) {
    code_operand words[2], shuffled[2];
    for (int k = 0; k < 2; k++)
        words[k] = code_reg(code_new_register(&g->code, CODE_B32, NULL));
    code_insn *split = code_add(&g->code, CODE_PLAIN, "mov.b64");
    memcpy(split->to, words, sizeof words);
    split->n_to = 2;
    split->braces = true;
    split->from[split->n_from++] = v[1];
    for (int k = 0; k < 2; k++)
        shuffled[k] = shuffle_word(g, e, words[k], CODE_B32, v);
    const int r = generate_register(g, e->type);
    code_insn *join = code_add(&g->code, CODE_PLAIN, "mov.b64");
    join->to[join->n_to++] = code_reg(r);
    memcpy(join->from, shuffled, sizeof shuffled);
    join->n_from = 2;
    join->braces = true;
    return code_reg(r);
}

static value shuffle(generator *g, const lab_expression *e) {
    code_operand v[MAX_VALUES] = {none, none, none, code_int(32)};
    arguments(g, e, v);
    v[3] = segment(g, e, v[3]);
    v[1] = in_register(g, e->arguments[1]->type, v[1]);
    if (e->type->size == 8) return one(shuffle_wide(g, e, v));
    return one(shuffle_word(g, e, v[1], generate_class(e->type), v));
}

static value vote(generator *g, const lab_expression *e) {
    code_operand v[MAX_VALUES] = {0};
    arguments(g, e, v);
    const int p = generate_predicate(g, v[1]);
    const code_class class = e->type->kind == LAB_BOOL ? CODE_PRED : CODE_B32;
    const int r = code_new_register(&g->code, class, NULL);
    code_plain(&g->code, CODE_EFFECT, lab_text(g->l, "vote.sync.%s", e->builtin->ptx), r,
               code_reg(p), v[0], none);
    return one(code_reg(r));
}

/* ---- memory ---- */

static value atomic(generator *g, const lab_expression *e) {
    code_operand v[MAX_VALUES] = {0};
    for (uint32_t k = 1; k < e->n_arguments; k++) {
        v[k] = generate_integer(g, generate_scalar(g, e->arguments[k]));
        if (e->modifies) v[k] = generate_copy(g, e->type, v[k]);
    }
    if (e->builtin->kind == LAB_ATOMIC_SUB) {
        const int negative = generate_register(g, e->type);
        code_plain(&g->code, CODE_PLAIN, "neg.s32", negative, in_register(g, e->type, v[1]), none,
                   none);
        v[1] = code_reg(negative);
    }
    const address a = generate_pointer(g, e->arguments[0]);
    g->code.at = e->at;
    const char *op = lab_text(g->l, "atom%s.%s", generate_space_text(a.space), e->builtin->ptx);
    const int r = generate_register(g, e->type);
    code_insn *i = code_add(&g->code, CODE_MEMORY, op);
    i->to[i->n_to++] = code_reg(r);
    i->from[i->n_from++] = a.base;
    i->offset = a.offset;
    for (uint32_t k = 1; k < e->n_arguments; k++)
        i->from[i->n_from++] = v[k];
    return one(code_reg(r));
}

/* ---- others ---- */

static value bits(generator *g, const lab_expression *e) {
    const code_operand o = generate_scalar(g, e->arguments[0]);
    const int r = generate_register(g, e->type);
    code_plain(&g->code, CODE_PLAIN, "mov.b32", r, o, none, none);
    return one(code_reg(r));
}

/* The lowest bit that is set, from 1; 0 if none is: 32 - clz(x & -x). */
static value find_first(generator *g, const lab_expression *e) {
    const lab_type *type = e->type;
    const code_operand x = in_register(g, type, generate_scalar(g, e->arguments[0]));
    const int negative = generate_register(g, type), zeros = generate_register(g, type);
    code_plain(&g->code, CODE_PLAIN, "neg.s32", negative, x, none, none);
    const code_operand lowest = generate_binary(g, '&', type, x, code_reg(negative), -1);
    code_plain(&g->code, CODE_PLAIN, "clz.b32", zeros, lowest, none, none);
    return one(generate_binary(g, '-', type, code_int(32), code_reg(zeros), -1));
}

static value active(generator *g, const lab_expression *e) {
    const int r = generate_register(g, e->type);
    code_plain(&g->code, CODE_EFFECT, e->builtin->ptx, r, none, none, none);
    return one(code_reg(r));
}

value generate_builtin(generator *g, const lab_expression *e) {
    switch (e->builtin->kind) {
    case LAB_PLAIN:
    case LAB_EFFECT: return plain(g, e);
    case LAB_WARP_SYNC: return warp_sync(g, e);
    case LAB_SHUFFLE: return shuffle(g, e);
    case LAB_VOTE: return vote(g, e);
    case LAB_ATOMIC:
    case LAB_ATOMIC_SUB: return atomic(g, e);
    case LAB_BITS: return bits(g, e);
    case LAB_FIND_FIRST: return find_first(g, e);
    case LAB_ACTIVE: return active(g, e);
    default: break;
    }
    code_add(&g->code, CODE_EFFECT, e->builtin->ptx);
    return one(none);
}
