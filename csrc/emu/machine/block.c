/* A block's memory, and its state when it begins. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "block.h"
#include "instruction_set.h"
#include "observe_lanes.h"

/* ---- memory, reused for one block after the other ---- */

bool block_charge(block *b, uint64_t bytes) {
    char message[512];
    const uint64_t group_limit = (uint64_t)MAX_GROUP_GIB << 30;
    const bool block_has = bytes <= MAX_BLOCK_BYTES - b->charged;
    if (block_has && bytes <= group_limit - *b->group_charged) {
        b->charged += bytes;
        *b->group_charged += bytes;
        return true;
    }
    snprintf(message, sizeof message,
             "out of memory: kernel %.200s: the frames, local memory and copies in flight of %s "
             "take more than %llu bytes; use fewer threads per block, less local memory or "
             "shallower recursion",
             b->launch->program->function->name,
             block_has ? "blocks that run together" : "one block",
             (unsigned long long)(block_has ? group_limit : MAX_BLOCK_BYTES));
    launch_fail(b->launch, SMK_MEMORY, message);
    return false;
}

void block_uncharge(block *b, uint64_t bytes) {
    b->charged -= bytes;
    *b->group_charged -= bytes;
}

block *block_new(launch *l, uint32_t member, uint64_t *group_charged, void *observer_state) {
    block *b = aligned_alloc(_Alignof(block), sizeof *b);
    if (!b) return NULL;
    memset(b, 0, sizeof *b);
    b->launch = l;
    b->program = l->observer && !observer_state ? l->plain : l->program;
    b->observer = observer_state ? l->observer : NULL;
    b->observer_state = observer_state;
    b->group_charged = group_charged;
    b->member = member;
    b->rank = member % l->cluster_blocks;
    b->window = WINDOW_BASE(b->rank);
    b->observing = observe_functions_for_cpu();
    b->warps = aligned_alloc(_Alignof(warp), l->n_warps * sizeof *b->warps);
    b->frames = calloc(l->n_warps, sizeof(frame *));
    b->regions = malloc(l->n_regions * sizeof *b->regions);
    b->shared = guarded_alloc(l->shared_region_bytes);
    if (b->warps) memset(b->warps, 0, l->n_warps * sizeof *b->warps);
    if (!b->warps || !b->frames || !b->regions || !b->shared) goto fail;
    memcpy(b->regions, l->regions, l->n_regions * sizeof *b->regions);
    b->regions[REGION_SHARED] = (region){.host = b->shared,
                                         .size = l->shared_region_bytes,
                                         .space = PTX_SHARED,
                                         .writable = true,
                                         .base = b->window};
    for (uint32_t k = 0; k < l->n_warps; k++) {
        warp *w = &b->warps[k];
        w->block = b;
        w->index = k;
        w->local = calloc(1, sizeof *w->local);
        if (!w->local || !local_reserve(w, b->program->local_bytes)) goto fail;
        b->frames[k] = frame_acquire(w, b->program, 0, 0);
        if (!b->frames[k]) goto fail;
    }
    if (!l->module->isa->allocate_copies(b)) goto fail;
    return b;
fail:
    block_free(b);
    return NULL;
}

void block_free(block *b) {
    if (!b) return;
    if (b->warps) b->launch->module->isa->free_copies(b);
    for (uint32_t k = 0; b->warps && k < b->launch->n_warps; k++) {
        warp *w = &b->warps[k];
        if (w->local) guarded_free(w->local->bytes, w->local->size * LANES);
        free(w->local);
    }
    for (frame *f = b->all_frames, *next; f; f = next) {
        next = f->next_allocated;
        free(f);
    }
    guarded_arena_free(&b->registers);
    split_free_slabs(b);
    free(b->warps);
    free(b->frames);
    free(b->regions);
    guarded_free(b->shared, b->launch->shared_region_bytes);
    free(b->printed.bytes);
    free(b);
}

/* ---- the start of a block ---- */

bool block_begin(block *b, uint64_t linear) {
    const launch *l = b->launch;
    const emu_observer *observer = b->observer;
    const uint32_t threads = l->block[0] * l->block[1] * l->block[2];
    b->linear = linear;
    b->index[0] = (uint32_t)(linear % l->grid[0]);
    b->index[1] = (uint32_t)(linear / l->grid[0] % l->grid[1]);
    b->index[2] = (uint32_t)(linear / l->grid[0] / l->grid[1]);
    b->live_warps = l->n_warps;
    memset(b->barriers, 0, sizeof b->barriers);
    b->used_barriers = 0;
    b->free_registers = 0;
    b->ended = false;
    b->time = 0;
    for (uint64_t at = 0; at + 1 < l->shared_region_bytes; at += sizeof(uint16_t))
        *(uint16_t *)(b->shared + at) = POISON;
    if (l->shared_region_bytes % 2) b->shared[l->shared_region_bytes - 1] = POISON & 0xff;
    l->module->isa->begin_copies(b);
    for (uint32_t k = 0; k < l->n_warps; k++) {
        warp *w = &b->warps[k];
        const uint32_t rest = threads - k * LANES;
        w->alive = rest >= LANES ? FULL : (1u << rest) - 1;
        w->ready = w->waiting = NULL;
        w->clock = w->slice_start = 0;
        w->polling_slices = 0;
        w->failed_wait.at = NULL;
        w->registers = l->registers;
        frame_fill(w, b->frames[k], FILL_BLOCK);
        w->split = NULL;
        w->ready = split_root(w, w->alive, b->frames[k]);
        if (!w->ready) return false;
    }
    if (observer && observer->block) observer->block(b->observer_state, b->index, b->member, true);
    return true;
}

void block_end(block *b) {
    const emu_observer *observer = b->observer;
    b->launch->module->isa->end_copies(b);
    if (observer && observer->block) observer->block(b->observer_state, b->index, b->member, false);
    print_end_block(b);
    b->ended = true;
}

bool block_goes_on(const block *b) {
    if (b->poll) b->poll(b->poll_arg);
    return !atomic_load_explicit(&b->launch->stop, memory_order_relaxed);
}
