/* Liveness: the textbook backward data-flow analysis on the control-flow graph of one thread.
 *
 * A write under a guard (@%p) keeps the old value where the guard is false, so it does not kill. A
 * register that some path reads before any write is live from the function's entry.
 *
 * Most registers are live within one block only, so the bit sets contain only registers that some
 * block reads before writing them. A final pass, backwards through the text, turns sets and
 * instructions into segments. A live range may have holes. The important case is an accumulator
 * carried by a loop: it is dead from its first use in the loop body to its last write, while the
 * unrolled body passes the sum through other registers.
 */
#include <string.h>

#include "liveness.h"

/* Limits beyond any compiler's output for one function: 64 MiB per array of bit sets, 4 million
 * live-in values of all blocks together, a fraction of a second. */
static const uint64_t max_words = 1 << 23, max_live_in = 1 << 22, max_work = 1 << 26;

enum { NONE = 0xffffffff, STEPS_PER_INSTRUCTION = 64 };

typedef struct analysis {
    const ptx_function *f;
    const cfg *graph;
    interrupt_poller *poller;
    uint32_t *last_kill;   /* per register: 1 + the last block that wrote it unconditionally */
    uint32_t *bit_of;      /* per register: its bit in the sets; NONE: not in the sets */
    uint32_t *register_of; /* per bit: its register */
    uint32_t n_bits;
    size_t words;         /* per bit set */
    uint64_t *in, *kills; /* per block: live at its start; written before any read */
    uint64_t n_occurrences;
    uint32_t block;
    uint32_t at;    /* position of a pass: an instruction; for segments a time, 2i or 2i + 1 */
    uint32_t *open; /* per register, in the backward pass: end of the open segment; NONE: none */
    uint32_t n_segments;
    liveness *out;
} analysis;

/* ---- reads and writes of instructions ---- */

/* MAY_WRITE: a write under a guard. */
typedef enum access { USE, KILL, MAY_WRITE } access;
typedef void (*visit_fn)(analysis *a, uint32_t reg, access kind);

/* The recursion is shallow: the parser limits the nesting of operands. */
static void visit_operand(analysis *a, const ptx_operand *o, access kind, visit_fn visit) {
    if (o->kind == PTX_REGISTER) visit(a, o->reg, kind);
    if (o->kind == PTX_ADDRESS && o->has_register) visit(a, o->reg, USE);
    for (uint32_t i = 0; i < o->n_items; i++)
        visit_operand(a, &o->items[i], o->kind == PTX_ADDRESS ? USE : kind, visit);
    if (o->pair) visit_operand(a, o->pair, kind, visit);
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

/* Visits all reads and writes in text order. */
static void visit_all(analysis *a, visit_fn visit) {
    for (a->block = 0; a->block < a->graph->n_blocks; a->block++) {
        const cfg_block *b = &a->graph->blocks[a->block];
        for (a->at = b->first; a->at <= b->last; a->at++) {
            if (interrupt_due(a->poller, STEPS_PER_INSTRUCTION)) return;
            visit_reads(a, &a->f->instructions[a->at], visit);
            visit_writes(a, &a->f->instructions[a->at], visit);
        }
    }
}

/* First pass: assigns bits to registers that some block reads before writing them. */
static void number_live_in(analysis *a, uint32_t reg, access kind) {
    a->n_occurrences++;
    if (kind == KILL) a->last_kill[reg] = a->block + 1;
    if (kind != USE || a->last_kill[reg] == a->block + 1 || a->bit_of[reg] != NONE) return;
    a->bit_of[reg] = a->n_bits;
    a->register_of[a->n_bits++] = reg;
}

/* Second pass: each block's kills, and its upward-exposed uses as the initial live-in set. */
static void fill_sets(analysis *a, uint32_t reg, access kind) {
    uint32_t n = a->bit_of[reg];
    if (n == NONE) return;
    uint64_t *kills = a->kills + a->block * a->words + n / 64, bit = 1ull << n % 64;
    if (kind == KILL)
        *kills |= bit;
    else if (kind == USE && !(*kills & bit))
        a->in[a->block * a->words + n / 64] |= bit;
}

/* ---- the iteration ---- */

/* in |= out & ~kills, where out is the union of the successors' live-in sets. */
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

/* Iterates to the fixed point; false if a limit was reached. */
static bool iterate(analysis *a, uint64_t *n_live_in) {
    uint64_t work = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = a->graph->n_blocks; b-- > 0;) {
            work += (a->graph->blocks[b].n_successors + 1) * (a->words + 1);
            if (work > max_work) return false;
            changed |= update(a, b);
        }
    }
    *n_live_in = 0;
    for (size_t w = 0; w < a->words * a->graph->n_blocks; w++)
        *n_live_in += (uint64_t)__builtin_popcountll(a->in[w]);
    return *n_live_in <= max_live_in;
}

/* ---- segments ---- */

static void add_segment(analysis *a, uint32_t reg, uint32_t first, uint32_t last) {
    uint32_t head = a->out->first[reg];
    live_segment *s = &a->out->segments[head != NO_SEGMENT ? head : 0];
    if (head != NO_SEGMENT && s->first <= last + 1) {
        s->first = first;
        return;
    }
    a->out->segments[a->n_segments] = (live_segment){first, last, head};
    a->out->first[reg] = a->n_segments++;
}

/* In the backward pass a read opens a segment at its end and a write closes it at its start. */
static void segment_register(analysis *a, uint32_t reg, access kind) {
    if (kind == USE) {
        if (a->open[reg] == NONE) a->open[reg] = a->at;
    } else if (a->open[reg] == NONE) { /* written but never read */
        add_segment(a, reg, a->at, a->at | 1);
    } else if (kind == KILL) {
        add_segment(a, reg, a->at, a->open[reg]);
        a->open[reg] = NONE;
    }
}

/* Opens segments for registers that are live at the end of the block. */
static void open_live_out(analysis *a, const cfg_block *b) {
    for (uint32_t k = 0; k < b->n_successors; k++) {
        const uint64_t *out = a->in + b->successors[k] * a->words;
        for (size_t w = 0; w < a->words; w++)
            for (uint64_t bits = out[w]; bits; bits &= bits - 1)
                a->open[a->register_of[w * 64 + (size_t)__builtin_ctzll(bits)]] = 2 * b->last + 1;
    }
}

/* Closes segments of registers that are live at the start of the block. */
static void close_live_in(analysis *a, const cfg_block *b, const uint64_t *in) {
    for (size_t w = 0; w < a->words; w++) {
        for (uint64_t bits = in[w]; bits; bits &= bits - 1) {
            uint32_t reg = a->register_of[w * 64 + (size_t)__builtin_ctzll(bits)];
            add_segment(a, reg, 2 * b->first, a->open[reg]);
            a->open[reg] = NONE;
        }
    }
}

static void find_segments(analysis *a) {
    for (uint32_t block = a->graph->n_blocks; block-- > 0;) {
        const cfg_block *b = &a->graph->blocks[block];
        open_live_out(a, b);
        for (uint32_t i = b->last + 1; i-- > b->first;) {
            if (interrupt_due(a->poller, STEPS_PER_INSTRUCTION)) return;
            const ptx_instruction *in = &a->f->instructions[i];
            a->at = 2 * i + ptx_may_write_in_place(in);
            visit_writes(a, in, segment_register);
            a->at = 2 * i;
            visit_reads(a, in, segment_register);
        }
        close_live_in(a, b, a->in + block * a->words);
    }
}

bool liveness_find(ptx_arena *arena, const ptx_function *f, const cfg *graph,
                   interrupt_poller *poller, liveness *out) {
    size_t n = f->n_registers;
    uint64_t n_live_in;
    *out = (liveness){.first = arena_alloc(arena, n, sizeof *out->first)};
    analysis a = {.f = f,
                  .graph = graph,
                  .poller = poller,
                  .out = out,
                  .last_kill = arena_alloc(arena, n, sizeof *a.last_kill),
                  .bit_of = arena_alloc(arena, n, sizeof *a.bit_of),
                  .register_of = arena_alloc(arena, n, sizeof *a.register_of),
                  .open = arena_alloc(arena, n, sizeof *a.open)};
    if (!out->first || !a.last_kill || !a.bit_of || !a.register_of || !a.open) return false;
    for (size_t r = 0; r < n; r++) {
        out->first[r] = NO_SEGMENT;
        a.bit_of[r] = a.open[r] = NONE;
    }
    visit_all(&a, number_live_in);
    if (poller->stopped) return false;

    a.words = (a.n_bits + 63u) / 64;
    if (a.words * graph->n_blocks > max_words) return true;
    a.in = arena_alloc(arena, a.words * graph->n_blocks, sizeof *a.in);
    a.kills = arena_alloc(arena, a.words * graph->n_blocks, sizeof *a.kills);
    if (!a.in || !a.kills) return false;
    visit_all(&a, fill_sets);
    if (!iterate(&a, &n_live_in))
        return true; /* needs no polling: max_work is a fraction of a second */
    if (interrupt_look(poller)) return false;

    out->segments = arena_alloc(arena, a.n_occurrences + n_live_in + 1, sizeof *out->segments);
    if (!out->segments) return false;
    find_segments(&a);
    out->analysed = true;
    return !poller->stopped;
}
