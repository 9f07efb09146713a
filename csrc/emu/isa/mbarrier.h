/* mbarriers, for the instructions outside mbarrier.c that arrive at them; see mbarrier.c. */
#ifndef EMU_MBARRIER_H
#define EMU_MBARRIER_H

#include "../machine/machine.h"

/* Whether an initialised mbarrier is at that address of the cluster's shared memory; false after a
 * fault. */
bool mbarrier_check(warp *w, const insn *i, int lane, ptx_space space, uint64_t address);
/* Why the phase of w's last failed try_wait (w->failed_wait) has not completed, as the end of a
 * message. */
void mbarrier_describe(const warp *w, char *out, size_t size);
/* Adds a pending arrival to the current phase (cp.async.mbarrier.arrive without .noinc). */
bool mbarrier_add_pending(warp *w, const insn *i, int lane, ptx_space space, uint64_t address);

#endif
