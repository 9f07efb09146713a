/* What atom and red do to one element, for others that reduce into memory; see atomics.c. */
#ifndef EMU_ATOMICS_H
#define EMU_ATOMICS_H

#include "../machine/machine.h"

/* What an operation makes of the old bits; c is cas's new value (b is what it compares with). */
typedef uint64_t (*combine_fn)(uint64_t old, uint64_t b, uint64_t c);

typedef struct atomic_change {
    combine_fn combine; /* NULL: none */
    uint32_t width;
    bool shared;
} atomic_change;

/* Takes a type and an operation of one operand that returns nothing, such as .add.u32 ; combine is NULL if
 * there is none. */
atomic_change atomic_take(decoder *dc, bool shared);
/* The one of that name and type, if there is one. */
atomic_change atomic_find(const char *op, ptx_type type, bool shared);
/* The element must be aligned. */
void atomic_apply(const atomic_change *change, unsigned char *at, uint64_t value);

#endif
