/* The tree of splits (block.h): lanes part, meet, wait for each other, and leave. */
#include <stdlib.h>

#include "block.h"
#include "observe.h"

enum {
    SLAB = 64,
    /* Slices that a warp_split may poll memory while lanes wait for it at a meeting point. It may be
     * polling for a lock that one of those lanes holds: let them go on without it. */
    PATIENCE = 64
};

typedef struct slab {
    struct slab *next;
    warp_split splits[SLAB];
} slab;

static warp_split *split_new(block *b, warp_split value) {
    if (!b->free_splits) {
        slab *s = block_charge(b, sizeof *s) ? malloc(sizeof *s) : NULL;
        if (!s) return NULL;
        s->next = b->slabs;
        b->slabs = s;
        for (int k = 0; k < SLAB; k++) {
            s->splits[k].link = b->free_splits;
            b->free_splits = &s->splits[k];
        }
    }
    warp_split *f = b->free_splits;
    b->free_splits = f->link;
    *f = value;
    return f;
}

static void split_free(block *b, warp_split *f) {
    f->link = b->free_splits;
    b->free_splits = f;
}

void split_free_slabs(block *b) {
    for (slab *s = b->slabs, *next; s; s = next) {
        next = s->next;
        free(s);
    }
}

static void append(warp_split **list, warp_split *f) {
    while (*list)
        list = &(*list)->link;
    f->link = NULL;
    *list = f;
}

static const insn *enter(warp *w, warp_split *f) {
    w->split = f;
    w->frame = f->frame->slots;
    warp_set_active(w, f->active);
    return f->next;
}

warp_split *split_root(warp *w, uint32_t lanes, frame *f) {
    return split_new(
        w->block,
        (warp_split){.active = lanes, .next = f->program->code, .frame = f, .call = true});
}

const insn *split_switch(warp *w) {
    warp_split *f = w->ready;
    if (!f) {
        w->split = NULL;
        return NULL;
    }
    w->ready = f->link;
    return enter(w, f);
}

/* A leaf under parent; it runs when its turn comes. */
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
    warp_split *f = w->split;
    /* Arms that only the exit joins (an early return on one side) still meet the others where this
     * warp_split does. */
    const insn *meet = i->reconverge ? i->reconverge : f->reconverge;
    const uint32_t others = f->active & ~taken;
    const bool taken_ends = target == meet, others_end = otherwise == meet;
    if (taken_ends && others_end) return meet;
    if (meet == f->reconverge && !f->call) {
        /* Meeting where the warp_split ends anyway: no new level, or loops would grow the tree. */
        if (!taken_ends && !others_end && !add_leaf(w, f->parent, f, taken, target, meet))
            goto no_memory;
        f->active = others_end ? taken : others;
        warp_set_active(w, f->active);
        return others_end ? target : otherwise;
    }
    f->next = meet;
    f->children = 0;
    if (!others_end && !add_leaf(w, f, f, others, otherwise, meet)) goto no_memory;
    if (!taken_ends && !add_leaf(w, f, f, taken, target, meet)) goto no_memory;
    return split_switch(w);
no_memory:
    return warp_fault(w, i, SMK_MEMORY, taken, "out of memory: a diverged warp_split");
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
    warp_split *f = w->split;
    for (;;) {
        warp_split *parent = f->parent;
        if (f->call && parent) frame_give(w->block, f->frame);
        split_free(w->block, f);
        if (!parent || --parent->children) return split_switch(w);
        f = parent;
        if (f->active && f->next) return enter(w, f);
    }
}

const insn *split_leave(warp *w, uint32_t lanes, bool exited, const insn *next) {
    warp_split *const f = w->split;
    for (warp_split *up = f; up; up = up->parent) {
        up->active &= ~lanes;
        if (up->call && !exited) break;
    }
    if (exited) {
        observe_sync(w, NULL, EMU_EXIT, lanes);
        w->alive &= ~lanes;
        barrier_lanes_left(w);
        collective_lanes_left(w);
    }
    if (!f->active) return split_end(w);
    warp_set_active(w, f->active);
    return next;
}

const insn *split_wait(warp *w, const insn *i, bool at_barrier, uint32_t waits_for) {
    warp_split *f = w->split;
    f->next = i;
    f->at_barrier = at_barrier;
    f->waits_for = waits_for;
    append(&w->waiting, f);
    return split_switch(w);
}

void split_resume(warp *w, warp_split *f, const insn *next) {
    warp_split **link = &w->waiting;
    while (*link != f)
        link = &(*link)->link;
    *link = f->link;
    f->next = next;
    append(&w->ready, f);
}

/* ---- taking turns ---- */

static uint32_t lanes_below(const warp_split *list, const warp_split *ancestor) {
    uint32_t lanes = 0;
    for (; list; list = list->link)
        for (const warp_split *up = list; up; up = up->parent)
            if (up->parent == ancestor) lanes |= list->active;
    return lanes;
}

static void adopt(warp_split *list, const warp_split *from, warp_split *to) {
    for (; list; list = list->link)
        for (warp_split *up = list; up; up = up->parent)
            if (up->parent == from) {
                up->parent = to;
                break;
            }
}

/* Lanes that wait for `from` at a meeting point go on without it. The waiting warp_split p stays as the
 * parent of two: the early ones, and those who still wait with all p's children. Every leaf is in one of
 * the warp's two lists here. */
static bool release_early(warp *w, const warp_split *from) {
    for (warp_split *p = from->parent; p; p = p->parent) {
        const uint32_t early = p->active & ~(lanes_below(w->ready, p) | lanes_below(w->waiting, p));
        if (!early || !p->next) continue;
        warp_split *late = split_new(w->block, (warp_split){.active = p->active & ~early,
                                                            .children = p->children,
                                                            .next = p->next,
                                                            .reconverge = p->reconverge,
                                                            .parent = p,
                                                            .frame = p->frame});
        if (!late) return false;
        adopt(w->ready, p, late);
        adopt(w->waiting, p, late);
        p->children = 1;
        if (!add_leaf(w, p, p, early, p->next, p->reconverge)) {
            adopt(w->ready, late, p);
            adopt(w->waiting, late, p);
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
    w->polls = w->polled ? w->polls + 1 : 0;
    w->polled = false;
    append(&w->ready, w->split);
    if (w->polls >= PATIENCE) {
        release_early(w, w->split);
        w->polls = 0;
    }
    split_switch(w);
}

const insn *split_yield(warp *w, const insn *next) {
    w->yielded = true;
    w->polled = true;
    split_rotate(w, next);
    return NULL;
}

/* Nothing can run. Compilers merge the tails of paths, so a thread that returns early in the source may
 * wait, in PTX, for threads that wait for it at a barrier. */
bool split_unblock(warp *w) {
    for (const warp_split *f = w->waiting; f; f = f->link)
        if (release_early(w, f)) return true;
    return false;
}
