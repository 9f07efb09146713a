/* The work over 32 addresses that every watched access needs; compiled once per instruction set of the host
 * (isa.h). */
#ifndef EMU_OBSERVE_LANES_H
#define EMU_OBSERVE_LANES_H

#include "insn.h"

typedef struct observe_functions {
    /* The addresses that slot and imm make. */
    void (*note)(const warp *w, uint32_t slot, bool wide, int64_t imm, uint64_t *out);
    /* The distance from lane to lane if all run and it is 0 or width; else ~0. */
    uint64_t (*step)(uint32_t active, uint32_t width, const uint64_t *address);
} observe_functions;

extern const observe_functions observe_lanes_baseline, observe_lanes_v3, observe_lanes_v4;
const observe_functions *observe_functions_for_cpu(void);

#endif
