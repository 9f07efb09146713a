/* Loops over 32 addresses for every observed access, compiled once per instruction set of the
 * host (../base/cpu.h). */
#ifndef EMU_OBSERVE_LANES_H
#define EMU_OBSERVE_LANES_H

#include "insn.h"

typedef struct observe_functions {
    /* The address per lane: the frame slot's element (64 bits if wide) plus imm. */
    void (*addresses)(const warp *w, uint32_t slot, bool wide, int64_t imm, uint64_t *out);
    /* The stride between lanes if all are active and it is 0 or width; else ~0. */
    uint64_t (*step)(uint32_t active, uint32_t width, const uint64_t *address);
} observe_functions;

extern const observe_functions observe_lanes_baseline, observe_lanes_v3, observe_lanes_v4;
const observe_functions *observe_functions_for_cpu(void);

#endif
