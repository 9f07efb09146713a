/* Warp splits: lanes of a warp that run together.
 *
 * A warp is a tree of splits. Where the lanes of one diverge, it becomes the parent, waiting at the
 * reconvergence point, and the sides become its children. A child that reaches that point, or whose
 * lanes all exit, ends; when the last child has ended the parent goes on with the lanes that are left.
 * Any leaf may run next, which is why this is a tree and not a stack: lanes may wait for lanes on the
 * other side of a branch (__syncwarp, shuffles, spin loops), as on hardware since Volta.
 */
#ifndef EMU_WARP_SPLIT_H
#define EMU_WARP_SPLIT_H

#include "register_file.h"
#include "warp.h"

typedef struct warp_split {
    uint32_t active;
    uint32_t children; /* > 0: waits for them, then goes on at next */
    const insn *next;
    const insn *reconverge; /* where it ends; NULL: at exit or return */
    struct warp_split *parent;
    struct frame *frame;
    bool call;               /* the first split of a call: owns the frame */
    bool at_barrier;         /* waits for a block barrier, else for lanes of its warp ... */
    uint32_t waits_for;      /* ... the barrier's number, or the lanes */
    struct warp_split *link; /* next in warp.ready, warp.waiting or block.free_splits */
} warp_split;

/* The first split of a warp; NULL if out of memory. */
warp_split *split_root(warp *w, uint32_t lanes, frame *f);
/* taken goes to i->target, the rest on; they reconverge at i->reconverge. */
const insn *split_at_branch(warp *w, const insn *i, uint32_t taken);
/* The same with two targets: one for taken, one for the others. */
const insn *split_two_ways(warp *w, const insn *i, uint32_t taken, const insn *target,
                           const insn *otherwise);
/* The active lanes reached their split's end. */
const insn *split_end(warp *w);
/* lanes are gone, from the call or for good: `next` is where the others go on. */
const insn *split_leave(warp *w, uint32_t lanes, bool exited, const insn *next);
/* The running split waits at i; lanes and barrier as in warp_split. */
const insn *split_wait(warp *w, const insn *i, bool at_barrier, uint32_t waits_for);
/* A waiting split goes on at next. */
void split_resume(warp *w, warp_split *f, const insn *next);
/* Switches to the next leaf that can run; NULL if none can. */
const insn *split_switch(warp *w);
/* A failed try_wait: another leaf runs, and then another warp. Returns NULL. */
const insn *split_yield(warp *w, const insn *next);
/* The slice is over: another leaf runs. */
void split_rotate(warp *w, const insn *next);

/* Nothing can run: lanes at a reconvergence point go on without those that wait for a barrier or for
 * other lanes. False if there are none. */
bool split_unblock(warp *w);
/* lanes of the running split enter a function; it waits for them. False if out of memory. */
bool split_push_call(warp *w, uint32_t lanes, frame *callee);
void split_free_slabs(struct block *b);

#endif
