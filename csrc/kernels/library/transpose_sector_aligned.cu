/* Transpose at any pitch: each 32-byte sector of y is written whole, by one block.
 *
 *      x rows, j ->                       y rows, i ->          | sectors of 32 bytes
 *    +-------------+                     ...|.......|.......|...
 *    | lead        |  rows above i0        j  [=======.=======]      a tile's part of row j begins
 *    +-------------+ i0                    j+1 .[=======.=======]    with the sector that contains
 *    | tile        |            ->         j+2   [=======.=======]   i0, so each row has its own
 *    +-------------+                       j+3 [=======.=======]     shift: 0 to lead - 1
 *
 * If the pitch of y is not a multiple of a sector, its rows begin anywhere in one. With square
 * tiles two blocks then write parts of each sector at a tile's edge, and memory must read a
 * half-written sector before it can write it. Here a block reads up to 32 / itemsize more rows,
 * which L2 has, and every sector has one writer.
 * Banks: a column of x is a row of cell, of an odd number of elements: lanes that store are one row
 * apart, lanes that load are adjacent. 1 wavefront for 4 bytes, 2 for 8, 4 for 16, the fewest.
 * Bytes: 2 rows cols elements. 4 bytes per thread suffice: copy speed is a 128-byte request per 16
 * clocks and multiprocessor, each way; a block's whole tile is in flight at once. Loads make L2
 * fetch 256 bytes; another request uses the other half. Order of blocks: transpose_order.cuh.
 * Tiles are 64 x 32 words, or 96 x 96 if no emptier: 8 of 104 rows are read twice, not 8 of 72.
 * Differs from vectorized by elements in place of 16-byte chunks: as fast, and with any alignment.
 * (transpose_bytes.cuh: elements of 1 and 2 bytes.)
 */
#include "transpose_bytes.cuh"
#include "transpose_in_place.cuh"
#include "transpose_loads.cuh"
#include "transpose_narrow.cuh"
#include "transpose_order.cuh"
#include "transpose_small_tiles.cuh"
#include "transpose_strided.cuh"
#include "transpose_vectors.cuh"

/* Elements of 4 bytes and more. */
template <typename T, int LEAD, int TILE_I, int TILE_J, int WARPS>
__device__ __forceinline__ void move_elements(const transpose_args &g) {
    constexpr int E = sizeof(T);
    constexpr int ACROSS = TILE_J / 32, UNIT = LEAD ? LEAD * E : 1;
    constexpr int STEPS = TILE_I / WARPS, MORE = (LEAD + WARPS - 1) / WARPS;
    __shared__ T cell[TILE_J][(LEAD + TILE_I) | 1]; /* row 0 of the tile is at LEAD */

    const T *from = g.x + blockIdx.z * g.batch_x;
    T *to = g.y + blockIdx.z * g.batch_y;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const tile_origin tile = transpose_tile(g, LEAD, TILE_I, TILE_J);
    const long long i0 = tile.column, j0 = tile.row;
    const bool whole = i0 >= LEAD && i0 + TILE_I <= g.rows && j0 + TILE_J <= g.cols;
    const int first = i0 < LEAD ? (int)-i0 : -LEAD;
    const int last = g.rows - i0 < TILE_I ? (int)(g.rows - i0) : TILE_I;
    const long long left = g.cols - j0 - lane;

    const T *p = from + (i0 + warp) * g.ldx + j0 + lane;
    T some[STEPS + MORE][ACROSS];
    if (whole) {
#pragma unroll
        for (int s = -MORE; s < STEPS; s++) {
            if (s < 0 && warp + s * WARPS < -LEAD) continue;
#pragma unroll
            for (int a = 0; a < ACROSS; a++)
                some[s + MORE][a] = load_256(p + s * WARPS * g.ldx + a * 32);
        }
#pragma unroll
        for (int s = -MORE; s < STEPS; s++) {
            if (s < 0 && warp + s * WARPS < -LEAD) continue;
#pragma unroll
            for (int a = 0; a < ACROSS; a++)
                cell[lane + a * 32][LEAD + warp + s * WARPS] = some[s + MORE][a];
        }
    } else {
#pragma unroll
        for (int s = -MORE; s < STEPS; s++) {
            const int r = warp + s * WARPS;
#pragma unroll
            for (int a = 0; a < ACROSS; a++)
                if (r >= first && r < last && a * 32 < left)
                    some[s + MORE][a] = load_256(p + s * WARPS * g.ldx + a * 32);
        }
#pragma unroll
        for (int s = -MORE; s < STEPS; s++) {
            const int r = warp + s * WARPS;
#pragma unroll
            for (int a = 0; a < ACROSS; a++)
                if (r >= first && r < last && a * 32 < left)
                    cell[lane + a * 32][LEAD + r] = some[s + MORE][a];
        }
    }
    __syncthreads();

    T *row = to + (j0 + warp) * g.ldy + i0;
#pragma unroll 4
    for (int j = warp; j < TILE_J; j += WARPS, row += WARPS * g.ldy) {
        if (!whole && j0 + j >= g.cols) break;
        const int shift = (int)((unsigned)(unsigned long long)row % UNIT) / E;
#pragma unroll
        for (int k = 0; k < TILE_I; k += 32) {
            const int r = k + lane - shift;
            if (whole || (r >= first && r < last)) row[r] = cell[j][LEAD + r];
        }
    }
}

template <typename T, int LEAD> __device__ __forceinline__ void move_tile(const transpose_args &g) {
    if constexpr (sizeof(T) < 4)
        move_bytes<T, WIDE_TILE_I(sizeof(T))>(g);
    else
        move_elements<T, LEAD, WIDE_TILE_I(sizeof(T)), WIDE_TILE_J(sizeof(T)), WIDE_WARPS>(g);
}

constexpr int BLOCKS = sizeof(ELEMENT) == 4 ? 8 : 4; /* resident per multiprocessor, by registers */

extern "C" __global__ void __launch_bounds__(WIDE_WARPS * 32, BLOCKS)
    transpose_sector_aligned(const __grid_constant__ transpose_args g) {
    move_tile<ELEMENT, WIDE_LEAD(sizeof(ELEMENT))>(g);
}

/* For y whose tile rows all begin with a sector, or share no sector with another block. */
extern "C" __global__ void __launch_bounds__(WIDE_WARPS * 32, BLOCKS)
    transpose_sector_aligned_aligned(const __grid_constant__ transpose_args g) {
    move_tile<ELEMENT, 0>(g);
}

extern "C" __global__ void __launch_bounds__(LARGE_WARPS * 32, 3)
    transpose_sector_aligned_large(const __grid_constant__ transpose_args g) {
    constexpr int E = sizeof(ELEMENT), TILE = LARGE_TILE(E);
    if constexpr (HAS_LARGE(E)) move_elements<ELEMENT, WIDE_LEAD(E), TILE, TILE, LARGE_WARPS>(g);
}
