/* Marks of a row of granules at once; see hazards_row.h. */
#include "hazards_row.h"

#include "isa.h"
#include "lanes.h"

#define LANE_STEP   ((mark)1 << MARK_THREAD_AT)
#define THREAD_BITS ((mark)MARK_THREADS << MARK_THREAD_AT)
#define OWN_BITS    (THREAD_BITS | 3)
#define ROW_INLINE  static inline __attribute__((always_inline))

/* All ones if the mark is no reason to look closer, else 0. */
ROW_INLINE mark usual(mark m, mark mine, const row_limits *limits) {
    const mark since = m - limits->begin;
    const mark ordered = 0 - (mark)(since < limits->ordered);
    const mark own = 0 - (mark)(((m ^ mine) & OWN_BITS) == 0 && since < limits->own);
    return ordered | own | ((0 - (mark)(m == 0)) & limits->untouched);
}

ROW_INLINE bool read_row(row_marks m, uint32_t n, uint32_t shift, mark mine,
                         const row_limits *writes, const row_limits *reads) {
    const row_limits w = *writes, r = *reads;
    mark good = ~(mark)0;
    for (uint32_t k = 0; k < n; k++)
        good &= usual(m.write[k], mine + (k >> shift) * LANE_STEP, &w);
    if (!good) return false;
    mark *restrict first = m.read, *restrict other = m.other;
    mark two = ~(mark)0;
    for (uint32_t k = 0; k < n; k++) {
        const mark own = mine + (k >> shift) * LANE_STEP, old = first[k];
        const mark replace = usual(old, own, &r);
        first[k] = (own & replace) | (old & ~replace);
        other[k] = (other[k] & replace) | (own & ~replace);
        two &= ~replace & (0 - (mark)(((old ^ own) & THREAD_BITS) != 0));
    }
    if (!two) return true;
    /* All have another reader now. They are settled if the writes are ordered before everybody. */
    mark ordered = ~(mark)0;
    for (uint32_t k = 0; k < n; k++)
        ordered &= (0 - (mark)(m.write[k] - w.begin < w.ordered)) |
                   (0 - (mark)(m.write[k] == 0 && w.untouched));
    for (uint32_t k = 0; ordered && k < n; k++)
        m.settled[k] = (uint32_t)((w.begin + w.ordered) >> MARK_TIME_AT);
    return true;
}

ROW_INLINE bool write_row(row_marks m, uint32_t n, uint32_t shift, mark mine,
                          const row_limits *limits) {
    const row_limits r = *limits;
    mark good = ~(mark)0;
    for (uint32_t k = 0; k < n; k++) {
        const mark own = mine + (k >> shift) * LANE_STEP;
        good &= usual(m.write[k], own, &r) & usual(m.read[k], own, &r) & usual(m.other[k], own, &r);
    }
    if (!good) return false;
    for (uint32_t k = 0; k < n; k++)
        m.write[k] = mine + (k >> shift) * LANE_STEP;
    return true;
}

static bool row_settled(const uint32_t *settled, uint32_t n, uint32_t floor) {
    uint32_t different = 0;
    for (uint32_t k = 0; k < n; k++)
        different |= settled[k] ^ floor;
    return !different;
}

static bool lanes_settled(const uint32_t *settled, uint64_t bytes, const uint64_t *address,
                          uint64_t base, uint32_t active, uint32_t width, uint32_t floor) {
    uint64_t offset[LANES], highest = 0, bits = 0;
    uint32_t different = 0;
    const uint32_t few = 8;
    if ((uint32_t)__builtin_popcount(active) <= few) {
        for (; active; active &= active - 1) {
            const uint64_t o = address[__builtin_ctz(active)] - base;
            if (o & 3 || width > bytes || o > bytes - width) return false;
            if (!row_settled(settled + (o >> 2), width / 4, floor)) return false;
        }
        return true;
    }
    const uint64_t any = address[__builtin_ctz(active)] - base;
    for (int l = 0; l < LANES; l++) {
        offset[l] = active >> l & 1 ? address[l] - base : any;
        highest = offset[l] > highest ? offset[l] : highest;
        bits |= offset[l];
    }
    if (bits & 3 || width > bytes || highest > bytes - width) return false;
    for (uint32_t part = 0; part < width / 4; part++)
        for (int l = 0; l < LANES; l++)
            different |= settled[(offset[l] >> 2) + part] ^ floor;
    return !different;
}

static uint32_t two_of_each(const uint64_t *address, uint32_t active) {
    lanes_u32 equal = {0};
    for (int l = 1; l < LANES; l++)
        equal[l] = 0u - (uint32_t)(address[l] == address[l - 1]);
    const uint32_t same = lanes_bits(equal) & active & active << 1; /* as the lane before */
    return active & ~(same & same << 1);
}

/* The shift is known where the loops are compiled: 4 bytes a lane, 8, 16. */
static bool read_any(row_marks m, uint32_t n, uint32_t shift, mark mine, const row_limits *writes,
                     const row_limits *reads) {
    switch (shift) {
    case 0: return read_row(m, LANES, 0, mine, writes, reads);
    case 2: return read_row(m, n, 2, mine, writes, reads);
    default: return read_row(m, n, shift, mine, writes, reads);
    }
}

static bool write_any(row_marks m, uint32_t n, uint32_t shift, mark mine,
                      const row_limits *limits) {
    switch (shift) {
    case 0: return write_row(m, LANES, 0, mine, limits);
    case 2: return write_row(m, n, 2, mine, limits);
    default: return write_row(m, n, shift, mine, limits);
    }
}

const row_functions ISA(hazards_row) = {read_any, write_any, row_settled, lanes_settled,
                                        two_of_each};
