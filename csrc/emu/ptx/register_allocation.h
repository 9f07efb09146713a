/* Where registers stand in a warp's frame. Private to the reader. */
#ifndef EMU_SLOTS_H
#define EMU_SLOTS_H

#include "cfg.h"

/* Fills every register's slot and the function's frame_bytes; false if memory ran out, or the poller says
 * stop. */
bool slots_assign(ptx_arena *arena, ptx_function *f, const cfg *graph, interrupt_poller *poller);

#endif
