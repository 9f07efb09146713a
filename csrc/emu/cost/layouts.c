/* The search of layouts.h. */
#include "layouts.h"

#include "banks.h"

enum { LANES = 32, LINE = 128, LINE_BITS = 7, MAX_ADDRESS_BITS = 40 };

static uint32_t bit_length(uint64_t value) {
    return value ? 64 - (uint32_t)__builtin_clzll(value) : 0;
}

/* ---- candidates ---- */

static size_t add_xors(const bank_tile *t, bank_layout *out) {
    const uint64_t row = t->cols * t->element;
    const uint32_t chunks[] = {t->element, 4, 8, 16};
    size_t n = 0;
    for (size_t k = 0; k < sizeof chunks / sizeof *chunks; k++) {
        const uint32_t chunk = chunks[k];
        if ((k && chunk <= t->element) || row % (2 * chunk)) continue;
        const uint64_t per_row = row / chunk;
        out[n++] = (bank_layout){.kind = LAYOUT_XOR,
                                 .chunk = chunk,
                                 .period = (uint32_t)(per_row & -per_row),
                                 .is_element = k == 0};
    }
    return n;
}

static size_t add_tma(const bank_tile *t, bank_layout *out) {
    for (uint32_t bits = 1; bits <= 3; bits++)
        if (t->cols * t->element == 16u << bits) {
            *out = (bank_layout){
                .kind = LAYOUT_TMA, .bits = bits, .base = 4, .shift = 3, .span = 16u << bits};
            return 1;
        }
    return 0;
}

static size_t add_swizzles(const bank_tile *t, bank_layout *out) {
    const uint32_t highest = bit_length(t->rows * t->cols * t->element - 1);
    const uint32_t whole = bit_length(t->element) - 1; /* the bits below are in an element */
    size_t n = 0;
    for (uint32_t base = whole > 2 ? whole : 2; base < LINE_BITS; base++)
        for (uint32_t bits = 1; bits <= LINE_BITS - base; bits++)
            for (uint32_t shift = bits; base + shift < highest; shift++)
                if (base + shift + bits <= MAX_ADDRESS_BITS)
                    out[n++] = (bank_layout){
                        .kind = LAYOUT_SWIZZLE, .bits = bits, .base = base, .shift = shift};
    return n;
}

size_t layouts_list(const bank_tile *tile, bank_layout out[LAYOUTS_MAX]) {
    size_t n = 0;
    for (uint32_t pad = 0; pad < LINE / tile->element; pad++)
        out[n++] = (bank_layout){.kind = LAYOUT_PADDED, .pad = pad};
    n += add_xors(tile, out + n);
    n += add_tma(tile, out + n);
    return n + add_swizzles(tile, out + n);
}

/* ---- costs ---- */

/* The byte address of an element, relative to the tile's start. */
static uint64_t address_of(const bank_tile *t, const bank_layout *layout, uint64_t row,
                           uint64_t col) {
    uint64_t at = col * t->element;
    if (layout->period) at ^= row % layout->period * layout->chunk;
    at += row * (t->cols + layout->pad) * t->element;
    const uint64_t mask = (((uint64_t)1 << layout->bits) - 1) << layout->base;
    return at ^ (at >> layout->shift & mask);
}

static uint64_t wasted_bytes(const bank_tile *t, const bank_layout *layout) {
    /* A swizzle permutes within aligned spans, so the tile is rounded up to them. */
    const uint64_t span = layout->bits ? (uint64_t)1 << (layout->base + layout->bits) : 1;
    const uint64_t end = t->rows * (t->cols + layout->pad) * t->element;
    return (end + span - 1) / span * span - t->rows * t->cols * t->element;
}

static bool addresses_of(const bank_tile *t, const bank_layout *layout, const bank_access *access,
                         uint64_t address[LANES]) {
    for (uint32_t lane = 0; lane < LANES; lane++) {
        address[lane] = 0;
        if (!(access->active >> lane & 1)) continue;
        const uint64_t row = (uint64_t)access->row[lane], col = (uint64_t)access->col[lane];
        const uint64_t at = address[lane] = address_of(t, layout, row, col);
        if (at % access->width) return false;
        for (uint32_t k = 1; k * t->element < access->width; k++)
            if (address_of(t, layout, row, col + k) != at + k * t->element) return false;
    }
    return true;
}

static uint32_t active_groups(uint32_t active, uint32_t size) {
    uint32_t n = 0;
    for (uint32_t first = 0; first < LANES; first += size)
        n += (active >> first & (uint32_t)((1ull << size) - 1)) != 0;
    return n;
}

bool layout_cost(const bank_tile *tile, const bank_layout *layout, const bank_access *accesses,
                 size_t n, bank_choice *out) {
    *out = (bank_choice){
        .layout = *layout, .wasted = wasted_bytes(tile, layout), .conflict_free = true};
    for (size_t k = 0; k < n; k++) {
        const bank_access *a = &accesses[k];
        uint64_t address[LANES];
        if (!addresses_of(tile, layout, a, address)) return false;
        uint32_t wavefronts, ideal;
        banks_request(address, a->active, a->width, a->load, &wavefronts, &ideal);
        const uint32_t size = banks_group_lanes(address, a->active, a->width, a->load);
        const uint32_t groups = active_groups(a->active, size);
        out->wavefronts += wavefronts;
        out->ideal += ideal;
        if (wavefronts > out->worst) out->worst = wavefronts;
        if (wavefronts > (groups > ideal ? groups : ideal)) out->conflict_free = false;
    }
    return true;
}
