/* GEMM of 16-bit matrices by wgmma, both operands read from shared memory (see wgmma_gemm.cuh).
 *
 * Operands are K-major (A row-major, B transposed) or MN-major (A transposed, B row-major). wgmma
 * reads 16-bit elements either way, so nothing is copied first unless rows are not 16-byte aligned.
 * A block computes tiles of BLOCK_M x `columns`, 64 rows per warpgroup. The columns, a multiple of
 * 32 up to MOST_COLUMNS, are an argument: with those that share C evenly among the multiprocessors
 * no wave of tiles is nearly empty. A tile at C's right edge computes no more columns than exist.
 * Blocks go over all matrices of a batch, so the ring stays full. It has as many stages as fit.
 * Swapped, a kernel computes C^T = B^T A^T: then tiles have BLOCK_M columns of C, and `columns` of its
 * rows. Here "row" and "column" are those of what it computes. Few rows or columns have kernels of
 * their own (wgmma_thin.cuh).
 *
 * Arithmetic per stage (64 k) of 128 x 256: 1024 clocks of tensor core for 48 KiB from L2;
 * of 192 x 192: 1152 clocks for 48 KiB; of 64 x 128: 256 for 24 KiB. Of 256 x 128, 1024 for 48 KiB;
 * four warpgroups store its part of C at the same time, which counts where K is short. A
 * multiprocessor receives at most 64 bytes per clock, so 128 x 128 is where both take as long.
 * Banks: wgmma reads 64 + columns rows of 32 bytes in columns / 2 clocks, 80 B/clk for 256 columns
 * and 96 for 128, of 128 B/clk; the 128-byte swizzle puts 8 rows of a column in different banks.
 *
 * The including file defines WGMMA_INPUT.
 */
#ifndef SMK_WGMMA_16BIT_CUH
#define SMK_WGMMA_16BIT_CUH

#define PARTS              1
#define WGMMA_K            "16"
#define WGMMA_MAJORS(A, B) ", " A ", " B
#define CONSUMERS          (BLOCK_M / 64)
#define OUT_BUFFERS        WGMMA_OUT_BUFFERS(BLOCK_M)
typedef unsigned short operand;
#include "wgmma_gemm.cuh"

/* Of what a kernel computes. */
template <bool SWAPPED> __device__ __forceinline__ int rows_of(const gemm_args &g) {
    return (int)(SWAPPED ? g.N : g.M);
}
template <bool SWAPPED> __device__ __forceinline__ int columns_of(const gemm_args &g) {
    return (int)(SWAPPED ? g.M : g.N);
}

constexpr int BLOCK_K = 64; /* per stage: 128 bytes */
constexpr int A_TILE = BLOCK_M * 128;
constexpr int MOST_COLUMNS = WGMMA_MOST_COLUMNS(BLOCK_M), REGISTERS = MOST_COLUMNS / 2;

/* Bytes of a stage. Rows of an MN-major B's tile have 64 columns. */
template <int B_ACROSS> __device__ __forceinline__ int stage_size(const wgmma_args &w) {
    return A_TILE + (B_ACROSS ? (w.columns + 63) / 64 * 64 : w.columns) * 128;
}

/* Fills the next stage with the tiles of one step of K. A K-major tile is one box; an MN-major one
 * has a box per 128 bytes of its rows. */
template <int A_ACROSS, int B_ACROSS>
__device__ __forceinline__ void fill(const gemm_args &g, const wgmma_args &w,
                                     const tensor_map *a_map, const tensor_map *b_map,
                                     const ring &r, int step, int row, int column, int z) {
    const unsigned full = r.full + 8 * r.at;
    const unsigned a = r.stages + r.at * r.stage_bytes, b = a + A_TILE;
    const int z_a = g.batch_a ? z : 0, z_b = g.batch_b ? z : 0, k = step * BLOCK_K;
    barrier_wait(r.empty + 8 * r.at, r.parity ^ 1);
    barrier_expect(full, w.stage_bytes);
    if (A_ACROSS) {
#pragma unroll
        for (int m = 0; m < BLOCK_M; m += 64)
            tma_load(a + m * 128, a_map, full, row + m, k, z_a);
    } else {
        tma_load(a, a_map, full, k, row, z_a);
    }
    if (B_ACROSS) {
#pragma unroll
        for (int n = 0; n < MOST_COLUMNS; n += 64)
            if (n < w.columns) tma_load(b + n * 128, b_map, full, column + n, k, z_b);
    } else {
        tma_load(b, b_map, full, k, column, z_b);
    }
}

/* Those of all steps of a work item. */
template <int A_ACROSS, int B_ACROSS>
__device__ __forceinline__ void fill_all(const gemm_args &g, const wgmma_args &w,
                                         const tensor_map *a_map, const tensor_map *b_map, ring &r,
                                         const block_work &at) {
    for (int step = at.steps.first; step < at.steps.end; step++, next(r)) {
        fill<A_ACROSS, B_ACROSS>(g, w, a_map, b_map, r, step, at.tile.row * BLOCK_M,
                                 at.tile.column * w.columns, at.z);
    }
}

/* Waits for a stage and starts its products, d (+)= A B, for as many columns as d has. */
template <int A_ACROSS, int B_ACROSS, int COUNT>
__device__ __forceinline__ void multiply(float (&d)[COUNT], const ring &r, int consumer, int add) {
    /* Bytes from 32 bytes of K to the next. */
    constexpr int a_step = A_ACROSS ? 16 * 128 : 32, b_step = B_ACROSS ? 16 * 128 : 32;
    const unsigned a = r.stages + r.at * r.stage_bytes + consumer * 64 * 128;
    const unsigned b = r.stages + r.at * r.stage_bytes + A_TILE;
    const unsigned long long a_tile = wgmma_descriptor(a, BLOCK_K * 128, 1024);
    const unsigned long long b_tile = wgmma_descriptor(b, BLOCK_K * 128, 1024);
    barrier_wait(r.full + 8 * r.at, r.parity);
    wgmma_pin(d);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; k++) {
        wgmma<A_ACROSS, B_ACROSS>(d, a_tile + (k * a_step >> 4), b_tile + (k * b_step >> 4), add);
        add = 1;
    }
    wgmma_commit();
    wgmma_pin(d);
}

/* The sum over all of K, for a warpgroup's 64 rows of a tile of `columns`, which are COLUMNS or
 * more. Each width has a loop of its own, since wgmma's is part of the instruction. Thin tiles have
 * more of them, from 8 columns on. */
template <int A_ACROSS, int B_ACROSS, bool THIN, int COLUMNS = THIN ? 8 : 32, int COUNT>
__device__ __forceinline__ void accumulate(float (&sum)[COUNT], ring &r, int consumer, int steps,
                                           int columns) {
    constexpr int MORE = !THIN ? 32 : COLUMNS < 32 ? 8 : 16;
    if constexpr (COLUMNS < 2 * COUNT) {
        if (columns > COLUMNS)
            return accumulate<A_ACROSS, B_ACROSS, THIN, COLUMNS + MORE>(sum, r, consumer, steps,
                                                                        columns);
    }
    float (&used)[COLUMNS / 2] = reinterpret_cast<float (&)[COLUMNS / 2]>(sum);
    sum_stages<BLOCK_M == 64 ? 2 : 1>(
        used, r, steps, [&](int add) { multiply<A_ACROSS, B_ACROSS>(used, r, consumer, add); });
}

/* Bytes of a row of a box: 32 columns of 64 rows, or swapped 64 rows of 32 columns. */
template <bool SWAPPED> constexpr int BOX_ROW = SWAPPED ? 2 * OUT_ROW : OUT_ROW;

/* Writes a warp's 16 of a box's 64 rows. */
template <bool SWAPPED> __device__ __forceinline__ void write_rows(const float *sum, unsigned box) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
#pragma unroll
    for (int j = 0; j < 4; j += 2) {
        const float *d = sum + 4 * j;
        const unsigned left = pack_pair(d[0], d[1], REAL()), below = pack_pair(d[2], d[3], REAL());
        const unsigned right = pack_pair(d[4], d[5], REAL()), last = pack_pair(d[6], d[7], REAL());
        if (SWAPPED) {
            const int row = 8 * (j + lane / 16) + lane % 8, piece = 2 * warp + lane / 8 % 2;
            shared_store_transposed(box_piece<BOX_ROW<true>>(box, row, piece), left, below, right,
                                    last);
        } else {
            shared_store_matrices(
                box_piece<BOX_ROW<false>>(box, warp * 16 + lane % 16, j + lane / 16), left, below,
                right, last);
        }
    }
}

/* Stores 64 columns at a time, as two boxes. The last stores overlap the next tile, whose first boxes
 * go to the buffer that was not filled last: those of the tiles before, of one warpgroup, are
 * counted modulo 2 in `turn`.
 *
 * After a block's last tile no copies follow, and the tiles of A in the ring are free once all warps
 * of the warpgroup have multiplied: no other reads its 64 rows of them. They are buffers then, and
 * none waits for another. */
template <bool SWAPPED>
__device__ __forceinline__ void store(const gemm_args &g, const wgmma_args &w,
                                      const tensor_map *c_map, const float (&sum)[REGISTERS],
                                      const ring &r, int consumer, int row0, int column0, int z,
                                      unsigned &turn, bool last) {
    const int columns = min(w.columns, columns_of<SWAPPED>(g) - column0);
    const bool leader = is_leader();
    const bool own = last && w.store_boxes && r.count * 64 >= w.columns;
    const unsigned buffers = r.out + consumer * OUT_BUFFERS * OUT_BUFFER;
    const unsigned rows_of_a = r.stages + consumer * 64 * 128;
#pragma unroll
    for (int n = 0; n < MOST_COLUMNS; n += 64) {
        if (n >= columns) break;
        const unsigned first =
            own ? rows_of_a + n / 64 * r.stage_bytes : buffers + turn++ % OUT_BUFFERS * OUT_BUFFER;
        const unsigned second = first + OUT_BUFFER / 2;
        if (!own && w.store_boxes && leader) tma_store_wait_read<OUT_BUFFERS - 1>();
        if (own ? n == 0 : w.store_boxes || OUT_BUFFERS == 1) group_barrier(1 + consumer, 128);
        write_rows<SWAPPED>(sum + n / 2, first);
        if (n + 32 < MOST_COLUMNS) write_rows<SWAPPED>(sum + n / 2 + 16, second);
        fence_async_proxy();
        group_barrier(1 + consumer, 128);
        const int c_row = SWAPPED ? column0 + n : row0, c_column = SWAPPED ? row0 : column0 + n;
        constexpr int DOWN = SWAPPED ? 32 : 0, ACROSS = SWAPPED ? 0 : 32; /* to the second box */
        if (!w.store_boxes) {
            REAL *c = g.C + z * g.batch_c + c_row * g.ldc + c_column;
            if (SWAPPED) {
                const int rows = columns - n, right = (int)g.N - c_column;
                store_box<64, BOX_ROW<true>>(c, g.ldc, rows, right, first);
                store_box<64, BOX_ROW<true>>(c + 32, g.ldc, rows, right - 32, first, 32);
            } else {
                store_box<64>(c, g.ldc, (int)g.M - row0, columns - n, first);
                store_box<64>(c + 32, g.ldc, (int)g.M - row0, columns - n - 32, second);
            }
        } else if (leader) {
            tma_store(c_map, first, c_column, c_row, z);
            if (n + 32 < columns) tma_store(c_map, second, c_column + ACROSS, c_row + DOWN, z);
            tma_store_commit();
        }
    }
}

/* p + more, which the compiler does not compute before: too few registers are left for all places. */
template <typename T> __device__ __forceinline__ T *next_place(T *p, long long more) {
    p += more;
    asm volatile("" : "+l"(p));
    return p;
}

/* Stores the sums of a split-K part from registers: 8 bytes per thread, four threads per sector, or
 * swapped 4 bytes, eight threads per sector. */
template <bool SWAPPED>
__device__ __forceinline__ void store_part(const gemm_args &g, const float (&sum)[REGISTERS],
                                           long long matrix, int row0, int column0, int columns) {
    const int t = threadIdx.x % 128, column = column0 + t % 4 * 2;
    const int end = min(columns, columns_of<SWAPPED>(g) - column0) - t % 4 * 2;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = row0 + t / 32 * 16 + t % 32 / 4 + h * 8;
        if (row >= rows_of<SWAPPED>(g)) continue;
        float *to = SWAPPED ? sums_at(g, matrix, column, row) : sums_at(g, matrix, row, column);
#pragma unroll
        for (int j = 0; j < REGISTERS / 4; j++) {
            const float x = sum[4 * j + 2 * h], y = sum[4 * j + 2 * h + 1];
            if (SWAPPED) {
                if (8 * j < end) to[0] = x;
                if (8 * j + 1 < end) to[g.part_pitch] = y;
                to = next_place(to, 8 * g.part_pitch);
            } else if (8 * j < columns && column + 8 * j < g.part_pitch) {
                *reinterpret_cast<float2 *>(to + 8 * j) = make_float2(x, y);
            }
        }
    }
}

/* Adds beta times the old C. In few instructions per element: those of all that a block skips pass
 * through the instruction cache, too. */
template <bool SWAPPED>
__device__ __forceinline__ void add_old(const gemm_args &g, float (&sum)[REGISTERS], int row0,
                                        int column0, int z) {
    const int t = threadIdx.x % 128, column = column0 + t % 4 * 2;
    const int columns = columns_of<SWAPPED>(g) - column;
    const float beta = (float)g.beta;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = row0 + t / 32 * 16 + t % 32 / 4 + h * 8;
        if (row >= rows_of<SWAPPED>(g)) break;
        const long long at = SWAPPED ? column * g.ldc + row : row * g.ldc + column;
        const REAL *c = g.C + z * g.batch_c + at;
#pragma unroll
        for (int i = 0; i < REGISTERS / 2; i++) {
            const int to = i / 2 * 8 + i % 2;
            if (to < columns) sum[i / 2 * 4 + 2 * h + i % 2] += beta * widen(SWAPPED ? *c : c[to]);
            if (SWAPPED) c = next_place(c, (i % 2 ? 7 : 1) * g.ldc);
        }
    }
}

/* ---- the kernel ---- */

/* A warpgroup's sums become its part of C, or of the sums of a range of K. */
template <bool SWAPPED>
__device__ __forceinline__ void
finish(const gemm_args &g, const wgmma_args &w, const tensor_map *c_map, float (&sum)[REGISTERS],
       const block_work &at, const ring &r, int consumer, unsigned &turn, bool last) {
    const int row = at.tile.row * BLOCK_M + consumer * 64;
    const int column = at.tile.column * w.columns;
    if (g.split > 1) {
        store_part<SWAPPED>(g, sum, matrix_of(w, at), row, column, w.columns);
        return;
    }
    const float alpha = (float)g.alpha;
    if (alpha != 1) {
#pragma unroll
        for (int i = 0; i < REGISTERS; i++)
            sum[i] *= alpha;
    }
    if ((float)g.beta != 0) add_old<SWAPPED>(g, sum, row, column, at.z);
    store<SWAPPED>(g, w, c_map, sum, r, consumer, row, column, at.z, turn, last);
}

template <bool SWAPPED, int A_ACROSS, int B_ACROSS>
__device__ __forceinline__ void product(const gemm_args &g, const wgmma_args &w,
                                        const tensor_map *a_map, const tensor_map *b_map,
                                        const tensor_map *c_map) {
    let_next_launch_begin();
    prefetch_maps(w, a_map, b_map, c_map);
    block_work at = work_of(w, blockIdx.x); /* while other warps make the barriers */
    ring r = ring_init(w.stages, stage_size<B_ACROSS>(w));
    const int warp = warp_of_block();
    wait_for_launch_before();
    if (warp < 4) {
        give_registers<PRODUCER_REGISTERS>();
        if (warp == 0 && elect_one()) {
            for (int item = blockIdx.x; item < w.list.items;
                 item += gridDim.x, at = work_of(w, item))
                fill_all<A_ACROSS, B_ACROSS>(g, w, a_map, b_map, r, at);
        }
    } else {
        take_registers<CONSUMER_REGISTERS>();
        const int consumer = warp / 4 - 1;
        unsigned turn = 0;
        for (int item = blockIdx.x; item < w.list.items; item += gridDim.x, at = work_of(w, item)) {
            float sum[REGISTERS];
            accumulate<A_ACROSS, B_ACROSS, false>(
                sum, r, consumer, at.steps.end - at.steps.first,
                min(w.columns, columns_of<SWAPPED>(g) - at.tile.column * w.columns));
            finish<SWAPPED>(g, w, c_map, sum, at, r, consumer, turn,
                            item + (int)gridDim.x >= w.list.items);
        }
        if (is_leader()) tma_store_wait_read<0>(); /* before the block exits */
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
#define WGMMA_PRODUCT(name, A_ACROSS, B_ACROSS)                                                    \
    WGMMA_ENTRY(name, product<false, A_ACROSS, B_ACROSS>)
#define WGMMA_SWAPPED_PRODUCT(name, A_ACROSS, B_ACROSS)                                            \
    WGMMA_ENTRY(name, product<true, A_ACROSS, B_ACROSS>)

#endif
