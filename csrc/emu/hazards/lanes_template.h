/* Marks of the words of scattered lanes; see hazards_row.h.
 *
 * Lanes may share words, so they are looked at one after the other, each against what those before it
 * have left.
 */
#include <string.h>

#include "epoch_tests.h"
#include "../base/cpu.h"
#include "../base/lanes.h"

/* The lane's first word. False: not words of the region. */
EPOCH_INLINE bool word_of(const lane_words *words, int lane, uint64_t *first) {
    const uint64_t offset = words->address[lane] - words->base;
    *first = offset >> 2;
    return !(offset & 3) && words->width <= words->bytes && offset <= words->bytes - words->width;
}

/* One reader of one word. Branches pay here: what happens to one lane happens to the next. */
EPOCH_INLINE bool read_word(epoch_rows m, uint64_t word, epoch own, const row_limits *writes,
                            const row_limits *reads, uint32_t read_shared) {
    const epoch write = m.write[word], first = m.read[word], other = m.other[word];
    if (!is_usual(write, own, writes)) return false;
    if (is_usual(first, own, reads)) {
        m.read[word] = own;
        return true;
    }
    /* Strong and weak readers meet. */
    if ((first ^ own) & KIND_BITS) return false;
    if ((other ^ own) & KIND_BITS && !is_ordered_for_all(other, reads)) return false;
    m.other[word] = own;
    if ((first ^ own) & THREAD_BITS && is_ordered_for_all(write, writes))
        m.read_shared[word] = read_shared;
    return true;
}

EPOCH_INLINE bool read_lanes(epoch_rows m, const lane_words *words, uint32_t n, epoch mine,
                             const row_limits *writes, const row_limits *reads) {
    const row_limits w = *writes, r = *reads;
    const uint32_t read_shared = read_shared_at(w.begin + w.ordered, (mine & KIND_BITS) != WEAK);
    for (uint32_t left = words->active; left; left &= left - 1) {
        const int lane = first_lane(left);
        const epoch own = mine + (epoch)lane * LANE_STEP;
        uint64_t word;
        if (!word_of(words, lane, &word)) return false;
        for (uint32_t k = 0; k < n; k++)
            if (!read_word(m, word + k, own, &w, &r, read_shared)) return false;
    }
    return true;
}

EPOCH_INLINE bool write_lanes(epoch_rows m, const lane_words *words, uint32_t n, epoch mine,
                              const row_limits *limits) {
    const row_limits r = *limits;
    for (uint32_t left = words->active; left; left &= left - 1) {
        const int lane = first_lane(left);
        const epoch own = mine + (epoch)lane * LANE_STEP;
        uint64_t word;
        if (!word_of(words, lane, &word)) return false;
        for (const uint64_t end = word + n; word < end; word++) {
            if (!is_usual(m.write[word], own, &r)) return false;
            if (m.read && !(is_usual(m.read[word], own, &r) && is_usual(m.other[word], own, &r)))
                return false;
            m.write[word] = own;
        }
    }
    return true;
}

/* The number of a lane's words is known where the loops are compiled. */
static bool read_some(epoch_rows m, const lane_words *words, epoch mine, const row_limits *writes,
                      const row_limits *reads) {
    switch (words->width) {
    case 4: return read_lanes(m, words, 1, mine, writes, reads);
    case 16: return read_lanes(m, words, 4, mine, writes, reads);
    default: return read_lanes(m, words, words->width / 4, mine, writes, reads);
    }
}

static bool write_some(epoch_rows m, const lane_words *words, epoch mine,
                       const row_limits *limits) {
    switch (words->width) {
    case 4: return write_lanes(m, words, 1, mine, limits);
    case 16: return write_lanes(m, words, 4, mine, limits);
    default: return write_lanes(m, words, words->width / 4, mine, limits);
    }
}

static bool few_settled(const uint32_t *read_shared, const lane_words *words, epoch floor,
                        bool for_strong) {
    for (uint32_t left = words->active; left; left &= left - 1) {
        uint64_t first;
        if (!word_of(words, first_lane(left), &first)) return false;
        for (uint32_t k = 0; k < words->width / 4; k++)
            if (!is_read_shared(read_shared[first + k], floor, for_strong)) return false;
    }
    return true;
}

/* The same of all lanes, of inactive ones an active one's. */
EPOCH_INLINE bool words_of(const lane_words *words, uint32_t *first) {
    const uint64_t any = words->address[first_lane(words->active)] - words->base;
    uint64_t highest = 0, bits = 0;
    for (int l = 0; l < LANES; l++) {
        const uint64_t runs = 0 - (uint64_t)(words->active >> l & 1);
        const uint64_t offset = any ^ ((any ^ (words->address[l] - words->base)) & runs);
        highest = offset > highest ? offset : highest;
        bits |= offset;
        first[l] = (uint32_t)(offset >> 2);
    }
    return !(bits & 3) && words->width <= words->bytes && highest <= words->bytes - words->width &&
           highest >> 34 == 0;
}

EPOCH_INLINE bool all_settled(const uint32_t *read_shared, const lane_words *words, uint32_t n,
                              uint32_t want, uint32_t either) {
    uint32_t different[4] = {0};
    lanes_u32 first;
    if (!words_of(words, first)) return false;
    for (int l = 0; l < LANES; l++)
        for (uint32_t k = 0; k < n; k++)
            different[k % 4] |= (read_shared[first[l] + k] | either) ^ want;
    return !(different[0] | different[1] | different[2] | different[3]);
}

static bool lanes_read_shared(const uint32_t *read_shared, const lane_words *words, epoch floor,
                              bool for_strong) {
    enum { FEW = 8 };
    const uint32_t want = read_shared_at(floor, false);
    if (__builtin_popcount(words->active) <= FEW)
        return few_settled(read_shared, words, floor, for_strong);
    switch (words->width) {
    case 4: return all_settled(read_shared, words, 1, want, for_strong);
    case 16: return all_settled(read_shared, words, 4, want, for_strong);
    default: return all_settled(read_shared, words, words->width / 4, want, for_strong);
    }
}

static uint32_t two_of_each(const uint64_t *address, uint32_t active) {
    lanes_u32 equal = {0};
    for (int l = 1; l < LANES; l++)
        equal[l] = 0u - (uint32_t)(address[l] == address[l - 1]);
    const uint32_t same = lanes_bits(equal) & active & active << 1; /* as the lane before */
    return active & ~(same & same << 1);
}

static bool in_one_region(const uint64_t *address, uint32_t active) {
    const uint64_t any = address[first_lane(active)];
    uint64_t different = 0;
    for (int l = 0; l < LANES; l++)
        different |= (address[l] ^ any) & (0 - (uint64_t)(active >> l & 1));
    return REGION_OF(different) == 0;
}

EPOCH_INLINE void note_elements(unsigned char *value, const lane_words *words,
                                const unsigned char *frame, const uint32_t *slots,
                                uint32_t slot_bytes, uint32_t elements, uint32_t bytes) {
    for (uint32_t left = words->active; left; left &= left - 1) {
        const int lane = first_lane(left);
        unsigned char *to = value + (words->address[lane] - words->base);
        for (uint32_t k = 0; k < elements; k++)
            memcpy(to + k * bytes, frame + slots[k] + (size_t)lane * slot_bytes, bytes);
    }
}

static void note_values(unsigned char *value, const lane_words *words, const unsigned char *frame,
                        const uint32_t *slots, uint32_t slot_bytes, uint32_t elements,
                        uint32_t bytes) {
    if (bytes == 4 && slot_bytes == 4)
        note_elements(value, words, frame, slots, 4, elements, 4);
    else if (bytes == 8 && slot_bytes == 8)
        note_elements(value, words, frame, slots, 8, elements, 8);
    else
        note_elements(value, words, frame, slots, slot_bytes, elements, bytes);
}

const lane_functions FOR_CPU(lane_functions) = {read_some,   write_some,    lanes_read_shared,
                                                two_of_each, in_one_region, note_values};
