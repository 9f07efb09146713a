/* Wavefronts of an atomic on shared memory: see atomic_cost.c. */
#ifndef EMU_ATOMIC_COST_H
#define EMU_ATOMIC_COST_H

#include "atomic_form.h"

uint32_t atomic_wavefronts(const ptx_instruction *p, atomic_form form, const uint64_t address[32],
                           uint32_t active, uint32_t width);

#endif
