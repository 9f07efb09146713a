/* The order in which blocks take the tiles of C, chosen for reuse in L2. */
#ifndef SMK_TILE_ORDER_CUH
#define SMK_TILE_ORDER_CUH

#include "args.h"

typedef struct tile_place {
    int row, column; /* in tiles */
} tile_place;

/* Columns of GROUP tiles, top to bottom, then the next column: about as many rows of A as columns
 * of B are in use at a time. */
template <int GROUP> __device__ __forceinline__ tile_place place(int tile, int down, int across) {
    const int whole = (int)min((long long)GROUP * across, 0x7fffffffll);
    const int band = tile / whole, first = band * GROUP;
    const int height = min(GROUP, down - first), in_band = tile - band * whole;
    return {first + in_band % height, in_band / height};
}

__device__ __forceinline__ int divide(int n, divisor by) {
    return (int)(__umulhi(2u * (unsigned)n, by.multiplier) >> by.shift);
}

/* The same of a list of tiles, with divisors from the host. */
__device__ __forceinline__ tile_place place(int tile, const tile_list &list) {
    const int first = divide(tile, list.by_band) * list.band;
    const int height = min(list.band, list.down - first), in_band = tile - first * list.across;
    const int column = divide(in_band, height == list.band ? list.by_height : list.by_last);
    return {first + in_band - column * height, column};
}

/* Steps of K of a range. */
typedef struct part_range {
    int first, end;
} part_range;

__device__ __forceinline__ part_range range_of(int part, const tile_list &list) {
    const int first = part * list.even_steps + min(part, list.longer);
    return {first, first + list.even_steps + (part < list.longer)};
}

#endif
