/* Marks of a row of words at once; see hazards_row.h. */
#include "hazards_marks.h"
#include "isa.h"

/* The readers of words whose writes are usual. False, and nothing is noted, if strong and weak readers
 * meet. */
MARK_INLINE bool note_readers(row_marks m, uint32_t n, uint32_t shift, mark mine,
                              const row_limits *writes, const row_limits *reads) {
    const row_limits w = *writes, r = *reads;
    mark meet = 0;
    for (uint32_t k = 0; k < n; k++) {
        const mark first = m.read[k], other = m.other[k];
        const mark own = mine + (k >> shift) * LANE_STEP;
        meet |= ~ordered_for_all(first, &r) & (first ^ own);
        meet |= ~ordered_for_all(other, &r) & (other ^ own);
    }
    if (meet & STRENGTH_BITS) return false;
    const uint32_t settled = settled_at(w.begin + w.ordered, (mine & STRENGTH_BITS) != WEAK);
    for (uint32_t k = 0; k < n; k++) {
        const mark own = mine + (k >> shift) * LANE_STEP, first = m.read[k], other = m.other[k];
        const mark replace = usual(first, own, &r);
        const mark two = ~replace & mask_if(((first ^ own) & THREAD_BITS) != 0) &
                         ordered_for_all(m.write[k], &w);
        m.read[k] = (own & replace) | (first & ~replace);
        m.other[k] = (other & replace) | (own & ~replace);
        m.settled[k] = (settled & (uint32_t)two) | (m.settled[k] & ~(uint32_t)two);
    }
    return true;
}

MARK_INLINE bool read_row(row_marks m, uint32_t n, uint32_t shift, mark mine,
                          const row_limits *writes, const row_limits *reads) {
    const row_limits w = *writes;
    mark good = ~(mark)0;
    for (uint32_t k = 0; k < n; k++)
        good &= usual(m.write[k], mine + (k >> shift) * LANE_STEP, &w);
    return good && note_readers(m, n, shift, mine, writes, reads);
}

MARK_INLINE bool write_row(row_marks m, uint32_t n, uint32_t shift, mark mine,
                           const row_limits *limits) {
    const row_limits r = *limits;
    mark good = ~(mark)0;
    for (uint32_t k = 0; k < n; k++) {
        const mark own = mine + (k >> shift) * LANE_STEP;
        good &= usual(m.write[k], own, &r);
    }
    for (uint32_t k = 0; m.read && k < n; k++) {
        const mark own = mine + (k >> shift) * LANE_STEP;
        good &= usual(m.read[k], own, &r) & usual(m.other[k], own, &r);
    }
    if (!good) return false;
    for (uint32_t k = 0; k < n; k++)
        m.write[k] = mine + (k >> shift) * LANE_STEP;
    return true;
}

static bool row_settled(const uint32_t *settled, uint32_t n, mark floor, bool for_strong) {
    const uint32_t want = settled_at(floor, false), either = for_strong;
    uint32_t different = 0;
    for (uint32_t k = 0; k < n; k++)
        different |= (settled[k] | either) ^ want;
    return !different;
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

const row_functions ISA(hazards_row) = {read_any, write_any, row_settled};
