/* What an epoch is of, and which epochs the fast paths let pass. */
#include "detector.h"

#include <stdlib.h>
#include <string.h>

void detector_set_limits(detector *d) {
    const epoch begin = (epoch)d->hb.begin << EPOCH_TIME_SHIFT;
    const uint32_t end = d->hb.min_end_floor; /* the slow path looks at threads that have exited */
    const epoch floor = (epoch)(end < d->hb.floor ? end : d->hb.floor) << EPOCH_TIME_SHIFT;
    const epoch in_flight = (epoch)TIME_IN_FLIGHT << EPOCH_TIME_SHIFT;
    d->uninitialised_limits = (fast_path_limits){begin, floor - begin, in_flight - begin, 0};
    d->shared_limits = (fast_path_limits){0, floor, in_flight, 0};
    d->global_limits = (fast_path_limits){begin, floor - begin, in_flight - begin, ~(epoch)0};
}

void detector_add_block(detector *d, const uint32_t block[3]) {
    if (d->n_blocks == d->blocks_capacity) {
        const size_t capacity = d->blocks_capacity ? 2 * d->blocks_capacity : 64;
        uint32_t *begins = realloc(d->block_begins, capacity * sizeof *begins);
        if (begins) d->block_begins = begins;
        uint32_t (*indices)[3] = realloc(d->block_indices, capacity * sizeof *indices);
        if (indices) d->block_indices = indices;
        if (!begins || !indices) {
            d->out_of_memory = true;
            return;
        }
        d->blocks_capacity = capacity;
    }
    d->block_begins[d->n_blocks] = d->hb.begin;
    memcpy(d->block_indices[d->n_blocks++], block, sizeof d->block_indices[0]);
}

bool is_morally_strong(const site_table *sites, epoch a, epoch b, bool is_other_block) {
    if (epoch_kind(a) == WEAK || epoch_kind(b) == WEAK) return false;
    return !is_other_block ||
           (hb_reaches_other_blocks(sites->sites[epoch_site(a)].ordering.scope) &&
            hb_reaches_other_blocks(sites->sites[epoch_site(b)].ordering.scope));
}

finding_op detector_op(const detector *d, epoch e) {
    finding_op op = {.ptx = d->hazards->sites.sites[epoch_site(e)].ptx, .thread = epoch_thread(e)};
    memcpy(op.block, d->block, sizeof op.block);
    size_t low = 0, high = d->n_blocks;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (d->block_begins[middle] <= epoch_time(e))
            low = middle;
        else
            high = middle;
    }
    if (e && high) memcpy(op.block, d->block_indices[low], sizeof op.block);
    return op;
}
