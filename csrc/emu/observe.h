/* The wrapper that tells an observer of a memory instruction's accesses; see observe.c. */
#ifndef EMU_OBSERVE_H
#define EMU_OBSERVE_H

#include "exec.h"

#include "observer.h"

const insn *exec_observed(warp *w, const insn *i);

/* Tells the observer, if there is one that listens, of an event of these lanes. */
void observe_sync(const warp *w, const insn *i, emu_sync_kind kind, uint32_t lanes);
void observe_event(const warp *w, emu_sync event);

#endif
