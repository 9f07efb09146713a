/* Shuffles from lanes that do not take part: the PTX ISA leaves the value undefined. */
#include <stdio.h>
#include <string.h>

#include "detector.h"
#include "../base/lanes.h"

static const char *why_absent(const detector *d, const emu_sync *e) {
    const uint32_t warp = e->warp, source = e->object;
    if (e->kind == EMU_SHUFFLE_OUTSIDE) return "which is not in the mask";
    if (!(d->initial_lanes[warp] >> source & 1)) return "which the block does not have";
    return d->alive[warp] >> source & 1 ? "which does not take part" : "which has exited";
}

void shuffle_event(detector *d, const emu_sync *e) {
    const uint32_t lane = (uint32_t)first_lane(e->lanes);
    char message[100];
    snprintf(message, sizeof message, "(lane %u) shuffles from lane %u of its warp, %s", lane,
             e->object, why_absent(d, e));
    finding f = {.kind = e->kind == EMU_SHUFFLE_OUTSIDE ? SMK_HAZARD_SHUFFLE_OUTSIDE
                                                        : SMK_HAZARD_SHUFFLE,
                 .op = {.ptx = e->ptx, .thread = e->warp * LANES + lane},
                 .count = 1,
                 .message = strdup(message)};
    memcpy(f.op.block, d->block, sizeof f.op.block);
    d->out_of_memory |= !f.message;
    findings_add(&d->found, f);
}
