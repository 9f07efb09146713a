/* What is known of the lowest four bits of every register of a function: see alignment.c. */
#ifndef EMU_ALIGNMENT_H
#define EMU_ALIGNMENT_H

#include "../base/interrupt.h"
#include "../ptx/ptx.h"

typedef struct low_bits {
    uint8_t known; /* a bit is set where the value's bit is the same in all threads at all times */
    uint8_t value;
    bool unset; /* nothing assigns the register (yet) */
} low_bits;

/* One for each register, to be freed; NULL: out of memory. */
low_bits *alignment_of_registers(const ptx_function *f, interrupt_poller *poller);

/* The low bits of an address without its register: of the variable's place, and the offset. */
low_bits alignment_of_place(const ptx_operand *address);

low_bits alignment_sum(low_bits a, low_bits b);

#endif
