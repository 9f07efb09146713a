/* Slots: registers whose lives do not overlap share a place in the frame.
 *
 * Compilers write PTX in (nearly) single assignment: an unrolled kernel names thousands of registers,
 * of which a few hundred are alive at once. A warp's registers are 32 lanes wide, so with a place for
 * each of them the frame would not stay in cache.
 *
 * Is it right on a machine of lanes that diverge? A slot is 32 separate words. A write touches the
 * words of active lanes only, and each lane follows a path of its own through the graph of one
 * thread, on which its two registers are never both alive; that other lanes are elsewhere does not
 * matter to it. Instructions that read other lanes' registers (shfl, vote, match, mma) read those of
 * lanes that execute the same instruction, where the register is alive. wgmma and tcgen05 read
 * registers later than they are issued, on the machine; the emulator reads them at once.
 *
 * A register that is written never shares the slot of one that the same instruction reads, so that
 * an instruction may write one result, or one lane, before it has read everything for the next.
 *
 * Ranges are single intervals of the text, and handing them out in order of their first instruction
 * needs no more slots than ever overlap. Each size has slots of its own; the large come first, so that
 * every slot is aligned to its size (b128's to half of it).
 */
#include "slots.h"

#include "liveness.h"

enum { NONE = 0xffffffff, N_SIZES = 4, FRAME_UNIT = 256 };

typedef struct pool {
    uint32_t n_slots;
    uint32_t *free; /* a stack: the slot that was used last is still in cache */
    uint32_t n_free;
} pool;

static uint32_t size_index(ptx_type type) {
    switch (ptx_slot_bytes(type)) {
    case 512: return 0;
    case 256: return 1;
    case 128: return 2;
    default: return 3;
    }
}

/* One walk along the text: ranges that ended before an instruction give their slots back, then those
 * that begin at it take one. slot becomes the number within the registers of its size. */
static bool share(ptx_arena *arena, ptx_function *f, const live_range *ranges, pool *pools) {
    uint32_t n = f->n_registers;
    uint32_t *begins = arena_alloc(arena, f->n_instructions, sizeof *begins); /* heads of lists */
    uint32_t *ends = arena_alloc(arena, f->n_instructions, sizeof *ends);
    uint32_t *next_begin = arena_alloc(arena, n, sizeof *next_begin);
    uint32_t *next_end = arena_alloc(arena, n, sizeof *next_end);
    if (!begins || !ends || !next_begin || !next_end) return false;
    for (uint32_t i = 0; i < f->n_instructions; i++) begins[i] = ends[i] = NONE;
    for (uint32_t r = n; r-- > 0;) {
        if (ranges[r].first > ranges[r].last) continue;
        next_begin[r] = begins[ranges[r].first];
        begins[ranges[r].first] = r;
        next_end[r] = ends[ranges[r].last];
        ends[ranges[r].last] = r;
    }
    for (uint32_t i = 0; i < f->n_instructions; i++) {
        for (uint32_t r = i ? ends[i - 1] : NONE; r != NONE; r = next_end[r]) {
            pool *p = &pools[size_index(f->registers[r].type)];
            p->free[p->n_free++] = f->registers[r].slot;
        }
        for (uint32_t r = begins[i]; r != NONE; r = next_begin[r]) {
            pool *p = &pools[size_index(f->registers[r].type)];
            f->registers[r].slot = p->n_free ? p->free[--p->n_free] : p->n_slots++;
        }
    }
    return true;
}

bool slots_assign(ptx_arena *arena, ptx_function *f, const cfg *graph) {
    static const uint32_t bytes[N_SIZES] = {512, 256, 128, 64};
    pool pools[N_SIZES] = {0};
    uint32_t base[N_SIZES], frame = 0;
    live_range *ranges;
    bool bounded;
    if (!live_ranges(arena, f, graph, &ranges, &bounded)) return false;
    for (uint32_t s = 0; s < N_SIZES; s++) {
        pools[s].free = arena_alloc(arena, f->n_registers, sizeof *pools[s].free);
        if (!pools[s].free) return false;
    }
    if (bounded) {
        if (!share(arena, f, ranges, pools)) return false;
    } else {
        for (uint32_t r = 0; r < f->n_registers; r++)
            f->registers[r].slot = pools[size_index(f->registers[r].type)].n_slots++;
    }
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
