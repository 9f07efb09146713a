/* Predicts the accesses to shared memory in the machine code: the loads and stores that ptxas
 * vectorizes and its code for cp.async (ptxas_vectorize.c), and for atomics (atomic_form.c). */
#ifndef EMU_PTXAS_VECTORIZE_H
#define EMU_PTXAS_VECTORIZE_H

#include "../../core/interrupt.h"
#include "../ptx/ptx.h"

/* The machine code of one PTX instruction. */
typedef struct vectorized {
    bool merged; /* merged into another instruction's access: the machine code has none for this */
    uint8_t width;  /* bytes per lane of the wider access; 0: as in PTX */
    int8_t shift;   /* from the PTX address to that of the wider access, in bytes: at most 0 */
    uint8_t atomic; /* of an atomic: its atomic_form */
    bool fills;     /* of a cp.async of 16 bytes: its source size may be another than 0 and 16 */
} vectorized;

/* An array with one element per instruction; the caller frees it. NULL: out of memory or
 * interrupted. */
vectorized *vectorize_accesses(const ptx_function *f, interrupt_poller *poller);

#endif
