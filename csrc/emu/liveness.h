/* From where to where each register's value matters. Private to the reader. */
#ifndef EMU_LIVENESS_H
#define EMU_LIVENESS_H

#include "cfg.h"

typedef struct live_range {
    uint32_t first, last; /* instructions, both included; first > last: the register never occurs */
} live_range;

/* One range for each register of the function; false if memory ran out. *bounded is false, and the
 * ranges mean nothing, if the function is too large to be analysed in reasonable time. */
bool live_ranges(ptx_arena *arena, const ptx_function *f, const cfg *graph, live_range **out,
                 bool *bounded);

#endif
