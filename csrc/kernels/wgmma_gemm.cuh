/* GEMM on Hopper's tensor cores: TMA fills a ring of stages, wgmma empties it, in different warps.
 *
 *   producer   |A0 B0|A1 B1|A2 B2|A3 B3| wait |A4 B4| ...      one thread: waits for `empty`, starts copies
 *   ring          [0]   [1]   [2]   [3]         [0]
 *   consumers        |0 0 0 0|1 1 1 1|2 2 2 2| ...             2 warpgroups: wait for `full`, multiply 64 rows
 *                                                              each; then C through shared memory, by TMA
 *
 * A block stays on its multiprocessor and makes tile after tile of C, 128 x BLOCK_N each; the producer runs
 * ahead over the end of a tile, and a tile's last boxes are written while the next one is multiplied.
 *
 * Precision. Operands come in PARTS (wgmma_pack.cuh). Of the products of parts those of part 1 with part 1
 * are left out: 3 products for 2 parts, the small ones first. The tensor core truncates as it adds, an
 * error towards zero that grows with K. So with PARTS > 1 it adds up one stage only (4 steps of K), and
 * FADDs, which round to nearest, add that to the sum while the other warpgroup multiplies. (A second set of
 * accumulators, to keep a warpgroup's own products going, gained nothing.) What comes out as NaN is computed
 * again by FFMAs: infinity times part 1 of a number that has none is a NaN that the product may not have.
 *
 * Arithmetic, a stage of 128 bytes of K: 128 BLOCK_N 128 / itemsize products of two parts take 4 BLOCK_N
 * clocks of the four tensor cores, and (128 + BLOCK_N) 128 PARTS bytes come from L2. 128 x 256, one part: 1024
 * clocks for 48 KiB. 128 x 128, two parts: 1536 clocks for 64 KiB.
 * Banks: wgmma reads 64 + BLOCK_N rows of 32 bytes in BLOCK_N / 2 clocks, 80 B/clk for 256 columns and 96 for
 * 128, of 128 B/clk; the 128-byte swizzle keeps 8 rows of one column apart.
 *
 * A file that includes this says OPERAND_TF32, OPERAND_F16 or OPERAND_BITS, WGMMA_INPUT, PARTS and SCALED.
 */
#ifndef SMK_WGMMA_GEMM_CUH
#define SMK_WGMMA_GEMM_CUH

#if defined(OPERAND_TF32)
#define WGMMA_K            "8"
#define WGMMA_MAJORS(A, B) ""
#else
#define WGMMA_K            "16"
#define WGMMA_MAJORS(A, B) ", " A ", " B
#endif
#include "hopper.cuh"
#include "sixteen_bits.cuh"
#include "tile_order.cuh"
#include "wgmma_pack.cuh"
#if PARTS > 1
#include "plain_product.cuh"
#endif

constexpr int CONSUMERS = 2, THREADS = 128 * (CONSUMERS + 1);
constexpr int BLOCK_M = 64 * CONSUMERS;
constexpr int BLOCK_K = 128 / sizeof(operand); /* a stage */
constexpr int A_PART = BLOCK_M * 128, B_PART = BLOCK_N * 128, STAGE = PARTS * (A_PART + B_PART);
constexpr int OUT_BUFFER = 64 * 128, OUT_COLUMNS = 128 / sizeof(REAL);
constexpr int REGISTERS = BLOCK_N / 2;
/* Registers a thread: 512 for the three warpgroups together. */
constexpr int CONSUMER_REGISTERS = 240, PRODUCER_REGISTERS = 24;

/* ---- what C is made of ---- */

__device__ __forceinline__ float widen(float x) {
    return x;
}
__device__ __forceinline__ float narrow(float x, float) {
    return x;
}

/* ---- the ring ---- */

typedef struct ring {
    unsigned stages, full, empty; /* addresses: the tiles, their barriers */
    int at;
    unsigned parity;
} ring;

__device__ __forceinline__ void next(ring &r) {
    r.at++;
    if (r.at == STAGES) {
        r.at = 0;
        r.parity ^= 1;
    }
}

/* This warp has done with a stage. */
__device__ __forceinline__ void release(const ring &r, int stage) {
    if (threadIdx.x % 32 == 0) barrier_arrive(r.empty + 8 * stage);
}

/* A tile along K is one box; across it is one for each 128 bytes of rows. */
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
__device__ __forceinline__ void fill(const gemm_args &g, const wgmma_args &w,
                                     const tensor_map *a_map, const tensor_map *b_map,
                                     const ring &r, int step, int row, int column) {
    const unsigned full = r.full + 8 * r.at;
    const unsigned a = r.stages + r.at * STAGE, b = a + PARTS * A_PART;
    const int z_a = g.batch_a ? blockIdx.z : 0, z_b = g.batch_b ? blockIdx.z : 0;
    barrier_wait(r.empty + 8 * r.at, r.parity ^ 1);
    barrier_expect(full, STAGE);
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        load_tile<A_ACROSS, BLOCK_M>(a + part * A_PART, a_map, full, step * BLOCK_K,
                                     row + part * w.a.rows, z_a);
        load_tile<B_ACROSS, BLOCK_N>(b + part * B_PART, b_map, full, step * BLOCK_K,
                                     column + part * w.b.rows, z_b);
    }
}

/* Waits for a stage and starts all its products into d. */
template <int A_ACROSS, int B_ACROSS>
__device__ __forceinline__ void multiply(float (&d)[REGISTERS], const ring &r, int consumer,
                                         int add) {
    /* From 32 bytes of K to the next. */
    constexpr int a_step = A_ACROSS ? 16 * 128 : 32, b_step = B_ACROSS ? 16 * 128 : 32;
    barrier_wait(r.full + 8 * r.at, r.parity);
    const unsigned a = r.stages + r.at * STAGE + consumer * 64 * 128;
    const unsigned b = r.stages + r.at * STAGE + PARTS * A_PART;
    const unsigned long long a_tile = wgmma_descriptor(a, BLOCK_K * 128, 1024);
    const unsigned long long b_tile = wgmma_descriptor(b, BLOCK_K * 128, 1024);
    wgmma_pin(d);
    wgmma_fence();
#pragma unroll
    for (int order = PARTS - 1; order >= 0; order--) {
#pragma unroll
        for (int i = 0; i <= order; i++) {
#pragma unroll
            for (int k = 0; k < 4; k++) {
                wgmma<A_ACROSS, B_ACROSS>(d, a_tile + ((i * A_PART + k * a_step) >> 4),
                                          b_tile + (((order - i) * B_PART + k * b_step) >> 4), add);
                add = 1;
            }
        }
    }
    wgmma_commit();
    wgmma_pin(d);
}

/* The sum over all of K for a warpgroup's 64 rows of a tile. */
template <int A_ACROSS, int B_ACROSS>
__device__ __forceinline__ void accumulate(float (&sum)[REGISTERS], ring &r, int consumer,
                                           int steps) {
#pragma unroll
    for (int i = 0; i < REGISTERS; i++)
        sum[i] = 0;
#if PARTS == 1
    int before = 0;
    for (int step = 0; step < steps; step++, next(r)) {
        multiply<A_ACROSS, B_ACROSS>(sum, r, consumer, step > 0);
        wgmma_wait<1>();
        if (step > 0) release(r, before);
        before = r.at;
    }
    wgmma_wait<0>();
    wgmma_pin(sum);
    if (steps > 0) release(r, before);
#else
    for (int step = 0; step < steps; step++, next(r)) {
        float d[REGISTERS];
        multiply<A_ACROSS, B_ACROSS>(d, r, consumer, 0);
        wgmma_wait<0>();
        wgmma_pin(d);
        release(r, r.at);
#pragma unroll
        for (int i = 0; i < REGISTERS; i++)
            sum[i] += d[i];
    }
#endif
}

/* ---- the end of a tile ----
 *
 * Register i of a thread of the warpgroup is C's element at row_of, column_of of 64 x BLOCK_N. */

__device__ __forceinline__ int row_of(int i) {
    return threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4 + i / 2 % 2 * 8;
}
__device__ __forceinline__ int column_of(int i) {
    return i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
}

/* alpha times what the sums mean. */
__device__ __forceinline__ void finish(const gemm_args &g, const wgmma_args &w,
                                       float (&sum)[REGISTERS], int row0, int column0) {
    const float alpha = (float)g.alpha;
#if SCALED
    const unsigned *rows = of_batch(w.a.magnitude, blockIdx.z * w.a.batch);
    const unsigned *columns = of_batch(w.b.magnitude, blockIdx.z * w.b.batch);
    power of_row[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        of_row[h] = power_of(-scale_of(rows[min(row0 + row_of(2 * h), (int)g.M - 1)]));
    }
#pragma unroll
    for (int i = 0; i < REGISTERS; i++) {
        if (i % 4 >= 2) continue;
        const power of_column =
            power_of(-scale_of(columns[min(column0 + column_of(i), (int)g.N - 1)]));
        /* In turn, so that nothing leaves fp32's range on the way unless the result does. */
#pragma unroll
        for (int h = 0; h < 2; h++) {
            sum[i + 2 * h] = sum[i + 2 * h] * of_row[h].first * of_column.first * of_row[h].second *
                             of_column.second;
        }
    }
#endif
#pragma unroll
    for (int i = 0; i < REGISTERS; i++) {
#if PARTS > 1
        const int row = row0 + row_of(i), column = column0 + column_of(i);
        if (sum[i] != sum[i] && row < g.M && column < g.N) sum[i] = plain_product(g, row, column);
#endif
        sum[i] *= alpha;
    }
}

/* Straight from registers, for any alignment and beta: pieces of 8 columns of 8 rows a request. */
__device__ __forceinline__ void store_direct(const gemm_args &g, float (&sum)[REGISTERS], int row0,
                                             int column0) {
    const float beta = (float)g.beta;
#pragma unroll
    for (int i = 0; i < REGISTERS; i++) {
        const int row = row0 + row_of(i), column = column0 + column_of(i);
        if (row >= g.M || column >= g.N) continue;
        REAL *c = g.C + blockIdx.z * g.batch_c + row * g.ldc + column;
        *c = narrow(beta == 0 ? sum[i] : sum[i] + beta * widen(*c), REAL());
    }
}

/* A warp's 16 of 64 rows of 128 bytes, swizzled as the map says. 8 bytes a lane: rows 1, 3, 5, 7 take
 * the columns in another order, because rows r and r ^ 1 would meet in the same banks. */
__device__ __forceinline__ void write_rows(const float (&sum)[REGISTERS], int chunk, unsigned to,
                                           float) {
    const int lane = threadIdx.x % 32, lane_row = lane / 4, flip = lane_row % 2 * 2;
#pragma unroll
    for (int h = 0; h < 2; h++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int here = 4 * (4 * chunk + j) + 2 * h, there = 4 * (4 * chunk + (j ^ 2)) + 2 * h;
            const unsigned piece = 2 * (j ^ flip) + lane % 4 / 2;
            shared_store_pair(to + (lane_row + 8 * h) * 128 + ((piece ^ lane_row) << 4) +
                                  lane % 2 * 8,
                              flip ? sum[there] : sum[here], flip ? sum[there + 1] : sum[here + 1]);
        }
    }
}

/* Elements of 16 bits, by stmatrix. */
template <typename T>
__device__ __forceinline__ void write_rows(const float (&sum)[REGISTERS], int chunk, unsigned to,
                                           T type) {
    const int lane = threadIdx.x % 32, swizzle = lane % 8;
    const unsigned row = to + lane % 16 * 128;
#pragma unroll
    for (int j = 0; j < 8; j += 2) {
        const float *d = sum + 4 * (8 * chunk + j);
        shared_store_matrices(row + (((j + lane / 16) ^ swizzle) << 4), pack_pair(d[0], d[1], type),
                              pack_pair(d[2], d[3], type), pack_pair(d[4], d[5], type),
                              pack_pair(d[6], d[7], type));
    }
}

/* Through shared memory in two buffers: TMA writes one to C while the other is filled, and the last two
 * while the next tile is on its way. */
__device__ __forceinline__ void store_boxes(const tensor_map *c_map, const float (&sum)[REGISTERS],
                                            unsigned buffers, int consumer, int row0, int column0) {
    const int t = threadIdx.x % 128;
#pragma unroll
    for (int chunk = 0; chunk < BLOCK_N / OUT_COLUMNS; chunk++) {
        const unsigned buffer = buffers + chunk % 2 * OUT_BUFFER;
        if (t == 0) tma_store_wait_read<1>();
        group_barrier(1 + consumer, 128);
        write_rows(sum, chunk, buffer + t / 32 * 16 * 128, REAL());
        fence_async_proxy();
        group_barrier(1 + consumer, 128);
        if (t == 0) {
            tma_store(c_map, buffer, column0 + chunk * OUT_COLUMNS, row0, blockIdx.z);
            tma_store_commit();
        }
    }
}

/* ---- the kernel ---- */

template <int A_ACROSS, int B_ACROSS>
__device__ __forceinline__ void product(const gemm_args &g, const wgmma_args &w,
                                        const tensor_map *a_map, const tensor_map *b_map,
                                        const tensor_map *c_map) {
    extern __shared__ unsigned char shared[];
    ring r;
    r.stages = (shared_address(shared) + 1023) & ~1023u;
    r.full = r.stages + STAGES * STAGE + CONSUMERS * 2 * OUT_BUFFER;
    r.empty = r.full + 8 * STAGES;
    r.at = 0;
    r.parity = 0;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(r.full + 8 * s, 1);
            barrier_init(r.empty + 8 * s, 4 * CONSUMERS);
        }
        barrier_init_done();
    }
    __syncthreads();

    const int down = (int)((g.M + BLOCK_M - 1) / BLOCK_M);
    const int across = (int)((g.N + BLOCK_N - 1) / BLOCK_N);
    const int group = threadIdx.x / 128;
    if (group == 0) {
        give_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) {
            for (int tile = blockIdx.x; tile < down * across; tile += gridDim.x) {
                const tile_place at = place(tile, down, across);
                for (int step = 0; step < w.steps; step++, next(r)) {
                    fill<A_ACROSS, B_ACROSS>(g, w, a_map, b_map, r, step, at.row * BLOCK_M,
                                             at.column * BLOCK_N);
                }
            }
        }
    } else {
        take_registers<CONSUMER_REGISTERS>();
        const int consumer = group - 1;
        const unsigned out = r.stages + STAGES * STAGE + consumer * 2 * OUT_BUFFER;
        for (int tile = blockIdx.x; tile < down * across; tile += gridDim.x) {
            const tile_place at = place(tile, down, across);
            const int row = at.row * BLOCK_M + consumer * 64, column = at.column * BLOCK_N;
            float sum[REGISTERS];
            accumulate<A_ACROSS, B_ACROSS>(sum, r, consumer, w.steps);
            if (w.steps > 0) finish(g, w, sum, row, column); /* else there are no magnitudes */
            if (w.store_boxes) {
                store_boxes(c_map, sum, out, consumer, row, column);
            } else {
                store_direct(g, sum, row, column);
            }
        }
        if (threadIdx.x % 128 == 0) tma_store_wait_read<0>(); /* before its shared memory goes */
    }
}

#define WGMMA_PRODUCT(name, A_ACROSS, B_ACROSS)                                                    \
    extern "C" __global__ void __launch_bounds__(THREADS, 1)                                       \
        name(const __grid_constant__ gemm_args g, const __grid_constant__ wgmma_args w,            \
             const __grid_constant__ tensor_map a_map, const __grid_constant__ tensor_map b_map,   \
             const __grid_constant__ tensor_map c_map) {                                           \
        product<A_ACROSS, B_ACROSS>(g, w, &a_map, &b_map, &c_map);                                 \
    }

/* The kernels that come before take the same parameters. */
#define WGMMA_PREPARE(name, function)                                                              \
    extern "C" __global__ void __launch_bounds__(PACK_THREADS)                                     \
        name(const __grid_constant__ gemm_args g, const __grid_constant__ wgmma_args w,            \
             const __grid_constant__ tensor_map, const __grid_constant__ tensor_map,               \
             const __grid_constant__ tensor_map) {                                                 \
        function(g, w);                                                                            \
    }

#endif
