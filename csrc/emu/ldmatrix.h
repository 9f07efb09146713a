/* Whose addresses an ldmatrix or stmatrix takes; see ldmatrix.c. */
#ifndef EMU_LDMATRIX_H
#define EMU_LDMATRIX_H

#include "exec.h"

/* insn.flags: how many 8x8 matrices; and: */
enum { LDMATRIX_COUNT = 7, LDMATRIX_TRANSPOSED = 8 };

/* Lanes 8 j to 8 j + 7 hold the addresses of matrix j's rows; the others' are not looked at. */
static inline uint32_t ldmatrix_address_lanes(const insn *i) {
    return (uint32_t)((1ull << 8 * (i->flags & LDMATRIX_COUNT)) - 1);
}

#endif
