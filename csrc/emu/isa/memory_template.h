/* Frequent forms of ld and st, for all lanes at once.
 *
 * Most requests of real kernels follow one of two patterns: lane l accesses the l-th of 32
 * neighbouring elements, or all lanes access one address. Both are bounds-checked once and moved as
 * vectors. Other requests move lane by lane, after one check of the highest offset. What does not
 * fit (two regions in one request, local memory, a fault) is passed to memory_any.c, which also
 * reports faults.
 *
 * Compiled once per instruction set of the host (base/cpu.h).
 */
#include "memory.h"

#include <string.h>

#include "../machine/machine.h"
#include "../base/cpu.h"
#include "../base/lanes.h"
#include "../observe/observer.h"

#define INLINE static inline __attribute__((always_inline))

/* ---- elements of a width known at compile time ---- */

/* The kernel decides which types memory holds, hence may_alias. */
typedef uint16_t any_u16 __attribute__((may_alias));
typedef uint32_t any_u32 __attribute__((may_alias));
typedef uint64_t any_u64 __attribute__((may_alias));

INLINE uint64_t load_element(const unsigned char *from, uint32_t width) {
    if (width == 1) return *from;
    if (width == 2) return *(const any_u16 *)from;
    if (width == 4) return *(const any_u32 *)from;
    return *(const any_u64 *)from;
}

INLINE void store_element(unsigned char *to, uint32_t width, uint64_t value) {
    if (width == 1)
        *to = (uint8_t)value;
    else if (width == 2)
        *(any_u16 *)to = (uint16_t)value;
    else if (width == 4)
        *(any_u32 *)to = (uint32_t)value;
    else
        *(any_u64 *)to = value;
}

/* ---- bounds checks ---- */

/* Host pointer to `span` bytes at address; NULL: use memory_any.c. `bytes` is per lane, a power of
 * two. */
INLINE unsigned char *host_span(const warp *w, const insn *i, bool shared, uint64_t address,
                                uint64_t span, uint32_t bytes, bool write) {
    const uint64_t id = shared ? REGION_SHARED : REGION_OF(address);
    if (!shared && id >= w->block->launch->n_regions) return NULL;
    const region *r = &w->block->regions[id];
    const uint64_t offset = (shared ? address : REGION_OFFSET(address)) - r->base;
    if (!shared && r->space != (ptx_space)i->space && (ptx_space)i->space != PTX_GENERIC)
        return NULL;
    if (r->size < span || offset > r->size - span || offset & (bytes - 1)) return NULL;
    if (write && !r->writable) return NULL;
    return r->host + offset;
}

/* Host pointer to the block's shared memory, and the active lanes' offsets in it (inactive lanes:
 * 0), by 32-bit addresses. NULL: use memory_any.c. */
INLINE unsigned char *host_shared_lanes(const warp *w, const insn *i, uint32_t bytes, bool write,
                                        uint32_t *offset) {
    const uint32_t base = (uint32_t)w->block->window - (uint32_t)i->imm;
    const uint32_t *address = U32(w, i->a);
    uint32_t highest = 0, bits = 0;
    for (int l = 0; l < LANES; l++) {
        const uint32_t o = (address[l] - base) & w->mask[l];
        offset[l] = o;
        highest = o > highest ? o : highest;
        bits |= o;
    }
    if (bits & (bytes - 1)) return NULL;
    return host_span(w, i, true, w->block->window, (uint64_t)highest + bytes, bytes, write);
}

/* Host pointer to the region that all active lanes access, and their offsets in it (inactive lanes:
 * 0). NULL: use memory_any.c. */
INLINE unsigned char *host_lanes(const warp *w, const insn *i, bool shared, bool wide,
                                 uint32_t bytes, bool write, uint64_t *offset) {
    uint64_t base = w->block->window, bits = 0;
    int64_t highest = 0; /* signed: of that hosts have vector comparisons */
    if (!shared) {
        const int lane = first_lane(w->active);
        const uint64_t first = lane_address(w, i, lane);
        const bool in_shared = REGION_OF(first) == REGION_SHARED;
        base = first & ~((in_shared ? WINDOW_BASE(1) : REGION_BASE(1)) - 1);
    }
    for (int l = 0; l < LANES; l++) {
        const uint64_t address = wide ? U64(w, i->a)[l] + (uint64_t)i->imm
                                      : (uint32_t)(U32(w, i->a)[l] + (uint32_t)i->imm);
        const uint64_t o = (address - base) & (uint64_t)(int64_t)(int32_t)w->mask[l];
        offset[l] = o;
        highest = (int64_t)o > highest ? (int64_t)o : highest;
        bits |= o;
    }
    if (bits & (bytes - 1) || bits >= REGION_BASE(1)) return NULL;
    return host_span(w, i, shared, base, (uint64_t)highest + bytes, bytes, write);
}

/* The distance between neighbouring lanes if it is 0 or `bytes` for all of them; else ~0. */
INLINE uint64_t uniform_stride(const warp *w, const insn *i, bool wide, uint32_t bytes) {
    if (w->active != FULL) return ~(uint64_t)0;
    if (wide) {
        const uint64_t *a = U64(w, i->a), step = a[1] - a[0];
        return (step == bytes || step == 0) && lanes_evenly_u64(a, step) ? step : ~(uint64_t)0;
    }
    const uint32_t *a = U32(w, i->a), step = a[1] - a[0];
    return (step == bytes || step == 0) && lanes_evenly_u32(a, step) ? step : ~(uint64_t)0;
}

INLINE uint64_t first_address(const warp *w, const insn *i, bool wide) {
    return wide ? U64(w, i->a)[0] + (uint64_t)i->imm
                : (uint32_t)(U32(w, i->a)[0] + (uint32_t)i->imm);
}

/* The lanes' offsets, of 32 or 64 bits, in what host_shared_lanes or host_lanes returns. */
typedef struct lane_offsets {
    bool is_narrow;
    lanes_u32 narrow;
    lanes_u64 wide;
} lane_offsets;

INLINE unsigned char *reach_lanes(const warp *w, const insn *i, bool shared, bool wide,
                                  uint32_t bytes, bool write, lane_offsets *out) {
    out->is_narrow = shared && !wide;
    return out->is_narrow ? host_shared_lanes(w, i, bytes, write, out->narrow)
                          : host_lanes(w, i, shared, wide, bytes, write, out->wide);
}

INLINE size_t offset_of_lane(const lane_offsets *o, uint32_t lane) {
    return o->is_narrow ? o->narrow[lane] : (size_t)o->wide[lane];
}

/* ---- load ---- */

INLINE const insn *load(warp *w, const insn *i, bool shared, bool wide, uint32_t width,
                        uint32_t slot, uint32_t count) {
    const uint32_t bytes = width * count;
    const uint64_t step = uniform_stride(w, i, wide, bytes);
    if (shared) w->polled |= i->flags & MEMORY_STRONG;
    if (step != ~(uint64_t)0) {
        const unsigned char *from = host_span(w, i, shared, first_address(w, i, wide),
                                              step ? LANES * bytes : bytes, bytes, false);
        if (!from) return load_any(w, i);
        for (uint32_t k = 0; k < count; k++) {
            unsigned char *d = w->frame + (count == 1 ? i->d : i->list[k]);
            if (step) {
                INDEPENDENT for (uint32_t l = 0; l < LANES; l++) {
                    store_element(d + l * slot, slot,
                                  load_element(from + l * bytes + k * width, width));
                }
            } else {
                const uint64_t value = load_element(from + k * width, width);
                INDEPENDENT for (uint32_t l = 0; l < LANES; l++) {
                    store_element(d + l * slot, slot, value);
                }
            }
        }
        return i + 1;
    }
    lane_offsets offset;
    const unsigned char *from = reach_lanes(w, i, shared, wide, bytes, false, &offset);
    if (!from) return load_any(w, i);
    for (uint32_t k = 0; k < count; k++) {
        unsigned char *d = w->frame + (count == 1 ? i->d : i->list[k]);
        if (w->active == FULL) {
#pragma GCC unroll 8
            for (uint32_t l = 0; l < LANES; l++)
                store_element(d + l * slot, slot,
                              load_element(from + offset_of_lane(&offset, l) + k * width, width));
            continue;
        }
        for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
            const uint32_t l = (uint32_t)first_lane(lanes);
            store_element(d + l * slot, slot,
                          load_element(from + offset_of_lane(&offset, l) + k * width, width));
        }
    }
    return i + 1;
}

/* ---- store ---- */

INLINE const insn *store(warp *w, const insn *i, bool shared, bool wide, uint32_t width,
                         uint32_t slot, uint32_t count) {
    const uint32_t bytes = width * count;
    const uint64_t step = uniform_stride(w, i, wide, bytes);
    if (step == bytes) {
        unsigned char *to =
            host_span(w, i, shared, first_address(w, i, wide), LANES * bytes, bytes, true);
        if (!to) return store_any(w, i);
        for (uint32_t k = 0; k < count; k++) {
            const unsigned char *s = w->frame + (count == 1 ? i->d : i->list[k]);
            INDEPENDENT for (uint32_t l = 0; l < LANES; l++) {
                store_element(to + l * bytes + k * width, width, load_element(s + l * slot, slot));
            }
        }
        return i + 1;
    }
    lane_offsets offset;
    unsigned char *to = reach_lanes(w, i, shared, wide, bytes, true, &offset);
    if (!to) return store_any(w, i);
    /* Lanes in ascending order: if addresses are equal, the highest lane's value remains. */
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const uint32_t l = (uint32_t)first_lane(lanes);
        for (uint32_t k = 0; k < count; k++) {
            const unsigned char *s = w->frame + (count == 1 ? i->d : i->list[k]);
            store_element(to + offset_of_lane(&offset, l) + k * width, width,
                          load_element(s + l * slot, slot));
        }
    }
    return i + 1;
}

/* ---- the table of forms ---- */

/* X(bytes in memory, bytes in the register, elements) */
#define FORMS(X) X(1, 2, 1) X(2, 2, 1) X(4, 4, 1) X(4, 4, 2) X(4, 4, 4) X(8, 8, 1) X(8, 8, 2)

#define HANDLERS(width, slot, count)                                                               \
    HANDLER_PAIR(width, slot, count, shared32, true, false)                                        \
    HANDLER_PAIR(width, slot, count, shared64, true, true)                                         \
    HANDLER_PAIR(width, slot, count, flat64, false, true)

#define HANDLER_PAIR(width, slot, count, where, shared, wide)                                      \
    static const insn *load_##where##_##width##x##count(warp *w, const insn *i) {                  \
        return load(w, i, shared, wide, width, slot, count);                                       \
    }                                                                                              \
    static const insn *store_##where##_##width##x##count(warp *w, const insn *i) {                 \
        return store(w, i, shared, wide, width, slot, count);                                      \
    }

FORMS(HANDLERS)

enum place { SHARED32, SHARED64, FLAT64, N_PLACES };

static const struct form {
    uint8_t width, slot, count;
    exec_fn load[N_PLACES], store[N_PLACES];
} forms[] = {
#define FORM(w, s, n)                                                                              \
    {w,                                                                                            \
     s,                                                                                            \
     n,                                                                                            \
     {load_shared32_##w##x##n, load_shared64_##w##x##n, load_flat64_##w##x##n},                    \
     {store_shared32_##w##x##n, store_shared64_##w##x##n, store_flat64_##w##x##n}},
    FORMS(FORM)
#undef FORM
};

static exec_fn fast_form(const insn *i) {
    const bool load = i->operation == EMU_LOAD, shared = i->space == PTX_SHARED;
    /* Only one host thread uses a block's shared memory: strong accesses need no atomics there. */
    if (i->flags & MEMORY_STRONG && !shared) return NULL;
    if (i->flags & MEMORY_SIGNED && i->width < i->c) return NULL;
    if (!shared && !i->wide) return NULL;
    const enum place place = !shared ? FLAT64 : i->wide ? SHARED64 : SHARED32;
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
        if (forms[k].width == i->width && forms[k].slot == i->c && forms[k].count == i->count)
            return load ? forms[k].load[place] : forms[k].store[place];
    return NULL;
}

static exec_fn select_ld(decoder *dc, const ptx_instruction *p, insn *out) {
    if (!memory_decode(dc, p, out, EMU_LOAD)) return NULL;
    const exec_fn fast = fast_form(out);
    out->unobserved = fast ? fast : load_any;
    return exec_observed;
}

static exec_fn select_st(decoder *dc, const ptx_instruction *p, insn *out) {
    if (!memory_decode(dc, p, out, EMU_STORE)) return NULL;
    const exec_fn fast = fast_form(out);
    out->unobserved = fast ? fast : store_any;
    return exec_observed;
}

opcode_table FOR_CPU(memory_opcodes) = {
    [PTX_OP_ld] = select_ld,
    [PTX_OP_ldu] = select_ld,
    [PTX_OP_st] = select_st,
};
