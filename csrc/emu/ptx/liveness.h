/* Where each register's value matters. Private to the reader. */
#ifndef EMU_LIVENESS_H
#define EMU_LIVENESS_H

#include "cfg.h"

enum { NO_SEGMENT = 0xffffffff };

/* A stretch of the text, both ends included, all through which the register is alive. Instruction i
 * reads at 2i; it writes at 2i + 1 if it may write in place, otherwise also at 2i. */
typedef struct live_segment {
    uint32_t first, last;
    uint32_t next; /* of the same register, further down; NO_SEGMENT after the last */
} live_segment;

typedef struct liveness {
    live_segment *segments;
    uint32_t *of; /* of a register: its first segment, NO_SEGMENT if it never occurs */
    bool bounded; /* false: the function is too large to be analysed; the rest is not filled */
} liveness;

/* False if memory ran out, or the poller says stop. */
bool liveness_find(ptx_arena *arena, const ptx_function *f, const cfg *graph,
                   interrupt_poller *poller, liveness *out);

#endif
