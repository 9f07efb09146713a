/* Live ranges of registers. Internal to emu/ptx. */
#ifndef EMU_LIVENESS_H
#define EMU_LIVENESS_H

#include "cfg.h"

enum { NO_SEGMENT = 0xffffffff };

/* An interval of the text, inclusive, in which a register is live. Instruction i reads at time 2i.
 * It writes at 2i + 1 if ptx_may_write_in_place, else at 2i. */
typedef struct live_segment {
    uint32_t first, last;
    uint32_t next; /* later segment of the same register; NO_SEGMENT: none */
} live_segment;

typedef struct liveness {
    live_segment *segments;
    uint32_t *first; /* per register: its first segment; NO_SEGMENT: the register never occurs */
    bool analysed;   /* false: the function is too large; there are no segments */
} liveness;

/* False if out of memory or interrupted. */
bool liveness_find(ptx_arena *arena, const ptx_function *f, const cfg *graph,
                   interrupt_poller *poller, liveness *out);

#endif
