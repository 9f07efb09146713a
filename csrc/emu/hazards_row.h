/* Marks of a row of neighbouring granules, for all lanes at once: the accesses of most kernels.
 *
 * Each function either sees that nothing about the row is unusual, notes the accesses and returns true,
 * or changes nothing and returns false: the caller then looks lane by lane. Compiled once per
 * instruction set of the host (isa.h).
 */
#ifndef EMU_HAZARDS_ROW_H
#define EMU_HAZARDS_ROW_H

#include "hazards_order.h"

/* Which marks are no reason to look closer: those in [begin, begin + ordered), which are ordered before
 * the access; the same thread's own up to begin + own; and, where untouched is ~0 and not 0, none. */
typedef struct row_limits {
    mark begin, ordered, own, untouched;
} row_limits;

typedef struct row_marks {
    mark *write;
    mark *read;  /* one reader since ... */
    mark *other; /* ... and the last that was another thread */
    /* The floor of the interval in which the granule got two readers, its write being ordered before all
     * threads: until then, or until it is written, there is nothing to note of a further reader. */
    uint32_t *settled;
} row_marks;

typedef struct row_functions {
    /* n granules, of which lane l has those from l << shift on; mine is lane 0's mark. */
    bool (*read)(row_marks m, uint32_t n, uint32_t shift, mark mine, const row_limits *writes,
                 const row_limits *reads);
    bool (*write)(row_marks m, uint32_t n, uint32_t shift, mark mine, const row_limits *limits);
    /* Whether n granules are settled; whether the granules of `width` bytes at base + offset[] are, of the
     * active lanes (others have 0 there), all within `bytes`. */
    bool (*row_settled)(const uint32_t *settled, uint32_t n, uint32_t floor);
    bool (*lanes_settled)(const uint32_t *settled, uint64_t bytes, const uint64_t *address,
                          uint64_t base, uint32_t active, uint32_t width, uint32_t floor);
    /* Of active neighbours that have one address, two: they say of a place what all say. */
    uint32_t (*two_of_each)(const uint64_t *address, uint32_t active);
} row_functions;

const row_functions *row_functions_for_cpu(void);

#endif
