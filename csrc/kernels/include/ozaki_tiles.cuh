/* Shared by the products of planes of residues: the order of the tiles, sums to bytes, the kernels
 * before and after the product.
 *
 * The including file defines BLOCK_M and BLOCK_N.
 */
#ifndef SMK_OZAKI_TILES_CUH
#define SMK_OZAKI_TILES_CUH

#include "hopper.cuh"
#include "ozaki_combine.cuh"
#include "tile_order.cuh"

constexpr int GROUP = 2048 / BLOCK_M; /* of the tile order */

/* ---- work: a tile of a plane of C ---- */

typedef struct plane_tile {
    int row, column, modulus, batch;
} plane_tile;

/* All tiles of a modulus come first, then those of the next: its planes stay in L2. */
__device__ __forceinline__ plane_tile tile_of(int item, int down, int across) {
    const int tiles = down * across, plane = item / tiles, batch = plane / MODULI;
    const tile_place at = place<GROUP>(item - plane * tiles, down, across);
    return {at.row * BLOCK_M, at.column * BLOCK_N, plane - batch * MODULI, batch};
}

/* Index of a plane of an operand in its tensor map. */
__device__ __forceinline__ int plane_of(const plane_tile &t, long long batch_stride) {
    return (batch_stride ? t.batch * MODULI : 0) + t.modulus;
}

/* ---- sums to bytes ---- */

/* x modulo p for |x| <= 2^30, in [0, 255]: the quotient is exact or, for some x >= 0, 1 less. */
__device__ __forceinline__ unsigned remainder(int x, int multiplier, int modulus) {
    return x - (__mulhi(x, multiplier) >> 6) * modulus;
}

/* A thread's four adjacent columns: B's rows are permuted so (place_of). */
__device__ __forceinline__ unsigned four_bytes(const int *d, int h, int multiplier, int modulus) {
    const unsigned b0 = remainder(d[2 * h], multiplier, modulus);
    const unsigned b1 = remainder(d[2 * h + 1], multiplier, modulus);
    const unsigned b2 = remainder(d[2 * h + 4], multiplier, modulus);
    const unsigned b3 = remainder(d[2 * h + 5], multiplier, modulus);
    return low_bytes(b0, b1, b2, b3);
}

/* Adds the bytes of an earlier range of K to the same sums. */
__device__ __forceinline__ void add_bytes(int *d, int h, unsigned word) {
    d[2 * h] += word & 0xff;
    d[2 * h + 1] += word >> 8 & 0xff;
    d[2 * h + 4] += word >> 16 & 0xff;
    d[2 * h + 5] += word >> 24;
}

/* ---- the kernels ---- */

#define OZAKI_KERNEL(name, threads, blocks)                                                        \
    extern "C" __global__ void __launch_bounds__(threads, blocks)                                  \
        name(const __grid_constant__ gemm_args g, const __grid_constant__ ozaki_args o,            \
             const __grid_constant__ tensor_map a_map, const __grid_constant__ tensor_map b_map,   \
             const __grid_constant__ tensor_map c_map)

#define OZAKI_OTHER_KERNELS(name)                                                                  \
    OZAKI_KERNEL(name##_scale, 32 * OZAKI_SCALE_ROWS, 1) {                                         \
        scale_operands(g, o);                                                                      \
    }                                                                                              \
    OZAKI_KERNEL(name##_pack, OZAKI_PACK_THREADS, 3) {                                             \
        pack_operands(g, o);                                                                       \
    }                                                                                              \
    OZAKI_KERNEL(name##_combine, OZAKI_COMBINE_THREADS, 3) {                                       \
        combine(g, o);                                                                             \
    }

#endif
