/* What the kernels of transposes and core/plan_transpose.c agree on; sizes by the bytes of an element. */
#ifndef SMK_TRANSPOSE_TILES_H
#define SMK_TRANSPOSE_TILES_H

/* transpose_sectors: rows and columns of x that make a tile; rows before it that it may take part in, which make a
 * sector of y; sizes from which tiles are filled. */
#define WIDE_TILE_I(itemsize) ((itemsize) <= 2 ? 128 : (itemsize) <= 8 ? 64 : 32)
#define WIDE_TILE_J(itemsize) ((itemsize) == 1 ? 128 : (itemsize) <= 4 ? 64 : 32)
#define WIDE_UNIT(itemsize)   32
#define WIDE_LEAD(itemsize)   (WIDE_UNIT(itemsize) / (itemsize))
enum { WIDE_FROM = 48, WIDE_WARPS = 8 };

/* _large: the same, of elements of 4 and 8 bytes; of others it is empty. */
#define HAS_LARGE(itemsize)  ((itemsize) == 4 || (itemsize) == 8)
#define LARGE_TILE(itemsize) ((itemsize) == 4 ? 96 : 64) /* rows, and as many columns */
enum { LARGE_WARPS = 16 };

/* _little and _least: the side of a tile. */
enum { LITTLE_TILE = 32, LEAST_TILE = 16, LITTLE_THREADS = 256 };

/* Elements of which strips of x are read in turns where its rows crowd (transpose_order.cuh). */
#define HAS_PAIRS(itemsize) ((itemsize) >= 4)

/* _vectors and _vectors_little: rows and columns of x that make a tile; threads of the little ones, one for each 16 x 16
 * bytes or 16 bytes of it. _vectors is empty for bytes: _even has more threads for them. */
#define HAS_VECTORS(itemsize)    ((itemsize) > 1)
#define VECTORS_TILE_I(itemsize) ((itemsize) <= 2 ? 128 : (itemsize) == 4 ? 64 : 32)
#define VECTORS_TILE_J(itemsize)                                                                   \
    ((itemsize) <= 2 ? 128 : (itemsize) == 4 ? 64 : (itemsize) == 8 ? 32 : 16)
#define VECTORS_LITTLE_I(itemsize)          (128 / (itemsize))
#define VECTORS_LITTLE_J(itemsize)          ((itemsize) == 1 ? 64 : 128 / (itemsize))
#define VECTORS_LITTLE_THREADS_OF(itemsize) ((itemsize) == 1 ? 32 : 64)
enum { VECTORS_THREADS = 256 };

/* _tall, _flat, _small: elements of a tile, and what they take with a gap behind each 32. */
enum { NARROW_THREADS = 256, FLAT_THREADS = 128 };
#define NARROW_ELEMENTS(itemsize) ((itemsize) <= 4 ? 4096 : (itemsize) == 8 ? 2048 : 1024)
#define NARROW_SKEWED(elements)   ((elements) + (elements) / 32 + 1)

/* _copy: elements of a row that a block copies. */
enum { COPY_THREADS = 256, COPY_VECTORS = 4 };
#define COPY_ELEMENTS(itemsize) (COPY_THREADS * COPY_VECTORS * 16 / (itemsize))

/* _any: elements of a tile, as a power of 2, and from one row of it to the next. */
#define ANY_LOG(itemsize)   ((itemsize) <= 4 ? 12 : (itemsize) == 8 ? 11 : 10)
#define ANY_PITCH(log_cols) ((1 << (log_cols)) | ((log_cols) > 0))

/* _in_place and _in_place_vectors: the side of a tile. */
enum { IN_PLACE_THREADS = 256 };
#define IN_PLACE_TILE(itemsize)            ((itemsize) <= 4 ? 64 : 32)
#define IN_PLACE_VECTORS_TILE(itemsize)    ((itemsize) == 1 ? 128 : (itemsize) <= 4 ? 64 : 32)
#define IN_PLACE_VECTORS_THREADS(itemsize) ((itemsize) <= 2 ? 64 : 256)

/* transpose_tma: rows and columns of x that make a tile, threads of a block, tiles of its ring. */
#define TMA_TILE_I(itemsize) ((itemsize) <= 2 ? 128 : (itemsize) <= 8 ? 64 : 32)
#define TMA_TILE_J(itemsize)                                                                       \
    ((itemsize) == 1 ? 128 : (itemsize) <= 4 ? 64 : (itemsize) == 8 ? 32 : 16)
#define TMA_THREADS(itemsize)    ((itemsize) == 1 ? 64 : (itemsize) == 2 ? 128 : 256)
#define TMA_TILE_BYTES(itemsize) (TMA_TILE_I(itemsize) * TMA_TILE_J(itemsize) * (itemsize))
enum { TMA_STAGES = 4 };

#endif
