/* The wrapper that tells an observer of a memory instruction's accesses; see observe.c. */
#ifndef EMU_OBSERVE_H
#define EMU_OBSERVE_H

#include "exec.h"

const insn *exec_observed(warp *w, const insn *i);

#endif
