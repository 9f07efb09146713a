/* Warp-collective instructions (shfl.sync, vote.sync, ...). collective.c gathers the
 * participating lanes; ../isa/sync.c has the operations.
 *
 * Operands of insn: sources a, b, c, member mask in frame slot imm, destinations d and e. exec is
 * exec_collective, body the operation. The body runs with all members in w->active; its return
 * value is ignored.
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
