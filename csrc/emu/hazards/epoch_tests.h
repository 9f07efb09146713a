/* Tests of epochs for the fast paths, in two forms: with branches, for one epoch at a time, and as
 * masks without branches, for loops that the compiler vectorises. */
#ifndef EMU_HAZARDS_EPOCH_TESTS_H
#define EMU_HAZARDS_EPOCH_TESTS_H

#include "row.h"

#define LANE_STEP    ((epoch)1 << EPOCH_THREAD_SHIFT)
#define THREAD_BITS  ((epoch)EPOCH_THREAD_MASK << EPOCH_THREAD_SHIFT)
#define KIND_BITS    ((epoch)3)
#define EPOCH_INLINE static inline __attribute__((always_inline))

/* All ones if true, else 0. */
EPOCH_INLINE epoch mask_if(bool condition) {
    return 0 - (epoch)condition;
}

/* Ordered before every thread of the block. */
EPOCH_INLINE epoch ordered_for_all_mask(epoch e, const fast_path_limits *limits) {
    return mask_if(e - limits->begin < limits->ordered) | (mask_if(e == 0) & limits->zero);
}

/* Ordered before the access `now`. */
EPOCH_INLINE epoch fast_path_mask(epoch e, epoch now, const fast_path_limits *limits) {
    const epoch same = mask_if(((e ^ now) & (THREAD_BITS | KIND_BITS)) == 0);
    return ordered_for_all_mask(e, limits) | (same & mask_if(e - limits->begin < limits->own));
}

/* Such a write may be overwritten by any value, without a note of it. */
EPOCH_INLINE epoch settled_mask(epoch e, const fast_path_limits *limits) {
    return mask_if(e - limits->begin < limits->settled) | mask_if(e == 0);
}

/* Whether a write over epoch e needs no note that it changes the value: there is one. */
EPOCH_INLINE bool is_change_known(shadow_rows rows, uint64_t word, const fast_path_limits *limits) {
    const epoch e = rows.write[word], floor = limits->begin + limits->ordered;
    return settled_mask(e, limits) ||
           (rows.changed && rows.changed[word] >= (e < floor ? limits->begin : floor));
}

static inline bool is_ordered_for_all(epoch e, const fast_path_limits *limits) {
    return e - limits->begin < limits->ordered || (!e && limits->zero);
}

static inline bool passes_fast_path(epoch e, epoch now, const fast_path_limits *limits) {
    return is_ordered_for_all(e, limits) ||
           (!((e ^ now) & (THREAD_BITS | KIND_BITS)) && e - limits->begin < limits->own);
}

#endif
