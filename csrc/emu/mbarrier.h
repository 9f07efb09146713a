/* mbarrier objects, for those who arrive at them beside mbarrier.c. */
#ifndef EMU_MBARRIER_H
#define EMU_MBARRIER_H

#include "block.h"

/* The barrier at an address of .shared: whether it is one; false after a fault. */
bool mbarrier_check(warp *w, const insn *i, int lane, uint64_t address);
/* One more arrival is pending in this phase (cp.async.mbarrier.arrive without .noinc). */
bool mbarrier_add_pending(warp *w, const insn *i, int lane, uint64_t address);

#endif
