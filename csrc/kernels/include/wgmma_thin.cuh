/* wgmma_16bit.cuh for few columns or few rows of C, up to THIN_COLUMNS.
 *
 *      N is small                              M is small: the product is C^T = B^T A^T
 *      A [M][K]  x  B [K][8..32]  ->  C        B^T [N][K]  x  A^T [K][8..32]  ->  C^T, stored as C
 *
 * So wgmma's first operand, which has 64 rows, is the large one, and the second has 8, 16, 24 or 32
 * columns. Boxes have no more of it than there is: with few rows as first operand most of what TMA
 * writes to shared memory would be zeros, which take as long as other bytes.
 *
 * Such products move the bytes of the large operand, and few tiles have much K. So the blocks of a
 * tile may be a cluster that adds the ranges of K (split_k.cuh). Sums leave from registers, element
 * by element: 8 lanes have adjacent rows of the tile, 4 lanes pairs of columns.
 */
#ifndef SMK_WGMMA_THIN_CUH
#define SMK_WGMMA_THIN_CUH

#include "wgmma_16bit.cuh"

constexpr int THIN_SUMS = THIN_COLUMNS / 2, ALL_CONSUMERS = 8; /* a barrier */

/* Where a thread's sum i is in the block's tile. */
typedef struct tile_element {
    int row, column;
} tile_element;

__device__ __forceinline__ tile_element element_of(int consumer, int i) {
    const int t = threadIdx.x % 128;
    return {consumer * 64 + t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8,
            i / 4 * 8 + t % 4 * 2 + i % 2};
}

/* Leaves the sums in the ring, for the blocks of the cluster, which add them to C; in rows of C. */
__device__ __forceinline__ void add_in_cluster(const gemm_args &g, const wgmma_args &w,
                                               const float (&sum)[THIN_SUMS], const ring &r,
                                               int consumer, const block_work &at) {
    const int first = at.tile.row * BLOCK_M;
    const cluster_tile tile = w.swapped ? cluster_tile{at.z, 0, first, w.columns, BLOCK_M}
                                        : cluster_tile{at.z, first, 0, BLOCK_M, w.columns};
    const int pitch = tile.columns * 4 + 16; /* rows begin in different banks */
    group_barrier(ALL_CONSUMERS, 128 * CONSUMERS); /* no stage is read any more */
#pragma unroll
    for (int i = 0; i < THIN_SUMS; i++) {
        const tile_element e = element_of(consumer, i);
        const int row = w.swapped ? e.column : e.row, column = w.swapped ? e.row : e.column;
        if (e.column < w.columns) shared_store(r.stages + row * pitch + column * 4, sum[i]);
    }
    sum_cluster<128 * CONSUMERS>(
        g, tile, (int)threadIdx.x - 128,
        [&](int row, int vector) { return r.stages + row * pitch + vector * 16; });
}

/* A warpgroup's sums become its part of C, or of the sums of a range of K. */
__device__ __forceinline__ void store_thin(const gemm_args &g, const wgmma_args &w,
                                           const float (&sum)[THIN_SUMS], int consumer,
                                           const block_work &at) {
    const float alpha = (float)g.alpha, beta = (float)g.beta;
    const long long matrix = matrix_of(w, at);
#pragma unroll
    for (int i = 0; i < THIN_SUMS; i++) {
        const tile_element e = element_of(consumer, i);
        const int long_side = at.tile.row * BLOCK_M + e.row;
        const int row = w.swapped ? e.column : long_side, column = w.swapped ? long_side : e.column;
        if (row >= g.M || column >= g.N) continue;
        if (g.split > 1) {
            *sums_at(g, matrix, row, column) = sum[i];
            continue;
        }
        REAL *c = g.C + at.z * g.batch_c + row * g.ldc + column;
        const float x = alpha * sum[i];
        *c = narrow(beta == 0 ? x : x + beta * widen(*c), REAL());
    }
}

template <int A_ACROSS, int B_ACROSS>
__device__ __forceinline__ void thin_product(const gemm_args &g, const wgmma_args &w,
                                             const tensor_map *a_map, const tensor_map *b_map,
                                             const tensor_map *c_map) {
    let_next_launch_begin();
    prefetch_maps(w, a_map, b_map, c_map);
    const int first = (int)cluster_number(), rank = (int)cluster_rank();
    block_work at = work_of(w, first, rank); /* while other warps make the barriers */
    ring r = ring_init(w.stages, A_TILE + (B_ACROSS ? 64 : w.columns) * 128);
    const int warp = warp_of_block();
    wait_for_launch_before();
    if (warp < 4) {
        give_registers<PRODUCER_REGISTERS>();
        if (warp == 0 && elect_one()) {
            for (int item = first; item < w.list.items; item += gridDim.x, at = work_of(w, item))
                fill_all<A_ACROSS, B_ACROSS>(g, w, a_map, b_map, r, at);
        }
    } else {
        take_registers<CONSUMER_REGISTERS>();
        const int consumer = warp / 4 - 1;
        for (int item = first; item < w.list.items; item += gridDim.x, at = work_of(w, item)) {
            float sum[THIN_SUMS];
            accumulate<A_ACROSS, B_ACROSS, 8>(sum, r, consumer, at.steps.end - at.steps.first,
                                              w.columns);
            if (cluster_size() > 1) {
                add_in_cluster(g, w, sum, r, consumer, at);
            } else {
                store_thin(g, w, sum, consumer, at);
            }
        }
    }
}

#define WGMMA_THIN_PRODUCT(name, A_ACROSS, B_ACROSS)                                               \
    extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)                                \
        name(const __grid_constant__ gemm_args g, const __grid_constant__ wgmma_args w,            \
             const __grid_constant__ tensor_map a_map, const __grid_constant__ tensor_map b_map,   \
             const __grid_constant__ tensor_map c_map) {                                           \
        thin_product<A_ACROSS, B_ACROSS>(g, w, &a_map, &b_map, &c_map);                            \
    }

#endif
