/* Which shared loads ptxas joins into wider ones.
 *
 * Seen in machine code for sm_90 (CUDA 13.0): of the loads of a basic block that go through one register,
 * those whose words lie in one aligned piece of 16 bytes (of 8, where no more can be proved) become one
 * load: the narrowest aligned one of 8 or 16 bytes that covers them all, a word between them that nobody
 * asked for included. It stands where the first of them stood. Whatever may change shared memory or
 * another thread's view of it ends the search; so do guards.
 */
#include "widen.h"

#include <stdlib.h>
#include <string.h>

#include "alignment.h"
#include "cfg.h"

enum { MAX_OPEN = 64 };

/* Loads from one aligned piece of memory. */
typedef struct piece {
    bool has_register;
    uint32_t reg;
    const ptx_variable *variable;
    int64_t number;                  /* of the piece, counted in units from the base */
    uint32_t unit;                   /* its bytes: 8 or 16 */
    uint32_t first, last, leader_at; /* bytes of the piece: loaded, and where its first load is */
    uint32_t leader, n;
} piece;

typedef struct search {
    const ptx_function *f;
    const low_bits *facts;
    widened *out;
    piece open[MAX_OPEN];
    uint32_t n;
} search;

static bool has(const ptx_instruction *p, const char *modifier) {
    for (uint32_t k = 0; k < p->n_modifiers; k++)
        if (strcmp(p->modifiers[k], modifier) == 0) return true;
    return false;
}

/* Bytes a lane of a plain shared load of 4 or 8 bytes; 0: something else. */
static uint32_t joinable_bytes(const ptx_instruction *p) {
    if (strcmp(p->opcode, "ld") || p->guarded || has(p, "volatile") || has(p, "acquire") ||
        has(p, "relaxed") || !(has(p, "shared") || has(p, "shared::cta")) || p->n_operands != 2 ||
        p->operands[1].kind != PTX_ADDRESS)
        return 0;
    uint32_t bytes = 0;
    for (int t = 0; t < PTX_N_TYPES; t++)
        if (has(p, ptx_type_spelling[t])) bytes = ptx_type_size[t];
    bytes *= has(p, "v2") ? 2 : has(p, "v4") ? 4 : 1;
    return bytes == 4 || bytes == 8 ? bytes : 0;
}

static void close_piece(search *s, uint32_t k) {
    const piece *q = &s->open[k];
    if (q->n > 1) {
        uint32_t width = 8;
        while (q->first / width != q->last / width)
            width *= 2;
        s->out[q->leader].joined = false;
        s->out[q->leader].width = (uint8_t)width;
        s->out[q->leader].shift = (int8_t)((int)(q->first / width * width) - (int)q->leader_at);
    }
    s->open[k] = s->open[--s->n];
}

static void close_all(search *s) {
    while (s->n)
        close_piece(s, s->n - 1);
}

static void close_register(search *s, const ptx_operand *to) {
    if (to->kind == PTX_REGISTER)
        for (uint32_t k = s->n; k-- > 0;)
            if (s->open[k].has_register && s->open[k].reg == to->reg) close_piece(s, k);
    for (uint32_t i = 0; to->kind == PTX_VECTOR && i < to->n_items; i++)
        close_register(s, &to->items[i]);
}

static void add_load(search *s, uint32_t index, uint32_t bytes) {
    const ptx_operand *at = &s->f->instructions[index].operands[1];
    low_bits base = alignment_of_place(at);
    const uint8_t offset = (uint8_t)at->offset & 15;
    if (at->has_register) base = alignment_sum(base, s->facts[at->reg]);
    const uint32_t unit = base.known == 15 ? 16 : (base.known & 7) == 7 ? 8 : 0;
    if (bytes >= unit) return;
    /* As if the base lay on a multiple of the unit: where the load stands against that. */
    const int64_t from_base = at->offset + ((base.value - offset) & (int)(unit - 1));
    const uint32_t first = (uint32_t)(from_base & (unit - 1)), last = first + bytes - 1;
    const int64_t number = (from_base - first) / unit;
    for (uint32_t k = 0; k < s->n; k++) {
        piece *q = &s->open[k];
        if (q->has_register != at->has_register || (at->has_register && q->reg != at->reg) ||
            q->variable != at->variable || q->number != number || q->unit != unit)
            continue;
        q->first = first < q->first ? first : q->first;
        q->last = last > q->last ? last : q->last;
        q->n++;
        s->out[index].joined = true;
        return;
    }
    if (s->n == MAX_OPEN) close_piece(s, 0);
    s->open[s->n++] = (piece){.has_register = at->has_register,
                              .reg = at->has_register ? at->reg : 0,
                              .variable = at->variable,
                              .number = number,
                              .unit = unit,
                              .first = first,
                              .last = last,
                              .leader_at = first,
                              .leader = index,
                              .n = 1};
}

/* Instructions that only compute, or touch other memory, do not end the search. */
static bool ends_search(const ptx_instruction *p) {
    static const char *const ends[] = {"bar",  "barrier", "membar",   "fence",    "atom", "red",
                                       "call", "cp",      "mbarrier", "stmatrix", "wgmma"};
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
        if (strcmp(p->opcode, ends[k]) == 0) return true;
    return strcmp(p->opcode, "st") == 0 && !has(p, "global") && !has(p, "local") &&
           !has(p, "param");
}

static bool *block_starts(const ptx_function *f) {
    bool *starts = calloc(f->n_instructions + 1, sizeof *starts);
    for (uint32_t k = 0; starts && k < f->n_instructions; k++) {
        const ptx_instruction *p = &f->instructions[k];
        if (cfg_leaves(p)) starts[k + 1] = true;
        for (uint32_t o = 0; o < p->n_operands; o++) {
            const ptx_operand *list = &p->operands[o];
            if (list->kind == PTX_LABEL) starts[list->target] = true;
            for (uint32_t i = 0; list->kind == PTX_VECTOR && i < list->n_items; i++)
                if (list->items[i].kind == PTX_LABEL) starts[list->items[i].target] = true;
        }
    }
    return starts;
}

widened *widen_loads(const ptx_function *f) {
    low_bits *facts = alignment_of_registers(f);
    bool *starts = block_starts(f);
    search *s = malloc(sizeof *s);
    widened *out = calloc(f->n_instructions + 1, sizeof *out);
    if (facts && starts && s && out) {
        s->f = f, s->facts = facts, s->out = out, s->n = 0;
        for (uint32_t k = 0; k < f->n_instructions; k++) {
            const ptx_instruction *p = &f->instructions[k];
            if (starts[k] || ends_search(p)) close_all(s);
            const uint32_t bytes = joinable_bytes(p);
            if (bytes) add_load(s, k, bytes);
            if (p->n_operands) close_register(s, p->operands);
        }
        close_all(s);
    } else {
        free(out);
        out = NULL;
    }
    free(facts);
    free(starts);
    free(s);
    return out;
}
