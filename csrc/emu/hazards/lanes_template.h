/* The fast path for the words of scattered lanes; see row.h.
 *
 * Several lanes may access one word, so lanes are processed one after the other, each against the
 * epochs that the lanes before it have left.
 */
#include <string.h>

#include "epoch_tests.h"
#include "../base/cpu.h"
#include "../base/lanes.h"

/* The lane's first word. False: misaligned, or outside the region. */
EPOCH_INLINE bool word_of(const lane_words *words, int lane, uint64_t *first) {
    const uint64_t offset = words->address[lane] - words->base;
    *first = offset >> 2;
    return !(offset & 3) && words->width <= words->bytes && offset <= words->bytes - words->width;
}

/* Checks and records one reader of one word. Branches are faster here than masks: most lanes take
 * the same ones. */
EPOCH_INLINE bool read_word(shadow_rows rows, uint64_t word, epoch now,
                            const fast_path_limits *write_limits,
                            const fast_path_limits *read_limits, uint32_t read_shared) {
    const epoch write = rows.write[word], first = rows.read[word], other = rows.other_read[word];
    if (!passes_fast_path(write, now, write_limits)) return false;
    if (passes_fast_path(first, now, read_limits)) {
        rows.read[word] = now;
        return true;
    }
    /* Readers of different access kinds: slow path. */
    if ((first ^ now) & KIND_BITS) return false;
    if ((other ^ now) & KIND_BITS && !is_ordered_for_all(other, read_limits)) return false;
    rows.other_read[word] = now;
    if ((first ^ now) & THREAD_BITS && is_ordered_for_all(write, write_limits))
        rows.read_shared[word] = read_shared;
    return true;
}

EPOCH_INLINE bool read_lanes(shadow_rows rows, const lane_words *words, uint32_t n,
                             epoch lane0_epoch, const fast_path_limits *write_limits,
                             const fast_path_limits *read_limits) {
    const fast_path_limits wl = *write_limits, rl = *read_limits;
    const uint32_t read_shared =
        read_shared_at(wl.begin + wl.ordered, (lane0_epoch & KIND_BITS) != WEAK);
    for (uint32_t left = words->active; left; left &= left - 1) {
        const int lane = first_lane(left);
        const epoch now = lane0_epoch + (epoch)lane * LANE_STEP;
        uint64_t word;
        if (!word_of(words, lane, &word)) return false;
        for (uint32_t k = 0; k < n; k++)
            if (!read_word(rows, word + k, now, &wl, &rl, read_shared)) return false;
    }
    return true;
}

enum { MAX_LANE_WORDS = 8 };

/* False: nothing is recorded, since the slow path compares values with those of the last writes. */
EPOCH_INLINE bool write_lanes(shadow_rows rows, const lane_words *words, uint32_t n,
                              epoch lane0_epoch, const fast_path_limits *limits) {
    const fast_path_limits l = *limits;
    epoch before[LANES * MAX_LANE_WORDS];
    uint64_t recorded[LANES * MAX_LANE_WORDS];
    uint32_t n_recorded = 0;
    for (uint32_t left = words->active; left; left &= left - 1) {
        const int lane = first_lane(left);
        const epoch now = lane0_epoch + (epoch)lane * LANE_STEP;
        uint64_t word;
        if (!word_of(words, lane, &word)) goto undo;
        for (const uint64_t end = word + n; word < end; word++) {
            if (!passes_fast_path(rows.write[word], now, &l) || !is_change_known(rows, word, &l))
                goto undo;
            if (rows.read && !(passes_fast_path(rows.read[word], now, &l) &&
                               passes_fast_path(rows.other_read[word], now, &l)))
                goto undo;
            before[n_recorded] = rows.write[word];
            recorded[n_recorded++] = word;
            rows.write[word] = now;
        }
    }
    return true;
undo:
    while (n_recorded--)
        rows.write[recorded[n_recorded]] = before[n_recorded];
    return false;
}

/* The switch makes the number of words per lane a constant. */
static bool lanes_read(const shadow_rows *rows, const lane_words *words, epoch lane0_epoch,
                       const fast_path_limits *write_limits, const fast_path_limits *read_limits) {
    switch (words->width) {
    case 4: return read_lanes(*rows, words, 1, lane0_epoch, write_limits, read_limits);
    case 16: return read_lanes(*rows, words, 4, lane0_epoch, write_limits, read_limits);
    default:
        return read_lanes(*rows, words, words->width / 4, lane0_epoch, write_limits, read_limits);
    }
}

static bool lanes_write(const shadow_rows *rows, const lane_words *words, epoch lane0_epoch,
                        const fast_path_limits *limits) {
    switch (words->width) {
    case 4: return write_lanes(*rows, words, 1, lane0_epoch, limits);
    case 16: return write_lanes(*rows, words, 4, lane0_epoch, limits);
    default: return write_lanes(*rows, words, words->width / 4, lane0_epoch, limits);
    }
}

static bool few_read_shared(const uint32_t *read_shared, const lane_words *words, epoch floor,
                            bool for_strong) {
    for (uint32_t left = words->active; left; left &= left - 1) {
        uint64_t first;
        if (!word_of(words, first_lane(left), &first)) return false;
        for (uint32_t k = 0; k < words->width / 4; k++)
            if (!is_read_shared(read_shared[first + k], floor, for_strong)) return false;
    }
    return true;
}

/* word_of for all lanes, without branches. Inactive lanes get the word of an active one. */
EPOCH_INLINE bool words_of(const lane_words *words, uint32_t *first) {
    const uint64_t any = words->address[first_lane(words->active)] - words->base;
    uint64_t highest = 0, bits = 0;
    for (int l = 0; l < LANES; l++) {
        const uint64_t is_active = 0 - (uint64_t)(words->active >> l & 1);
        const uint64_t offset = any ^ ((any ^ (words->address[l] - words->base)) & is_active);
        highest = offset > highest ? offset : highest;
        bits |= offset;
        first[l] = (uint32_t)(offset >> 2);
    }
    return !(bits & 3) && words->width <= words->bytes && highest <= words->bytes - words->width &&
           highest >> 34 == 0;
}

EPOCH_INLINE bool all_read_shared(const uint32_t *read_shared, const lane_words *words, uint32_t n,
                                  uint32_t expected, uint32_t any_kind) {
    uint32_t different[4] = {0};
    lanes_u32 first;
    if (!words_of(words, first)) return false;
    for (int l = 0; l < LANES; l++)
        for (uint32_t k = 0; k < n; k++)
            different[k % 4] |= (read_shared[first[l] + k] | any_kind) ^ expected;
    return !(different[0] | different[1] | different[2] | different[3]);
}

static bool lanes_read_shared(const uint32_t *read_shared, const lane_words *words, epoch floor,
                              bool for_strong) {
    enum { FEW = 8 };
    const uint32_t expected = read_shared_at(floor, false);
    if (__builtin_popcount(words->active) <= FEW)
        return few_read_shared(read_shared, words, floor, for_strong);
    switch (words->width) {
    case 4: return all_read_shared(read_shared, words, 1, expected, for_strong);
    case 16: return all_read_shared(read_shared, words, 4, expected, for_strong);
    default: return all_read_shared(read_shared, words, words->width / 4, expected, for_strong);
    }
}

static uint32_t two_per_address(const uint64_t *address, uint32_t active) {
    lanes_u32 equal = {0};
    for (int l = 1; l < LANES; l++)
        equal[l] = 0u - (uint32_t)(address[l] == address[l - 1]);
    const uint32_t same =
        lanes_bits(equal) & active & active << 1; /* same address as the previous lane */
    return active & ~(same & same << 1);
}

static bool in_one_region(const uint64_t *address, uint32_t active) {
    const uint64_t any = address[first_lane(active)];
    uint64_t different = 0;
    for (int l = 0; l < LANES; l++)
        different |= (address[l] ^ any) & (0 - (uint64_t)(active >> l & 1));
    return REGION_OF(different) == 0;
}

EPOCH_INLINE void store_elements(unsigned char *value, const lane_words *words,
                                 const unsigned char *frame, const uint32_t *slots,
                                 uint32_t slot_bytes, uint32_t elements, uint32_t bytes) {
    for (uint32_t left = words->active; left; left &= left - 1) {
        const int lane = first_lane(left);
        unsigned char *to = value + (words->address[lane] - words->base);
        for (uint32_t k = 0; k < elements; k++)
            memcpy(to + k * bytes, frame + slots[k] + (size_t)lane * slot_bytes, bytes);
    }
}

static void store_values(unsigned char *value, const lane_words *words, const unsigned char *frame,
                         const uint32_t *slots, uint32_t slot_bytes, uint32_t elements,
                         uint32_t bytes) {
    if (bytes == 4 && slot_bytes == 4)
        store_elements(value, words, frame, slots, 4, elements, 4);
    else if (bytes == 8 && slot_bytes == 8)
        store_elements(value, words, frame, slots, 8, elements, 8);
    else
        store_elements(value, words, frame, slots, slot_bytes, elements, bytes);
}

const lane_functions FOR_CPU(lane_functions) = {lanes_read,      lanes_write,   lanes_read_shared,
                                                two_per_address, in_one_region, store_values};
