/* The fast path for a row of consecutive words; see row.h. */
#include "epoch_tests.h"
#include "../base/cpu.h"

/* Records the readers of words whose write epochs pass. False, with nothing recorded: readers of
 * different access kinds. */
EPOCH_INLINE bool record_readers(shadow_rows rows, uint32_t n, uint32_t shift, epoch lane0_epoch,
                                 const fast_path_limits *write_limits,
                                 const fast_path_limits *read_limits) {
    const fast_path_limits wl = *write_limits, rl = *read_limits;
    epoch kind_differs = 0;
    for (uint32_t k = 0; k < n; k++) {
        const epoch first = rows.read[k], other = rows.other_read[k];
        const epoch now = lane0_epoch + (k >> shift) * LANE_STEP;
        kind_differs |= ~ordered_for_all_mask(first, &rl) & (first ^ now);
        kind_differs |= ~ordered_for_all_mask(other, &rl) & (other ^ now);
    }
    if (kind_differs & KIND_BITS) return false;
    const uint32_t read_shared =
        read_shared_at(wl.begin + wl.ordered, (lane0_epoch & KIND_BITS) != WEAK);
    for (uint32_t k = 0; k < n; k++) {
        const epoch now = lane0_epoch + (k >> shift) * LANE_STEP, first = rows.read[k],
                    other = rows.other_read[k];
        const epoch replace = fast_path_mask(first, now, &rl);
        const epoch two_readers = ~replace & mask_if(((first ^ now) & THREAD_BITS) != 0) &
                                  ordered_for_all_mask(rows.write[k], &wl);
        rows.read[k] = (now & replace) | (first & ~replace);
        rows.other_read[k] = (other & replace) | (now & ~replace);
        rows.read_shared[k] =
            (read_shared & (uint32_t)two_readers) | (rows.read_shared[k] & ~(uint32_t)two_readers);
    }
    return true;
}

EPOCH_INLINE bool read_row(shadow_rows rows, uint32_t n, uint32_t shift, epoch lane0_epoch,
                           const fast_path_limits *write_limits,
                           const fast_path_limits *read_limits) {
    const fast_path_limits wl = *write_limits;
    epoch passes = ~(epoch)0;
    for (uint32_t k = 0; k < n; k++)
        passes &= fast_path_mask(rows.write[k], lane0_epoch + (k >> shift) * LANE_STEP, &wl);
    return passes && record_readers(rows, n, shift, lane0_epoch, write_limits, read_limits);
}

EPOCH_INLINE bool write_row(shadow_rows rows, uint32_t n, uint32_t shift, epoch lane0_epoch,
                            const fast_path_limits *limits) {
    const fast_path_limits l = *limits;
    epoch passes = ~(epoch)0, settled = ~(epoch)0;
    for (uint32_t k = 0; k < n; k++) {
        const epoch now = lane0_epoch + (k >> shift) * LANE_STEP;
        passes &= fast_path_mask(rows.write[k], now, &l);
        settled &= settled_mask(rows.write[k], &l);
    }
    for (uint32_t k = 0; rows.read && k < n; k++) {
        const epoch now = lane0_epoch + (k >> shift) * LANE_STEP;
        passes &=
            fast_path_mask(rows.read[k], now, &l) & fast_path_mask(rows.other_read[k], now, &l);
    }
    if (!passes) return false;
    for (uint32_t k = 0; !settled && k < n; k++)
        if (!is_change_known(rows, k, &l)) return false;
    for (uint32_t k = 0; k < n; k++)
        rows.write[k] = lane0_epoch + (k >> shift) * LANE_STEP;
    return true;
}

static bool row_read_shared(const uint32_t *read_shared, uint32_t n, epoch floor, bool for_strong) {
    const uint32_t expected = read_shared_at(floor, false), any_kind = for_strong;
    uint32_t different = 0;
    for (uint32_t k = 0; k < n; k++)
        different |= (read_shared[k] | any_kind) ^ expected;
    return !different;
}

/* The switch makes the shift a constant: 0 for 4 bytes per lane, 2 for 16. */
static bool row_read(shadow_rows rows, uint32_t n, uint32_t shift, epoch lane0_epoch,
                     const fast_path_limits *write_limits, const fast_path_limits *read_limits) {
    switch (shift) {
    case 0: return read_row(rows, LANES, 0, lane0_epoch, write_limits, read_limits);
    case 2: return read_row(rows, n, 2, lane0_epoch, write_limits, read_limits);
    default: return read_row(rows, n, shift, lane0_epoch, write_limits, read_limits);
    }
}

static bool row_write(shadow_rows rows, uint32_t n, uint32_t shift, epoch lane0_epoch,
                      const fast_path_limits *limits) {
    switch (shift) {
    case 0: return write_row(rows, LANES, 0, lane0_epoch, limits);
    case 2: return write_row(rows, n, 2, lane0_epoch, limits);
    default: return write_row(rows, n, shift, lane0_epoch, limits);
    }
}

const row_functions FOR_CPU(row_functions) = {row_read, row_write, row_read_shared};
