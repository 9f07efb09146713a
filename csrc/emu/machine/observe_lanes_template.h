/* The functions of observe_lanes.h. */
#include "observe_lanes.h"

#include "../base/cpu.h"
#include "../base/lanes.h"

static void compute_addresses(const warp *w, uint32_t slot, bool wide, int64_t imm, uint64_t *out) {
    if (wide)
        INDEPENDENT for (int l = 0; l < LANES; l++) out[l] = U64(w, slot)[l] + (uint64_t)imm;
    else
        INDEPENDENT for (int l = 0; l < LANES; l++) out[l] =
            (uint32_t)(U32(w, slot)[l] + (uint32_t)imm);
}

static uint64_t stride_of(uint32_t active, uint32_t width, const uint64_t *address) {
    const uint64_t step = address[1] - address[0];
    const bool evenly_spaced =
        active == FULL && (step == 0 || step == width) && lanes_evenly_u64(address, step);
    return evenly_spaced ? step : ~(uint64_t)0;
}

const observe_functions FOR_CPU(observe_lanes) = {compute_addresses, stride_of};
