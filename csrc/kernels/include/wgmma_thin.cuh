/* wgmma_16bit.cuh for few columns or few rows of C, up to THIN_COLUMNS, and for tiles whose ranges
 * of K a cluster adds.
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
 * tile may be a cluster that adds the ranges of K (split_k.cuh), here and where C has few tiles of
 * up to SUMMED_COLUMNS. The sums of a warpgroup go to its buffers, or where the ring was, in rows of
 * C, and leave by 4 columns per thread: code that runs once is short.
 *
 * Why a cluster adds large tiles, too: a multiprocessor receives at most 64 bytes per clock. For
 * 512 x 512 x 16384 a block of 64 x 128 receives 1.6 MB with four parts of K, and one of 128 x 128
 * with six parts 1.4 MB and 53 KB of sums. The blocks of a part may share tiles.
 */
#ifndef SMK_WGMMA_THIN_CUH
#define SMK_WGMMA_THIN_CUH

#include "wgmma_16bit.cuh"

__device__ __forceinline__ int sum_pitch(const wgmma_args &w) {
    return SUM_PITCH(w.columns, w.swapped);
}

/* Bytes of a warpgroup's sums: 64 rows of C, or as many as columns if the product is swapped. */
__device__ __forceinline__ int sum_bytes(const wgmma_args &w) {
    return (w.swapped ? w.columns : 64) * sum_pitch(w);
}

/* Where vector v of a row is. No bank conflicts: 16 lanes write 8 bytes each to 4 rows; swapped, 32
 * lanes 4 bytes each to 4 rows; 8 lanes read 1 or 2 rows. */
__device__ __forceinline__ unsigned vector_of(bool swapped, int row, int v) {
    return (v ^ (swapped ? row / 2 % 4 * 2 : row % 2 * 4 | row & 2)) << 4;
}

/* Writes a thread's sums: rows g and g + 8 of its warp's 16, columns 8 j + 2 q and the next. Not
 * swapped, zeros follow them as far as column `end`. */
template <int COUNT>
__device__ __forceinline__ void write_sums(const float (&sum)[COUNT], unsigned buffer, bool swapped,
                                           int pitch, int columns, int end) {
    const int t = threadIdx.x % 128, row = t / 32 * 16 + t % 32 / 4, q = t % 4;
    if (swapped) {
        const unsigned at = buffer + 2 * q * pitch + vector_of(true, 2 * q, row / 4) + row % 4 * 4;
#pragma unroll
        for (int j = 0; j < COUNT / 4; j++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const unsigned to = (at ^ i / 2 * 32) + (8 * j + i % 2) * 256;
                if (8 * j < columns) shared_store(to, sum[4 * j + i]);
            }
        }
    } else {
        const unsigned at = buffer + row * pitch + vector_of(false, row, q / 2) + q % 2 * 8;
#pragma unroll
        for (int j = 0; j < COUNT / 4; j++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const unsigned to = (at ^ j % 4 * 32) + j / 4 * 128 + h * 8 * pitch;
                const float *x = sum + 4 * j + 2 * h;
                if (8 * j < columns) shared_store_pair(to, x[0], x[1]);
            }
        }
#pragma unroll 1
        for (int j = columns / 8; 8 * j < end; j++) {
            const unsigned to = (at ^ j % 4 * 32) + j / 4 * 128;
            shared_store_pair(to, 0, 0);
            shared_store_pair(to + 8 * pitch, 0, 0);
        }
    }
}

/* Of a warpgroup's rows. SUMMED: blocks of each part may share tiles. */
template <widths OF> __device__ __forceinline__ cluster_parts thin_parts(const wgmma_args &w) {
    const int rank = (int)blockIdx.y, rows = w.swapped ? w.columns : 64;
    if (OF == THIN) return cluster_parts(w.parts, rank, w.added, rows, sum_pitch(w));
    const int each = w.multicast * w.multicast_a;
    const int part = rank >> w.multicast / 2 + w.multicast_a / 2; /* of 1, 2, 4: the logarithm */
    return cluster_parts(w.parts, part, w.added, rows, sum_pitch(w), each, rank & (each - 1));
}

/* A thread's place among its warpgroup's rows of C: a vector of every `down`-th row. These are
 * multiples of 4 rows apart, so the vectors are at the same place in each, `bytes` from its start. */
typedef struct thin_place {
    int vector, row, down;
    unsigned bytes;

    __device__ __forceinline__ thin_place(const wgmma_args &w, int first) {
        const int t = threadIdx.x % 128;
        const int wide = w.swapped ? 64 : w.columns; /* columns of C */
        const int log = wide > 128 ? 6 : wide > 64 ? 5 : wide > 32 ? 4 : wide > 16 ? 3 : 2;
        vector = t & (1 << log) - 1;
        row = first + (t >> log);
        down = 128 >> log;
        bytes = vector_of(w.swapped, row, vector);
    }
} thin_place;

/* Where row 0 of a warpgroup's rows has this vector in C. */
__device__ __forceinline__ int2 place_in_c(const wgmma_args &w, int vector, int consumer,
                                           const block_work &at) {
    const int large = at.tile.row * BLOCK_M + consumer * 64, small = at.tile.column * w.columns;
    return make_int2(w.swapped ? small : large, 4 * vector + (w.swapped ? large : small));
}

/* Rows of C that this thread stores, of those before `end`: none of a vector after the tile. */
__device__ __forceinline__ own_rows rows_of_c(const gemm_args &g, const wgmma_args &w,
                                              const thin_place &own, int2 to, int z, int end) {
    const bool exists = w.swapped || 4 * own.vector < w.columns;
    return own_rows(g, z, to.x, to.y, own.row, exists ? end : 0, own.down);
}

/* A warpgroup's sums become its part of C, or of the sums of a range of K. SUMMED: they go where the
 * ring was, once all blocks of the cluster have multiplied. */
template <widths OF, int COUNT>
__device__ __forceinline__ void store_thin(const gemm_args &g, const wgmma_args &w,
                                           const float (&sum)[COUNT], const cluster_parts &all,
                                           alpha_beta by, const ring &r, int consumer,
                                           const block_work &at) {
    const unsigned sums = OF == SUMMED ? r.stages : r.out, buffer = sums + consumer * sum_bytes(w);
    const bool adds = OF == SUMMED || all.parts > 1;
    if (OF == SUMMED) {
        group_barrier(1 + CONSUMERS, 128 * CONSUMERS); /* all warps have read the ring */
        if (warp_of_block() == 4) all.give(r.more + 8);
    } else {
        group_barrier(1 + consumer, 128); /* the buffer's last sums have been read */
    }
    /* Whole rows are copied. */
    write_sums(sum, buffer, w.swapped, all.pitch, w.columns, adds ? all.pitch / 4 : 0);
    if (adds) {
        const unsigned copied = sums + CONSUMERS * sum_bytes(w) + consumer * all.bytes();
        all.send(buffer, copied, r.more, warp_of_block() % 4, 4, [&] {
            group_barrier(1 + consumer, 128);
            if (OF == SUMMED) barrier_wait(r.more + 8, 0);
        });
        const thin_place own(w, all.first());
        const int2 to = place_in_c(w, own.vector, consumer, at);
        const own_rows rows = rows_of_c(g, w, own, to, at.z, all.first() + all.rows_of(all.rank));
        all.add_all(rows, g.ldc, by, buffer, copied, r.more, [&](int row) {
            return 2 * COUNT > 128 ? vector_of(w.swapped, row, own.vector) : own.bytes;
        });
        return;
    }
    const thin_place own(w, 0);
    const int2 to = place_in_c(w, own.vector, consumer, at);
    const own_rows rows = rows_of_c(g, w, own, to, at.z, all.rows);
    group_barrier(1 + consumer, 128);
    const auto load = [&](int i) {
        const uint4 bits = load_bits(buffer + i * all.pitch + own.bytes);
        return reinterpret_cast<const part_vector &>(bits);
    };
    if (g.split == 1) {
        finish_rows(rows, g.ldc, by, load);
        return;
    }
#pragma unroll 1
    for (int i = rows.first; i < rows.end; i += rows.down)
        *reinterpret_cast<part_vector *>(sums_at(g, matrix_of(w, at), to.x + i, to.y)) = load(i);
}

/* COLUMNS: the most that a tile has. */
template <int COLUMNS, widths OF, int A_ACROSS, int B_ACROSS>
__device__ __forceinline__ void thin_product(const gemm_args &g, const wgmma_args &w,
                                             const tensor_map *a_map, const tensor_map *b_map,
                                             const tensor_map *c_map) {
    /* More sums than the registers of all warps leave room for. */
    constexpr bool MANY = COLUMNS > 128;
    constexpr int FIRST = OF == SUMMED; /* of the widths: 32 */
    constexpr int LAST = OF == THIN ? COLUMNS / 16 + 1 : MANY ? COLUMNS / 32 + 3 : COLUMNS / 16 - 1;
    let_next_launch_begin();
    prefetch_maps(a_map, b_map);
    const int first = (int)blockIdx.x, warp = warp_of_block();
    const cluster_parts all = thin_parts<OF>(w);
    const auto work = [&](int item) {
        return OF == SUMMED ? own_work_of(g, w, item, all.rank) : work_of(g, w, item, all.rank);
    };
    block_work at;
    ring r = ring_init(w.stages, stage_size<B_ACROSS>(w), all.each, [&] { at = work(first); });
    if (OF == SUMMED) {
        r.first = (int)blockIdx.y - all.place;
        if (threadIdx.x == THREADS - 1) barrier_init(r.more + 8, all.parts - 1);
    }
    const bool adds = OF == SUMMED || all.parts > 1;
    if (adds) all.begin(r.more, THREADS - 1, CONSUMERS);
    wait_for_launch_before();
    if (MULTIPLIES(warp)) {
        if (MANY) take_registers<232>();
        const int consumer = warp / 4 - 1;
        const alpha_beta by = alpha_beta_of(g); /* while the first copies are on their way */
        if (adds) cluster_wait();               /* all have begun */
        for_each_item(w.list, first, work(first), work, [&](const block_work &item, bool) {
            float sum[COLUMNS / 2];
            accumulate<A_ACROSS, B_ACROSS, OF, FIRST, LAST>(
                sum, r, consumer, item.steps.end - item.steps.first, w.columns);
            store_thin<OF>(g, w, sum, all, by, r, consumer, item);
        });
        return;
    }
    if (MANY) give_registers<40>();
    if (warp == 0 && elect_one()) {
        for_each_item(w.list, first, at, work, [&](const block_work &item, bool) {
            fill_all<A_ACROSS, B_ACROSS>(w, a_map, b_map, r, item);
        });
        if (OF == SUMMED && r.sharing > 1) wait_for_releases(r);
    }
    /* Before they exit: launches in which they did not ended with an illegal address. */
    if (adds) cluster_wait();
}

#define WGMMA_THIN_PRODUCT(name, A_ACROSS, B_ACROSS)                                               \
    WGMMA_ENTRY(name, thin_product<THIN_COLUMNS, THIN, A_ACROSS, B_ACROSS>)
/* Of tiles that are not thin, of 32 columns or more, whose sums a cluster adds. */
#if SUMMED_COLUMNS(BLOCK_M)
#define WGMMA_SUMMED_PRODUCT(name, A_ACROSS, B_ACROSS)                                             \
    WGMMA_ENTRY(name, thin_product<SUMMED_COLUMNS(BLOCK_M), SUMMED, A_ACROSS, B_ACROSS>)
#else
#define WGMMA_SUMMED_PRODUCT(name, A_ACROSS, B_ACROSS)
#endif

#endif
