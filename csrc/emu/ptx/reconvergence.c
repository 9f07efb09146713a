/* Where the lanes that a branch parted meet again: at the block's immediate post-dominator, with
 * one refinement for early exits.
 *
 *      a:  @p bra c          Every path from a comes to c, but for the one that leaves in d. The
 *      b:  @q bra d          textbook's post-dominator of a is therefore the exit, and c would run
 *      c:  ...               once for the lanes from a and again for those from b. The machine does
 *          ret               not do that: lanes that left are not waited for. So d must not count.
 *      d:  ret
 *
 * Which exit is the main one, and which are early, is asked branch by branch: it is an exit that
 * the most arms of the branch can reach, and of those the one that the most blocks can reach. (An
 * exit from within a loop is reached by fewer blocks than the one behind the loop.) The
 * post-dominators are then those of the graph in which only paths to that exit exist. Where all
 * paths from the branch meet before any exit, this is the textbook's answer. Where no two arms
 * reach one exit, the lanes never meet.
 *
 * A block that holds nothing but ret or exit is part of the blocks that lead to it: compilers send
 * all early exits to one such block, and lanes need not wait for each other in order to leave.
 *
 * Post-dominators by the iteration of Cooper, Harvey and Kennedy on the reverse graph. The text is
 * untrusted, so the number of exits told apart and the steps are bounded; past the bounds branches
 * get no meeting point, which costs speed and nothing else.
 */
#include <string.h>

#include "cfg.h"

enum { MOST_EXITS = 64, NONE = 0xffffffff };
static const uint64_t most_steps = 1 << 26;

typedef struct analysis {
    const ptx_function *f;
    const cfg *graph;
    bool *only_leaves;  /* of a block: it holds nothing but an exit */
    uint64_t *exits;    /* of a block: which exits it can reach, as bits */
    uint8_t *main_exit; /* of a block that ends in a branch */
    uint32_t exit_block[MOST_EXITS];
    uint32_t ancestors[MOST_EXITS]; /* how many blocks reach the exit */
    uint32_t n_exits;
    uint32_t *order; /* the blocks that a search found, in postorder */
    uint32_t n_order;
    uint32_t *rank;         /* of a block in it; NONE if it was not found */
    uint32_t *stack, *next; /* of a search: blocks, and the next edge of each block */
    uint32_t *dominator;
    uint64_t steps;
    interrupt_poller *poller;
} analysis;

static const ptx_instruction *last_of(const analysis *a, uint32_t block) {
    return &a->f->instructions[a->graph->blocks[block].last];
}

/* Depth-first, along edges to successors or to predecessors. */
static void search(analysis *a, uint32_t from, bool forward) {
    uint32_t depth = 0;
    memset(a->rank, 0xff, a->graph->n_blocks * sizeof *a->rank);
    a->n_order = 0;
    a->stack[depth++] = from;
    a->next[from] = 0;
    a->rank[from] = 0; /* found; its number follows on the way back */
    while (depth) {
        uint32_t b = a->stack[depth - 1];
        const cfg_block *block = &a->graph->blocks[b];
        uint32_t n = forward ? block->n_successors : block->n_predecessors;
        if (a->next[b] == n) {
            a->rank[b] = a->n_order;
            a->order[a->n_order++] = b;
            depth--;
            continue;
        }
        uint32_t to = (forward ? block->successors : block->predecessors)[a->next[b]++];
        if (a->rank[to] != NONE) continue;
        a->rank[to] = 0;
        a->next[to] = 0;
        a->stack[depth++] = to;
    }
}

/* ---- exits ---- */

/* Marks all blocks that reach this one. */
static void add_exit(analysis *a, uint32_t block) {
    uint64_t bit = 1ull << a->n_exits;
    uint32_t depth = 0, count = 0;
    a->stack[depth++] = block;
    a->exits[block] |= bit;
    while (depth) {
        const cfg_block *b = &a->graph->blocks[a->stack[--depth]];
        count++;
        for (uint32_t k = 0; k < b->n_predecessors; k++) {
            uint32_t from = b->predecessors[k];
            if (a->exits[from] & bit) continue;
            a->exits[from] |= bit;
            a->stack[depth++] = from;
        }
    }
    a->exit_block[a->n_exits] = block;
    a->ancestors[a->n_exits++] = count;
}

static bool is_exit(const analysis *a, uint32_t block) {
    const cfg_block *b = &a->graph->blocks[block];
    if (a->only_leaves[block]) return block == 0;
    for (uint32_t k = 0; k < b->n_successors; k++)
        if (a->only_leaves[b->successors[k]]) return true;
    return b->n_successors == 0;
}

/* Where a loop that begins at this block goes back to it from, or NONE. */
static uint32_t latch_of(const analysis *a, uint32_t head) {
    const cfg_block *b = &a->graph->blocks[head];
    uint32_t latch = NONE;
    for (uint32_t k = 0; k < b->n_predecessors; k++) {
        uint32_t from = b->predecessors[k];
        if (a->rank[from] <= a->rank[head] && (latch == NONE || a->rank[from] < a->rank[latch]))
            latch = from;
    }
    return latch;
}

/* If there are too many, the last ones of the graph: they tend to have the most ancestors. Blocks
 * that reach no exit run in endless loops: the end of the outermost loop's body then counts as one.
 */
static void find_exits(analysis *a) {
    search(a, 0, true);
    for (uint32_t i = 0; i < a->n_order && a->n_exits < MOST_EXITS; i++)
        if (is_exit(a, a->order[i])) {
            add_exit(a, a->order[i]);
            if (interrupt_look(a->poller)) return;
        }
    for (uint32_t i = a->n_order; i-- > 0 && a->n_exits < MOST_EXITS;) {
        uint32_t b = a->order[i];
        if (a->exits[b] || a->only_leaves[b]) continue;
        uint32_t latch = latch_of(a, b);
        if (latch != NONE) add_exit(a, latch);
        if (latch != NONE && interrupt_look(a->poller)) return;
    }
}

/* ---- branches ---- */

/* The exit that lanes of most arms can reach; MOST_EXITS if no two arms reach the same. */
static uint8_t choose_exit(const analysis *a, uint32_t block) {
    const cfg_block *b = &a->graph->blocks[block];
    uint32_t arms[MOST_EXITS] = {0}, best = MOST_EXITS;
    for (uint32_t k = 0; k < b->n_successors; k++) {
        uint32_t to = b->successors[k];
        for (uint32_t e = 0; e < a->n_exits; e++)
            arms[e] += a->only_leaves[to] ? a->exit_block[e] == block : a->exits[to] >> e & 1;
    }
    for (uint32_t e = 0; e < a->n_exits; e++) {
        if (arms[e] < 2) continue;
        if (best == MOST_EXITS || arms[e] > arms[best] ||
            (arms[e] == arms[best] && a->ancestors[e] > a->ancestors[best]))
            best = e;
    }
    return (uint8_t)best;
}

/* The nearest block that both have on all their ways to the exit; any, once the bound on steps is reached. */
static uint32_t meet(analysis *a, uint32_t x, uint32_t y) {
    while (x != y && a->steps++ < most_steps) {
        if (a->rank[x] < a->rank[y])
            x = a->dominator[x];
        else
            y = a->dominator[y];
    }
    return x;
}

/* Immediate post-dominators on the ways to one exit; false if the bound on steps was reached, or the poller says
 * stop. */
static bool find_dominators(analysis *a, uint32_t exit_block) {
    search(a, exit_block, false);
    memset(a->dominator, 0xff, a->graph->n_blocks * sizeof *a->dominator);
    a->dominator[exit_block] = exit_block;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = a->n_order - 1; i-- > 0;) {
            const cfg_block *b = &a->graph->blocks[a->order[i]];
            const uint64_t before = a->steps;
            uint32_t found = NONE;
            for (uint32_t k = 0; k < b->n_successors; k++) {
                uint32_t to = b->successors[k];
                if (a->rank[to] == NONE || a->dominator[to] == NONE) continue;
                found = found == NONE ? to : meet(a, found, to);
            }
            changed |= a->dominator[a->order[i]] != found;
            a->dominator[a->order[i]] = found;
            if ((a->steps += b->n_successors) > most_steps) return false;
            if (interrupt_due(a->poller, (uint32_t)(a->steps - before))) return false;
        }
    }
    return true;
}

static void mark_branches(analysis *a, uint32_t exit) {
    uint32_t exit_block = a->exit_block[exit];
    bool wanted = false;
    for (uint32_t b = 0; b < a->graph->n_blocks; b++)
        wanted |= a->main_exit[b] == exit;
    if (!wanted || !find_dominators(a, exit_block)) return;
    for (uint32_t b = 0; b < a->graph->n_blocks; b++) {
        if (a->main_exit[b] != exit || b == exit_block || a->rank[b] == NONE) continue;
        ptx_instruction *branch = &a->f->instructions[a->graph->blocks[b].last];
        branch->reconvergence = a->graph->blocks[a->dominator[b]].first;
    }
}

bool cfg_reconvergence(ptx_arena *arena, ptx_function *f, const cfg *graph,
                       interrupt_poller *poller) {
    size_t n = graph->n_blocks;
    analysis a = {.f = f,
                  .graph = graph,
                  .poller = poller,
                  .only_leaves = arena_alloc(arena, n, sizeof *a.only_leaves),
                  .exits = arena_alloc(arena, n, sizeof *a.exits),
                  .main_exit = arena_alloc(arena, n, sizeof *a.main_exit),
                  .order = arena_alloc(arena, n, sizeof *a.order),
                  .rank = arena_alloc(arena, n, sizeof *a.rank),
                  .stack = arena_alloc(arena, n, sizeof *a.stack),
                  .next = arena_alloc(arena, n, sizeof *a.next),
                  .dominator = arena_alloc(arena, n, sizeof *a.dominator)};
    if (!a.only_leaves || !a.exits || !a.main_exit || !a.order || !a.rank || !a.stack || !a.next ||
        !a.dominator)
        return false;
    for (uint32_t b = 0; b < n; b++) {
        const ptx_instruction *first = &f->instructions[graph->blocks[b].first];
        a.only_leaves[b] = ptx_leaves(first) && !ptx_branches(first) && !first->guarded;
    }
    find_exits(&a);
    for (uint32_t b = 0; b < n; b++)
        a.main_exit[b] = ptx_diverges(last_of(&a, b)) ? choose_exit(&a, b) : MOST_EXITS;
    for (uint32_t e = 0; e < a.n_exits && !interrupt_look(poller); e++)
        mark_branches(&a, e);
    return !interrupt_look(poller);
}
