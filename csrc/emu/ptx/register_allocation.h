/* Allocation of registers to slots of a warp's frame. Internal to emu/ptx. */
#ifndef EMU_REGISTER_ALLOCATION_H
#define EMU_REGISTER_ALLOCATION_H

#include "cfg.h"

/* Sets the slots of f's registers, and frame_bytes. False: out of memory, or interrupted. */
bool allocate_registers(ptx_arena *arena, ptx_function *f, const cfg *graph,
                        interrupt_poller *poller);

#endif
