/* What an epoch is of, and which epochs the fast paths let pass. */
#include "detector.h"

#include <stdlib.h>
#include <string.h>

void detector_set_limits(detector *d) {
    const epoch begin = (epoch)d->hb.begin << EPOCH_TIME_SHIFT;
    const uint32_t end = d->hb.min_end_floor; /* the slow path looks at threads that have exited */
    const epoch floor = (epoch)(end < d->hb.floor ? end : d->hb.floor) << EPOCH_TIME_SHIFT;
    const epoch in_flight = (epoch)TIME_IN_FLIGHT << EPOCH_TIME_SHIFT;
    if (d->n_members > 1) { /* epochs of several blocks: no range of times is ordered */
        d->uninitialised_limits = (fast_path_limits){0};
        d->shared_limits = d->global_limits = (fast_path_limits){.zero = ~(epoch)0};
        return;
    }
    const bool any_value = d->hazards->job->hazards & SMK_EQUAL_WRITES; /* values do not matter */
    d->uninitialised_limits = (fast_path_limits){begin, floor - begin, in_flight - begin, 0, 0};
    d->shared_limits = (fast_path_limits){0, floor, in_flight, 0, any_value ? in_flight : floor};
    d->global_limits = (fast_path_limits){begin, floor - begin, in_flight - begin, ~(epoch)0,
                                          any_value ? in_flight - begin : 0};
}

void detector_add_block(detector *d, uint32_t time, const uint32_t block[3]) {
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
    d->block_begins[d->n_blocks] = time;
    memcpy(d->block_indices[d->n_blocks++], block, sizeof d->block_indices[0]);
}

static void set_running(detector *d, uint32_t k) {
    member *m = &d->members[k];
    const size_t first_warp = (size_t)k * d->launch->n_warps;
    d->running = m;
    d->block = m->block;
    d->shared = &m->shared;
    d->matrix_reads = d->all_matrix_reads + first_warp;
    d->last_run = d->all_last_runs + first_warp * d->hazards->sites.n;
    d->barrier_clock = m->barrier_clock;
    d->alive = m->alive;
    d->initial_lanes = m->initial_lanes;
    d->launch_waited = m->launch_waited;
    d->last_access = m->last_access;
    d->barriers = m->barriers;
}

void detector_switch(detector *d, uint32_t k) {
    if (d->running == &d->members[k]) return;
    set_running(d, k);
    if (d->n_members == 1) return;
    hb_switch(&d->hb, k);
    detector_add_block(d, d->hb.time, d->block);
}

bool detector_same_member(const detector *d, epoch a, epoch b) {
    return d->n_members == 1 || hb_member_of(&d->hb, a) == hb_member_of(&d->hb, b);
}

bool detector_is_other_member(const detector *d, epoch e) {
    return d->n_members > 1 && epoch_time(e) != TIME_IN_FLIGHT &&
           hb_member_of(&d->hb, e) != d->hb.member;
}

bool is_morally_strong(const site_table *sites, epoch a, epoch b, hb_scope scope) {
    if (epoch_kind(a) == WEAK || epoch_kind(b) == WEAK) return false;
    return sites->sites[epoch_site(a)].ordering.scope >= scope &&
           sites->sites[epoch_site(b)].ordering.scope >= scope;
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
