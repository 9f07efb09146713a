/* The order in which blocks take the tiles of C, chosen for reuse in L2. */
#ifndef SMK_TILE_ORDER_CUH
#define SMK_TILE_ORDER_CUH

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

#endif
