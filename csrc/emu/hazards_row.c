/* Marks of a row of granules at once; see hazards_row.h. */
#include "hazards_row.h"

#include "isa.h"

#define LANE_STEP ((mark)1 << MARK_THREAD_AT)
#define OWN_BITS  (((mark)MARK_THREADS << MARK_THREAD_AT) | 3)
#define ROW_INLINE static inline __attribute__((always_inline))

/* All ones if the mark is no reason to look closer, else 0. */
ROW_INLINE mark usual(mark m, mark mine, const row_limits *limits) {
    const mark since = m - limits->begin;
    const mark ordered = 0 - (mark)(since < limits->ordered);
    const mark own = 0 - (mark)(((m ^ mine) & OWN_BITS) == 0 && since < limits->own);
    return ordered | own | ((0 - (mark)(m == 0)) & limits->untouched);
}

ROW_INLINE bool read_row(row_marks m, uint32_t n, uint32_t shift, mark mine, const row_limits *writes,
                     const row_limits *reads) {
    const row_limits w = *writes, r = *reads;
    mark good = ~(mark)0;
    for (uint32_t k = 0; k < n; k++)
        good &= usual(m.write[k], mine + (k >> shift) * LANE_STEP, &w);
    if (!good) return false;
    mark *restrict first = m.read, *restrict other = m.other;
    for (uint32_t k = 0; k < n; k++) {
        const mark own = mine + (k >> shift) * LANE_STEP, old = first[k];
        const mark replace = usual(old, own, &r);
        first[k] = (own & replace) | (old & ~replace);
        other[k] = (other[k] & replace) | (own & ~replace);
    }
    return true;
}

ROW_INLINE bool write_row(row_marks m, uint32_t n, uint32_t shift, mark mine, const row_limits *limits) {
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

/* The shift is known where the loops are compiled: 4 bytes a lane, 8, 16. */
static bool read_any(row_marks m, uint32_t n, uint32_t shift, mark mine, const row_limits *writes,
                     const row_limits *reads) {
    switch (shift) {
    case 0: return read_row(m, LANES, 0, mine, writes, reads);
    case 2: return read_row(m, n, 2, mine, writes, reads);
    default: return read_row(m, n, shift, mine, writes, reads);
    }
}

static bool write_any(row_marks m, uint32_t n, uint32_t shift, mark mine, const row_limits *limits) {
    switch (shift) {
    case 0: return write_row(m, LANES, 0, mine, limits);
    case 2: return write_row(m, n, 2, mine, limits);
    default: return write_row(m, n, shift, mine, limits);
    }
}

const row_functions ISA(hazards_row) = {read_any, write_any};
