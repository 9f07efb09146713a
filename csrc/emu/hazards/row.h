/* Marks of a whole request at once: a row of neighbouring granules, or those of scattered lanes.
 *
 * Each function either sees that nothing about the request is unusual, notes the accesses and returns true,
 * or returns false, having noted nothing that looking lane by lane would not note as well: which the
 * caller then does. Compiled once per instruction set of the host (isa.h).
 */
#ifndef EMU_HAZARDS_ROW_H
#define EMU_HAZARDS_ROW_H

#include "happens_before.h"

/* Which epochs are no reason to look closer: those in [begin, begin + ordered), which are ordered before
 * the access; the same thread's own up to begin + own; and, where untouched is ~0 and not 0, none. */
typedef struct row_limits {
    epoch begin, ordered, own, untouched;
} row_limits;

typedef struct epoch_rows {
    epoch *write;
    epoch *read;  /* one reader since ...; NULL, as the rest: nobody has read anything */
    epoch *other; /* ... and the last that was another thread */
    /* The interval in which the granule got two readers, its write being ordered before all threads
     * (read_shared_at): until then, or until it is written, there is nothing to note of a further reader.
     * Looked at by words only. */
    uint32_t *read_shared;
} epoch_rows;

/* What `read_shared` is in an interval. Two strong readers say it for strong readers, two weak ones for all. */
static inline uint32_t read_shared_at(epoch floor, bool by_strong) {
    return 2 * epoch_time(floor) + !by_strong;
}
static inline bool is_read_shared(uint32_t read_shared, epoch floor, bool for_strong) {
    return (read_shared | for_strong) == read_shared_at(floor, false);
}

/* The words of some lanes: `width` bytes at base + address[] each, of the active lanes. */
typedef struct lane_words {
    const uint64_t *address;
    uint64_t base, bytes; /* of the region */
    uint32_t active, width;
} lane_words;

typedef struct row_functions {
    /* n words, of which lane l has those from l << shift on; mine is lane 0's epoch. */
    bool (*read)(epoch_rows m, uint32_t n, uint32_t shift, epoch mine, const row_limits *writes,
                 const row_limits *reads);
    bool (*write)(epoch_rows m, uint32_t n, uint32_t shift, epoch mine, const row_limits *limits);
    bool (*read_shared)(const uint32_t *read_shared, uint32_t n, epoch floor, bool for_strong);
} row_functions;

typedef struct lane_functions {
    bool (*read)(epoch_rows m, const lane_words *words, epoch mine, const row_limits *writes,
                 const row_limits *reads);
    bool (*write)(epoch_rows m, const lane_words *words, epoch mine, const row_limits *limits);
    bool (*read_shared)(const uint32_t *read_shared, const lane_words *words, epoch floor,
                        bool for_strong);
    /* Of active neighbours that have one address, two: they say of a place what all say. */
    uint32_t (*two_of_each)(const uint64_t *address, uint32_t active);
    bool (*in_one_region)(const uint64_t *address, uint32_t active);
    /* value[] from the elements of a store; `bytes` of an element in memory. */
    void (*note_values)(unsigned char *value, const lane_words *words, const unsigned char *frame,
                        const uint32_t *slots, uint32_t slot_bytes, uint32_t elements,
                        uint32_t bytes);
} lane_functions;

extern const row_functions row_functions_baseline, row_functions_v3, row_functions_v4;
extern const lane_functions lane_functions_baseline, lane_functions_v3, lane_functions_v4;

const row_functions *row_functions_for_cpu(void);
const lane_functions *lane_functions_for_cpu(void);

#endif
