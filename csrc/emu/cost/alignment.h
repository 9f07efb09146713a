/* The statically known low four bits of every register of a function: see alignment.c. */
#ifndef EMU_ALIGNMENT_H
#define EMU_ALIGNMENT_H

#include "../../core/interrupt.h"
#include "../ptx/ptx.h"

typedef struct low_bits {
    uint8_t known;   /* mask of the bits that are the same in all threads at all times */
    uint8_t value;   /* those bits */
    bool unassigned; /* no assignment has been analysed (yet) */
} low_bits;

/* An array with one element per register; the caller frees it. NULL: out of memory or
 * interrupted. */
low_bits *alignment_of_registers(const ptx_function *f, interrupt_poller *poller);

/* The low bits of an address operand's variable + offset, without its register. */
low_bits alignment_of_symbol(const ptx_operand *address);

low_bits alignment_sum(low_bits a, low_bits b);

#endif
