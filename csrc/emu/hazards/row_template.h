/* Marks of a row of words at once; see hazards_row.h. */
#include "epoch_tests.h"
#include "../base/cpu.h"

/* The readers of words whose writes are usual. False, and nothing is noted, if strong and weak readers
 * meet. */
EPOCH_INLINE bool note_readers(epoch_rows m, uint32_t n, uint32_t shift, epoch mine,
                               const row_limits *writes, const row_limits *reads) {
    const row_limits w = *writes, r = *reads;
    epoch meet = 0;
    for (uint32_t k = 0; k < n; k++) {
        const epoch first = m.read[k], other = m.other[k];
        const epoch own = mine + (k >> shift) * LANE_STEP;
        meet |= ~ordered_for_all(first, &r) & (first ^ own);
        meet |= ~ordered_for_all(other, &r) & (other ^ own);
    }
    if (meet & KIND_BITS) return false;
    const uint32_t read_shared = read_shared_at(w.begin + w.ordered, (mine & KIND_BITS) != WEAK);
    for (uint32_t k = 0; k < n; k++) {
        const epoch own = mine + (k >> shift) * LANE_STEP, first = m.read[k], other = m.other[k];
        const epoch replace = usual(first, own, &r);
        const epoch two = ~replace & mask_if(((first ^ own) & THREAD_BITS) != 0) &
                          ordered_for_all(m.write[k], &w);
        m.read[k] = (own & replace) | (first & ~replace);
        m.other[k] = (other & replace) | (own & ~replace);
        m.read_shared[k] = (read_shared & (uint32_t)two) | (m.read_shared[k] & ~(uint32_t)two);
    }
    return true;
}

EPOCH_INLINE bool read_row(epoch_rows m, uint32_t n, uint32_t shift, epoch mine,
                           const row_limits *writes, const row_limits *reads) {
    const row_limits w = *writes;
    epoch good = ~(epoch)0;
    for (uint32_t k = 0; k < n; k++)
        good &= usual(m.write[k], mine + (k >> shift) * LANE_STEP, &w);
    return good && note_readers(m, n, shift, mine, writes, reads);
}

EPOCH_INLINE bool write_row(epoch_rows m, uint32_t n, uint32_t shift, epoch mine,
                            const row_limits *limits) {
    const row_limits r = *limits;
    epoch good = ~(epoch)0;
    for (uint32_t k = 0; k < n; k++) {
        const epoch own = mine + (k >> shift) * LANE_STEP;
        good &= usual(m.write[k], own, &r);
    }
    for (uint32_t k = 0; m.read && k < n; k++) {
        const epoch own = mine + (k >> shift) * LANE_STEP;
        good &= usual(m.read[k], own, &r) & usual(m.other[k], own, &r);
    }
    if (!good) return false;
    for (uint32_t k = 0; k < n; k++)
        m.write[k] = mine + (k >> shift) * LANE_STEP;
    return true;
}

static bool row_read_shared(const uint32_t *read_shared, uint32_t n, epoch floor, bool for_strong) {
    const uint32_t want = read_shared_at(floor, false), either = for_strong;
    uint32_t different = 0;
    for (uint32_t k = 0; k < n; k++)
        different |= (read_shared[k] | either) ^ want;
    return !different;
}

/* The shift is known where the loops are compiled: 4 bytes a lane, 8, 16. */
static bool read_any(epoch_rows m, uint32_t n, uint32_t shift, epoch mine, const row_limits *writes,
                     const row_limits *reads) {
    switch (shift) {
    case 0: return read_row(m, LANES, 0, mine, writes, reads);
    case 2: return read_row(m, n, 2, mine, writes, reads);
    default: return read_row(m, n, shift, mine, writes, reads);
    }
}

static bool write_any(epoch_rows m, uint32_t n, uint32_t shift, epoch mine,
                      const row_limits *limits) {
    switch (shift) {
    case 0: return write_row(m, LANES, 0, mine, limits);
    case 2: return write_row(m, n, 2, mine, limits);
    default: return write_row(m, n, shift, mine, limits);
    }
}

const row_functions FOR_CPU(row_functions) = {read_any, write_any, row_read_shared};
