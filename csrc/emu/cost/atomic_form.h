/* What ptxas makes of atomics whose result nobody reads: see atomic_form.c. */
#ifndef EMU_ATOMIC_FORM_H
#define EMU_ATOMIC_FORM_H

#include "../base/interrupt.h"
#include "../ptx/ptx.h"

typedef enum atomic_form {
    ATOMIC_PLAIN,
    ATOMIC_COUNTING, /* ATOMS.POPC.INC: lanes of one address are counted and added at once */
    ATOMIC_ELECTED   /* the warp's lanes are combined first, and one of them does it */
} atomic_form;

/* One for each instruction of the function, to be freed; NULL: out of memory. */
uint8_t *atomic_forms(const ptx_function *f, interrupt_poller *poller);

#endif
