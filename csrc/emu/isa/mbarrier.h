/* mbarrier objects, for those who arrive at them beside mbarrier.c. */
#ifndef EMU_MBARRIER_H
#define EMU_MBARRIER_H

#include "../machine/machine.h"

/* The barrier at an address of .shared: whether it is one; false after a fault. */
bool mbarrier_check(warp *w, const insn *i, int lane, uint64_t address);
/* What is missing at the mbarrier that w last asked in vain, as the end of a message. */
void mbarrier_describe(const warp *w, char *out, size_t size);
/* One more arrival is pending in this phase (cp.async.mbarrier.arrive without .noinc). */
bool mbarrier_add_pending(warp *w, const insn *i, int lane, uint64_t address);

#endif
