/* The control-flow graph of a function, and where diverged lanes meet again. Private to the reader.
 */
#ifndef EMU_CFG_H
#define EMU_CFG_H

#include "../base/arena.h"
#include "../base/interrupt.h"
#include "ptx.h"

typedef struct cfg_block {
    uint32_t first, last; /* instructions, last included */
    const uint32_t *successors, *predecessors;
    uint32_t n_successors, n_predecessors;
} cfg_block;

typedef struct cfg {
    cfg_block *blocks; /* in the order of the text; block 0 is the entry */
    uint32_t n_blocks;
} cfg;

/* How many edges the graph will have, at most. A list of targets that many branches share counts
 * for each of them, so this can be quadratic in the size of the text. */
uint64_t cfg_count_edges(const ptx_function *f);

/* Both return false if memory ran out, or the poller says stop. */
bool cfg_build(ptx_arena *arena, const ptx_function *f, cfg *out);
bool cfg_reconvergence(ptx_arena *arena, ptx_function *f, const cfg *graph,
                       interrupt_poller *poller);

#endif
