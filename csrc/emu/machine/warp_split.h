/* Warp splits: the sets of lanes of a warp that execute together.
 *
 * A warp is a tree of splits. When the lanes of a split diverge, it becomes an inner node that
 * waits at the reconvergence point, and each side of the branch becomes a child. A child ends
 * when it reaches that point or all its lanes have exited. When the last child ends, the parent
 * resumes with its remaining lanes.
 *
 * Any leaf may run next. This is why it is a tree and not a stack: lanes may wait for lanes on
 * the other side of a branch (__syncwarp, shuffles, spin loops), as on hardware since Volta.
 */
#ifndef EMU_WARP_SPLIT_H
#define EMU_WARP_SPLIT_H

#include "register_file.h"
#include "warp.h"

/* For lanes of its warp, at a barrier of its block or cluster, or for registers (setmaxnreg). */
typedef enum wait_kind { WAIT_LANES, WAIT_BARRIER, WAIT_REGISTERS } wait_kind;

typedef struct warp_split {
    uint32_t active;
    uint32_t children; /* > 0: an inner node, which resumes at next when they have ended */
    const insn *next;
    const insn *reconverge; /* the point at which it ends; NULL: at exit or return */
    struct warp_split *parent;
    struct frame *frame;
    bool call;               /* the first split of a call, which owns the frame */
    wait_kind wait;          /* of a leaf in warp.waiting: what it waits for ... */
    uint32_t waits_for;      /* ... the lanes, or the barrier's number */
    struct warp_split *link; /* next in warp.ready, warp.waiting or block.free_splits */
} warp_split;

/* The root of a warp's tree; NULL: out of memory. */
warp_split *split_root(warp *w, uint32_t lanes, frame *entry);
/* Diverges: the lanes `taken` go to i->target, the others to the next instruction. They
 * reconverge at i->reconverge. */
const insn *split_at_branch(warp *w, const insn *i, uint32_t taken);
/* The same with two targets: one for `taken`, one for the other lanes. */
const insn *split_two_ways(warp *w, const insn *i, uint32_t taken, const insn *target,
                           const insn *otherwise);
/* The running split has reached its reconvergence point, or has no lanes left. */
const insn *split_end(warp *w);
/* Removes lanes that return at i from a function or, if `exited`, from the kernel. The split's
 * other lanes continue at the next instruction. */
const insn *split_leave(warp *w, const insn *i, uint32_t lanes, bool exited);
/* The running split waits at i: members wait and waits_for of warp_split. Another one runs. */
const insn *split_wait(warp *w, const insn *i, wait_kind wait, uint32_t waits_for);
/* A waiting split becomes ready, at `next`. */
void split_resume(warp *w, warp_split *s, const insn *next);
/* Switches to the next ready leaf; NULL: none is ready. */
const insn *split_switch(warp *w);
/* A failed try_wait: yields to the next ready leaf and ends the warp's slice. Returns NULL. */
const insn *split_yield(warp *w, const insn *next);
/* End of a slice: switches to the next ready leaf, round-robin. */
void split_rotate(warp *w, const insn *next);

/* No leaf is ready: lanes at a reconvergence point continue without those that wait for a barrier
 * or for other lanes. False: there are no such lanes. */
bool split_unblock(warp *w);
/* Lanes of the running split enter a function, as a child of it. False: out of memory. */
bool split_push_call(warp *w, uint32_t lanes, frame *callee);
void split_free_slabs(struct block *b);

#endif
