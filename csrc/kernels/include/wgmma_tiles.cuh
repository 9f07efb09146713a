/* Tiles of C of the wgmma GEMMs that may have any number of columns, and their kernel.
 *
 * A block computes tiles of BLOCK_M x `columns`, 64 rows per warpgroup. The columns are an
 * argument: with those that share C evenly among the multiprocessors no wave of tiles is nearly
 * empty. Blocks go over all matrices of a batch, so the ring stays full. It has as many stages as
 * fit.
 *
 * Swapped, a kernel computes C^T = B^T A^T: then tiles have BLOCK_M columns of C, and `columns` of
 * its rows. "Rows" and "columns" are those of what it computes; C's are named so.
 *
 * The including file defines, beside what wgmma_stages.cuh asks for: sum_of_tile(); my_row(), the
 * first of a thread's two rows of its warpgroup's 64, and ROW_STEP to the second; write_chunk().
 */
#ifndef SMK_WGMMA_TILES_CUH
#define SMK_WGMMA_TILES_CUH

#include "wgmma_stages.cuh"

/* Columns of a tile that a buffer holds; it is stored as boxes of rows and columns of C. */
constexpr int CHUNK = 128 / sizeof(REAL);
template <bool SWAPPED> constexpr int BOX_ROWS = SWAPPED ? 32 : 64;
template <bool SWAPPED> constexpr int BOX_COLUMNS = SWAPPED && sizeof(REAL) == 2 ? 64 : 32;
template <bool SWAPPED> constexpr int BOX_ROW = BOX_COLUMNS<SWAPPED> * sizeof(REAL); /* bytes */

/* Stores a buffer to C, which ends at (rows, columns) for this tile. A tile that ends within a box,
 * and not where C ends, does not own all of it. */
template <bool SWAPPED>
__device__ __forceinline__ void store_chunk(const gemm_args &g, const wgmma_args &w,
                                            const tensor_map *c_map, unsigned buffer, int row,
                                            int column, int rows, int columns, int z, bool leader) {
    constexpr int BOX = BOX_ROWS<SWAPPED> * BOX_ROW<SWAPPED>;
    constexpr int DOWN = BOX_COLUMNS<SWAPPED> > 32 ? 32 : 0, ACROSS = 32 - DOWN; /* to the next */
#pragma unroll
    for (int box = 0; box < OUT_BUFFER / BOX; box++, row += DOWN, column += ACROSS) {
        if (row >= rows || column >= columns) break;
        const unsigned from = buffer + box * BOX;
        const int rest = SWAPPED ? rows - row : columns - column;
        const bool owns = rest >= 32 || (SWAPPED ? rows == (int)g.M : columns == (int)g.N);
        if (w.store_boxes && owns) {
            if (leader) tma_store(c_map, from, column, row, z);
            continue;
        }
        REAL *c = g.C + z * g.batch_c + row * g.ldc + column;
#pragma unroll
        for (int first = 0; first < BOX_COLUMNS<SWAPPED>; first += 32)
            store_box<BOX_ROWS<SWAPPED>, BOX_ROW<SWAPPED>>(c + first, g.ldc, rows - row,
                                                           columns - column - first, from, first);
    }
    if (w.store_boxes && leader) tma_store_commit();
}

/* Stores CHUNK columns at a time. The last stores overlap the next tile, whose first go to the
 * buffer that was not filled last: those of the tiles before, of one warpgroup, are counted modulo
 * 2 in `turn`.
 *
 * After a block's last tile no copies follow, and the tiles of A in the ring are free once all
 * warps of the warpgroup have multiplied: no other reads its 64 rows of them. They are buffers
 * then, and none waits for another. */
template <bool SWAPPED, int A_ACROSS, int COUNT>
__device__ __forceinline__ void
store(const gemm_args &g, const wgmma_args &w, const tensor_map *c_map, const float (&sum)[COUNT],
      const ring &r, int consumer, int row0, int column0, int z, unsigned &turn, bool last) {
    const int columns = min(w.columns, columns_of<SWAPPED>(g) - column0);
    const bool leader = is_leader();
    const bool own = last && w.store_boxes && r.count * CHUNK >= w.columns;
    const unsigned buffers = r.out + consumer * OUT_BUFFERS * OUT_BUFFER;
    const unsigned rows_of_a = r.stages + consumer * 64 * 128;
#pragma unroll
    for (int n = 0; n < 2 * COUNT; n += CHUNK) {
        if (n >= columns) break;
        const unsigned buffer = own ? rows_of_a + n / CHUNK * r.stage_bytes
                                    : buffers + turn++ % OUT_BUFFERS * OUT_BUFFER;
        if (!own && w.store_boxes && leader) tma_store_wait_read<OUT_BUFFERS - 1>();
        if (own ? n == 0 : w.store_boxes || OUT_BUFFERS == 1) group_barrier(1 + consumer, 128);
        write_chunk<SWAPPED, A_ACROSS, 2 * COUNT>(sum + n / 2, n, buffer);
        fence_async_proxy();
        group_barrier(1 + consumer, 128);
        if (SWAPPED)
            store_chunk<true>(g, w, c_map, buffer, column0 + n, row0, column0 + columns, (int)g.N,
                              z, leader);
        else
            store_chunk<false>(g, w, c_map, buffer, row0, column0 + n, (int)g.M, column0 + columns,
                               z, leader);
    }
}

/* p + more, which the compiler does not compute before: registers are too few for all places. */
template <typename T> __device__ __forceinline__ T *next_place(T *p, long long more) {
    p += more;
    asm volatile("" : "+l"(p));
    return p;
}

/* Stores the sums of a split-K part from registers: 8 bytes per thread, four threads per sector.
 * Swapped, these are two rows of the tile, or 4 bytes of one, eight threads per sector. */
template <bool SWAPPED, int A_ACROSS, int COUNT>
__device__ __forceinline__ void store_part(const gemm_args &g, const float (&sum)[COUNT],
                                           long long matrix, int row0, int column0, int columns) {
    constexpr bool PAIRS = SWAPPED && ROW_STEP == 1;
    const int column = column0 + threadIdx.x % 4 * 2;
    const int end = min(column0 + columns, columns_of<SWAPPED>(g)) - column;
#pragma unroll
    for (int h = 0; h < (PAIRS ? 1 : 2); h++) {
        const int row = row0 + my_row<A_ACROSS>() + h * ROW_STEP;
        if (row >= rows_of<SWAPPED>(g)) continue;
        float *to = SWAPPED ? sums_at(g, matrix, column, row) : sums_at(g, matrix, row, column);
#pragma unroll
        for (int j = 0; j < COUNT / 4; j++) {
            const float *x = sum + 4 * j + 2 * h;
            if (SWAPPED) {
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    if (8 * j + e < end && PAIRS)
                        *reinterpret_cast<float2 *>(to) = make_float2(x[e], x[2 + e]);
                    else if (8 * j + e < end)
                        *to = x[e];
                    to = next_place(to, (e ? 7 : 1) * g.part_pitch);
                }
            } else if (8 * j < columns && column + 8 * j < g.part_pitch) {
                *reinterpret_cast<float2 *>(to + 8 * j) = make_float2(x[0], x[1]);
            }
        }
    }
}

/* Adds beta times the old C of the tile's columns. In few instructions per element: those of all
 * that a block skips pass through the instruction cache, too. */
template <bool SWAPPED, int A_ACROSS, int COUNT>
__device__ __forceinline__ void add_old(const gemm_args &g, float (&sum)[COUNT], float beta,
                                        int row0, int column0, int columns, int z) {
    const int column = column0 + threadIdx.x % 4 * 2;
    const int end = min(column0 + columns, columns_of<SWAPPED>(g)) - column;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = row0 + my_row<A_ACROSS>() + h * ROW_STEP;
        if (row >= rows_of<SWAPPED>(g)) break;
        const long long at = SWAPPED ? column * g.ldc + row : row * g.ldc + column;
        const REAL *c = g.C + z * g.batch_c + at;
#pragma unroll
        for (int i = 0; i < COUNT / 2; i++) {
            const int to = i / 2 * 8 + i % 2;
            if (to < end) sum[i / 2 * 4 + 2 * h + i % 2] += beta * widen(SWAPPED ? *c : c[to]);
            if (SWAPPED) c = next_place(c, (i % 2 ? 7 : 1) * g.ldc);
        }
    }
}

/* ---- the kernel ---- */

/* A warpgroup's sums become its part of C, or of the sums of a range of K. */
template <bool SWAPPED, int A_ACROSS, int COUNT>
__device__ __forceinline__ void finish(const gemm_args &g, const wgmma_args &w,
                                       const tensor_map *c_map, float (&sum)[COUNT], alpha_beta by,
                                       const block_work &at, const ring &r, int consumer,
                                       unsigned &turn, bool last) {
    const int row = at.tile.row * BLOCK_M + consumer * 64;
    const int column = at.tile.column * w.columns;
    if (g.split > 1) {
        store_part<SWAPPED, A_ACROSS>(g, sum, matrix_of(w, at), row, column, w.columns);
        return;
    }
    if (by.alpha != 1) {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            sum[i] *= by.alpha;
    }
    if (by.beta != 0) add_old<SWAPPED, A_ACROSS>(g, sum, by.beta, row, column, w.columns, at.z);
    store<SWAPPED, A_ACROSS>(g, w, c_map, sum, r, consumer, row, column, at.z, turn, last);
}

/* An item of this block: of those that share tiles, the one of its place in their rectangle. */
__device__ __forceinline__ block_work own_work_of(const gemm_args &g, const wgmma_args &w, int item,
                                                  int part = 0) {
    block_work at = work_of(g, w, item, part);
    if (w.multicast > 1) at.tile.row = at.tile.row * w.multicast + down_of(w);
    if (w.multicast_a > 1) at.tile.column = at.tile.column * w.multicast_a + right_of(w);
    return at;
}

/* COLUMNS: the most that a tile has. */
template <int COLUMNS, bool SWAPPED, int A_ACROSS, int B_ACROSS>
__device__ __forceinline__ void product(const gemm_args &g, const wgmma_args &w,
                                        const tensor_map *a_map, const tensor_map *b_map,
                                        const tensor_map *c_map) {
    let_next_launch_begin();
    prefetch_maps(a_map, b_map);
    const int first = (int)blockIdx.x, warp = warp_of_block();
    const auto work = [&](int item) { return own_work_of(g, w, item); };
    block_work at;
    ring r = ring_init(w.stages, stage_size<B_ACROSS>(w), w.multicast * w.multicast_a,
                       [&] { at = work(first); });
    wait_for_launch_before();
    if (MULTIPLIES(warp)) {
        take_registers<CONSUMER_REGISTERS>();
        prefetch_result_map(w, c_map);
        const int consumer = warp / 4 - 1;
        const alpha_beta by = alpha_beta_of(g); /* while the first copies are on their way */
        unsigned turn = 0;
        for_each_item(w.list, first, work(first), work, [&](const block_work &item, bool last) {
            float sum[COLUMNS / 2];
            sum_of_tile<A_ACROSS, B_ACROSS>(
                sum, r, consumer, item.steps.end - item.steps.first,
                min(w.columns, columns_of<SWAPPED>(g) - item.tile.column * w.columns));
            finish<SWAPPED, A_ACROSS>(g, w, c_map, sum, by, item, r, consumer, turn, last);
        });
        if (warp % 4 == 0 && elect_one()) tma_store_wait_read<0>(); /* before the block exits */
        return;
    }
    give_registers<PRODUCER_REGISTERS>();
    if (warp == 0 && elect_one()) {
        for_each_item(w.list, first, at, work, [&](const block_work &item, bool) {
            fill_all<A_ACROSS, B_ACROSS>(w, a_map, b_map, r, item);
        });
        if (r.sharing > 1) wait_for_releases(r);
    }
}

/* Two blocks of 64 rows share a multiprocessor: one stores its tile while the other multiplies. */
constexpr int RESIDENT = BLOCK_M == 64 ? 2 : 1;

/* ...: the function that a kernel calls. */
#define WGMMA_ENTRY(name, ...)                                                                     \
    extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)                                \
        name(const __grid_constant__ gemm_args g, const __grid_constant__ wgmma_args w,            \
             const __grid_constant__ tensor_map a_map, const __grid_constant__ tensor_map b_map,   \
             const __grid_constant__ tensor_map c_map) {                                           \
        __VA_ARGS__(g, w, &a_map, &b_map, &c_map);                                                 \
    }

#endif
