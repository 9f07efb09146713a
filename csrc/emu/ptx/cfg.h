/* The control-flow graph of a function and its reconvergence points. Internal to emu/ptx. */
#ifndef EMU_CFG_H
#define EMU_CFG_H

#include "../base/arena.h"
#include "../../core/interrupt.h"
#include "ptx.h"

typedef struct cfg_block {
    uint32_t first, last; /* instructions, inclusive */
    const uint32_t *successors, *predecessors;
    uint32_t n_successors, n_predecessors;
} cfg_block;

typedef struct cfg {
    cfg_block *blocks; /* in text order; block 0 is the entry */
    uint32_t n_blocks;
} cfg;

/* An upper bound on the number of edges. A target list counts once per branch that uses it, so the
 * number can be quadratic in the size of the text. */
uint64_t cfg_count_edges(const ptx_function *f);

/* Both functions return false if out of memory or interrupted. */
bool cfg_build(ptx_arena *arena, const ptx_function *f, cfg *out);
/* Sets `reconvergence` of all branches of f. */
bool cfg_reconvergence(ptx_arena *arena, ptx_function *f, const cfg *graph,
                       interrupt_poller *poller);

#endif
