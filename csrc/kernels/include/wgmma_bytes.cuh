/* Products of planes of bytes by wgmma: TMA fills a ring of stages, two warpgroups multiply 64 rows
 * of a tile of 128 x 256 each, as in wgmma_gemm.cuh; the sums leave as bytes, by TMA.
 */
#ifndef SMK_WGMMA_BYTES_CUH
#define SMK_WGMMA_BYTES_CUH

#include "common.cuh"
#include "overlap.cuh"

constexpr int BLOCK_M = 128, BLOCK_N = 256, CONSUMERS = 2, THREADS = 128 * (CONSUMERS + 1);
#include "ozaki_tiles.cuh"

constexpr int A_TILE = BLOCK_M * OZAKI_STEP, STAGE = A_TILE + BLOCK_N * OZAKI_STEP;
constexpr int REGISTERS = BLOCK_N / 2, BOX = 64 * 128;
constexpr int CONSUMER_REGISTERS = 232, PRODUCER_REGISTERS = 40;

/* ---- wgmma of bytes, K-major; its registers are as in hopper.cuh ---- */

#define FROM_4(d, i)  "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3])
#define FROM_16(d, i) FROM_4(d, i), FROM_4(d, i + 4), FROM_4(d, i + 8), FROM_4(d, i + 12)
#define FROM_64(d, i) FROM_16(d, i), FROM_16(d, i + 16), FROM_16(d, i + 32), FROM_16(d, i + 48)

__device__ __forceinline__ void multiply_bytes(int (&d)[REGISTERS], unsigned long long a,
                                               unsigned long long b, int add) {
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.ne.b32 add, %130, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 {" WGMMA_LIST_128
                 "}, %128, %129, add;\n"
                 "}"
                 : FROM_64(d, 0), FROM_64(d, 64)
                 : "l"(a), "l"(b), "r"(add));
}

__device__ __forceinline__ void pin(int (&d)[REGISTERS]) {
#pragma unroll
    for (int i = 0; i < REGISTERS; i++)
        asm volatile("" : "+r"(d[i])::"memory");
}

/* ---- the ring ---- */

typedef struct ring {
    unsigned stages, out, full, empty; /* addresses: the tiles, C's boxes, the tiles' barriers */
    int at;
    unsigned parity;
} ring;

__device__ __forceinline__ ring ring_init() {
    extern __shared__ unsigned char shared[];
    ring r;
    r.stages = (shared_address(shared) + 1023) & ~1023u;
    r.out = r.stages + STAGES * STAGE;
    r.full = r.out + CONSUMERS * 2 * BOX;
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
    return r;
}

__device__ __forceinline__ void next(ring &r) {
    r.at++;
    if (r.at == STAGES) {
        r.at = 0;
        r.parity ^= 1;
    }
}

/* This warp is done with a stage. */
__device__ __forceinline__ void release(const ring &r, int stage) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) barrier_arrive(r.empty + 8 * stage);
}

__device__ __forceinline__ void fill(const gemm_args &g, const tensor_map *a_map,
                                     const tensor_map *b_map, const ring &r, const plane_tile &t,
                                     int step) {
    const unsigned full = r.full + 8 * r.at, a = r.stages + r.at * STAGE;
    barrier_wait(r.empty + 8 * r.at, r.parity ^ 1);
    barrier_expect(full, STAGE);
    tma_load(a, a_map, full, step * OZAKI_STEP, t.row, plane_of(t, g.batch_a));
    tma_load(a + A_TILE, b_map, full, step * OZAKI_STEP, t.column, plane_of(t, g.batch_b));
}

/* Waits for a stage and starts its products. */
__device__ __forceinline__ void multiply(int (&d)[REGISTERS], const ring &r, int consumer,
                                         int add) {
    barrier_wait(r.full + 8 * r.at, r.parity);
    const unsigned a = r.stages + r.at * STAGE + consumer * 64 * OZAKI_STEP;
    const unsigned b = r.stages + r.at * STAGE + A_TILE;
    const unsigned long long a_tile = wgmma_descriptor(a, 0, 1024);
    const unsigned long long b_tile = wgmma_descriptor(b, 0, 1024);
    pin(d);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < OZAKI_STEP / 32; k++) {
        multiply_bytes(d, a_tile + 2 * k, b_tile + 2 * k, add);
        add = 1;
    }
    wgmma_commit();
    pin(d);
}

/* The sum over a warpgroup's 64 rows of a tile. */
__device__ __forceinline__ void accumulate(int (&sum)[REGISTERS], ring &r, int consumer,
                                           int steps) {
    int before = 0;
#pragma unroll
    for (int i = 0; i < REGISTERS; i++)
        sum[i] = 0;
    for (int step = 0; step < steps; step++, next(r)) {
        multiply(sum, r, consumer, step > 0);
        wgmma_wait<1>();
        if (step > 0) release(r, before);
        before = r.at;
    }
    wgmma_wait<0>();
    pin(sum);
    release(r, before);
}

/* Adds the residues of the ranges of K before. */
__device__ __forceinline__ void add_before(const ozaki_args &o, int (&sum)[REGISTERS],
                                           const gemm_args &g, const plane_tile &t, int row) {
    const int lane = threadIdx.x % 32;
    const unsigned char *plane = o.c + t.batch * o.c_batch + t.modulus * o.c_plane;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int own = row + threadIdx.x % 128 / 32 * 16 + lane / 4 + 8 * h;
        if (own >= g.M) continue;
#pragma unroll
        for (int j = 0; j < BLOCK_N / 16; j++) {
            const int column = t.column + 16 * j + lane % 4 * 4;
            if (column >= g.N) continue;
            const unsigned word =
                *reinterpret_cast<const unsigned *>(plane + (long long)own * o.c_pitch + column);
            add_bytes(sum + 8 * j, h, word);
        }
    }
}

/* Reduces the sums and stores them: two boxes of 64 rows of 128 columns. */
__device__ __forceinline__ void store(const tensor_map *c_map, const int (&sum)[REGISTERS],
                                      unsigned buffers, int consumer, const plane_tile &t) {
    const int lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane % 16;
    const bool leader = threadIdx.x % 128 == 0;
    const int modulus = OZAKI.modulus[t.modulus], multiplier = OZAKI.multiplier[t.modulus];
    if (leader) tma_store_wait_read<0>();
    group_barrier(1 + consumer, 128);
#pragma unroll
    for (int box = 0; box < 2; box++) {
        const unsigned buffer = buffers + box * BOX;
#pragma unroll
        for (int j = 0; j < 8; j += 2) {
            const int *d = sum + 64 * box + 8 * j;
            shared_store_matrices(buffer + row * 128 + ((j + lane / 16) ^ row % 8) * 16,
                                  four_bytes(d, 0, multiplier, modulus),
                                  four_bytes(d, 1, multiplier, modulus),
                                  four_bytes(d + 8, 0, multiplier, modulus),
                                  four_bytes(d + 8, 1, multiplier, modulus));
        }
    }
    fence_async_proxy();
    group_barrier(1 + consumer, 128);
    if (leader) {
#pragma unroll
        for (int box = 0; box < 2; box++)
            tma_store(c_map, buffers + box * BOX, t.column + 128 * box, t.row + 64 * consumer,
                      t.batch * MODULI + t.modulus);
        tma_store_commit();
    }
}

#endif
