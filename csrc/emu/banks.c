/* The rule of banks.h. Most requests are settled by two looks: if the words of a group lie within 32
 * consecutive ones, no two different words share a bank. Others are counted.
 */
#include "banks.h"

#include <string.h>

enum { LANES = 32, BANKS = 32, WORD = 4, SECTOR = 32 };

/* ---- distinct items ---- */

/* Bits of the lanes whose item no lower active lane has. */
static uint32_t first_of_equals(const uint64_t item[LANES], uint32_t active) {
    uint32_t first = 0;
    uint8_t repeated[LANES] = {0};
    for (int k = 0; k < LANES; k++) {
        if (!(active >> k & 1) || repeated[k]) continue;
        first |= 1u << k;
        for (int l = k + 1; l < LANES; l++) repeated[l] |= item[l] == item[k];
    }
    return first;
}

static uint32_t count_distinct(const uint64_t address[LANES], uint32_t active, uint32_t unit) {
    uint64_t item[LANES];
    for (int l = 0; l < LANES; l++) item[l] = address[l] / unit;
    return (uint32_t)__builtin_popcount(first_of_equals(item, active));
}

/* ---- wavefronts ---- */

static void extent(const uint64_t address[LANES], uint32_t lanes, uint64_t *low, uint64_t *high) {
    *low = ~(uint64_t)0;
    *high = 0;
    for (; lanes; lanes &= lanes - 1) {
        const uint64_t a = address[__builtin_ctz(lanes)];
        *low = a < *low ? a : *low;
        *high = a > *high ? a : *high;
    }
}

static uint32_t group_wavefronts(const uint64_t address[LANES], uint32_t lanes, uint32_t width) {
    uint64_t low, high;
    if (!lanes) return 0;
    extent(address, lanes, &low, &high);
    if ((high + width - 1) / WORD - low / WORD < BANKS) return 1;
    /* Addresses are multiples of the width, so two accesses are of the same words or of none in common. */
    const uint32_t words = width < WORD ? 1 : width / WORD;
    uint64_t item[LANES];
    uint8_t in_bank[BANKS] = {0};
    uint8_t most = 0;
    for (int l = 0; l < LANES; l++) item[l] = address[l] / WORD;
    for (uint32_t left = first_of_equals(item, lanes); left; left &= left - 1) {
        const uint64_t word = item[__builtin_ctz(left)];
        for (uint32_t k = 0; k < words; k++) {
            const uint8_t n = ++in_bank[(word + k) % BANKS];
            most = n > most ? n : most;
        }
    }
    return most;
}

/* For every active lane l, lane l ^ by is inactive or has the same address. */
static bool paired(const uint64_t address[LANES], uint32_t active, int by) {
    for (uint32_t left = active; left; left &= left - 1) {
        const int l = __builtin_ctz(left);
        if (active >> (l ^ by) & 1 && address[l] != address[l ^ by]) return false;
    }
    return true;
}

uint32_t banks_wavefronts(const uint64_t address[LANES], uint32_t active, uint32_t width, bool load) {
    int group = width <= WORD ? LANES : LANES * WORD / (int)width;
    if (width > WORD && load && (paired(address, active, 1) || paired(address, active, 2))) group *= 2;
    uint32_t total = 0;
    for (int first = 0; first < LANES; first += group) {
        const uint32_t lanes = group == LANES ? ~0u : ((1u << group) - 1) << first;
        total += group_wavefronts(address, active & lanes, width);
    }
    return total;
}

/* ---- the least they could cost ---- */

static uint32_t in_units(uint32_t bytes, uint32_t unit) { return (bytes + unit - 1) / unit; }

uint32_t banks_ideal(const uint64_t address[LANES], uint32_t active, uint32_t width) {
    const uint32_t unit = width < WORD ? WORD : width;
    return in_units(count_distinct(address, active, unit) * unit, BANKS * WORD);
}

uint32_t sectors_touched(const uint64_t address[LANES], uint32_t active, uint32_t width) {
    /* No access crosses a sector: addresses are multiples of the width, 16 at most. */
    (void)width;
    return count_distinct(address, active, SECTOR);
}

uint32_t sectors_ideal(const uint64_t address[LANES], uint32_t active, uint32_t width) {
    return in_units(count_distinct(address, active, width) * width, SECTOR);
}
