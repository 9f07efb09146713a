/* The machine code that ptxas selects for atomics on shared memory: see atomic_form.c. */
#ifndef EMU_ATOMIC_FORM_H
#define EMU_ATOMIC_FORM_H

#include "../../core/interrupt.h"
#include "../ptx/ptx.h"

typedef enum atomic_form {
    ATOMIC_PLAIN,
    ATOMIC_COUNTING, /* ATOMS.POPC.INC: adds the number of lanes per address, once per address */
    ATOMIC_ELECTED   /* REDUX combines the warp's lanes, then one lane does the atomic */
} atomic_form;

/* An array of atomic_form with one element per instruction; the caller frees it. NULL: out of
 * memory or interrupted. */
uint8_t *atomic_forms(const ptx_function *f, interrupt_poller *poller);

#endif
