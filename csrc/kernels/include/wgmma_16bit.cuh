/* GEMM of 16-bit matrices by wgmma, both operands read from shared memory (see wgmma_gemm.cuh).
 *
 * Operands are K-major (A row-major, B transposed) or MN-major (A transposed, B row-major). wgmma
 * reads 16-bit elements either way, so nothing is copied first unless rows are not 16-byte aligned.
 * A block computes tiles of BLOCK_M x BLOCK_N, 64 rows per warpgroup. If the last tile has at most
 * 64 columns of C, only 64 are computed: 4097 columns do not cost another wave of tiles over 4096.
 * Blocks go over all matrices of a batch, so the ring stays full.
 *
 * Arithmetic per stage (64 k) of 128 x 256: 1024 clocks of tensor core for 48 KiB from L2;
 * of 192 x 192: 1152 clocks for 48 KiB; of 64 x 128: 256 for 24 KiB. Of 256 x 128, 1024 for 48 KiB;
 * four warpgroups store its part of C at the same time, which counts where K is short.
 * Banks: wgmma reads 64 + BLOCK_N rows of 32 bytes in BLOCK_N / 2 clocks, 80 B/clk for 256 columns
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
#define RING_BYTES         (STAGES * (BLOCK_M + BLOCK_N) * 128)
/* One buffer where there is no room for two. */
#define OUT_BUFFERS (RING_BYTES + BLOCK_M * 256 + 16 * STAGES > 232448 ? 1 : 2)
typedef unsigned short operand;
#include "wgmma_gemm.cuh"

constexpr int BLOCK_K = 64; /* per stage: 128 bytes */
constexpr int A_TILE = BLOCK_M * 128, B_TILE = BLOCK_N * 128, STAGE = A_TILE + B_TILE;
constexpr int REGISTERS = BLOCK_N / 2;
constexpr int BOXES = BLOCK_N / OUT_COLUMNS; /* of a warpgroup's part of C's tile */

/* A K-major tile is one box; an MN-major one has a box per 128 bytes of its rows. */
template <int ACROSS, int ROWS>
__device__ __forceinline__ void load_tile(unsigned to, const tensor_map *map, unsigned full, int k,
                                          int row, int z) {
    if (ACROSS) {
#pragma unroll
        for (int box = 0; box < ROWS / BLOCK_K; box++) {
            tma_load(to + box * BLOCK_K * 128, map, full, row + box * BLOCK_K, k, z);
        }
    } else {
        tma_load(to, map, full, k, row, z);
    }
}

/* Fills the next stage with the tiles of one step of K. */
template <int A_ACROSS, int B_ACROSS>
__device__ __forceinline__ void fill(const gemm_args &g, const tensor_map *a_map,
                                     const tensor_map *b_map, const ring &r, int step, int row,
                                     int column, int z) {
    const unsigned full = r.full + 8 * r.at;
    const unsigned a = r.stages + r.at * STAGE, b = a + A_TILE;
    const int z_a = g.batch_a ? z : 0, z_b = g.batch_b ? z : 0;
    barrier_wait(r.empty + 8 * r.at, r.parity ^ 1);
    barrier_expect(full, STAGE);
    load_tile<A_ACROSS, BLOCK_M>(a, a_map, full, step * BLOCK_K, row, z_a);
    load_tile<B_ACROSS, BLOCK_N>(b, b_map, full, step * BLOCK_K, column, z_b);
}

/* Waits for a stage and starts its products, d (+)= A B, for as many columns as d has. */
template <int A_ACROSS, int B_ACROSS, int COUNT>
__device__ __forceinline__ void multiply(float (&d)[COUNT], const ring &r, int consumer, int add) {
    /* Bytes from 32 bytes of K to the next. */
    constexpr int a_step = A_ACROSS ? 16 * 128 : 32, b_step = B_ACROSS ? 16 * 128 : 32;
    barrier_wait(r.full + 8 * r.at, r.parity);
    const unsigned a = r.stages + r.at * STAGE + consumer * 64 * 128;
    const unsigned b = r.stages + r.at * STAGE + A_TILE;
    const unsigned long long a_tile = wgmma_descriptor(a, BLOCK_K * 128, 1024);
    const unsigned long long b_tile = wgmma_descriptor(b, BLOCK_K * 128, 1024);
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

/* The sum over all of K, for a warpgroup's 64 rows of a tile. */
template <int A_ACROSS, int B_ACROSS, int COUNT>
__device__ __forceinline__ void accumulate(float (&sum)[COUNT], ring &r, int consumer, int steps) {
    const int last = sum_stages(
        sum, r, steps, [&](int add) { multiply<A_ACROSS, B_ACROSS>(sum, r, consumer, add); });
    if (steps > 0) release(r, last);
}

/* Writes a warp's 16 of 64 rows of 128 bytes. */
__device__ __forceinline__ void write_rows(const float *sum, unsigned box) {
    const int lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane % 16;
#pragma unroll
    for (int j = 0; j < 8; j += 2) {
        const float *d = sum + 4 * j;
        shared_store_matrices(box_piece(box, row, j + lane / 16), pack_pair(d[0], d[1], REAL()),
                              pack_pair(d[2], d[3], REAL()), pack_pair(d[4], d[5], REAL()),
                              pack_pair(d[6], d[7], REAL()));
    }
}

/* The stores of the last two boxes overlap the next tile, whose first box goes to the buffer that was
 * not filled last: boxes before this tile's, of one warpgroup, are counted modulo 2 in `turn`. */
__device__ __forceinline__ void store(const gemm_args &g, const wgmma_args &w,
                                      const tensor_map *c_map, const float (&sum)[REGISTERS],
                                      unsigned buffers, int consumer, int row0, int column0, int z,
                                      unsigned turn) {
    const bool leader = threadIdx.x % 128 == 0;
#pragma unroll
    for (int box = 0; box < BOXES; box++) {
        const unsigned buffer = buffers + (turn ^ box) % OUT_BUFFERS * OUT_BUFFER;
        const int column = column0 + box * OUT_COLUMNS;
        if (w.store_boxes || OUT_BUFFERS == 1) {
            if (leader) tma_store_wait_read<OUT_BUFFERS - 1>();
            group_barrier(1 + consumer, 128);
        }
        write_rows(sum + box * (OUT_COLUMNS / 2), buffer);
        fence_async_proxy();
        group_barrier(1 + consumer, 128);
        if (!w.store_boxes) {
            store_box<64>(g, z, buffer, row0, column);
        } else if (leader) {
            tma_store(c_map, buffer, column, row0, z);
            tma_store_commit();
        }
    }
}

/* Stores the sums of a split-K part from registers: 8 bytes per thread, four threads per sector. */
__device__ __forceinline__ void store_part(const gemm_args &g, const float (&sum)[REGISTERS],
                                           long long matrix, int row0, int column0) {
    const int t = threadIdx.x % 128, column = column0 + t % 4 * 2;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = row0 + t / 32 * 16 + t % 32 / 4 + h * 8;
        float *to = sums_at(g, matrix, row, column);
        if (row >= g.M) continue;
#pragma unroll
        for (int j = 0; j < REGISTERS / 4; j++) {
            if (column + 8 * j < g.part_pitch)
                *reinterpret_cast<float2 *>(to + 8 * j) =
                    make_float2(sum[4 * j + 2 * h], sum[4 * j + 2 * h + 1]);
        }
    }
}

/* ---- the kernel ---- */

/* A warpgroup's sums become its part of C, or of the sums of a range of K. */
__device__ __forceinline__ void finish(const gemm_args &g, const wgmma_args &w,
                                       const tensor_map *c_map, float (&sum)[REGISTERS],
                                       const block_work &at, const ring &r, int consumer,
                                       unsigned turn) {
    const int row = at.tile.row * BLOCK_M + consumer * 64;
    const int column = at.tile.column * BLOCK_N;
    if (g.split > 1) {
        store_part(g, sum, matrix_of(w, at), row, column);
        return;
    }
    const float alpha = (float)g.alpha;
#pragma unroll
    for (int i = 0; i < REGISTERS; i++)
        sum[i] *= alpha;
    if ((float)g.beta != 0) {
        const int t = threadIdx.x % 128;
        add_old(g, at.z, sum, [&](int i) {
            return make_int2(row + t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8,
                             column + i / 4 * 8 + t % 4 * 2 + i % 2);
        });
    }
    store(g, w, c_map, sum, r.out + consumer * OUT_BUFFERS * OUT_BUFFER, consumer, row, column,
          at.z, turn);
}

template <int A_ACROSS, int B_ACROSS>
__device__ __forceinline__ void product(const gemm_args &g, const wgmma_args &w,
                                        const tensor_map *a_map, const tensor_map *b_map,
                                        const tensor_map *c_map) {
    let_next_launch_begin();
    ring r = ring_init(STAGE);
    const work_list list = work_list_of(g, w, BLOCK_N);
    const int group = threadIdx.x / 128;
    if (threadIdx.x == 0) {
        tma_prefetch_map(a_map);
        tma_prefetch_map(b_map);
    }
    wait_for_launch_before();
    if (group == 0) {
        give_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) {
            for (int item = blockIdx.x; item < list.items; item += gridDim.x) {
                const block_work at = work_of(g, w, list, item);
                for (int step = at.steps.first; step < at.steps.end; step++, next(r)) {
                    fill<A_ACROSS, B_ACROSS>(g, a_map, b_map, r, step, at.tile.row * BLOCK_M,
                                             at.tile.column * BLOCK_N, at.z);
                }
            }
        }
    } else {
        take_registers<CONSUMER_REGISTERS>();
        const int consumer = group - 1;
        unsigned turn = 0;
        for (int item = blockIdx.x; item < list.items; item += gridDim.x, turn ^= BOXES % 2) {
            const block_work at = work_of(g, w, list, item);
            const int steps = at.steps.end - at.steps.first;
            float sum[REGISTERS];
            if (g.N - at.tile.column * BLOCK_N > WGMMA_NARROW) {
                accumulate<A_ACROSS, B_ACROSS>(sum, r, consumer, steps);
            } else {
                float narrow[WGMMA_NARROW / 2];
                accumulate<A_ACROSS, B_ACROSS>(narrow, r, consumer, steps);
#pragma unroll
                for (int i = 0; i < REGISTERS; i++)
                    sum[i] = i < WGMMA_NARROW / 2 ? narrow[i] : 0;
            }
            finish(g, w, c_map, sum, at, r, consumer, turn);
        }
        if (threadIdx.x % 128 == 0) tma_store_wait_read<0>(); /* before the block exits */
    }
}

/* Two blocks of 64 rows share a multiprocessor: one stores its tile while the other multiplies. */
constexpr int RESIDENT = BLOCK_M == 64 && BLOCK_N < 256 ? 2 : 1;

#define WGMMA_PRODUCT(name, A_ACROSS, B_ACROSS)                                                    \
    extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)                                \
        name(const __grid_constant__ gemm_args g, const __grid_constant__ wgmma_args w,            \
             const __grid_constant__ tensor_map a_map, const __grid_constant__ tensor_map b_map,   \
             const __grid_constant__ tensor_map c_map) {                                           \
        product<A_ACROSS, B_ACROSS>(g, w, &a_map, &b_map, &c_map);                                 \
    }

#endif
