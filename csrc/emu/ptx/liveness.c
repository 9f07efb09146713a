/* Liveness: the textbook's backward iteration over the control-flow graph of one thread.
 *
 * A write under a guard (@%p) keeps the old value where the guard is false, so it ends no life. A
 * register that some path reads before any write is alive from the entry on.
 *
 * Most registers live and die within one block, so the bit sets are only of those that some block
 * reads before writing them. A last walk, backwards through the text, turns sets and instructions
 * into segments. They have holes where it matters most: an accumulator that a loop carries is dead
 * from its first use in the body to its last write, while the unrolled body hands the sum on
 * through others.
 */
#include <string.h>

#include "liveness.h"

/* Beyond what any compiler emits for one function: 64 MiB a set, 4 million values that cross from a
 * block to another, a fraction of a second. */
static const uint64_t most_words = 1 << 23, most_crossings = 1 << 22, most_work = 1 << 26;

enum { NONE = 0xffffffff, STEPS_PER_INSTRUCTION = 64 };

typedef struct analysis {
    const ptx_function *f;
    const cfg *graph;
    interrupt_poller *poller;
    uint32_t *killed_in; /* of a register: 1 + the last block that wrote it for certain */
    uint32_t *number;    /* of a register: its bit, or NONE */
    uint32_t *numbered;  /* of a bit: its register */
    uint32_t n_numbered;
    size_t words;         /* of a bit set */
    uint64_t *in, *kills; /* of a block: alive at its start; written before any read */
    uint64_t n_occurrences;
    uint32_t block;
    uint32_t at;    /* where a walk is: an instruction; for segments a time, 2i or 2i + 1 */
    uint32_t *open; /* of a register, walking backwards: the end of its segment, or NONE */
    uint32_t n_segments;
    liveness *out;
} analysis;

/* ---- what instructions read and write ---- */

typedef enum role { USE, KILL, MAY_WRITE } role;
typedef void (*visit_fn)(analysis *a, uint32_t reg, role r);

/* Items have no items of their own but in [a, {b, c}]: the reader bounds the depth. */
static void visit_operand(analysis *a, const ptx_operand *o, role r, visit_fn visit) {
    if (o->kind == PTX_REGISTER) visit(a, o->reg, r);
    if (o->kind == PTX_ADDRESS && o->has_register) visit(a, o->reg, USE);
    for (uint32_t i = 0; i < o->n_items; i++)
        visit_operand(a, &o->items[i], o->kind == PTX_ADDRESS ? USE : r, visit);
    if (o->pair) visit_operand(a, o->pair, r, visit);
}

static void visit_reads(analysis *a, const ptx_instruction *in, visit_fn visit) {
    if (in->guarded) visit(a, in->guard, USE);
    for (uint32_t k = 0; k < in->n_operands; k++)
        if (ptx_operand_is_source(in, k)) visit_operand(a, &in->operands[k], USE, visit);
}

static void visit_writes(analysis *a, const ptx_instruction *in, visit_fn visit) {
    if (in->n_operands > 0 && ptx_operand_is_destination(in, 0))
        visit_operand(a, &in->operands[0], in->guarded ? MAY_WRITE : KILL, visit);
}

static void walk(analysis *a, visit_fn visit) {
    for (a->block = 0; a->block < a->graph->n_blocks; a->block++) {
        const cfg_block *b = &a->graph->blocks[a->block];
        for (a->at = b->first; a->at <= b->last; a->at++) {
            if (interrupt_due(a->poller, STEPS_PER_INSTRUCTION)) return;
            visit_reads(a, &a->f->instructions[a->at], visit);
            visit_writes(a, &a->f->instructions[a->at], visit);
        }
    }
}

/* First walk: which registers are read by a block that did not write them. */
static void number_register(analysis *a, uint32_t reg, role r) {
    a->n_occurrences++;
    if (r == KILL) a->killed_in[reg] = a->block + 1;
    if (r != USE || a->killed_in[reg] == a->block + 1 || a->number[reg] != NONE) return;
    a->number[reg] = a->n_numbered;
    a->numbered[a->n_numbered++] = reg;
}

/* Second walk: the blocks' own contribution to the sets. */
static void fill_sets(analysis *a, uint32_t reg, role r) {
    uint32_t n = a->number[reg];
    if (n == NONE) return;
    uint64_t *kills = a->kills + a->block * a->words + n / 64, bit = 1ull << n % 64;
    if (r == KILL)
        *kills |= bit;
    else if (r == USE && !(*kills & bit))
        a->in[a->block * a->words + n / 64] |= bit;
}

/* ---- the iteration ---- */

/* in = in or (out and not kills), where out is what the successors have in. */
static bool update(analysis *a, uint32_t block) {
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

/* False if a bound was reached. */
static bool iterate(analysis *a, uint64_t *crossings) {
    uint64_t work = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = a->graph->n_blocks; b-- > 0;) {
            work += (a->graph->blocks[b].n_successors + 1) * (a->words + 1);
            if (work > most_work) return false;
            changed |= update(a, b);
        }
    }
    *crossings = 0;
    for (size_t w = 0; w < a->words * a->graph->n_blocks; w++)
        *crossings += (uint64_t)__builtin_popcountll(a->in[w]);
    return *crossings <= most_crossings;
}

/* ---- segments ---- */

static void add_segment(analysis *a, uint32_t reg, uint32_t first, uint32_t last) {
    uint32_t head = a->out->of[reg];
    live_segment *s = &a->out->segments[head != NO_SEGMENT ? head : 0];
    if (head != NO_SEGMENT && s->first <= last + 1) {
        s->first = first;
        return;
    }
    a->out->segments[a->n_segments] = (live_segment){first, last, head};
    a->out->of[reg] = a->n_segments++;
}

/* Going backwards, a write begins a segment and a read ends one. */
static void segment_register(analysis *a, uint32_t reg, role r) {
    if (r == USE) {
        if (a->open[reg] == NONE) a->open[reg] = a->at;
    } else if (a->open[reg] == NONE) { /* nobody reads it, but it is written */
        add_segment(a, reg, a->at, a->at | 1);
    } else if (r == KILL) {
        add_segment(a, reg, a->at, a->open[reg]);
        a->open[reg] = NONE;
    }
}

static void open_outs(analysis *a, const cfg_block *b) {
    for (uint32_t k = 0; k < b->n_successors; k++) {
        const uint64_t *out = a->in + b->successors[k] * a->words;
        for (size_t w = 0; w < a->words; w++)
            for (uint64_t bits = out[w]; bits; bits &= bits - 1)
                a->open[a->numbered[w * 64 + (size_t)__builtin_ctzll(bits)]] = 2 * b->last + 1;
    }
}

static void close_ins(analysis *a, const cfg_block *b, const uint64_t *in) {
    for (size_t w = 0; w < a->words; w++) {
        for (uint64_t bits = in[w]; bits; bits &= bits - 1) {
            uint32_t reg = a->numbered[w * 64 + (size_t)__builtin_ctzll(bits)];
            add_segment(a, reg, 2 * b->first, a->open[reg]);
            a->open[reg] = NONE;
        }
    }
}

static void find_segments(analysis *a) {
    for (uint32_t block = a->graph->n_blocks; block-- > 0;) {
        const cfg_block *b = &a->graph->blocks[block];
        open_outs(a, b);
        for (uint32_t i = b->last + 1; i-- > b->first;) {
            if (interrupt_due(a->poller, STEPS_PER_INSTRUCTION)) return;
            const ptx_instruction *in = &a->f->instructions[i];
            a->at = 2 * i + ptx_may_write_in_place(in);
            visit_writes(a, in, segment_register);
            a->at = 2 * i;
            visit_reads(a, in, segment_register);
        }
        close_ins(a, b, a->in + block * a->words);
    }
}

bool liveness_find(ptx_arena *arena, const ptx_function *f, const cfg *graph,
                   interrupt_poller *poller, liveness *out) {
    size_t n = f->n_registers;
    uint64_t crossings;
    *out = (liveness){.of = arena_alloc(arena, n, sizeof *out->of)};
    analysis a = {.f = f,
                  .graph = graph,
                  .poller = poller,
                  .out = out,
                  .killed_in = arena_alloc(arena, n, sizeof *a.killed_in),
                  .number = arena_alloc(arena, n, sizeof *a.number),
                  .numbered = arena_alloc(arena, n, sizeof *a.numbered),
                  .open = arena_alloc(arena, n, sizeof *a.open)};
    if (!out->of || !a.killed_in || !a.number || !a.numbered || !a.open) return false;
    for (size_t r = 0; r < n; r++) {
        out->of[r] = NO_SEGMENT;
        a.number[r] = a.open[r] = NONE;
    }
    walk(&a, number_register);
    if (poller->stopped) return false;

    a.words = (a.n_numbered + 63u) / 64;
    if (a.words * graph->n_blocks > most_words) return true;
    a.in = arena_alloc(arena, a.words * graph->n_blocks, sizeof *a.in);
    a.kills = arena_alloc(arena, a.words * graph->n_blocks, sizeof *a.kills);
    if (!a.in || !a.kills) return false;
    walk(&a, fill_sets);
    if (!iterate(&a, &crossings)) return true; /* in a fraction of a second */
    if (interrupt_look(poller)) return false;

    out->segments = arena_alloc(arena, a.n_occurrences + crossings + 1, sizeof *out->segments);
    if (!out->segments) return false;
    find_segments(&a);
    out->bounded = true;
    return !poller->stopped;
}
