/* wgmma_16bit.cuh for few columns or few rows of C, up to THIN_COLUMNS.
 *
 *      N is small                              M is small: the product is C^T = B^T A^T
 *      A [M][K]  x  B [K][8..64]  ->  C        B^T [N][K]  x  A^T [K][8..64]  ->  C^T, stored as C
 *
 * So wgmma's first operand, which has 64 rows, is the large one, and the second has all columns,
 * rounded up to a multiple of 8, or above 32 of 16. Boxes have no more of it than there is: with
 * few rows as first operand most of what TMA writes to shared memory would be zeros, which take as
 * long as other bytes.
 *
 * Such products move the bytes of the large operand, and few tiles have much K. So the blocks of a
 * tile may be a cluster that adds the ranges of K (split_k.cuh). The sums of a warpgroup go to its
 * buffers, in rows of C, and leave by 4 columns per thread: code that runs once is short.
 */
#ifndef SMK_WGMMA_THIN_CUH
#define SMK_WGMMA_THIN_CUH

#include "wgmma_16bit.cuh"

constexpr int THIN_SUMS = THIN_COLUMNS / 2;

/* Bytes of a warpgroup's sums in shared memory. */
__device__ __forceinline__ int sum_bytes(int columns) {
    return (columns + 31) / 32 * OUT_BUFFER;
}

/* Rows of C in a warpgroup's buffer: 64 x 32 sums for each 32 columns, in rows of 128 bytes, or
 * `columns` x 64 if the product is swapped, in rows of 256. Vectors of 16 bytes are swizzled. No
 * bank conflicts: 16 lanes write 8 bytes each to 4 rows; swapped, 32 lanes 4 bytes each to 4 rows;
 * 8 lanes read 1 or 2 rows. */
__device__ __forceinline__ unsigned vector_of(unsigned buffer, bool swapped, int row, int v) {
    return swapped
               ? buffer + row * 256 + ((v ^ row / 2 % 4 * 2) << 4)
               : buffer + v / 8 * OUT_BUFFER + row * 128 + ((v % 8 ^ (row % 2 * 4 | row & 2)) << 4);
}

__device__ __forceinline__ part_vector load_sums(unsigned from) {
    part_vector v;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.at[0]), "=f"(v.at[1]), "=f"(v.at[2]), "=f"(v.at[3])
                 : "r"(from)
                 : "memory");
    return v;
}

/* Writes a thread's sums: rows g and g + 8 of its warp's 16, columns 8 j + 2 q and the next. */
__device__ __forceinline__ void write_sums(const float (&sum)[THIN_SUMS], unsigned buffer,
                                           bool swapped, int columns) {
    const int t = threadIdx.x % 128, row = t / 32 * 16 + t % 32 / 4, q = t % 4;
    const unsigned at = swapped ? vector_of(buffer, true, 2 * q, row / 4) + row % 4 * 4
                                : vector_of(buffer, false, row, q / 2) + q % 2 * 8;
#pragma unroll
    for (int j = 0; j < THIN_SUMS / 4; j++) {
        if (8 * j >= columns) break;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float x = sum[4 * j + 2 * h], y = sum[4 * j + 2 * h + 1];
            if (swapped) {
                shared_store((at ^ h * 32) + j * 2048, x);
                shared_store((at ^ h * 32) + j * 2048 + 256, y);
            } else {
                shared_store_pair((at ^ j % 4 * 32) + j / 4 * OUT_BUFFER + h * 1024, x, y);
            }
        }
    }
}

/* A warpgroup's sums become its part of C, or of the sums of a range of K. */
__device__ __forceinline__ void store_thin(const gemm_args &g, const wgmma_args &w,
                                           const float (&sum)[THIN_SUMS], alpha_beta by,
                                           const ring &r, int consumer, const block_work &at) {
    const int t = threadIdx.x % 128, parts = (int)cluster_size();
    const bool swapped = w.swapped;
    const unsigned buffer = r.out + consumer * sum_bytes(w.columns);
    group_barrier(1 + consumer, 128); /* the buffer's last sums have been read */
    write_sums(sum, buffer, swapped, w.columns);
    if (parts > 1) {
        cluster_barrier();
    } else {
        group_barrier(1 + consumer, 128);
    }
    const int log_vectors = swapped           ? 4
                            : w.columns <= 16 ? 2
                            : w.columns <= 32 ? 3
                                              : 4; /* of a row of C */
    const int large = at.tile.row * BLOCK_M + consumer * 64, vector = t & (1 << log_vectors) - 1;
    const int row = swapped ? 0 : large, column = 4 * vector + (swapped ? large : 0);
    const int first = (int)cluster_rank() * 128 + t >> log_vectors,
              step = parts * 128 >> log_vectors;
    int end = swapped ? w.columns : 64;
    const auto load = [&](int r) {
        const unsigned from = vector_of(buffer, swapped, r, vector);
        return parts > 1 ? sum_of_cluster(from, parts) : load_sums(from);
    };
    if (g.split > 1 && parts == 1) {
        if (column >= g.N) end = 0;
#pragma unroll 1
        for (int r = first; r < min(end, (int)g.M - row); r += step)
            *reinterpret_cast<part_vector *>(sums_at(g, matrix_of(w, at), row + r, column)) =
                load(r);
    } else {
        finish_rows(g, at.z, row, column, first, end, step, by, load);
    }
    if (parts > 1) cluster_barrier(); /* no block exits while others read from it */
}

template <int A_ACROSS, int B_ACROSS>
__device__ __forceinline__ void thin_product(const gemm_args &g, const wgmma_args &w,
                                             const tensor_map *a_map, const tensor_map *b_map,
                                             const tensor_map *c_map) {
    let_next_launch_begin();
    prefetch_maps(w, a_map, b_map, c_map);
    const int first = (int)cluster_number(), warp = warp_of_block();
    const auto work = [&](int item) { return work_of<true>(g, w, item, (int)cluster_rank()); };
    block_work at;
    ring r = ring_init(w.stages, stage_size<B_ACROSS>(w), CONSUMERS * sum_bytes(w.columns), 1,
                       [&] { at = work(first); });
    wait_for_launch_before();
    if (warp < 4) {
        give_registers<PRODUCER_REGISTERS>();
        if (warp == 0 && elect_one()) {
            for_each_item(w.list, first, at, work, [&](const block_work &item, bool) {
                fill_all<A_ACROSS, B_ACROSS>(g, w, a_map, b_map, r, item);
            });
        }
    } else {
        take_registers<CONSUMER_REGISTERS>();
        const int consumer = warp / 4 - 1;
        const alpha_beta by = alpha_beta_of(g); /* while the first copies are on their way */
        for_each_item(w.list, first, work(first), work, [&](const block_work &item, bool) {
            float sum[THIN_SUMS];
            accumulate<A_ACROSS, B_ACROSS, true>(sum, r, consumer,
                                                 item.steps.end - item.steps.first, w.columns);
            store_thin(g, w, sum, by, r, consumer, item);
        });
    }
}

#define WGMMA_THIN_PRODUCT(name, A_ACROSS, B_ACROSS)                                               \
    WGMMA_ENTRY(name, thin_product<A_ACROSS, B_ACROSS>)

#endif
