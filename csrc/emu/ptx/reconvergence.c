/* Reconvergence points: the immediate post-dominator of each branch's block, ignoring early exits.
 *
 *      a:  @p bra c          Every path from a reaches c, except the one that exits in d. So the
 *      b:  @q bra d          textbook post-dominator of a is the function's end, and c would run
 *      c:  ...               once for the lanes from a and once for those from b. On hardware it
 *          ret               runs once: reconvergence does not wait for exited lanes. So the exit
 *      d:  ret               in d must not count.
 *
 * Each branch gets one main exit; all others are early exits. The main exit is the one that most
 * arms of the branch reach and, among equals, the one that most blocks reach. (Fewer blocks reach
 * an exit inside a loop than the exit after the loop.) Post-dominators are then computed on the
 * graph that has only the paths to the main exit. If all paths from the branch join before any
 * exit, the result is the textbook post-dominator. If no two arms reach the same exit, the branch
 * has no reconvergence point.
 *
 * A block that contains only ret or exit counts as part of its predecessors: compilers direct all
 * early exits to one such block, and lanes need not reconverge in order to exit.
 *
 * Post-dominators are computed by the iterative algorithm of Cooper, Harvey and Kennedy on the
 * reverse graph. The text is untrusted, so the number of distinct exits and the number of steps are
 * limited. Branches beyond the limits get no reconvergence point: slower, but still correct.
 */
#include <string.h>

#include "cfg.h"

enum { MAX_EXITS = 64, NONE = 0xffffffff };
static const uint64_t max_steps = 1 << 26;

typedef struct analysis {
    const ptx_function *f;
    const cfg *graph;
    bool *only_leaves;  /* per block: contains only ret, exit or trap */
    uint64_t *exits;    /* per block: the exits that it can reach, as bits */
    uint8_t *main_exit; /* per block that ends in a branch; MAX_EXITS: none */
    uint32_t exit_block[MAX_EXITS];
    uint32_t ancestors[MAX_EXITS]; /* number of blocks that reach the exit */
    uint32_t n_exits;
    uint32_t *order; /* the blocks that a search reached, in postorder */
    uint32_t n_order;
    uint32_t *postorder;    /* per block: its index in order; NONE: not reached */
    uint32_t *stack, *next; /* of a search: blocks, and the next edge to follow per block */
    uint32_t *post_dominator;
    uint64_t steps;
    interrupt_poller *poller;
} analysis;

static const ptx_instruction *last_of(const analysis *a, uint32_t block) {
    return &a->f->instructions[a->graph->blocks[block].last];
}

/* Depth-first search along successors or predecessors; sets order and postorder. */
static void search(analysis *a, uint32_t from, bool forward) {
    uint32_t depth = 0;
    memset(a->postorder, 0xff, a->graph->n_blocks * sizeof *a->postorder);
    a->n_order = 0;
    a->stack[depth++] = from;
    a->next[from] = 0;
    a->postorder[from] = 0; /* reached; the number is set when the block is left */
    while (depth) {
        uint32_t b = a->stack[depth - 1];
        const cfg_block *block = &a->graph->blocks[b];
        uint32_t n = forward ? block->n_successors : block->n_predecessors;
        if (a->next[b] == n) {
            a->postorder[b] = a->n_order;
            a->order[a->n_order++] = b;
            depth--;
            continue;
        }
        uint32_t to = (forward ? block->successors : block->predecessors)[a->next[b]++];
        if (a->postorder[to] != NONE) continue;
        a->postorder[to] = 0;
        a->next[to] = 0;
        a->stack[depth++] = to;
    }
}

/* ---- exits ---- */

/* Registers the block as an exit, and marks all blocks that reach it. */
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

/* Whether paths end at this block: it has no successors, or its successor only leaves. */
static bool is_exit(const analysis *a, uint32_t block) {
    const cfg_block *b = &a->graph->blocks[block];
    if (a->only_leaves[block]) return block == 0;
    for (uint32_t k = 0; k < b->n_successors; k++)
        if (a->only_leaves[b->successors[k]]) return true;
    return b->n_successors == 0;
}

/* The last latch (source of a back edge) of a loop with this head; NONE: not a loop head. */
static uint32_t latch_of(const analysis *a, uint32_t head) {
    const cfg_block *b = &a->graph->blocks[head];
    uint32_t latch = NONE;
    for (uint32_t k = 0; k < b->n_predecessors; k++) {
        uint32_t from = b->predecessors[k];
        if (a->postorder[from] <= a->postorder[head] &&
            (latch == NONE || a->postorder[from] < a->postorder[latch]))
            latch = from;
    }
    return latch;
}

/* Beyond MAX_EXITS, exits early in the graph are dropped: they tend to have the fewest ancestors.
 * Blocks that reach no exit are in endless loops: the outermost loop's latch then counts as exit.
 */
static void find_exits(analysis *a) {
    search(a, 0, true);
    for (uint32_t i = 0; i < a->n_order && a->n_exits < MAX_EXITS; i++)
        if (is_exit(a, a->order[i])) {
            add_exit(a, a->order[i]);
            if (interrupt_look(a->poller)) return;
        }
    for (uint32_t i = a->n_order; i-- > 0 && a->n_exits < MAX_EXITS;) {
        uint32_t b = a->order[i];
        if (a->exits[b] || a->only_leaves[b]) continue;
        uint32_t latch = latch_of(a, b);
        if (latch != NONE) add_exit(a, latch);
        if (latch != NONE && interrupt_look(a->poller)) return;
    }
}

/* ---- branches ---- */

/* The main exit: most arms reach it, then most blocks. MAX_EXITS: no two arms share an exit. */
static uint8_t choose_exit(const analysis *a, uint32_t block) {
    const cfg_block *b = &a->graph->blocks[block];
    uint32_t arms[MAX_EXITS] = {0}, best = MAX_EXITS;
    for (uint32_t k = 0; k < b->n_successors; k++) {
        uint32_t to = b->successors[k];
        for (uint32_t e = 0; e < a->n_exits; e++)
            arms[e] += a->only_leaves[to] ? a->exit_block[e] == block : a->exits[to] >> e & 1;
    }
    for (uint32_t e = 0; e < a->n_exits; e++) {
        if (arms[e] < 2) continue;
        if (best == MAX_EXITS || arms[e] > arms[best] ||
            (arms[e] == arms[best] && a->ancestors[e] > a->ancestors[best]))
            best = e;
    }
    return (uint8_t)best;
}

/* The nearest common post-dominator ("intersect" in Cooper et al.); arbitrary past max_steps. */
static uint32_t intersect(analysis *a, uint32_t x, uint32_t y) {
    while (x != y && a->steps++ < max_steps)
        if (a->postorder[x] < a->postorder[y])
            x = a->post_dominator[x];
        else
            y = a->post_dominator[y];
    return x;
}

/* Immediate post-dominators in the graph of paths to one exit; false if the step limit is reached
 * or interrupted. */
static bool find_post_dominators(analysis *a, uint32_t exit_block) {
    search(a, exit_block, false);
    memset(a->post_dominator, 0xff, a->graph->n_blocks * sizeof *a->post_dominator);
    a->post_dominator[exit_block] = exit_block;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = a->n_order - 1; i-- > 0;) {
            const cfg_block *b = &a->graph->blocks[a->order[i]];
            const uint64_t before = a->steps;
            uint32_t found = NONE;
            for (uint32_t k = 0; k < b->n_successors; k++) {
                uint32_t to = b->successors[k];
                if (a->postorder[to] == NONE || a->post_dominator[to] == NONE) continue;
                found = found == NONE ? to : intersect(a, found, to);
            }
            changed |= a->post_dominator[a->order[i]] != found;
            a->post_dominator[a->order[i]] = found;
            if ((a->steps += b->n_successors) > max_steps) return false;
            if (interrupt_due(a->poller, (uint32_t)(a->steps - before))) return false;
        }
    }
    return true;
}

/* Sets the reconvergence point of all branches with this main exit. */
static void set_reconvergence(analysis *a, uint32_t exit) {
    uint32_t exit_block = a->exit_block[exit];
    bool used = false;
    for (uint32_t b = 0; b < a->graph->n_blocks; b++)
        used |= a->main_exit[b] == exit;
    if (!used || !find_post_dominators(a, exit_block)) return;
    for (uint32_t b = 0; b < a->graph->n_blocks; b++) {
        if (a->main_exit[b] != exit || b == exit_block || a->postorder[b] == NONE) continue;
        ptx_instruction *branch = &a->f->instructions[a->graph->blocks[b].last];
        branch->reconvergence = a->graph->blocks[a->post_dominator[b]].first;
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
                  .postorder = arena_alloc(arena, n, sizeof *a.postorder),
                  .stack = arena_alloc(arena, n, sizeof *a.stack),
                  .next = arena_alloc(arena, n, sizeof *a.next),
                  .post_dominator = arena_alloc(arena, n, sizeof *a.post_dominator)};
    if (!a.only_leaves || !a.exits || !a.main_exit || !a.order || !a.postorder || !a.stack ||
        !a.next || !a.post_dominator)
        return false;
    for (uint32_t b = 0; b < n; b++) {
        const ptx_instruction *first = &f->instructions[graph->blocks[b].first];
        a.only_leaves[b] = ptx_leaves(first) && !ptx_branches(first) && !first->guarded;
    }
    find_exits(&a);
    for (uint32_t b = 0; b < n; b++)
        a.main_exit[b] = ptx_diverges(last_of(&a, b)) ? choose_exit(&a, b) : MAX_EXITS;
    for (uint32_t e = 0; e < a.n_exits && !interrupt_look(poller); e++)
        set_reconvergence(&a, e);
    return !interrupt_look(poller);
}
