/* Products of planes of bytes by wgmma: TMA fills a ring of stages, two warpgroups multiply 64 rows
 * of a tile of 128 x 256 each, as in wgmma_gemm.cuh; the sums leave as bytes, by TMA.
 */
#ifndef SMK_WGMMA_BYTES_CUH
#define SMK_WGMMA_BYTES_CUH

#include "common.cuh"
#include "overlap.cuh"

constexpr int BLOCK_M = 128, BLOCK_N = 256, CONSUMERS = 2, THREADS = 128 * (CONSUMERS + 1);
#define WGMMA_BYTES
#include "ozaki_tiles.cuh"
#include "wgmma_ring.cuh"

constexpr int A_TILE = BLOCK_M * OZAKI_STEP, STAGE = A_TILE + BLOCK_N * OZAKI_STEP;
constexpr int REGISTERS = BLOCK_N / 2, BOX = 64 * 128;
/* Of 168 per thread of the block. */
constexpr int CONSUMER_REGISTERS = 232, PRODUCER_REGISTERS = 40;

__device__ __forceinline__ ring ring_init() {
    extern __shared__ unsigned char shared[];
    return ring_at((shared_address(shared) + 1023) & ~1023u, STAGES, STAGE, 1, [] {});
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
    wgmma_pin(d);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < OZAKI_STEP / 32; k++) {
        wgmma(d, a_tile + 2 * k, b_tile + 2 * k, add);
        add = 1;
    }
    wgmma_commit();
    wgmma_pin(d);
}

/* The sum over a warpgroup's 64 rows of a tile. */
__device__ __forceinline__ void accumulate(int (&sum)[REGISTERS], ring &r, int consumer,
                                           int steps) {
    sum_stages(sum, r, steps, [&](int add) { multiply(sum, r, consumer, add); });
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
    const bool leader = is_leader();
    const int modulus = OZAKI.modulus[t.modulus], multiplier = OZAKI.multiplier[t.modulus];
    if (leader) tma_store_wait_read<0>();
    group_barrier(1 + consumer, 128);
#pragma unroll
    for (int box = 0; box < 2; box++) {
        const unsigned buffer = buffers + box * BOX;
#pragma unroll
        for (int j = 0; j < 8; j += 2) {
            const int *d = sum + 64 * box + 8 * j;
            shared_store_matrices(
                box_piece(buffer, row, j + lane / 16), four_bytes(d, 0, multiplier, modulus),
                four_bytes(d, 1, multiplier, modulus), four_bytes(d + 8, 0, multiplier, modulus),
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
