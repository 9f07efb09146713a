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

/* The blocks of a cluster, each of which adds `share` rows of C of each warpgroup: as cluster_sums
 * (split_k.cuh), but a row's sums are in `boxes`. */
typedef struct thin_parts {
    int parts, rank, share, rows, boxes, pitch;

    __device__ __forceinline__ explicit thin_parts(const wgmma_args &w)
        : parts((int)cluster_size()), rank((int)cluster_rank()), share(w.share),
          rows(w.swapped ? w.columns : 64), boxes(w.swapped ? 1 : (w.columns + 31) / 32),
          pitch(w.swapped ? 256 : 128) {}
    __device__ __forceinline__ int rows_of(int of) const {
        return max(0, min(share, rows - of * share));
    }
    /* Of a warpgroup's rows of all parts; none without a cluster. */
    __device__ __forceinline__ int bytes() const {
        return parts > 1 ? parts * boxes * share * pitch : 0;
    }
    __device__ __forceinline__ int part_bytes() const { return boxes * share * pitch; }
    __device__ __forceinline__ unsigned barrier(const ring &r) const {
        return r.empty + 8 * r.count;
    }
    /* For all threads; the ring's barriers follow. */
    __device__ __forceinline__ void begin(const ring &r) const {
        if (parts == 1) return;
        if (threadIdx.x == THREADS - 1)
            expect_bytes(barrier(r), CONSUMERS * parts * boxes * rows_of(rank) * pitch);
        cluster_arrive();
    }
} thin_parts;

/* A thread's place among its warpgroup's rows of C: a vector of every `down`-th row. */
typedef struct thin_place {
    int vector, row, down;

    __device__ __forceinline__ explicit thin_place(const wgmma_args &w) {
        const int t = threadIdx.x % 128;
        const int log = w.swapped || w.columns > 32 ? 4 : w.columns > 16 ? 3 : 2; /* vectors */
        vector = t & (1 << log) - 1;
        row = t >> log;
        down = 128 >> log;
    }
} thin_place;

/* The blocks copy their sums to those that add them. */
__device__ __forceinline__ void add_in_cluster(const gemm_args &g, const wgmma_args &w,
                                               const thin_parts &all, const thin_place &own,
                                               alpha_beta by, const ring &r, int consumer, int z,
                                               int row, int column) {
    const int t = threadIdx.x % 128, to = t / all.boxes, box = t - to * all.boxes;
    const unsigned buffer = r.out + consumer * sum_bytes(w.columns);
    const unsigned copied = r.out + CONSUMERS * sum_bytes(w.columns) + consumer * all.bytes();
    const int first = all.rank * all.share, box_bytes = all.share * all.pitch;
    fence_writes();
    group_barrier(1 + consumer, 128);
    cluster_wait(); /* all have begun */
    if (to < all.parts && all.rows_of(to) > 0)
        copy_to_rank(copied + all.rank * all.part_bytes() + box * box_bytes,
                     buffer + box * OUT_BUFFER + to * box_bytes, all.rows_of(to) * all.pitch,
                     all.barrier(r), to);
    wait_for_bytes(all.barrier(r));
    cluster_arrive();
    finish_rows(g, z, row, column, first + own.row, first + all.rows_of(all.rank), own.down, by,
                [&](int i) {
                    const unsigned at = vector_of(0, w.swapped, i, own.vector);
                    const unsigned box_of = w.swapped ? 0 : own.vector / 8;
                    const unsigned from = copied + at - box_of * (OUT_BUFFER - box_bytes) -
                                          first * all.pitch;
                    part_vector total = {};
#pragma unroll 2
                    for (int part = 0; part < all.parts; part++)
                        add(total, load_bits(from + part * all.part_bytes()));
                    return total;
                });
    cluster_wait(); /* all copies have been made: a block that exits takes its sums with it */
}

/* A warpgroup's sums become its part of C, or of the sums of a range of K. */
__device__ __forceinline__ void store_thin(const gemm_args &g, const wgmma_args &w,
                                           const float (&sum)[THIN_SUMS], alpha_beta by,
                                           const ring &r, int consumer, const block_work &at) {
    const thin_place own(w);
    const thin_parts all(w);
    const int large = at.tile.row * BLOCK_M + consumer * 64;
    const int row = w.swapped ? 0 : large, column = 4 * own.vector + (w.swapped ? large : 0);
    const unsigned buffer = r.out + consumer * sum_bytes(w.columns);
    group_barrier(1 + consumer, 128); /* the buffer's last sums have been read */
    /* Whole rows are copied, with zeros after the columns. */
    write_sums(sum, buffer, w.swapped,
               all.parts > 1 && !w.swapped ? all.boxes * 32 : w.columns);
    if (all.parts > 1) {
        add_in_cluster(g, w, all, own, by, r, consumer, at.z, row, column);
        return;
    }
    group_barrier(1 + consumer, 128);
    const auto load = [&](int i) { return load_sums(vector_of(buffer, w.swapped, i, own.vector)); };
    if (g.split == 1) {
        finish_rows(g, at.z, row, column, own.row, all.rows, own.down, by, load);
    } else if (column < g.N) {
#pragma unroll 1
        for (int i = own.row; i < min(all.rows, (int)g.M - row); i += own.down)
            *reinterpret_cast<part_vector *>(sums_at(g, matrix_of(w, at), row + i, column)) = load(i);
    }
}

template <int A_ACROSS, int B_ACROSS>
__device__ __forceinline__ void thin_product(const gemm_args &g, const wgmma_args &w,
                                             const tensor_map *a_map, const tensor_map *b_map,
                                             const tensor_map *c_map) {
    let_next_launch_begin();
    prefetch_maps(w, a_map, b_map, c_map);
    const int first = (int)cluster_number(), warp = warp_of_block();
    const auto work = [&](int item) { return work_of<true>(g, w, item, (int)cluster_rank()); };
    const thin_parts all(w);
    block_work at;
    ring r = ring_init(w.stages, stage_size<B_ACROSS>(w),
                       CONSUMERS * (sum_bytes(w.columns) + all.bytes()), 1,
                       [&] { at = work(first); });
    all.begin(r);
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
            float sum[THIN_SUMS] = {};
            accumulate<A_ACROSS, B_ACROSS, true>(sum, r, consumer,
                                                 item.steps.end - item.steps.first, w.columns);
            store_thin(g, w, sum, by, r, consumer, item);
        });
    }
}

#define WGMMA_THIN_PRODUCT(name, A_ACROSS, B_ACROSS)                                               \
    WGMMA_ENTRY(name, thin_product<A_ACROSS, B_ACROSS>)

#endif
