/* What the kernels of transpose_sectors and core/plan_transpose.c agree on. */
#ifndef SMK_TRANSPOSE_TILES_H
#define SMK_TRANSPOSE_TILES_H

enum {
    SECTOR = 32,   /* bytes that memory moves at a time */
    WIDE_FROM = 48 /* rows and columns from which the wide kernel's tiles are filled */
};

/* _any: elements of a tile, as a power of 2, and from one row of it to the next. */
#define ANY_LOG(itemsize)   ((itemsize) <= 4 ? 12 : (itemsize) == 8 ? 11 : 10)
#define ANY_PITCH(log_cols) ((1 << (log_cols)) | ((log_cols) > 0))

/* transpose_tma: rows and columns of x that make a tile, threads of a block, tiles of its ring. */
#define TMA_TILE_I(itemsize) ((itemsize) <= 2 ? 128 : (itemsize) <= 8 ? 64 : 32)
#define TMA_TILE_J(itemsize)                                                                       \
    ((itemsize) == 1 ? 128 : (itemsize) <= 4 ? 64 : (itemsize) == 8 ? 32 : 16)
#define TMA_THREADS(itemsize)    ((itemsize) == 1 ? 64 : (itemsize) == 2 ? 128 : 256)
#define TMA_TILE_BYTES(itemsize) (TMA_TILE_I(itemsize) * TMA_TILE_J(itemsize) * (itemsize))
enum { TMA_STAGES = 4 };

/* _in_place: the side of a tile. */
#define IN_PLACE_TILE(itemsize) ((itemsize) <= 4 ? 64 : 32)

#endif
