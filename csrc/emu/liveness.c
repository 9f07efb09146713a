/* Liveness: the textbook's backward iteration over the control-flow graph of one thread.
 *
 * A write under a guard (@%p) keeps the old value where the guard is false, so it ends no life. A
 * register that some path reads before any write is alive from the entry on.
 *
 * Most registers live and die within one block, so the bit sets are only of those that some block reads
 * before writing them. The result is coarser than what the iteration finds: one range of
 * instructions, in the order of the text, that covers all places where the register is alive.
 */
#include <string.h>

#include "liveness.h"

/* 64 MiB a set, and a fraction of a second: beyond what any compiler emits for one function. */
static const uint64_t most_words = 1 << 23, most_work = 1 << 27;

enum { NONE = 0xffffffff };

typedef struct liveness {
    const ptx_function *f;
    const cfg *graph;
    live_range *ranges;
    uint32_t *killed_in; /* of a register: 1 + the last block that wrote it for certain */
    uint32_t *number;    /* of a register: its bit, or NONE */
    uint32_t *numbered;  /* of a bit: its register */
    uint32_t n_numbered;
    size_t words;         /* of a bit set */
    uint64_t *in, *kills; /* of a block: alive at its start; written before any read */
    uint32_t block, at;   /* where the walk is */
} liveness;

/* ---- walking over what instructions read and write ---- */

typedef enum role { USE, KILL, MAY_WRITE } role;
typedef void (*visit_fn)(liveness *a, uint32_t reg, role r);

static void walk_operand(liveness *a, const ptx_operand *o, role r, visit_fn visit) {
    if (o->kind == PTX_REGISTER) visit(a, o->reg, r);
    if (o->kind == PTX_ADDRESS && o->has_register) visit(a, o->reg, USE);
    for (uint32_t i = 0; i < o->n_items; i++)
        walk_operand(a, &o->items[i], o->kind == PTX_ADDRESS ? USE : r, visit);
    if (o->pair) walk_operand(a, o->pair, r, visit);
}

/* All reads of an instruction come before its writes. */
static void walk(liveness *a, visit_fn visit) {
    for (a->block = 0; a->block < a->graph->n_blocks; a->block++) {
        const cfg_block *b = &a->graph->blocks[a->block];
        for (a->at = b->first; a->at <= b->last; a->at++) {
            const ptx_instruction *in = &a->f->instructions[a->at];
            if (in->guarded) visit(a, in->guard, USE);
            for (uint32_t k = 0; k < in->n_operands; k++)
                if (ptx_operand_is_source(in, k)) walk_operand(a, &in->operands[k], USE, visit);
            for (uint32_t k = 0; k < in->n_operands; k++)
                if (ptx_operand_is_destination(in, k))
                    walk_operand(a, &in->operands[k], in->guarded ? MAY_WRITE : KILL, visit);
        }
    }
}

static void extend(live_range *r, uint32_t first, uint32_t last) {
    if (r->first > first) r->first = first;
    if (r->last < last) r->last = last;
}

/* First walk: where registers occur, and which are read by a block that did not write them. */
static void visit_occurrence(liveness *a, uint32_t reg, role r) {
    extend(&a->ranges[reg], a->at, a->at);
    if (r == KILL) a->killed_in[reg] = a->block + 1;
    if (r != USE || a->killed_in[reg] == a->block + 1 || a->number[reg] != NONE) return;
    a->number[reg] = a->n_numbered;
    a->numbered[a->n_numbered++] = reg;
}

/* Second walk: the blocks' own contribution to the sets. */
static void visit_bits(liveness *a, uint32_t reg, role r) {
    uint32_t n = a->number[reg];
    if (n == NONE) return;
    uint64_t *word = a->kills + a->block * a->words + n / 64, bit = 1ull << n % 64;
    if (r == KILL) *word |= bit;
    else if (r == USE && !(*word & bit)) a->in[a->block * a->words + n / 64] |= bit;
}

/* ---- the iteration ---- */

/* in = in or (out and not kills), where out is what the successors have in. */
static bool update(liveness *a, uint32_t block) {
    const cfg_block *b = &a->graph->blocks[block];
    uint64_t *in = a->in + block * a->words, *kills = a->kills + block * a->words, changed = 0;
    for (uint32_t k = 0; k < b->n_successors; k++) {
        const uint64_t *out = a->in + b->successors[k] * a->words;
        for (size_t w = 0; w < a->words; w++) {
            uint64_t more = out[w] & ~kills[w] & ~in[w];
            in[w] |= more;
            changed |= more;
        }
    }
    return changed != 0;
}

/* False if the bound on work was reached. */
static bool iterate(liveness *a) {
    uint64_t work = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = a->graph->n_blocks; b-- > 0;) {
            work += (a->graph->blocks[b].n_successors + 1) * (a->words + 1);
            if (work > most_work) return false;
            changed |= update(a, b);
        }
    }
    return true;
}

/* What is alive at a block's start is so at the end of the blocks before it, too. */
static void extend_over_blocks(liveness *a) {
    for (uint32_t block = 0; block < a->graph->n_blocks; block++) {
        const cfg_block *b = &a->graph->blocks[block];
        uint32_t first = b->first, last = b->first;
        for (uint32_t k = 0; k < b->n_predecessors; k++) {
            uint32_t end = a->graph->blocks[b->predecessors[k]].last;
            if (first > end) first = end;
            if (last < end) last = end;
        }
        const uint64_t *in = a->in + block * a->words;
        for (size_t w = 0; w < a->words; w++)
            for (uint64_t bits = in[w]; bits; bits &= bits - 1)
                extend(&a->ranges[a->numbered[w * 64 + (size_t)__builtin_ctzll(bits)]], first, last);
    }
}

bool live_ranges(ptx_arena *arena, const ptx_function *f, const cfg *graph, live_range **out,
                 bool *bounded) {
    size_t n = f->n_registers;
    liveness a = {.f = f,
                  .graph = graph,
                  .ranges = arena_alloc(arena, n, sizeof *a.ranges),
                  .killed_in = arena_alloc(arena, n, sizeof *a.killed_in),
                  .number = arena_alloc(arena, n, sizeof *a.number),
                  .numbered = arena_alloc(arena, n, sizeof *a.numbered)};
    if (!a.ranges || !a.killed_in || !a.number || !a.numbered) return false;
    for (size_t r = 0; r < n; r++) {
        a.ranges[r] = (live_range){.first = NONE};
        a.number[r] = NONE;
    }
    *out = a.ranges;
    walk(&a, visit_occurrence);

    a.words = (a.n_numbered + 63u) / 64;
    *bounded = a.words * graph->n_blocks <= most_words;
    if (!*bounded) return true;
    a.in = arena_alloc(arena, a.words * graph->n_blocks, sizeof *a.in);
    a.kills = arena_alloc(arena, a.words * graph->n_blocks, sizeof *a.kills);
    if (!a.in || !a.kills) return false;
    walk(&a, visit_bits);
    *bounded = iterate(&a);
    extend_over_blocks(&a);
    return true;
}
