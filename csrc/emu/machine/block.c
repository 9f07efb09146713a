/* Runs a block: its warps run round-robin on one host thread until all have exited. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "block.h"
#include "../base/lanes.h"
#include "instruction_set.h"
#include "observe_lanes.h"

/* More rounds of nothing but failed try_waits are a deadlock: only the block's own threads and
 * copies can complete a phase of its mbarriers. */
enum { MAX_IDLE_ROUNDS = 1 << 16 };

/* ---- memory, reused for one block after the other ---- */

bool block_charge(block *b, uint64_t bytes) {
    char message[512];
    if (bytes <= MAX_BLOCK_BYTES - b->charged) {
        b->charged += bytes;
        return true;
    }
    snprintf(message, sizeof message,
             "out of memory: kernel %.200s: the frames, local memory and copies in flight of one "
             "block take more than %d bytes; use fewer threads per block, less local memory or "
             "shallower recursion",
             b->launch->program->function->name, MAX_BLOCK_BYTES);
    launch_fail(b->launch, SMK_MEMORY, message);
    return false;
}

block *block_new(launch *l, void *observer_state) {
    block *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    b->launch = l;
    b->observer_state = observer_state;
    b->observing = observe_functions_for_cpu();
    b->warps = aligned_alloc(64, l->n_warps * sizeof *b->warps);
    b->frames = calloc(l->n_warps, sizeof(frame *));
    b->regions = malloc(l->n_regions * sizeof *b->regions);
    b->shared = guarded_alloc(l->shared_region_bytes);
    if (b->warps) memset(b->warps, 0, l->n_warps * sizeof *b->warps);
    if (!b->warps || !b->frames || !b->regions || !b->shared) goto fail;
    memcpy(b->regions, l->regions, l->n_regions * sizeof *b->regions);
    b->regions[REGION_SHARED] =
        (region){b->shared, l->shared_region_bytes, PTX_SHARED, true, false};
    for (uint32_t k = 0; k < l->n_warps; k++) {
        warp *w = &b->warps[k];
        w->block = b;
        w->index = k;
        w->local = calloc(1, sizeof *w->local);
        if (!w->local || !local_reserve(w, l->program->local_bytes)) goto fail;
        b->frames[k] = frame_acquire(w, l->program, 0, 0);
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

static bool begin(block *b, uint64_t linear) {
    const launch *l = b->launch;
    const uint32_t threads = l->block[0] * l->block[1] * l->block[2];
    b->linear = linear;
    b->index[0] = (uint32_t)(linear % l->grid[0]);
    b->index[1] = (uint32_t)(linear / l->grid[0] % l->grid[1]);
    b->index[2] = (uint32_t)(linear / l->grid[0] / l->grid[1]);
    b->live_warps = l->n_warps;
    memset(b->barriers, 0, sizeof b->barriers);
    b->used_barriers = 0;
    b->idle_rounds = 0;
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
        frame_fill(w, b->frames[k], FILL_BLOCK);
        w->split = NULL;
        w->ready = split_root(w, w->alive, b->frames[k]);
        if (!w->ready) return false;
    }
    return true;
}

/* ---- deadlock ---- */

static void describe_thread(const warp *w, uint32_t lane, const insn *i, const char *what,
                            char *out, size_t size) {
    char position[256];
    const uint32_t *shape = w->block->launch->block;
    const uint32_t thread = w->index * LANES + lane;
    source_position(i, position, sizeof position);
    snprintf(out, size, "\n  warp %u, thread (%u, %u, %u): %s at %s `%.80s`", w->index,
             thread % shape[0], thread / shape[0] % shape[1], thread / shape[0] / shape[1], what,
             position, i->ptx->text);
}

static void describe_wait(const warp *w, const warp_split *s, char *out, size_t size) {
    char what[80];
    snprintf(what, sizeof what, "%d lanes wait for %s", __builtin_popcount(s->active),
             s->at_barrier ? "the block's other threads" : "other lanes");
    describe_thread(w, (uint32_t)first_lane(s->active), s->next, what, out, size);
}

static void describe_failed_try_wait(const warp *w, char *out, size_t size) {
    char missing[128], what[256];
    w->block->launch->module->isa->describe_failed_wait(w, missing, sizeof missing);
    snprintf(what, sizeof what, "waits for the mbarrier at 0x%llx of shared memory (%s)",
             (unsigned long long)w->failed_wait.offset, missing);
    describe_thread(w, (uint32_t)w->failed_wait.lane, w->failed_wait.at, what, out, size);
}

static void fail_deadlock(block *b) {
    enum { ROOM = 500 };
    const launch *l = b->launch;
    char message[sizeof((smk_status *)0)->message];
    size_t n = (size_t)snprintf(message, sizeof message,
                                "deadlock: kernel %s, block (%u, %u, %u): no thread can go on.",
                                l->program->function->name, b->index[0], b->index[1], b->index[2]);
    emu_fault fault = {.kind = EMU_DEADLOCK, .block = b->index, .message = message};
    for (uint32_t k = 0; k < l->n_warps; k++) {
        const warp *w = &b->warps[k];
        for (const warp_split *s = w->waiting; s; s = s->link) {
            if (!fault.ptx) {
                fault.ptx = s->next->ptx,
                fault.thread = k * LANES + (uint32_t)first_lane(s->active);
                n += (size_t)snprintf(message + n, sizeof message - n,
                                      " A barrier needs all threads of the block, or all lanes it "
                                      "names, to arrive; look for one inside a divergent branch.");
            }
            if (n + ROOM < sizeof message) describe_wait(w, s, message + n, sizeof message - n);
            n += strlen(message + n);
        }
        if (w->yielded && w->failed_wait.at) {
            if (!fault.ptx) {
                fault.ptx = w->failed_wait.at->ptx;
                fault.thread = k * LANES + (uint32_t)w->failed_wait.lane;
            }
            if (n + ROOM < sizeof message)
                describe_failed_try_wait(w, message + n, sizeof message - n);
            n += strlen(message + n);
        }
    }
    launch_fail_at(b->launch, SMK_LAUNCH, &fault);
}

/* No warp can run. Releases lanes at reconvergence points; false: there are none. */
static bool unblock(block *b) {
    bool any = false;
    for (uint32_t k = 0; k < b->launch->n_warps; k++)
        any |= split_unblock(&b->warps[k]);
    return any;
}

/* ---- running ---- */

bool block_goes_on(const block *b) {
    if (b->poll) b->poll(b->poll_arg);
    return !atomic_load_explicit(&b->launch->stop, memory_order_relaxed);
}

void block_run(block *b, uint64_t linear, void (*poll)(void *), void *poll_arg) {
    launch *l = b->launch;
    const emu_observer *observer = l->observer;
    b->poll = poll;
    b->poll_arg = poll_arg;
    if (!begin(b, linear)) {
        launch_fail(l, SMK_MEMORY, "out of memory: the warps of a block");
        return;
    }
    if (observer && observer->block) observer->block(b->observer_state, b->index, true);
    while (b->live_warps && !atomic_load_explicit(&l->stop, memory_order_relaxed)) {
        bool ran = false, only_failed_waits = true;
        for (uint32_t k = 0; k < l->n_warps; k++) {
            warp *w = &b->warps[k];
            if (!w->split && !w->ready) continue;
            warp_run(w);
            ran = true;
            only_failed_waits &= w->yielded;
            if (!block_goes_on(b)) break;
        }
        b->idle_rounds = ran && only_failed_waits ? b->idle_rounds + 1 : 0;
        const bool deadlock = ran ? b->idle_rounds > MAX_IDLE_ROUNDS : !unblock(b);
        if (deadlock) fail_deadlock(b);
    }
    l->module->isa->end_copies(b);
    if (observer && observer->block) observer->block(b->observer_state, b->index, false);
    print_end_block(b);
}
