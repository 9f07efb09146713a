/* The rules of banks.h.
 *
 * An access of 8 or 16 bytes is aligned to its width, so it covers an aligned run of 2 or 4
 * banks. For such accesses shared memory is modelled as 16 wide banks of 8 bytes, or 8 of 16
 * bytes. Then one function serves all widths: it counts the distinct items (of at least 4 bytes)
 * per bank and in total.
 */
#include "banks.h"

enum { LANES = 32, BANKS = 32, WORD = 4, ROW = BANKS * WORD, SECTOR = 32 };

typedef struct item_counts {
    uint32_t max_per_bank; /* the maximum over banks of the distinct items in it */
    uint32_t distinct;     /* distinct items in all banks */
} item_counts;

static item_counts count_items(const uint64_t address[LANES], uint32_t lanes, uint32_t item_bytes,
                               uint32_t banks) {
    uint64_t items[BANKS][LANES];
    uint64_t lowest[BANKS], highest[BANKS];
    uint8_t n[BANKS] = {0};
    item_counts t = {0, 0};
    const int shift = __builtin_ctz(item_bytes);
    uint64_t previous = ~(uint64_t)0;
    for (; lanes; lanes &= lanes - 1) {
        const uint64_t item = address[__builtin_ctz(lanes)] >> shift;
        if (item == previous) continue; /* shortcut: adjacent lanes often share a word */
        previous = item;
        const uint32_t bank = item & (banks - 1);
        uint32_t k = n[bank];
        /* Outside the bank's range the item is new, so the search can be skipped. */
        if (k && item <= highest[bank] && item >= lowest[bank]) {
            while (k && items[bank][k - 1] != item)
                k--;
            if (k) continue;
            k = n[bank];
        } else {
            lowest[bank] = k && lowest[bank] < item ? lowest[bank] : item;
            highest[bank] = k && highest[bank] > item ? highest[bank] : item;
        }
        items[bank][k] = item;
        n[bank] = (uint8_t)++k;
        t.max_per_bank = k > t.max_per_bank ? k : t.max_per_bank;
        t.distinct++;
    }
    return t;
}

static uint32_t item_bytes(uint32_t width) {
    return width < WORD ? WORD : width;
}

static uint32_t ceil_div(uint32_t bytes, uint32_t unit) {
    return (bytes + unit - 1) / unit;
}

/* Whether for every active lane l lane l ^ by is inactive or has the same address. */
static bool partners_match(const uint64_t address[LANES], uint32_t active, int by) {
    for (uint32_t left = active; left; left &= left - 1) {
        const int l = __builtin_ctz(left);
        if (active >> (l ^ by) & 1 && address[l] != address[l ^ by]) return false;
    }
    return true;
}

uint32_t banks_group_lanes(const uint64_t address[LANES], uint32_t active, uint32_t width,
                           bool load) {
    const uint32_t banks = ROW / item_bytes(width); /* also the lanes per group before merging */
    const bool merged = width > WORD && load &&
                        (partners_match(address, active, 1) || partners_match(address, active, 2));
    return merged ? 2 * banks : banks;
}

uint32_t banks_wavefronts(const uint64_t address[LANES], uint32_t active, uint32_t width,
                          bool load) {
    const uint32_t bytes = item_bytes(width), banks = ROW / bytes;
    const uint32_t group = banks_group_lanes(address, active, width, load);
    uint32_t total = 0;
    for (uint32_t first = 0; first < LANES; first += group) {
        const uint32_t lanes = group == LANES ? ~0u : ((1u << group) - 1) << first;
        total += count_items(address, active & lanes, bytes, banks).max_per_bank;
    }
    return total;
}

uint32_t banks_ideal(const uint64_t address[LANES], uint32_t active, uint32_t width, bool load) {
    const uint32_t bytes = item_bytes(width), banks = ROW / bytes;
    const uint32_t group = load && width > WORD ? 2 * banks : banks; /* lanes, if groups merge */
    uint32_t groups = 0;
    for (uint32_t first = 0; first < LANES; first += group)
        groups += (active >> first & (uint32_t)((1ull << group) - 1)) != 0;
    const uint32_t rows =
        ceil_div(count_items(address, active, bytes, BANKS).distinct * bytes, ROW);
    return rows > groups ? rows : groups;
}

uint32_t banks_ncu_ideal(uint32_t active, uint32_t width, uint32_t wavefronts) {
    const uint32_t lanes = (uint32_t)__builtin_popcount(active);
    const uint32_t rows = ceil_div(lanes * item_bytes(width), ROW);
    return rows < wavefronts ? rows : wavefronts;
}

void banks_request(const uint64_t address[LANES], uint32_t active, uint32_t width, bool load,
                   uint32_t *wavefronts, uint32_t *ideal) {
    if (width <= WORD) { /* a single group, so one call gives both results */
        const item_counts t = count_items(address, active, WORD, BANKS);
        *wavefronts = t.max_per_bank;
        *ideal = ceil_div(t.distinct * WORD, ROW);
        return;
    }
    *wavefronts = banks_wavefronts(address, active, width, load);
    *ideal = banks_ideal(address, active, width, load);
}

/* The maximum over banks of the lanes in it. */
static uint32_t max_lanes_per_bank(const uint64_t address[LANES], uint32_t lanes, int shift,
                                   uint32_t banks) {
    uint8_t n[BANKS] = {0}, max = 0;
    for (; lanes; lanes &= lanes - 1) {
        const uint32_t bank = (address[__builtin_ctz(lanes)] >> shift) & (banks - 1);
        if (++n[bank] > max) max = n[bank];
    }
    return max;
}

static uint32_t group_mask(uint32_t first, uint32_t size) {
    return (uint32_t)((1ull << size) - 1) << first;
}

uint32_t banks_serial_wavefronts(const uint64_t address[LANES], uint32_t active, uint32_t width) {
    return banks_copy_wavefronts(address, address, active, 0, width);
}

uint32_t banks_copy_wavefronts(const uint64_t to[LANES], const uint64_t from[LANES],
                               uint32_t active, uint32_t reading, uint32_t width) {
    const uint32_t bytes = item_bytes(width), banks = ROW / bytes;
    uint32_t total = 0;
    for (uint32_t first = 0; first < LANES; first += banks) {
        const uint32_t lanes = active & group_mask(first, banks);
        const uint32_t written = max_lanes_per_bank(to, lanes, __builtin_ctz(bytes), banks);
        const uint32_t read = count_items(from, lanes & reading, bytes, banks).max_per_bank;
        total += written > read ? written : read;
    }
    return total;
}

/* The lanes whose store succeeds in a round of a retry loop: per group and bank the lowest active
 * lane, unless a lane of an earlier group has just changed the same item. */
static uint32_t successful_lanes(const uint64_t address[LANES], uint32_t active, uint32_t banks,
                                 int shift) {
    uint32_t succeeded = 0;
    for (uint32_t first = 0; first < LANES; first += banks) {
        uint32_t seen = 0, here = 0;
        for (uint32_t l = first; l < first + banks; l++) {
            const uint32_t bank = 1u << ((address[l] >> shift) & (banks - 1));
            if (!(active >> l & 1) || seen & bank) continue;
            seen |= bank;
            bool changed = false;
            for (uint32_t left = succeeded; left; left &= left - 1)
                changed |= address[__builtin_ctz(left)] >> shift == address[l] >> shift;
            if (!changed) here |= 1u << l;
        }
        succeeded |= here;
    }
    return succeeded;
}

banks_attempts banks_retried(const uint64_t address[LANES], uint32_t active, uint32_t width) {
    const uint32_t bytes = item_bytes(width), banks = ROW / bytes;
    const int shift = __builtin_ctz(bytes);
    banks_attempts cost = {0, 0};
    while (active) {
        cost.loads += banks_wavefronts(address, active, bytes, true);
        for (uint32_t first = 0; first < LANES; first += banks)
            cost.stores += 2 * ((active & group_mask(first, banks)) != 0);
        active &= ~successful_lanes(address, active, banks, shift);
    }
    return cost;
}

uint32_t banks_retried_round(const uint64_t address[LANES], uint32_t active, uint32_t width) {
    const uint32_t bytes = item_bytes(width);
    return successful_lanes(address, active, ROW / bytes, __builtin_ctz(bytes));
}

/* Global memory has no banks: here they only split the search into shorter lists. No access
 * crosses a sector, because addresses are multiples of the width. */
uint32_t sectors_touched(const uint64_t address[LANES], uint32_t active, uint32_t width) {
    return count_items(address, active, width > SECTOR ? width : SECTOR, BANKS).distinct;
}

uint32_t sectors_ideal(const uint64_t address[LANES], uint32_t active, uint32_t width) {
    return ceil_div(count_items(address, active, width, BANKS).distinct * width, SECTOR);
}
