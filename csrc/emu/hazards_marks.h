/* What is asked of a mark: with branches, for one after the other, and without, for loops that become
 * vectors. */
#ifndef EMU_HAZARDS_MARKS_H
#define EMU_HAZARDS_MARKS_H

#include "hazards_row.h"

#define LANE_STEP     ((mark)1 << MARK_THREAD_AT)
#define THREAD_BITS   ((mark)MARK_THREADS << MARK_THREAD_AT)
#define STRENGTH_BITS ((mark)3)
#define MARK_INLINE   static inline __attribute__((always_inline))

/* All ones if it holds, else 0. */
MARK_INLINE mark mask_if(bool holds) {
    return 0 - (mark)holds;
}

/* Ordered before every thread of the block. */
MARK_INLINE mark ordered_for_all(mark m, const row_limits *limits) {
    return mask_if(m - limits->begin < limits->ordered) | (mask_if(m == 0) & limits->untouched);
}

/* No reason to look closer. */
MARK_INLINE mark usual(mark m, mark own, const row_limits *limits) {
    const mark same = mask_if(((m ^ own) & (THREAD_BITS | STRENGTH_BITS)) == 0);
    return ordered_for_all(m, limits) | (same & mask_if(m - limits->begin < limits->own));
}

static inline bool is_ordered_for_all(mark m, const row_limits *limits) {
    return m - limits->begin < limits->ordered || (!m && limits->untouched);
}

static inline bool is_usual(mark m, mark own, const row_limits *limits) {
    return is_ordered_for_all(m, limits) ||
           (!((m ^ own) & (THREAD_BITS | STRENGTH_BITS)) && m - limits->begin < limits->own);
}

#endif
