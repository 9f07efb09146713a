/* What is asked of an epoch: with branches, for one after the other, and without, for loops that become
 * vectors. */
#ifndef EMU_HAZARDS_MARKS_H
#define EMU_HAZARDS_MARKS_H

#include "row.h"

#define LANE_STEP    ((epoch)1 << EPOCH_THREAD_AT)
#define THREAD_BITS  ((epoch)EPOCH_THREADS << EPOCH_THREAD_AT)
#define KIND_BITS    ((epoch)3)
#define EPOCH_INLINE static inline __attribute__((always_inline))

/* All ones if it holds, else 0. */
EPOCH_INLINE epoch mask_if(bool holds) {
    return 0 - (epoch)holds;
}

/* Ordered before every thread of the block. */
EPOCH_INLINE epoch ordered_for_all(epoch m, const row_limits *limits) {
    return mask_if(m - limits->begin < limits->ordered) | (mask_if(m == 0) & limits->untouched);
}

/* No reason to look closer. */
EPOCH_INLINE epoch usual(epoch m, epoch own, const row_limits *limits) {
    const epoch same = mask_if(((m ^ own) & (THREAD_BITS | KIND_BITS)) == 0);
    return ordered_for_all(m, limits) | (same & mask_if(m - limits->begin < limits->own));
}

static inline bool is_ordered_for_all(epoch m, const row_limits *limits) {
    return m - limits->begin < limits->ordered || (!m && limits->untouched);
}

static inline bool is_usual(epoch m, epoch own, const row_limits *limits) {
    return is_ordered_for_all(m, limits) ||
           (!((m ^ own) & (THREAD_BITS | KIND_BITS)) && m - limits->begin < limits->own);
}

#endif
