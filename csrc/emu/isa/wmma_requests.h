/* The memory requests of wmma's loads and stores of fragments; see wmma_requests.c. */
#ifndef EMU_WMMA_REQUESTS_H
#define EMU_WMMA_REQUESTS_H

#include "../machine/machine.h"

/* The requests of one tile. A block is 8 lines of it (wmma_requests.c). */
typedef enum wmma_request_kind {
    WMMA_PER_REGISTER, /* one per register: matrix_wmma_template.h reports these */
    WMMA_WORDS,        /* one per block: 4 bytes per lane */
    WMMA_LDMATRIX,     /* ldmatrix: 16 bytes of each line of a few blocks */
    /* per block: two neighbouring elements per lane; one request if they are neighbours in memory,
     * else two */
    WMMA_PAIRS
} wmma_request_kind;

typedef struct wmma_tile {
    wmma_request_kind kind;
    /* The tile in memory: a line is a row if row-major, a column if column-major. */
    uint32_t lines, line_bytes;
    uint32_t element_bytes;
    bool pairs_in_line; /* WMMA_PAIRS: a lane's two elements are neighbours in memory */
} wmma_tile;

/* Reports a load or store of the tile to the observer. Lines are `pitch` bytes apart. */
void wmma_report(const warp *w, const insn *i, const wmma_tile *tile, uint64_t base,
                 uint64_t pitch);

#endif
