/* Handlers of the hidden instructions that decode.c inserts. */
#ifndef EMU_CONTROL_H
#define EMU_CONTROL_H

#include "insn.h"

const insn *exec_reconverge(warp *w, const insn *i); /* at every reconvergence point */
const insn *exec_branch(warp *w, const insn *i);     /* also of a guarded bra */
const insn *exec_exit(warp *w, const insn *i);       /* also of exit and a kernel's ret */

#endif
