/* Instructions that lanes of a warp do together: sync.c has the operations, collective.c brings the lanes
 * together.
 *
 * insn: sources a, b, c, member mask in slot imm, destinations d and e; exec is exec_collective, body the
 * operation. It finds in w->active all lanes that take part, and its result is not looked at.
 */
#ifndef EMU_COLLECTIVE_H
#define EMU_COLLECTIVE_H

#include "insn.h"

enum {
    COLLECTIVE_NEGATED = 1,
    COLLECTIVE_WIDE = 2
}; /* insn.flags: predicate a is !a; a has 64 bits */

const insn *exec_collective(warp *w, const insn *i);

#endif
