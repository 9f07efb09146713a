#include "wider_access.h"

#include "../base/lanes.h"
#include "banks.h"

static const uint32_t widths[SMK_N_WIDTHS] = {4, 8, 16}; /* narrower accesses cost as 4 bytes do */

static void extend(smk_wider_cost *c, uint32_t wavefronts, uint32_t ideal) {
    if (!c->max_wavefronts || wavefronts < c->min_wavefronts) c->min_wavefronts = wavefronts;
    if (!c->max_wavefronts || ideal < c->min_ideal) c->min_ideal = ideal;
    if (wavefronts > c->max_wavefronts) c->max_wavefronts = wavefronts;
    if (ideal > c->max_ideal) c->max_ideal = ideal;
}

void wider_access_record(wider_access *w, const emu_request *r) {
    uint64_t address[LANES];
    for (int k = 0; k < SMK_N_WIDTHS && r->active; k++) {
        if (widths[k] < r->width) continue;
        for (uint32_t l = 0; l < LANES; l++)
            address[l] = r->address[l] & ~(uint64_t)(widths[k] - 1);
        const bool load = r->operation == EMU_LOAD;
        const uint32_t wavefronts = banks_wavefronts(address, r->active, widths[k], load);
        const uint32_t ideal = banks_ncu_ideal(r->active, widths[k], wavefronts);
        extend(&w->cost[k], wavefronts, ideal);
        w->cost[k].wavefronts += wavefronts;
        w->cost[k].ideal += ideal;
    }
}

void wider_access_merge(wider_access *into, const wider_access *from) {
    for (int k = 0; k < SMK_N_WIDTHS; k++) {
        smk_wider_cost *to = &into->cost[k];
        const smk_wider_cost *by = &from->cost[k];
        if (!by->max_wavefronts) continue;
        extend(to, by->min_wavefronts, by->min_ideal);
        extend(to, by->max_wavefronts, by->max_ideal);
        to->wavefronts += by->wavefronts;
        to->ideal += by->ideal;
    }
}
