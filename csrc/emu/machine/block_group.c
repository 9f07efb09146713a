/* Runs a group of blocks: their warps run round-robin on one host thread until all have exited. */
#include "block_group.h"

#include <stdlib.h>

/* More rounds of nothing but failed try_waits are a deadlock: only the group's own threads and
 * copies can complete a phase of its mbarriers. */
enum { MAX_IDLE_ROUNDS = 1 << 16 };

/* Instructions for which a block may run before another begins beside it: at first, and once that
 * has been necessary. */
enum { PATIENCE = 1 << 20, PATIENCE_WITH_WAITING = 1 << 12 };

/* A new block is the group's member k. */
static bool add_block(block_group *g, uint32_t k) {
    g->blocks[k] = block_new(g->launch, k, &g->charged, g->observer_state);
    if (g->blocks[k]) g->blocks[k]->peers = &g->blocks[k - g->blocks[k]->rank];
    return g->blocks[k] != NULL;
}

block_group *block_group_new(launch *l, void *observer_state) {
    block_group *g = calloc(1, sizeof *g + l->group_blocks * sizeof *g->blocks);
    if (!g) return NULL;
    g->launch = l;
    g->n_blocks = l->group_blocks;
    g->observer_state = observer_state;
    for (uint32_t k = 0; !l->one_by_one && k < g->n_blocks; k++)
        if (!add_block(g, k)) {
            block_group_free(g);
            return NULL;
        }
    return g;
}

void block_group_free(block_group *g) {
    for (uint32_t k = 0; g && k < g->n_blocks; k++)
        if (g->blocks[k]) block_free(g->blocks[k]);
    free(g);
}

/* ---- which blocks ---- */

/* The linear index of a block, from its cluster's number (x fastest) and its rank. */
static uint64_t linear_index(const launch *l, uint64_t cluster, uint32_t rank) {
    uint64_t linear = 0, rows = 1;
    for (int k = 0; k < 3; k++) {
        const uint64_t clusters = l->grid[k] / l->cluster[k];
        const uint64_t at = cluster % clusters * l->cluster[k] + rank % l->cluster[k];
        linear += at * rows;
        rows *= l->grid[k];
        cluster /= clusters;
        rank /= l->cluster[k];
    }
    return linear;
}

static uint64_t nth_cluster(const launch *l, uint64_t n) {
    if (l->clusters) return l->clusters[n];
    return l->blocks && l->cluster_blocks == 1 ? l->blocks[n] - l->first_block : n;
}

/* Whether a block is in the sample: a binary search. */
static bool in_sample(const launch *l, uint64_t linear) {
    uint64_t low = 0, high = l->n_sample;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (l->sample[middle] < linear)
            low = middle + 1;
        else
            high = middle;
    }
    return low < l->n_sample && l->sample[low] == linear;
}

bool block_group_is_observed(const launch *l, uint64_t number) {
    if (!l->observer || !l->sample) return l->observer != NULL;
    const uint64_t cluster = nth_cluster(l, number);
    for (uint32_t rank = 0; rank < l->cluster_blocks; rank++)
        if (in_sample(l, linear_index(l, cluster, rank))) return true;
    return false;
}

/* The memory of a block that has ended becomes the next one's. */
static bool take_over(block_group *g, uint32_t next) {
    for (uint32_t k = 0; k < next; k++) {
        block *b = g->blocks[k];
        if (!b || !b->ended) continue;
        g->blocks[k] = NULL;
        g->blocks[next] = b;
        b->member = next;
        b->peers = &g->blocks[next];
        return true;
    }
    return add_block(g, next);
}

static bool begin_next(block_group *g, uint64_t number, void (*poll)(void *), void *poll_arg) {
    const launch *l = g->launch;
    const uint32_t k = g->begun;
    if (l->one_by_one && !take_over(g, k)) return false;
    const uint64_t first = number * (g->n_blocks / l->cluster_blocks);
    const uint64_t cluster = nth_cluster(l, first + k / l->cluster_blocks);
    block *b = g->blocks[k];
    b->poll = poll;
    b->poll_arg = poll_arg;
    g->since = 0;
    g->begun++;
    if (block_begin(b, linear_index(l, cluster, b->rank))) return true;
    b->ended = true;
    return false;
}

/* ---- running ---- */

/* After a slice of so many instructions: false, the launch has been stopped. Slices that end at a
 * barrier are short, and reading the clock after each takes longer than they do. */
static bool goes_on_after(block *b, uint64_t instructions) {
    enum { WORK = 4096, WORK_OF_SLICE = 64 };
    b->unpolled += WORK_OF_SLICE + instructions;
    if (b->unpolled < WORK) return !atomic_load_explicit(&b->launch->stop, memory_order_relaxed);
    b->unpolled = 0;
    return block_goes_on(b);
}

/* One slice of each warp. Returns whether any could run; clears *only_failed_waits if one did more
 * than a failed try_wait. */
static bool run_round(block *b, bool *only_failed_waits) {
    bool ran = false;
    for (uint32_t k = 0; k < b->launch->n_warps; k++) {
        warp *w = &b->warps[k];
        if (!w->split && !w->ready) continue;
        const uint64_t before = b->time;
        warp_run(w);
        ran = true;
        *only_failed_waits &= w->yielded;
        if (!goes_on_after(b, b->time - before)) break;
    }
    return ran;
}

/* No warp can run. Releases lanes at reconvergence points; false: there are none. */
static bool unblock(block_group *g) {
    bool any = false;
    for (uint32_t k = 0; k < g->begun; k++)
        for (uint32_t n = 0; block_is_live(g->blocks[k]) && n < g->launch->n_warps; n++)
            any |= split_unblock(&g->blocks[k]->warps[n]);
    return any;
}

/* If the launch is interrupted: where its first warp is that has not ended. */
static void note_position(const block_group *g) {
    char where[700];
    for (uint32_t k = 0; k < g->begun; k++)
        for (uint32_t n = 0; block_is_live(g->blocks[k]) && n < g->launch->n_warps; n++) {
            const warp *w = &g->blocks[k]->warps[n];
            if (!w->split || !w->split->next) continue;
            warp_describe(w, w->split->frame->program->function, w->split->next, where,
                          sizeof where);
            launch_interrupted_at(g->launch, where);
            return;
        }
}

/* Whether the next block is to begin beside those that run, or after them. */
static bool is_next_due(block_group *g, bool stuck) {
    if (g->begun == g->n_blocks || !(stuck || g->since > g->patience)) return false;
    g->patience = PATIENCE_WITH_WAITING;
    g->launch->slice = COOPERATIVE_SLICE;
    return true;
}

void block_group_run(block_group *g, uint64_t number, void (*poll)(void *), void *poll_arg) {
    launch *l = g->launch;
    const uint32_t together = l->one_by_one ? 1 : g->n_blocks;
    g->begun = 0;
    g->idle_rounds = 0;
    g->patience = PATIENCE;
    for (uint32_t running = 0; !atomic_load_explicit(&l->stop, memory_order_relaxed);) {
        bool ran = false, only_failed_waits = true, begins;
        for (uint32_t k = 0; k < g->begun; k++) {
            block *b = g->blocks[k];
            if (!block_is_live(b)) continue;
            const uint64_t before = b->time;
            ran |= run_round(b, &only_failed_waits);
            g->since += b->time - before;
            if (atomic_load_explicit(&l->stop, memory_order_relaxed)) break;
            if (b->live_warps) continue;
            block_end(b);
            g->since = 0;
            running--;
        }
        if (running) {
            g->idle_rounds = ran && only_failed_waits ? g->idle_rounds + 1 : 0;
            const bool stuck = ran ? g->idle_rounds > MAX_IDLE_ROUNDS : !unblock(g);
            begins = is_next_due(g, stuck);
            if (stuck && !begins) fail_deadlock(g);
        } else if (g->begun == g->n_blocks) {
            break;
        } else {
            begins = true;
        }
        for (uint32_t n = 0; begins && n < together && g->begun < g->n_blocks; n++, running++)
            if (!begin_next(g, number, poll, poll_arg))
                launch_fail(l, SMK_MEMORY, "out of memory: the warps of a block");
    }
    if (atomic_load(&l->stop)) note_position(g);
    for (uint32_t k = 0; k < g->begun; k++)
        if (block_is_live(g->blocks[k])) block_end(g->blocks[k]);
}
