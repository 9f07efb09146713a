/* The fast path: checks and records a whole request at once, as a row of consecutive words or as
 * the words of scattered lanes.
 *
 * `read` and `write` return true if every epoch that they find passes the limits below; the
 * accesses are then recorded. If they return false, the caller must take the slow path. They may
 * have recorded some accesses by then, which the slow path would record as well.
 *
 * Compiled once per instruction set of the host (base/cpu.h).
 */
#ifndef EMU_HAZARDS_ROW_H
#define EMU_HAZARDS_ROW_H

#include "happens_before.h"

/* Which shadow epochs pass the fast path. */
typedef struct fast_path_limits {
    epoch begin;
    epoch ordered; /* those in [begin, begin + ordered) are ordered before all threads */
    epoch own;     /* the same thread's with the same access kind: [begin, begin + own) */
    epoch zero;    /* ~0: an epoch of 0 (no access) passes, too */
    epoch settled; /* writes in [begin, begin + settled) race with no later access */
} fast_path_limits;

/* Epochs by granule. FastTrack has a read epoch, or a read vector clock if the granule is
 * read-shared; here two read epochs stand for either (granule.c says why two suffice). */
typedef struct shadow_rows {
    epoch *write;
    epoch *read;       /* one reader; NULL, as the next two: no reads so far */
    epoch *other_read; /* the last reader that is another thread */
    /* The interval between barriers in which the granule became read-shared: two threads have read
     * it, and its write is ordered before all threads. Until the interval ends or the granule is
     * written, further readers need not be recorded. Value: read_shared_at. For word granules
     * only. */
    uint32_t *read_shared;
    epoch *changed; /* the last write of another value; NULL: none so far (equal_writes.c) */
} shadow_rows;

/* The value of `read_shared` in the interval that began at `floor`. If both readers are weak, no
 * further reader needs to be recorded; if one is strong (by_strong), further weak readers still
 * do. */
static inline uint32_t read_shared_at(epoch floor, bool by_strong) {
    return 2 * epoch_time(floor) + !by_strong;
}
static inline bool is_read_shared(uint32_t read_shared, epoch floor, bool for_strong) {
    return (read_shared | for_strong) == read_shared_at(floor, false);
}

/* The words of the active lanes: `width` bytes each, from address[lane] on. */
typedef struct lane_words {
    const uint64_t *address;
    uint64_t base, bytes; /* of the region */
    uint32_t active, width;
} lane_words;

/* lane0_epoch is the access by lane 0; write_limits apply to write epochs, read_limits to read
 * epochs, limits to both. */
typedef struct row_functions {
    /* n words, of which lane l accesses 1 << shift, from word l << shift on. */
    bool (*read)(shadow_rows rows, uint32_t n, uint32_t shift, epoch lane0_epoch,
                 const fast_path_limits *write_limits, const fast_path_limits *read_limits);
    bool (*write)(shadow_rows rows, uint32_t n, uint32_t shift, epoch lane0_epoch,
                  const fast_path_limits *limits);
    /* Whether all words are read-shared. */
    bool (*read_shared)(const uint32_t *read_shared, uint32_t n, epoch floor, bool for_strong);
} row_functions;

typedef struct lane_functions {
    bool (*read)(const shadow_rows *rows, const lane_words *words, epoch lane0_epoch,
                 const fast_path_limits *write_limits, const fast_path_limits *read_limits);
    bool (*write)(const shadow_rows *rows, const lane_words *words, epoch lane0_epoch,
                  const fast_path_limits *limits);
    /* Whether all words of all lanes are read-shared. */
    bool (*read_shared)(const uint32_t *read_shared, const lane_words *words, epoch floor,
                        bool for_strong);
    /* Keeps two lanes of each run of neighbouring lanes with one address: two readers suffice. */
    uint32_t (*two_per_address)(const uint64_t *address, uint32_t active);
    bool (*in_one_region)(const uint64_t *address, uint32_t active);
    /* Copies a store's elements into value[]; `bytes`: of an element in memory. */
    void (*store_values)(unsigned char *value, const lane_words *words, const unsigned char *frame,
                         const uint32_t *slots, uint32_t slot_bytes, uint32_t elements,
                         uint32_t bytes);
} lane_functions;

extern const row_functions row_functions_baseline, row_functions_v3, row_functions_v4;
extern const lane_functions lane_functions_baseline, lane_functions_v3, lane_functions_v4;

const row_functions *row_functions_for_cpu(void);
const lane_functions *lane_functions_for_cpu(void);

#endif
