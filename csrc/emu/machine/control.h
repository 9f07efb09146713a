/* Handlers that decode.c places by itself. */
#ifndef EMU_CONTROL_H
#define EMU_CONTROL_H

#include "insn.h"

const insn *exec_join(warp *w, const insn *i);   /* hidden: lanes may meet here */
const insn *exec_branch(warp *w, const insn *i); /* bra under a guard; also hidden */
const insn *exec_exit(warp *w, const insn *i);

#endif
