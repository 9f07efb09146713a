/* GEMM of fp32 matrices by wgmma: B is rounded or split on its way into registers. For the pipeline
 * see wgmma_gemm.cuh.
 *
 * wgmma requires 32-bit operands to be K-major, but B is row-major: its k are a row apart. However,
 * wgmma's first operand may come from registers, loaded from a tile of any layout. So a block
 * computes a tile of C^T = B^T A^T: B^T from registers, A (K-major, or packed) from shared memory.
 *
 *   TMA     B: raw fp32, 32 columns per box    A: PARTS terms, rows of 128 bytes of k
 *             |                                  |
 *   ring   [k][n] 128-byte rows, swizzled     [term][m][k] 128-byte rows, swizzled
 *             | LDS.64: n, n + 1 of one k        |
 *           split into PARTS in registers        |
 *             +------> wgmma: 64 n x BLOCK_M m <-+     per warpgroup; CONSUMERS side by side in n
 *
 * Every element of B is loaded from shared memory once, by one thread of the block, so the split
 * costs no bytes. Its 100 to 200 instructions per warp and stage overlap wgmma of the stage before.
 *
 *   PARTS 1   fp16x1: A and B are scaled, rounded and packed in advance; both from shared memory
 *   PARTS 2   tf32x3, fp16x3: high high + high low + low high; A is split in advance; rows of A and
 *             columns of B are scaled (wgmma_pack.cuh)
 *
 * Precision. The tensor core truncates when it adds, an error towards zero that grows with K. So
 * with PARTS 2 it sums over one stage only (4 steps, small products first). FADDs, which round to
 * nearest, add these sums while the tensor core works for the other warpgroup. NaN results are
 * recomputed by FFMAs, since splitting an infinity gives NaN where the product may have none.
 *
 * Arithmetic per stage and SM: tf32x3, BLOCK_M 128: 1536 clocks for 48 KiB; fp16x3: 1536 clocks for
 * 64 KiB; fp16x1: 1024 clocks for 48 KiB.
 *
 * The including file defines OPERAND_TF32 or OPERAND_F16, and PARTS, the number of terms.
 */
#ifndef SMK_WGMMA_FP32_CUH
#define SMK_WGMMA_FP32_CUH

#if defined(OPERAND_TF32)
typedef float operand;
#else
typedef unsigned short operand;
#define SCALED    1
#define PACK_BOTH (PARTS == 1)
#endif
#if PACK_BOTH
#define WGMMA_INPUT        "f16"
#define WGMMA_K            "16"
#define WGMMA_MAJORS(A, B) ", " A ", " B
#else
#define WGMMA_A_IN_REGISTERS
#endif
#if PARTS == 2
constexpr int BLOCK_M = 128; /* two sets of accumulators */
#endif
#if PARTS == 2 || defined(SCALED)
#include "plain_product.cuh"
#endif
#include "wgmma_fragment.cuh"

constexpr int A_PART = BLOCK_M * 128;
template <typename T> constexpr int B_TILE = BLOCK_N * (PACK_BOTH ? 128 : BLOCK_K<T> * 4);
constexpr int STAGE = PARTS * A_PART + B_TILE<operand>;
constexpr int REGISTERS = BLOCK_M / 2;

/* Loads B's tile of a stage. GUARDED: a box of an MN-major tile is as deep as a stage of tf32. */
template <typename T, int B_ACROSS>
__device__ __forceinline__ void fill_b(const tensor_map *b_map, unsigned full, unsigned to, int k,
                                       int column, int z) {
    if (PACK_BOTH) {
        tma_load(to, b_map, full, k, column, z);
    } else if (B_ACROSS) {
        constexpr int DEEP = GUARDED ? BLOCK_K<float> : BLOCK_K<T>;
#pragma unroll
        for (int box = 0; box < B_TILE<T> / (DEEP * 128); box++) {
            const int across = box / (BLOCK_K<T> / DEEP), down = box % (BLOCK_K<T> / DEEP);
            tma_load(to + box * DEEP * 128, b_map, full, column + across * 32, k + down * DEEP, z);
        }
    } else {
#pragma unroll
        for (int box = 0; box < B_TILE<T> / B_BOX<T, 0>; box++)
            tma_load(to + box * B_BOX<T, 0>, b_map, full, k + box * 32, column, z);
    }
}

/* Fills the next stage with the tiles of one step of K. */
template <int B_ACROSS>
__device__ __forceinline__ void fill(const wgmma_args &w, const tensor_map *a_map,
                                     const tensor_map *b_map, const ring &r, int step, int row,
                                     int column) {
    const unsigned full = r.full + 8 * r.at, a = r.stages + r.at * STAGE;
    const int z_a = blockIdx.z & w.moves_a, k = step * BLOCK_K<operand>;
    barrier_wait(r.empty + 8 * r.at, r.parity ^ 1);
    barrier_expect(full, STAGE);
#pragma unroll
    for (int part = 0; part < PARTS; part++)
        tma_load(a + part * A_PART, a_map, full, k, row + part * w.a.rows, z_a);
    fill_b<operand, B_ACROSS>(b_map, full, a + PARTS * A_PART, k, column, blockIdx.z & w.moves_b);
}

#if SCALED
/* Bits of the largest |x| of a column. */
__device__ __forceinline__ unsigned largest_of_column(const gemm_args &g, const wgmma_args &w,
                                                      int column) {
    const unsigned *found =
        of_batch(w.b.largest, blockIdx.z * w.b.batch) + min(column, w.b.rows - 1);
    unsigned largest = 0;
    for (int chunk = 0; chunk < w.b.chunks; chunk++)
        largest = max(largest, found[(long long)chunk * w.b.rows]);
    return largest;
}
#endif

#if GUARDED
#include "wgmma_guard.cuh"
#endif

#if PACK_BOTH
/* ---- products; B's tile is a box of BLOCK_N rows, as A's is ---- */

/* Waits for a stage and starts its products. */
__device__ __forceinline__ void multiply(float (&d)[REGISTERS], const ring &r, int consumer,
                                         int add) {
    const unsigned a = r.stages + r.at * STAGE, b = a + A_PART + consumer * 64 * 128;
    const unsigned long long a_tile = wgmma_descriptor(a, 0, 1024);
    const unsigned long long b_tile = wgmma_descriptor(b, 0, 1024);
    barrier_wait(r.full + 8 * r.at, r.parity);
    wgmma_pin(d);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < 4; step++) {
        wgmma<0, 0>(d, b_tile + (step * 32 >> 4), a_tile + (step * 32 >> 4), add);
        add = 1;
    }
    wgmma_commit();
    wgmma_pin(d);
}

/* The sum over all of K, for a warpgroup's 64 columns of a tile. */
template <typename T, int B_ACROSS>
__device__ __forceinline__ void accumulate(float (&sum)[REGISTERS], ring &r, const line_pair &,
                                           int consumer, int steps) {
    sum_stages(sum, r, steps, [&](int add) { multiply(sum, r, consumer, add); });
}
#else
/* Waits for the next stage and loads the thread's share of B from it. */
template <typename T, int B_ACROSS>
__device__ __forceinline__ void load(fragment &f, const line_pair &c, ring &r) {
    barrier_wait(r.full + 8 * r.at, r.parity);
    const unsigned tile = r.stages + r.at * STAGE + PARTS * A_PART;
    next(r);
    load_part<B_ACROSS>(T(), f, c, tile);
}

/* ---- products ---- */

template <typename T>
__device__ __forceinline__ void multiply(float (&d)[REGISTERS], const fragment &f, unsigned a,
                                         int add) {
    const unsigned long long tile = wgmma_descriptor(a, 0, 1024);
    wgmma_pin(d);
    wgmma_fence();
#pragma unroll
    for (int order = PARTS - 1; order >= 0; order--) {
#pragma unroll
        for (int i = 0; i <= order; i++) {
#pragma unroll
            for (int step = 0; step < 4; step++) {
                wgmma(T(), d, f.part[order - i][step], tile + ((i * A_PART + step * 32) >> 4), add);
                add = 1;
            }
        }
    }
    wgmma_commit();
}

/* The sum over all of K, for a warpgroup's 64 columns of a tile. */
template <typename T, int B_ACROSS>
__device__ __forceinline__ void accumulate(float (&sum)[REGISTERS], ring &r, const line_pair &mine,
                                           int, int steps) {
#pragma unroll
    for (int i = 0; i < REGISTERS; i++)
        sum[i] = 0;
    if (steps == 0) return;
    fragment f[2]; /* this stage's and the next's */
    int here = r.at;
    load<T, B_ACROSS>(f[0], mine, r);
    for (int step = 0; step < steps; step += 2) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            if (step + half == steps) break;
            const bool more = step + half + 1 < steps;
            float d[REGISTERS];
            multiply<T>(d, f[half], r.stages + here * STAGE, 0);
            const int done = here;
            here = r.at;
            if (more) load<T, B_ACROSS>(f[half ^ 1], mine, r);
            wgmma_wait<0>();
            wgmma_pin(d);
            release(r, done);
#pragma unroll
            for (int i = 0; i < REGISTERS; i++)
                sum[i] += d[i];
        }
    }
}
#endif

/* ---- epilogue: sum[4 j + 2 h + e] is C[8 j + 2 q + e][n + COLUMN_STEP h] ---- */

__device__ __forceinline__ int column_of(int i) {
    return i / 2 % 2 * COLUMN_STEP;
}

__device__ __forceinline__ int row_of(int i, int thread = threadIdx.x) {
    return i / 4 * 8 + thread % 4 * 2 + i % 2;
}

#if SCALED
/* Undoes a scale of 2^exponent, by two factors of about the same size: then the first product is
 * between the sum and the result, and is no more likely to be subnormal or infinite than these. */
__device__ __forceinline__ float unscaled(float sum, int exponent) {
    const int half = -exponent >> 1;
    return sum * power_of_two(half) * power_of_two(-exponent - half);
}

/* Of a tile's rows, for each warpgroup. Read one by one from global memory, the exponents would
 * cost a tile some 10 us. */
typedef signed char row_exponents[BLOCK_M];

__device__ __forceinline__ void stage_exponents(const wgmma_args &w, row_exponents &to, int row0) {
    const unsigned *rows = of_batch(w.a.largest, blockIdx.z * w.a.batch);
#pragma unroll
    for (int row = threadIdx.x % 128; row < BLOCK_M; row += 128)
        to[row] = (signed char)scale_of(rows[min(row0 + row, w.a.rows - 1)]);
}

/* A bit per sum of a thread. */
typedef struct sum_set {
    unsigned words[REGISTERS / 32];
} sum_set;

/* Computes the sums of a set by FFMAs, one after the other, each by a warp. */
__device__ __forceinline__ void replace(const gemm_args &g, float (&sum)[REGISTERS], sum_set wrong,
                                        part_range steps, int row0, int column) {
    const long long first = (long long)steps.first * BLOCK_K<operand>;
    const long long end = min((long long)steps.end * BLOCK_K<operand>, (long long)g.K);
#pragma unroll
    for (int j = 0; j < REGISTERS / 32; j++) {
        unsigned &word = wrong.words[j];
        for (;;) {
            const unsigned lanes = __ballot_sync(0xffffffff, word != 0);
            if (lanes == 0) break;
            const int owner = __ffs(lanes) - 1;
            const int at = __shfl_sync(0xffffffff, 32 * j + __ffs(word) - 1, owner);
            const int its_column = __shfl_sync(0xffffffff, column, owner) + column_of(at);
            const float x =
                plain_product_by_warp(g, row0 + row_of(at, owner), its_column, first, end);
            if (threadIdx.x % 32 != owner) continue;
            word &= word - 1;
#pragma unroll
            for (int i = 32 * j; i < 32 * (j + 1); i++)
                if (i == at) sum[i] = x;
        }
    }
}

/* Also replaces NaN, and the sums of the set. */
__device__ __forceinline__ void unscale(const gemm_args &g, const row_exponents &rows,
                                        const line_pair &mine, float (&sum)[REGISTERS],
                                        sum_set wrong, part_range steps, int row0, int column,
                                        int consumer) {
    bool again = false;
    int n[2];
#pragma unroll
    for (int h = 0; h < 2; h++)
        n[h] = (int)(__float_as_uint(mine.scale[h]) >> 23) - 127;
    group_barrier(1 + consumer, 128);
#pragma unroll
    for (int i = 0; i < REGISTERS; i++) {
        sum[i] = unscaled(sum[i], n[i / 2 % 2] + rows[row_of(i)]);
        again |= sum[i] != sum[i] || wrong.words[i / 32] != 0;
    }
    if (!__any_sync(0xffffffff, again)) return;
#pragma unroll
    for (int i = 0; i < REGISTERS; i++) {
        if (sum[i] != sum[i] && row0 + row_of(i) < g.M && column + column_of(i) < g.N)
            wrong.words[i / 32] |= 1u << i % 32;
    }
    replace(g, sum, wrong, steps, row0, column);
}
#endif

#if GUARDED
/* ---- sums of wide tiles: see wgmma_guard.cuh ---- */

/* The sums that small elements may have cost too much: those below LEAST_SUM of a wide row or
 * column. `states`: of the tile's rows. */
__device__ __forceinline__ sum_set unsure(const wgmma_args &w, const row_exponents &states,
                                          const float (&sum)[REGISTERS], int column) {
    int of_column[2];
#pragma unroll
    for (int h = 0; h < 2; h++)
        of_column[h] = state_of(w.b, column + h * COLUMN_STEP);
    sum_set found = {};
#pragma unroll
    for (int i = 0; i < REGISTERS; i++) {
        if (fabsf(sum[i]) < LEAST_SUM && states[row_of(i)] * of_column[i / 2 % 2] >= IS_WIDE)
            found.words[i / 32] |= 1u << i % 32;
    }
    return found;
}

/* Whether a warp would take longer for these than the tile takes with tf32 terms. */
__device__ __forceinline__ bool too_many(sum_set found) {
    int count = 0;
    for (unsigned word : found.words)
        count += __popc(word);
    return __reduce_add_sync(0xffffffff, count) > MOST_UNSURE;
}

/* The same sums from tf32 terms. */
template <int B_ACROSS>
__device__ __forceinline__ void accumulate_words(const gemm_args &g, float (&sum)[REGISTERS],
                                                 ring &r, const line_pair &mine, int consumer,
                                                 part_range steps) {
    asm volatile("" : "+r"(consumer)); /* else addresses stay in registers: too few are left */
    line_pair words = my_lines<float, B_ACROSS>(consumer);
    words.scale[0] = mine.scale[0];
    words.scale[1] = mine.scale[1];
    steps = steps_of_words(g, steps);
    accumulate<float, B_ACROSS>(sum, r, words, consumer, steps.end - steps.first);
}
#endif

/* Writes 8 rows of the tile, one j of the sums, into a warpgroup's two boxes of 32 columns. */
__device__ __forceinline__ void write_rows(unsigned boxes, const float *sum, int row, int offset) {
    const int q = threadIdx.x % 4;
    const unsigned box = boxes + offset / 32 % 2 * OUT_BUFFER / 2;
#pragma unroll
    for (int e = 0; e < 2; e++) {
#if PACK_BOTH
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int at = offset % 32 + h * COLUMN_STEP;
            shared_store(box_piece(box, row + 2 * q + e, at / 4) + at % 4 * 4, sum[2 * h + e]);
        }
#else
        const unsigned to = box_piece(box, row + 2 * q + e, offset % 32 / 4) + offset / 2 % 2 * 8;
        shared_store_pair(to, sum[e], sum[2 + e]);
#endif
    }
}

/* 32 rows of 64 columns at a time. The stores of the last two overlap the next tile. The sums of a
 * split-K part are stored in the same way. */
__device__ __forceinline__ void store(const gemm_args &g, const wgmma_args &w,
                                      const tensor_map *c_map, const float (&sum)[REGISTERS],
                                      unsigned buffers, int consumer, int offset, int row0,
                                      int column0, int matrix) {
    const bool leader = is_leader();
#pragma unroll
    for (int slice = 0; slice < BLOCK_M / 32; slice++) {
        const unsigned buffer = buffers + slice % 2 * OUT_BUFFER, second = buffer + OUT_BUFFER / 2;
        const int row = row0 + slice * 32;
        if (w.store_boxes) {
            if (leader) tma_store_wait_read<1>();
            group_barrier(1 + consumer, 128);
        }
#pragma unroll
        for (int j = 0; j < 4; j++)
            write_rows(buffer, sum + 4 * (4 * slice + j), 8 * j, offset);
        fence_async_proxy();
        group_barrier(1 + consumer, 128);
        if (!w.store_boxes) {
            REAL *c = g.C + blockIdx.z * g.batch_c + row * g.ldc + column0;
            const int rows = (int)g.M - row, columns = (int)g.N - column0;
            store_box<32>(c, g.ldc, rows, columns, buffer);
            store_box<32>(c + 32, g.ldc, rows, columns - 32, second);
        } else if (leader) {
            tma_store(c_map, buffer, column0, row, matrix);
            tma_store(c_map, second, column0 + 32, row, matrix);
            tma_store_commit();
        }
    }
}

/* ---- the kernel ---- */

template <int B_ACROSS>
__device__ __forceinline__ void product(const gemm_args &g, const wgmma_args &w,
                                        const tensor_map *a_map, const tensor_map *b_map,
                                        const tensor_map *c_map) {
    let_next_launch_begin();
    prefetch_maps(a_map, b_map);
    const int warp = warp_of_block();
    const auto work = [&](int item) { return work_of(g, w, item); };
    block_work at;
    ring r = ring_init(STAGES, STAGE, 1, [&] { at = work(blockIdx.x); });
    wait_for_launch_before();
    if (MULTIPLIES(warp)) {
        take_registers<CONSUMER_REGISTERS>();
        prefetch_result_map(w, c_map);
#if SCALED
        __shared__ row_exponents rows[CONSUMERS];
#endif
#if GUARDED
        __shared__ row_exponents states[CONSUMERS];
#endif
        const int consumer = warp / 4 - 1;
        const float alpha = g.split == 1 ? (float)g.alpha : 1;
        const float beta = g.split == 1 ? (float)g.beta : 0;
        line_pair mine = my_lines<operand, B_ACROSS>(consumer);
        for_each_item(w.list, blockIdx.x, work(blockIdx.x), work, [&](const block_work &at, bool) {
            const int row0 = at.tile.row * BLOCK_M, column0 = at.tile.column * BLOCK_N;
            const int column = column0 + mine.offset;
            float sum[REGISTERS];
#if SCALED
#pragma unroll
            for (int i = 0; i < 2; i++)
                mine.scale[i] =
                    power_of_two(scale_of(largest_of_column(g, w, column + i * COLUMN_STEP)));
#endif
#if SCALED
            if (w.steps > 0) stage_exponents(w, rows[consumer], row0);
#endif
#if GUARDED
            int state;
            const bool wide = is_wide(w, row0, column0, 1 + consumer, state);
#endif
            accumulate<operand, B_ACROSS>(sum, r, mine, consumer, at.steps.end - at.steps.first);
#if SCALED
            sum_set wrong = {};
#endif
#if GUARDED
            if (wide) {
                states[consumer][threadIdx.x % 128] = (signed char)state;
                group_barrier(1 + consumer, 128);
                wrong = unsure(w, states[consumer], sum, column);
                if (block_any(too_many(wrong))) {
                    wrong = {};
                    accumulate_words<B_ACROSS>(g, sum, r, mine, consumer, at.steps);
                }
            }
#endif
#if SCALED
            if (w.steps > 0)
                unscale(g, rows[consumer], mine, sum, wrong, at.steps, row0, column, consumer);
#endif
#pragma unroll
            for (int i = 0; i < REGISTERS; i++)
                sum[i] *= alpha;
            if (beta != 0) {
                add_old(g, blockIdx.z, sum,
                        [&](int i) { return make_int2(row0 + row_of(i), column + column_of(i)); });
            }
#if SCALED
            /* Else addresses of boxes stay in registers, of which there are too few. */
            asm volatile("" : "+r"(mine.offset));
#endif
            store(g, w, c_map, sum, r.out + consumer * 2 * OUT_BUFFER, consumer, mine.offset, row0,
                  column0 + consumer * 64, matrix_of(w, at));
        });
        if (is_leader()) tma_store_wait_read<0>(); /* before the block exits */
        return;
    }
    give_registers<PRODUCER_REGISTERS>();
#if GUARDED
    produce<B_ACROSS>(g, w, a_map, b_map, r);
#else
    if (warp == 0 && elect_one()) {
        for_each_item(w.list, blockIdx.x, at, work, [&](const block_work &item, bool) {
            for (int step = item.steps.first; step < item.steps.end; step++, next(r)) {
                fill<B_ACROSS>(w, a_map, b_map, r, step, item.tile.row * BLOCK_M,
                               item.tile.column * BLOCK_N);
            }
        });
    }
#endif
}

#define WGMMA_PRODUCT(name, B_ACROSS)                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS, 1)                                       \
        name(const __grid_constant__ gemm_args g, const __grid_constant__ wgmma_args w,            \
             const __grid_constant__ tensor_map a_map, const __grid_constant__ tensor_map b_map,   \
             const __grid_constant__ tensor_map c_map) {                                           \
        product<B_ACROSS>(g, w, &a_map, &b_map, &c_map);                                           \
    }

#endif
