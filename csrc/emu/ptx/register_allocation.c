/* Register allocation: registers whose live ranges do not overlap share a slot of the frame.
 *
 * Compilers emit PTX in (nearly) static single assignment form. An unrolled kernel names thousands
 * of registers, of which a few hundred are live at once. A slot holds 32 lanes, so with one slot
 * per register the frame would not fit the host's cache.
 *
 * Why this is safe when lanes diverge: a slot is 32 separate words, and a write changes only the
 * words of active lanes. Each lane follows its own path through the control-flow graph, and on no
 * path are two registers of a slot live together. Where other lanes are does not matter.
 * Instructions that read other lanes' registers (shfl, vote, match, mma) read those of lanes that
 * execute the same instruction, where the register is live. On hardware wgmma and tcgen05 read
 * registers after issue; the emulator reads them at issue.
 *
 * The result of an instruction may reuse the slot of a source that is dead afterwards only if the
 * instruction is lane-wise. Other instructions may write one result, or one lane, before they have
 * read all sources of the next.
 *
 * Registers are allocated in order of their first occurrence, best fit: among the slots that are
 * free throughout the register's live range, each takes the one whose next use is nearest. So short
 * live ranges fill short holes in longer ones. Each size has its own slots. Larger sizes come first
 * in the frame, so every slot is aligned to its size (b128: to half of it).
 */
#include "register_allocation.h"

#include "liveness.h"

enum { NONE = 0xffffffff, N_SIZES = 4, FRAME_UNIT = 256 };

/* Beyond this every register gets a new slot: an adversarial text then costs memory, not time. */
static const uint64_t max_steps = 1 << 25;

/* The slots of one size. */
typedef struct pool {
    /* Per slot: the segments of its registers as a sorted list, without those in the past. */
    uint32_t *occupied;
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

/* Whether two sorted lists of segments do not overlap. */
static bool disjoint(const live_segment *segments, uint32_t a, uint32_t b, uint64_t *steps) {
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

/* Merges two sorted lists of segments. */
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

/* The slot for a register whose first segment is `own`. */
static uint32_t choose_slot(pool *p, live_segment *segments, uint32_t own, uint64_t *steps) {
    uint32_t best = NONE, best_next = 0, now = segments[own].first;
    for (uint32_t slot = 0; slot < p->n_slots && *steps < max_steps; slot++) {
        uint32_t *occupied = &p->occupied[slot];
        ++*steps;
        while (*occupied != NO_SEGMENT && segments[*occupied].last < now)
            *occupied = segments[*occupied].next;
        uint32_t next = *occupied != NO_SEGMENT ? segments[*occupied].first : NONE;
        if (next <= now || (best != NONE && next >= best_next)) continue;
        if (!disjoint(segments, own, *occupied, steps)) continue;
        best = slot;
        best_next = next;
    }
    if (best != NONE) return best;
    p->occupied[p->n_slots] = NO_SEGMENT;
    return p->n_slots++;
}

/* Counting sort of registers by the start of their live range; registers that never occur are
 * omitted. Returns their number; NONE: out of memory. */
static uint32_t sort_registers(ptx_arena *arena, const ptx_function *f, const liveness *live,
                               uint32_t **out) {
    uint32_t n_times = 2 * f->n_instructions, n = 0;
    uint32_t *start = arena_alloc(arena, n_times + 1u, sizeof *start);
    *out = arena_alloc(arena, f->n_registers, sizeof **out);
    if (!start || !*out) return NONE;
    for (uint32_t r = 0; r < f->n_registers; r++)
        if (live->first[r] != NO_SEGMENT) start[live->segments[live->first[r]].first + 1]++;
    for (uint32_t i = 0; i < n_times; i++)
        start[i + 1] += start[i];
    for (uint32_t r = 0; r < f->n_registers; r++) {
        if (live->first[r] == NO_SEGMENT) continue;
        (*out)[start[live->segments[live->first[r]].first]++] = r;
        n++;
    }
    return n;
}

bool allocate_registers(ptx_arena *arena, ptx_function *f, const cfg *graph,
                        interrupt_poller *poller) {
    static const uint32_t bytes[N_SIZES] = {512, 256, 128, 64};
    pool pools[N_SIZES] = {0};
    uint32_t base[N_SIZES], frame = 0, n_sorted = 0, *sorted;
    uint64_t steps = 0;
    liveness live;
    if (!liveness_find(arena, f, graph, poller, &live)) return false;
    if (live.analysed && (n_sorted = sort_registers(arena, f, &live, &sorted)) == NONE)
        return false;
    for (uint32_t s = 0; s < N_SIZES; s++) {
        pools[s].occupied = arena_alloc(arena, f->n_registers, sizeof *pools[s].occupied);
        if (!pools[s].occupied) return false;
    }
    for (uint32_t i = 0; i < n_sorted; i++) {
        ptx_register *r = &f->registers[sorted[i]];
        pool *p = &pools[size_index(r->type)];
        const uint64_t before = steps;
        uint32_t own = live.first[sorted[i]];
        r->slot = choose_slot(p, live.segments, own, &steps);
        p->occupied[r->slot] = merge(live.segments, p->occupied[r->slot], own, &steps);
        if (interrupt_due(poller, (uint32_t)(steps - before))) return false;
    }
    if (!live.analysed)
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
