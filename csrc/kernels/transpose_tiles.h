/* Sizes that the transpose kernels and core/plan_transpose.c share, by bytes per element. */
#ifndef SMK_TRANSPOSE_TILES_H
#define SMK_TRANSPOSE_TILES_H

/* transpose_sector_aligned: rows and columns of x per tile; rows before the tile that a block may
 * also read, which make a sector of y (LEAD); sides from which such tiles are used (FROM). */
#define WIDE_TILE_I(itemsize) ((itemsize) <= 2 ? 128 : (itemsize) <= 8 ? 64 : 32)
#define WIDE_TILE_J(itemsize) ((itemsize) == 1 ? 128 : (itemsize) == 2 ? 64 : 32)
#define WIDE_UNIT(itemsize)   32
#define WIDE_LEAD(itemsize)   (WIDE_UNIT(itemsize) / (itemsize))
#define WORD_LEAD(itemsize)   (4 / (itemsize)) /* of elements of 1 and 2 bytes */
enum { WIDE_FROM = 48, WIDE_WARPS = 8 };

/* _large: tiles for elements of 4 and 8 bytes; for others the kernel is empty. */
#define HAS_LARGE(itemsize)  ((itemsize) == 4 || (itemsize) == 8)
#define LARGE_TILE(itemsize) ((itemsize) == 4 ? 96 : 64) /* rows and columns */
enum { LARGE_WARPS = 16 };

/* _tile_by2, _tile_by4, _tile_by8, _tile_words: log2 of the elements (words: of the squares of
 * 4 / itemsize elements) per tile; threads; elements (or words) from row to row in memory. */
enum { SMALL_LOG_BY2 = 9, SMALL_LOG_BY4 = 10, SMALL_LOG_BY8 = 10, SMALL_LOG_WORDS = 8 };
enum {
    SMALL_THREADS_BY2 = 256,
    SMALL_THREADS_BY4 = 256,
    SMALL_THREADS_BY8 = 128,
    SMALL_THREADS_WORDS = 256
};
#define SMALL_TILE_MIN_GAP(itemsize)       ((itemsize) < 4 ? 4 / (itemsize) : 1)
#define SMALL_TILE_GAP(itemsize, log_rows) (((itemsize) <= 4 ? 32 : 128 / (itemsize)) >> (log_rows))
#define SMALL_TILE_PITCH(itemsize, log_rows, log_cols)                                             \
    ((1 << (log_cols)) + (SMALL_TILE_GAP(itemsize, log_rows) > SMALL_TILE_MIN_GAP(itemsize)        \
                              ? SMALL_TILE_GAP(itemsize, log_rows)                                 \
                              : SMALL_TILE_MIN_GAP(itemsize)))

/* Whether the kernel can read two strips of x alternately (transpose_order.cuh). */
#define HAS_PAIRS(itemsize) ((itemsize) >= 4)

/* _vectors and _vectors_small: rows and columns of x per tile; threads of the small one, one per
 * square of 16 bytes x (16 / itemsize) rows. _vectors is empty for 1-byte elements, for which
 * _aligned has more threads. */
#define HAS_VECTORS(itemsize)    ((itemsize) > 1)
#define VECTORS_TILE_I(itemsize) ((itemsize) <= 2 ? 128 : (itemsize) == 4 ? 64 : 32)
#define VECTORS_TILE_J(itemsize)                                                                   \
    ((itemsize) <= 2 ? 128 : (itemsize) == 4 ? 64 : (itemsize) == 8 ? 32 : 16)
#define VECTORS_SMALL_I(itemsize)          (128 / (itemsize))
#define VECTORS_SMALL_J(itemsize)          ((itemsize) == 1 ? 64 : 128 / (itemsize))
#define VECTORS_SMALL_THREADS_OF(itemsize) ((itemsize) == 1 ? 32 : 64)
enum { VECTORS_THREADS = 256 };

/* _tall_skinny, _short_wide, _small: elements per tile, and with a gap after every 32. */
enum { NARROW_THREADS = 256, SHORT_WIDE_THREADS = 128 };
#define NARROW_ELEMENTS(itemsize) ((itemsize) <= 4 ? 4096 : (itemsize) == 8 ? 2048 : 1024)
#define NARROW_SKEWED(elements)   ((elements) + (elements) / 32 + 1)

/* _copy: elements of a row per block. */
enum { COPY_THREADS = 256, COPY_VECTORS = 4 };
#define COPY_ELEMENTS(itemsize) (COPY_THREADS * COPY_VECTORS * 16 / (itemsize))

/* _strided: log2 of the elements per tile, and its row pitch. */
#define STRIDED_LOG(itemsize)   ((itemsize) <= 4 ? 12 : (itemsize) == 8 ? 11 : 10)
#define STRIDED_PITCH(log_cols) ((1 << (log_cols)) | ((log_cols) > 0))

/* _in_place and _in_place_vectors: side of a tile. */
enum { IN_PLACE_THREADS = 256 };
#define IN_PLACE_TILE(itemsize)            ((itemsize) <= 4 ? 64 : 32)
#define IN_PLACE_VECTORS_TILE(itemsize)    ((itemsize) == 1 ? 128 : (itemsize) <= 4 ? 64 : 32)
#define IN_PLACE_VECTORS_THREADS(itemsize) ((itemsize) <= 2 ? 64 : 256)

/* transpose_tma: rows and columns of x per tile, threads per block, tiles in the ring. */
#define TMA_TILE_I(itemsize) ((itemsize) <= 2 ? 128 : (itemsize) <= 8 ? 64 : 32)
#define TMA_TILE_J(itemsize)                                                                       \
    ((itemsize) == 1 ? 128 : (itemsize) <= 4 ? 64 : (itemsize) == 8 ? 32 : 16)
#define TMA_THREADS(itemsize)    ((itemsize) == 1 ? 64 : (itemsize) == 2 ? 128 : 256)
#define TMA_TILE_BYTES(itemsize) (TMA_TILE_I(itemsize) * TMA_TILE_J(itemsize) * (itemsize))
enum { TMA_STAGES = 4 };

#endif
