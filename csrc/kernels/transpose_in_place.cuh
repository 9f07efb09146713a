/* transpose_sectors' kernel for a square matrix that is its own result.
 *
 *      . . J . .       a block has the tile (I, J) and its mirror image (J, I), J <= I: reads both, waits,
 *      . . . . .       and writes each where the other was
 *      J . . . I       blocks: n (n + 1) / 2; the tile rows p and n - 1 - p have n + 1 tiles together, which
 *      . . . . .       makes a rectangle of them (of an odd n all but the last row)
 *      . . I . .
 *
 * Banks: columns of rows of TILE + 1 elements, as in padded. Bytes: as for any transpose, in half the memory.
 */
#ifndef SMK_TRANSPOSE_IN_PLACE_CUH
#define SMK_TRANSPOSE_IN_PLACE_CUH

#include "common.cuh"
#include "transpose_tiles.h"

constexpr int IN_PLACE_THREADS = 256, SIDE = IN_PLACE_TILE(sizeof(ELEMENT));

extern "C" __global__ void __launch_bounds__(IN_PLACE_THREADS)
    transpose_sectors_in_place(const __grid_constant__ transpose_args g) {
    __shared__ ELEMENT cell[2][SIDE][SIDE + 1];

    const unsigned n = (unsigned)((g.rows + SIDE - 1) / SIDE), even = n % 2 == 0, width = n + even;
    const unsigned p = blockIdx.x / width, c = blockIdx.x - p * width;
    const bool middle = !even && p == n / 2;
    const long long I = (long long)SIDE * (middle ? n - 1 : c <= p ? p : n - 2 + even - p);
    const long long J = (long long)SIDE * (middle || c <= p ? c : c - p - 1);
    ELEMENT *matrix = g.y + blockIdx.z * g.batch_y;
    const long long line = g.ldx, step = g.step_x;
    const unsigned x = threadIdx.x % SIDE, first = threadIdx.x / SIDE;
    constexpr int STRIDE = IN_PLACE_THREADS / SIDE;

#pragma unroll 8
    for (unsigned r = first; r < SIDE; r += STRIDE) {
        if (I + r < g.rows && J + x < g.rows)
            cell[0][r][x] = matrix[(I + r) * line + (J + x) * step];
        if (J + r < g.rows && I + x < g.rows)
            cell[1][r][x] = matrix[(J + r) * line + (I + x) * step];
    }
    __syncthreads();
#pragma unroll 8
    for (unsigned r = first; r < SIDE; r += STRIDE) {
        if (J + r < g.rows && I + x < g.rows)
            matrix[(J + r) * line + (I + x) * step] = cell[0][x][r];
        if (I != J && I + r < g.rows && J + x < g.rows)
            matrix[(I + r) * line + (J + x) * step] = cell[1][x][r];
    }
}

#endif
