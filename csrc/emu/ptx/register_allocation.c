/* Slots: registers whose lives do not overlap share a place in the frame.
 *
 * Compilers write PTX in (nearly) single assignment: an unrolled kernel names thousands of
 * registers, of which a few hundred are alive at once. A warp's registers are 32 lanes wide, so
 * with a place for each of them the frame would not stay in cache.
 *
 * Is it right on a machine of lanes that diverge? A slot is 32 separate words. A write touches the
 * words of active lanes only, and each lane follows a path of its own through the graph of one
 * thread, on which its two registers are never both alive; that other lanes are elsewhere does not
 * matter to it. Instructions that read other lanes' registers (shfl, vote, match, mma) read those
 * of lanes that execute the same instruction, where the register is alive. wgmma and tcgen05 read
 * registers later than they are issued, on the machine; the emulator reads them at once.
 *
 * Where an instruction reads a register for the last time, its result may take over the slot only
 * if it is arithmetic, lane by lane; so that other instructions may write one result, or one lane,
 * before they have read everything for the next.
 *
 * Registers are taken in order of their first instruction. Each goes into the slot whose next use
 * by others is nearest, among those that are free wherever the register is alive: so a short life
 * fills a short hole in a longer one. Each size has slots of its own; the large come first, so that
 * every slot is aligned to its size (b128's to half of it).
 */
#include "register_allocation.h"

#include "liveness.h"

enum { NONE = 0xffffffff, N_SIZES = 4, FRAME_UNIT = 256 };

/* Past this, registers get fresh slots: a text made to be hard costs memory, not time. */
static const uint64_t most_steps = 1 << 25;

/* The slots of one size. */
typedef struct pool {
    uint32_t *taken; /* of a slot: the segments of its registers, in order, the past ones dropped */
    uint32_t n_slots;
} pool;

static uint32_t size_index(ptx_type type) {
    switch (ptx_slot_bytes(type)) {
    case 512: return 0;
    case 256: return 1;
    case 128: return 2;
    default: return 3;
    }
}

/* Whether two lists of segments keep apart. */
static bool apart(const live_segment *segments, uint32_t a, uint32_t b, uint64_t *steps) {
    while (a != NO_SEGMENT && b != NO_SEGMENT) {
        ++*steps;
        if (segments[a].last < segments[b].first)
            a = segments[a].next;
        else if (segments[b].last < segments[a].first)
            b = segments[b].next;
        else
            return false;
    }
    return true;
}

static uint32_t merge(live_segment *segments, uint32_t a, uint32_t b, uint64_t *steps) {
    uint32_t head = NO_SEGMENT, *tail = &head;
    while (a != NO_SEGMENT && b != NO_SEGMENT) {
        ++*steps;
        uint32_t *first = segments[a].first < segments[b].first ? &a : &b;
        *tail = *first;
        tail = &segments[*first].next;
        *first = *tail;
    }
    *tail = a != NO_SEGMENT ? a : b;
    return head;
}

/* The slot for a register whose segments start at `own`. */
static uint32_t choose_slot(pool *p, live_segment *segments, uint32_t own, uint64_t *steps) {
    uint32_t best = NONE, best_next = 0, now = segments[own].first;
    for (uint32_t slot = 0; slot < p->n_slots && *steps < most_steps; slot++) {
        uint32_t *taken = &p->taken[slot];
        ++*steps;
        while (*taken != NO_SEGMENT && segments[*taken].last < now)
            *taken = segments[*taken].next;
        uint32_t next = *taken != NO_SEGMENT ? segments[*taken].first : NONE;
        if (next <= now || (best != NONE && next >= best_next)) continue;
        if (!apart(segments, own, *taken, steps)) continue;
        best = slot;
        best_next = next;
    }
    if (best != NONE) return best;
    p->taken[p->n_slots] = NO_SEGMENT;
    return p->n_slots++;
}

/* Registers by the time at which they begin; those that never occur are left out. */
static uint32_t sort_registers(ptx_arena *arena, const ptx_function *f, const liveness *live,
                               uint32_t **out) {
    uint32_t n_times = 2 * f->n_instructions, n = 0;
    uint32_t *start = arena_alloc(arena, n_times + 1u, sizeof *start);
    *out = arena_alloc(arena, f->n_registers, sizeof **out);
    if (!start || !*out) return NONE;
    for (uint32_t r = 0; r < f->n_registers; r++)
        if (live->of[r] != NO_SEGMENT) start[live->segments[live->of[r]].first + 1]++;
    for (uint32_t i = 0; i < n_times; i++)
        start[i + 1] += start[i];
    for (uint32_t r = 0; r < f->n_registers; r++) {
        if (live->of[r] == NO_SEGMENT) continue;
        (*out)[start[live->segments[live->of[r]].first]++] = r;
        n++;
    }
    return n;
}

bool slots_assign(ptx_arena *arena, ptx_function *f, const cfg *graph, interrupt_poller *poller) {
    static const uint32_t bytes[N_SIZES] = {512, 256, 128, 64};
    pool pools[N_SIZES] = {0};
    uint32_t base[N_SIZES], frame = 0, n_sorted = 0, *sorted;
    uint64_t steps = 0;
    liveness live;
    if (!liveness_find(arena, f, graph, poller, &live)) return false;
    if (live.bounded && (n_sorted = sort_registers(arena, f, &live, &sorted)) == NONE) return false;
    for (uint32_t s = 0; s < N_SIZES; s++) {
        pools[s].taken = arena_alloc(arena, f->n_registers, sizeof *pools[s].taken);
        if (!pools[s].taken) return false;
    }
    for (uint32_t i = 0; i < n_sorted; i++) {
        ptx_register *r = &f->registers[sorted[i]];
        pool *p = &pools[size_index(r->type)];
        const uint64_t before = steps;
        uint32_t own = live.of[sorted[i]];
        r->slot = choose_slot(p, live.segments, own, &steps);
        p->taken[r->slot] = merge(live.segments, p->taken[r->slot], own, &steps);
        if (interrupt_due(poller, (uint32_t)(steps - before))) return false;
    }
    if (!live.bounded)
        for (uint32_t r = 0; r < f->n_registers; r++)
            f->registers[r].slot = pools[size_index(f->registers[r].type)].n_slots++;

    for (uint32_t s = 0; s < N_SIZES; s++) {
        base[s] = frame;
        frame += pools[s].n_slots * bytes[s];
    }
    for (uint32_t r = 0; r < f->n_registers; r++) {
        uint32_t s = size_index(f->registers[r].type);
        f->registers[r].slot = base[s] + f->registers[r].slot * bytes[s];
    }
    f->frame_bytes = (frame + FRAME_UNIT - 1) / FRAME_UNIT * FRAME_UNIT;
    return true;
}
