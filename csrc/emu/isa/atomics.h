/* The operations of atom and red on one element, also for copies that reduce into memory; see
 * atomics.c.
 */
#ifndef EMU_ATOMICS_H
#define EMU_ATOMICS_H

#include "../machine/machine.h"

/* The new bits from the old ones and operand b. cas: b is the value to compare with, c the new
 * value. */
typedef uint64_t (*combine_fn)(uint64_t old, uint64_t b, uint64_t c);

typedef struct atomic_reduction {
    combine_fn combine; /* NULL: no reduction */
    uint32_t width;
    bool shared;
} atomic_reduction;

/* Takes the *type and operation of a reduction from the modifiers, such as .add.u32. combine is
 * NULL if there is none. cas and exch are not reductions. */
atomic_reduction atomic_take_reduction(decoder *dc, bool shared, ptx_type *type);
/* The reduction with that name and type. combine is NULL if there is none. */
atomic_reduction atomic_find_reduction(const char *op, ptx_type type, bool shared);
/* Reduces value into the element at `at`, which must be aligned. */
void atomic_reduce(const atomic_reduction *reduction, unsigned char *at, uint64_t value);

#endif
