/* The rule of banks.h.
 *
 * An access of 8 or 16 bytes is aligned to its width, so it takes the same 2 or 4 neighbouring banks
 * wholly or not at all: 16 or 8 wide banks. With items of at least a word, one count serves all widths:
 * how many different items fall into each bank, and how many there are altogether.
 */
#include "banks.h"

enum { LANES = 32, BANKS = 32, WORD = 4, ROW = BANKS * WORD, SECTOR = 32 };

typedef struct tally {
    uint32_t most;     /* different items in one bank */
    uint32_t distinct; /* different items */
} tally;

static tally count(const uint64_t address[LANES], uint32_t lanes, uint32_t item_bytes,
                   uint32_t banks) {
    uint64_t kept[BANKS][LANES];
    uint64_t lowest[BANKS], highest[BANKS];
    uint8_t n[BANKS] = {0};
    tally t = {0, 0};
    const int shift = __builtin_ctz(item_bytes);
    uint64_t previous = ~(uint64_t)0;
    for (; lanes; lanes &= lanes - 1) {
        const uint64_t item = address[__builtin_ctz(lanes)] >> shift;
        if (item == previous) continue; /* neighbours often share a word */
        previous = item;
        const uint32_t bank = item & (banks - 1);
        uint32_t k = n[bank];
        if (k && item <= highest[bank] &&
            item >= lowest[bank]) { /* else it is new: no need to look */
            while (k && kept[bank][k - 1] != item)
                k--;
            if (k) continue;
            k = n[bank];
        } else {
            lowest[bank] = k && lowest[bank] < item ? lowest[bank] : item;
            highest[bank] = k && highest[bank] > item ? highest[bank] : item;
        }
        kept[bank][k] = item;
        n[bank] = (uint8_t)++k;
        t.most = k > t.most ? k : t.most;
        t.distinct++;
    }
    return t;
}

static uint32_t item_bytes(uint32_t width) {
    return width < WORD ? WORD : width;
}

static uint32_t in_units(uint32_t bytes, uint32_t unit) {
    return (bytes + unit - 1) / unit;
}

/* For every active lane l, lane l ^ by is inactive or has the same address. */
static bool paired(const uint64_t address[LANES], uint32_t active, int by) {
    for (uint32_t left = active; left; left &= left - 1) {
        const int l = __builtin_ctz(left);
        if (active >> (l ^ by) & 1 && address[l] != address[l ^ by]) return false;
    }
    return true;
}

uint32_t banks_group_lanes(const uint64_t address[LANES], uint32_t active, uint32_t width,
                           bool load) {
    const uint32_t banks = ROW / item_bytes(width); /* lanes: as many as could be served at once */
    const bool merged =
        width > WORD && load && (paired(address, active, 1) || paired(address, active, 2));
    return merged ? 2 * banks : banks;
}

uint32_t banks_wavefronts(const uint64_t address[LANES], uint32_t active, uint32_t width,
                          bool load) {
    const uint32_t bytes = item_bytes(width), banks = ROW / bytes;
    const uint32_t group = banks_group_lanes(address, active, width, load);
    uint32_t total = 0;
    for (uint32_t first = 0; first < LANES; first += group) {
        const uint32_t lanes = group == LANES ? ~0u : ((1u << group) - 1) << first;
        total += count(address, active & lanes, bytes, banks).most;
    }
    return total;
}

uint32_t banks_ideal(const uint64_t address[LANES], uint32_t active, uint32_t width, bool load) {
    const uint32_t bytes = item_bytes(width), banks = ROW / bytes;
    const uint32_t group =
        load && width > WORD ? 2 * banks : banks; /* lanes served at once at best */
    uint32_t groups = 0;
    for (uint32_t first = 0; first < LANES; first += group)
        groups += (active >> first & (uint32_t)((1ull << group) - 1)) != 0;
    const uint32_t rows = in_units(count(address, active, bytes, BANKS).distinct * bytes, ROW);
    return rows > groups ? rows : groups;
}

void banks_request(const uint64_t address[LANES], uint32_t active, uint32_t width, bool load,
                   uint32_t *wavefronts, uint32_t *ideal) {
    if (width <= WORD) { /* one group: one count gives both */
        const tally t = count(address, active, WORD, BANKS);
        *wavefronts = t.most;
        *ideal = in_units(t.distinct * WORD, ROW);
        return;
    }
    *wavefronts = banks_wavefronts(address, active, width, load);
    *ideal = banks_ideal(address, active, width, load);
}

/* The most lanes of a group in one bank. */
static uint32_t most_lanes(const uint64_t address[LANES], uint32_t lanes, int shift,
                           uint32_t banks) {
    uint8_t n[BANKS] = {0}, most = 0;
    for (; lanes; lanes &= lanes - 1) {
        const uint32_t bank = (address[__builtin_ctz(lanes)] >> shift) & (banks - 1);
        if (++n[bank] > most) most = n[bank];
    }
    return most;
}

static uint32_t group_lanes(uint32_t first, uint32_t size) {
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
        const uint32_t lanes = active & group_lanes(first, banks);
        const uint32_t written = most_lanes(to, lanes, __builtin_ctz(bytes), banks);
        const uint32_t read = count(from, lanes & reading, bytes, banks).most;
        total += written > read ? written : read;
    }
    return total;
}

/* The lanes whose stores succeed at the first attempt: of each group, the lowest in its bank, unless
 * a lane of an earlier group has just changed the same item. */
static uint32_t winners(const uint64_t address[LANES], uint32_t active, uint32_t banks, int shift) {
    uint32_t won = 0;
    for (uint32_t first = 0; first < LANES; first += banks) {
        uint32_t seen = 0, here = 0;
        for (uint32_t l = first; l < first + banks; l++) {
            const uint32_t bank = 1u << ((address[l] >> shift) & (banks - 1));
            if (!(active >> l & 1) || seen & bank) continue;
            seen |= bank;
            bool changed = false;
            for (uint32_t left = won; left; left &= left - 1)
                changed |= address[__builtin_ctz(left)] >> shift == address[l] >> shift;
            if (!changed) here |= 1u << l;
        }
        won |= here;
    }
    return won;
}

banks_attempts banks_retried(const uint64_t address[LANES], uint32_t active, uint32_t width) {
    const uint32_t bytes = item_bytes(width), banks = ROW / bytes;
    const int shift = __builtin_ctz(bytes);
    banks_attempts cost = {0, 0};
    while (active) {
        cost.loads += banks_wavefronts(address, active, bytes, true);
        for (uint32_t first = 0; first < LANES; first += banks)
            cost.stores += 2 * ((active & group_lanes(first, banks)) != 0);
        active &= ~winners(address, active, banks, shift);
    }
    return cost;
}

/* Of global memory "banks" only speed the search up. No access crosses a sector: addresses are multiples
 * of the width. */
uint32_t sectors_touched(const uint64_t address[LANES], uint32_t active, uint32_t width) {
    return count(address, active, width > SECTOR ? width : SECTOR, BANKS).distinct;
}

uint32_t sectors_ideal(const uint64_t address[LANES], uint32_t active, uint32_t width) {
    return in_units(count(address, active, width, BANKS).distinct * width, SECTOR);
}
