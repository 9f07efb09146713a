/* The requests that wmma's loads and stores of fragments become: see wmma_requests.c. */
#ifndef EMU_WMMA_REQUESTS_H
#define EMU_WMMA_REQUESTS_H

#include "../machine/machine.h"

typedef enum wmma_way {
    WMMA_REGISTERS, /* a request a register: matrix_wmma.c makes these */
    WMMA_WORDS,     /* 4 bytes a lane of each block */
    WMMA_ROWS,      /* ldmatrix: 16 bytes of each line of a few blocks */
    WMMA_PAIRS      /* two neighbouring elements a lane of each block, at once where they lie so */
} wmma_way;

typedef struct wmma_tile {
    wmma_way way;
    uint32_t lines, line_bytes; /* as the tile lies in memory */
    uint32_t element_bytes;
    bool pairs_in_line; /* WMMA_PAIRS: a lane's two elements are neighbours in memory */
} wmma_tile;

/* A load or store of the tile whose lines are `pitch` bytes apart, for the launch's observer. */
void wmma_report(const warp *w, const insn *i, const wmma_tile *tile, uint64_t base,
                 uint64_t pitch);

#endif
