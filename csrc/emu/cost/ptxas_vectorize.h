/* What ptxas makes of accesses to shared memory: loads and stores that it joins (widen.c), atomics
 * (atomic_form.c). */
#ifndef EMU_WIDEN_H
#define EMU_WIDEN_H

#include "../base/interrupt.h"
#include "../ptx/ptx.h"

/* What becomes of an instruction of PTX. */
typedef struct vectorized {
    bool joined;    /* another one does its work: the machine does not run it */
    uint8_t width;  /* bytes a lane that the machine moves instead; 0: as written */
    int8_t shift;   /* from the address written to the machine's: at most 0 */
    uint8_t atomic; /* of an atomic: its atomic_form */
} vectorized;

/* One for each instruction of the function, to be freed; NULL: out of memory. */
vectorized *vectorize_accesses(const ptx_function *f, interrupt_poller *poller);

#endif
