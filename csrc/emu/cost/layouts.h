/* Layouts of a tile in shared memory, and the search for one without bank conflicts:
 * smemkern.banks.suggest. smemkern/_banks/layout.py says what each kind of layout is. */
#ifndef EMU_LAYOUTS_H
#define EMU_LAYOUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum layout_kind {
    LAYOUT_PADDED,  /* `pad` elements after each row; 0: the plain tile */
    LAYOUT_XOR,     /* chunk k of row r is stored at chunk k ^ (r mod period) */
    LAYOUT_TMA,     /* a TMA swizzle of `span` bytes, which `bits`, `base` and `shift` describe */
    LAYOUT_SWIZZLE, /* address ^ (address >> shift & mask), mask: `bits` ones from bit `base` on */
} layout_kind;

typedef struct bank_layout {
    layout_kind kind;
    uint32_t pad;
    uint32_t chunk, period; /* bytes; rows */
    bool is_element;        /* of an XOR: a chunk is an element */
    uint32_t bits, base, shift;
    uint32_t span; /* bytes */
} bank_layout;

typedef struct bank_tile {
    uint64_t rows, cols;
    uint32_t element; /* bytes: 1, 2, 4, 8 or 16 */
} bank_tile;

/* One request: lane l accesses `width` bytes from element (row[l], col[l]) on. */
typedef struct bank_access {
    const int64_t *row, *col; /* of 32 lanes, inside the tile where active */
    uint32_t active, width;
    bool load; /* as for banks_request (banks.h) */
} bank_access;

/* What some requests cost on a layout. */
typedef struct bank_choice {
    bank_layout layout;
    uint64_t wasted; /* bytes that hold no element */
    uint64_t wavefronts, ideal;
    uint32_t worst;     /* of one request */
    bool conflict_free; /* no group of lanes takes more wavefronts than it must */
} bank_choice;

enum { LAYOUTS_MAX = 768 };

/* Every layout that the search tries, the simplest first: paddings of less than 128 bytes, after
 * which the banks repeat; XOR of elements and of chunks; TMA's swizzles if rows have their length;
 * and every swizzle of address bits that keeps elements whole, changes bank bits and uses only bits
 * of the tile's addresses. Returns how many. */
size_t layouts_list(const bank_tile *tile, bank_layout out[LAYOUTS_MAX]);

/* False: the layout splits or misaligns the vector of a lane. */
bool layout_cost(const bank_tile *tile, const bank_layout *layout, const bank_access *accesses,
                 size_t n, bank_choice *out);

/* Whether a is better: fewer wavefronts, then fewer wasted bytes. Of equal ones the first in the
 * order of layouts_list is the best. */
static inline bool choice_is_better(const bank_choice *a, const bank_choice *b) {
    return a->wavefronts != b->wavefronts ? a->wavefronts < b->wavefronts : a->wasted < b->wasted;
}

#endif
