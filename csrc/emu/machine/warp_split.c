/* The tree of warp splits (warp_split.h): lanes diverge, reconverge, wait for each other, and
 * exit. */
#include <stdlib.h>

#include "block.h"
#include "observe.h"

enum {
    SLAB = 64, /* splits per allocation */
    /* Consecutive slices in which a warp may poll memory while lanes wait for it at a
     * reconvergence point. After that those lanes continue without it: one of them may hold the
     * lock that it polls. */
    MAX_POLLING_SLICES = 64,
    YIELD_TIME = 1000 /* that a failed try_wait takes, so that a wait with a time limit ends */
};

typedef struct slab {
    struct slab *next;
    warp_split splits[SLAB];
} slab;

static warp_split *split_new(block *b, warp_split value) {
    if (!b->free_splits) {
        slab *chunk = block_charge(b, sizeof *chunk) ? malloc(sizeof *chunk) : NULL;
        if (!chunk) return NULL;
        chunk->next = b->slabs;
        b->slabs = chunk;
        for (int k = 0; k < SLAB; k++) {
            chunk->splits[k].link = b->free_splits;
            b->free_splits = &chunk->splits[k];
        }
    }
    warp_split *s = b->free_splits;
    b->free_splits = s->link;
    *s = value;
    return s;
}

static void split_free(block *b, warp_split *s) {
    s->link = b->free_splits;
    b->free_splits = s;
}

void split_free_slabs(block *b) {
    for (slab *chunk = b->slabs, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
}

static void append(warp_split **list, warp_split *s) {
    while (*list)
        list = &(*list)->link;
    s->link = NULL;
    *list = s;
}

/* Makes it the running split. */
static const insn *switch_to(warp *w, warp_split *s) {
    w->split = s;
    w->frame = s->frame->slots;
    warp_set_active(w, s->active);
    return s->next;
}

warp_split *split_root(warp *w, uint32_t lanes, frame *entry) {
    return split_new(
        w->block,
        (warp_split){.active = lanes, .next = entry->program->code, .frame = entry, .call = true});
}

const insn *split_switch(warp *w) {
    warp_split *s = w->ready;
    if (!s) {
        w->split = NULL;
        return NULL;
    }
    w->ready = s->link;
    return switch_to(w, s);
}

/* Adds a ready leaf below `parent`. Its frame is that of `like`. False: out of memory. */
static bool add_leaf(warp *w, warp_split *parent, const warp_split *like, uint32_t lanes,
                     const insn *next, const insn *reconverge) {
    warp_split *leaf = split_new(w->block, (warp_split){.active = lanes,
                                                        .next = next,
                                                        .reconverge = reconverge,
                                                        .parent = parent,
                                                        .frame = like->frame});
    if (!leaf) return false;
    parent->children++;
    append(&w->ready, leaf);
    return true;
}

const insn *split_two_ways(warp *w, const insn *i, uint32_t taken, const insn *target,
                           const insn *otherwise) {
    warp_split *s = w->split;
    /* A branch whose sides join only at the exit (one returns early) has no reconvergence point
     * of its own. Then its lanes reconverge where the running split does. */
    const insn *reconverge = i->reconverge ? i->reconverge : s->reconverge;
    const uint32_t others = s->active & ~taken;
    const bool taken_ends = target == reconverge, others_end = otherwise == reconverge;
    if (taken_ends && others_end) return reconverge;
    if (reconverge == s->reconverge && !s->call) {
        /* The sides reconverge where the running split ends: make them its siblings. As children
         * they would deepen the tree with every iteration of a loop. */
        if (!taken_ends && !others_end && !add_leaf(w, s->parent, s, taken, target, reconverge))
            goto no_memory;
        s->active = others_end ? taken : others;
        warp_set_active(w, s->active);
        return others_end ? target : otherwise;
    }
    s->next = reconverge;
    s->children = 0;
    if (!others_end && !add_leaf(w, s, s, others, otherwise, reconverge)) goto no_memory;
    if (!taken_ends && !add_leaf(w, s, s, taken, target, reconverge)) goto no_memory;
    return split_switch(w);
no_memory:
    return warp_fault(w, i, SMK_MEMORY, taken, "out of memory: a diverged warp");
}

const insn *split_at_branch(warp *w, const insn *i, uint32_t taken) {
    return split_two_ways(w, i, taken, i->target, i + 1);
}

bool split_push_call(warp *w, uint32_t lanes, frame *callee) {
    warp_split *child = split_new(w->block, (warp_split){.active = lanes,
                                                         .next = callee->program->code,
                                                         .parent = w->split,
                                                         .frame = callee,
                                                         .call = true});
    if (!child) return false;
    w->split->children++;
    append(&w->ready, child);
    return true;
}

const insn *split_end(warp *w) {
    warp_split *s = w->split;
    for (;;) {
        warp_split *parent = s->parent;
        if (s->call && parent) frame_release(w->block, s->frame);
        split_free(w->block, s);
        if (!parent || --parent->children) return split_switch(w);
        s = parent;
        if (s->active && s->next) return switch_to(w, s);
    }
}

const insn *split_leave(warp *w, const insn *i, uint32_t lanes, bool exited) {
    warp_split *const s = w->split;
    for (warp_split *up = s; up; up = up->parent) {
        up->active &= ~lanes;
        if (up->call && !exited) break;
    }
    if (exited && lanes) { /* none: the guard of the exit is false in all of them */
        observe_sync(w, i, EMU_EXIT, lanes);
        w->alive &= ~lanes;
        w->block->last_exit = i;
        w->block->last_exit_thread = w->index * LANES + (uint32_t)__builtin_ctz(lanes);
        barrier_lanes_left(w);
        collective_lanes_left(w);
    }
    if (!s->active) return split_end(w);
    warp_set_active(w, s->active);
    return i + 1;
}

const insn *split_wait(warp *w, const insn *i, wait_kind wait, uint32_t waits_for) {
    warp_split *s = w->split;
    s->next = i;
    s->wait = wait;
    s->waits_for = waits_for;
    append(&w->waiting, s);
    return split_switch(w);
}

void split_resume(warp *w, warp_split *s, const insn *next) {
    warp_split **link = &w->waiting;
    while (*link != s)
        link = &(*link)->link;
    *link = s->link;
    s->next = next;
    append(&w->ready, s);
}

/* ---- scheduling ---- */

/* The lanes of the leaves in a list that are descendants of `ancestor`. */
static uint32_t lanes_of_descendants(const warp_split *list, const warp_split *ancestor) {
    uint32_t lanes = 0;
    for (; list; list = list->link)
        for (const warp_split *up = list; up; up = up->parent)
            if (up->parent == ancestor) lanes |= list->active;
    return lanes;
}

/* Of the leaves in a list: moves those ancestors that are children of `from` to the parent `to`,
 * which may be a child of `from` itself. */
static void reparent(warp_split *list, const warp_split *from, warp_split *to) {
    for (; list; list = list->link)
        for (warp_split *up = list; up && up != to; up = up->parent)
            if (up->parent == from) {
                up->parent = to;
                break;
            }
}

/* Lets lanes that wait for `from` at a reconvergence point continue without it. False: there are
 * none, or out of memory.
 *
 * p is the inner node that waits there. It gets two children: a leaf with the early lanes, which
 * continues, and an inner node `late`, which waits there instead of p and has p's former
 * children. p now waits at its own reconvergence point. Every leaf is in the ready or the waiting
 * list here. */
static bool release_early(warp *w, const warp_split *from) {
    for (warp_split *p = from->parent; p; p = p->parent) {
        const uint32_t early =
            p->active & ~(lanes_of_descendants(w->ready, p) | lanes_of_descendants(w->waiting, p));
        if (!early || !p->next) continue;
        warp_split *late = split_new(w->block, (warp_split){.active = p->active & ~early,
                                                            .children = p->children,
                                                            .next = p->next,
                                                            .reconverge = p->reconverge,
                                                            .parent = p,
                                                            .frame = p->frame});
        if (!late) return false;
        reparent(w->ready, p, late);
        reparent(w->waiting, p, late);
        p->children = 1;
        if (!add_leaf(w, p, p, early, p->next, p->reconverge)) {
            reparent(w->ready, late, p);
            reparent(w->waiting, late, p);
            p->children = late->children;
            split_free(w->block, late);
            return false;
        }
        p->next = p->reconverge;
        return true;
    }
    return false;
}

void split_rotate(warp *w, const insn *next) {
    w->split->next = next;
    w->polling_slices = w->polled ? w->polling_slices + 1 : 0;
    w->polled = false;
    append(&w->ready, w->split);
    if (w->polling_slices >= MAX_POLLING_SLICES) {
        release_early(w, w->split);
        w->polling_slices = 0;
    }
    split_switch(w);
}

const insn *split_yield(warp *w, const insn *next) {
    w->yielded = true;
    w->polled = true;
    w->block->time += YIELD_TIME;
    split_rotate(w, next);
    return NULL;
}

/* Needed because compilers merge the tails of paths: a thread that returns early in the source
 * may, in PTX, wait at a reconvergence point for threads that wait for it at a barrier. */
bool split_unblock(warp *w) {
    for (const warp_split *s = w->waiting; s; s = s->link)
        if (release_early(w, s)) return true;
    return false;
}
