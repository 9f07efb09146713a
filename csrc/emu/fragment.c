/* The tree of fragments (block.h): lanes part, meet, wait for each other, and leave. */
#include <stdlib.h>

#include "block.h"
#include "observe.h"

enum {
    SLAB = 64,
    /* Slices that a fragment may poll memory while lanes wait for it at a meeting point. It may be
     * polling for a lock that one of those lanes holds: let them go on without it. */
    PATIENCE = 64
};

typedef struct slab {
    struct slab *next;
    fragment fragments[SLAB];
} slab;

static fragment *fragment_new(block *b, fragment value) {
    if (!b->free_fragments) {
        slab *s = block_charge(b, sizeof *s) ? malloc(sizeof *s) : NULL;
        if (!s) return NULL;
        s->next = b->slabs;
        b->slabs = s;
        for (int k = 0; k < SLAB; k++) {
            s->fragments[k].link = b->free_fragments;
            b->free_fragments = &s->fragments[k];
        }
    }
    fragment *f = b->free_fragments;
    b->free_fragments = f->link;
    *f = value;
    return f;
}

static void fragment_free(block *b, fragment *f) {
    f->link = b->free_fragments;
    b->free_fragments = f;
}

void fragment_free_slabs(block *b) {
    for (slab *s = b->slabs, *next; s; s = next) {
        next = s->next;
        free(s);
    }
}

static void append(fragment **list, fragment *f) {
    while (*list)
        list = &(*list)->link;
    f->link = NULL;
    *list = f;
}

static const insn *enter(warp *w, fragment *f) {
    w->fragment = f;
    w->frame = f->frame->slots;
    warp_set_active(w, f->active);
    return f->next;
}

fragment *fragment_root(warp *w, uint32_t lanes, frame *f) {
    return fragment_new(
        w->block, (fragment){.active = lanes, .next = f->program->code, .frame = f, .call = true});
}

const insn *fragment_switch(warp *w) {
    fragment *f = w->ready;
    if (!f) {
        w->fragment = NULL;
        return NULL;
    }
    w->ready = f->link;
    return enter(w, f);
}

/* A leaf under parent; it runs when its turn comes. */
static bool add_leaf(warp *w, fragment *parent, const fragment *like, uint32_t lanes,
                     const insn *next, const insn *reconverge) {
    fragment *leaf = fragment_new(w->block, (fragment){.active = lanes,
                                                       .next = next,
                                                       .reconverge = reconverge,
                                                       .parent = parent,
                                                       .frame = like->frame});
    if (!leaf) return false;
    parent->children++;
    append(&w->ready, leaf);
    return true;
}

const insn *fragment_split(warp *w, const insn *i, uint32_t taken, const insn *target,
                           const insn *otherwise) {
    fragment *f = w->fragment;
    /* Arms that only the exit joins (an early return on one side) still meet the others where this
     * fragment does. */
    const insn *meet = i->reconverge ? i->reconverge : f->reconverge;
    const uint32_t others = f->active & ~taken;
    const bool taken_ends = target == meet, others_end = otherwise == meet;
    if (taken_ends && others_end) return meet;
    if (meet == f->reconverge && !f->call) {
        /* Meeting where the fragment ends anyway: no new level, or loops would grow the tree. */
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
    return fragment_switch(w);
no_memory:
    return warp_fault(w, i, SMK_MEMORY, taken, "out of memory: a diverged fragment");
}

const insn *fragment_diverge(warp *w, const insn *i, uint32_t taken) {
    return fragment_split(w, i, taken, i->target, i + 1);
}

bool fragment_push_call(warp *w, uint32_t lanes, frame *callee) {
    fragment *child = fragment_new(w->block, (fragment){.active = lanes,
                                                        .next = callee->program->code,
                                                        .parent = w->fragment,
                                                        .frame = callee,
                                                        .call = true});
    if (!child) return false;
    w->fragment->children++;
    append(&w->ready, child);
    return true;
}

const insn *fragment_end(warp *w) {
    fragment *f = w->fragment;
    for (;;) {
        fragment *parent = f->parent;
        if (f->call && parent) frame_give(w->block, f->frame);
        fragment_free(w->block, f);
        if (!parent || --parent->children) return fragment_switch(w);
        f = parent;
        if (f->active && f->next) return enter(w, f);
    }
}

const insn *fragment_leave(warp *w, uint32_t lanes, bool exited, const insn *next) {
    fragment *const f = w->fragment;
    for (fragment *up = f; up; up = up->parent) {
        up->active &= ~lanes;
        if (up->call && !exited) break;
    }
    if (exited) {
        observe_sync(w, NULL, EMU_EXIT, lanes);
        w->alive &= ~lanes;
        barrier_lanes_left(w);
        collective_lanes_left(w);
    }
    if (!f->active) return fragment_end(w);
    warp_set_active(w, f->active);
    return next;
}

const insn *fragment_wait(warp *w, const insn *i, bool at_barrier, uint32_t waits_for) {
    fragment *f = w->fragment;
    f->next = i;
    f->at_barrier = at_barrier;
    f->waits_for = waits_for;
    append(&w->waiting, f);
    return fragment_switch(w);
}

void fragment_resume(warp *w, fragment *f, const insn *next) {
    fragment **link = &w->waiting;
    while (*link != f)
        link = &(*link)->link;
    *link = f->link;
    f->next = next;
    append(&w->ready, f);
}

/* ---- taking turns ---- */

static uint32_t lanes_below(const fragment *list, const fragment *ancestor) {
    uint32_t lanes = 0;
    for (; list; list = list->link)
        for (const fragment *up = list; up; up = up->parent)
            if (up->parent == ancestor) lanes |= list->active;
    return lanes;
}

static void adopt(fragment *list, const fragment *from, fragment *to) {
    for (; list; list = list->link)
        for (fragment *up = list; up; up = up->parent)
            if (up->parent == from) {
                up->parent = to;
                break;
            }
}

/* Lanes that wait for `from` at a meeting point go on without it. The waiting fragment p stays as the
 * parent of two: the early ones, and those who still wait with all p's children. Every leaf is in one of
 * the warp's two lists here. */
static bool release_early(warp *w, const fragment *from) {
    for (fragment *p = from->parent; p; p = p->parent) {
        const uint32_t early = p->active & ~(lanes_below(w->ready, p) | lanes_below(w->waiting, p));
        if (!early || !p->next) continue;
        fragment *late = fragment_new(w->block, (fragment){.active = p->active & ~early,
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
            fragment_free(w->block, late);
            return false;
        }
        p->next = p->reconverge;
        return true;
    }
    return false;
}

void fragment_rotate(warp *w, const insn *next) {
    w->fragment->next = next;
    w->polls = w->polled ? w->polls + 1 : 0;
    w->polled = false;
    append(&w->ready, w->fragment);
    if (w->polls >= PATIENCE) {
        release_early(w, w->fragment);
        w->polls = 0;
    }
    fragment_switch(w);
}

const insn *fragment_yield(warp *w, const insn *next) {
    w->yielded = true;
    w->polled = true;
    fragment_rotate(w, next);
    return NULL;
}

/* Nothing can run. Compilers merge the tails of paths, so a thread that returns early in the source may
 * wait, in PTX, for threads that wait for it at a barrier. */
bool fragment_unblock(warp *w) {
    for (const fragment *f = w->waiting; f; f = f->link)
        if (release_early(w, f)) return true;
    return false;
}
