/* GEMM of fp32 matrices on tf32 tensor cores by wgmma: tiles of wgmma_tiles.cuh.
 *
 * wgmma reads 32-bit operands from shared memory only K-major. Its first operand may come from
 * registers, loaded from a tile of any layout. So the first operand, A or swapped B^T, goes through
 * registers, where it is rounded; TMA rounds the second as it loads it, and that one is packed if
 * it is not K-major, or if TMA cannot read it.
 *
 *      B transposed                     A B: nothing is packed
 *      A row-major                      (B^T A^T)^T: nothing is packed
 *
 * Each number of columns has kernels of its own: beside the registers of two stages ptxas finds no
 * room for several in one. A tile of 16 columns is C's only one.
 *
 * Arithmetic per stage (32 k) of 128 x 256: 1024 clocks of tensor core for 48 KiB from L2.
 */
#ifndef SMK_WGMMA_TF32_CUH
#define SMK_WGMMA_TF32_CUH

#define PARTS        1
#define MOST_COLUMNS 256
#define WGMMA_A_IN_REGISTERS
typedef float operand;
#include "wgmma_stages.cuh"

#include "wgmma_fragment.cuh"

/* Waits for the next stage and loads the thread's share of its rows. */
template <int A_ACROSS>
__device__ __forceinline__ void load(fragment &f, const line_pair &mine, ring &r) {
    barrier_wait(r.full + 8 * r.at, r.parity);
    const unsigned tile = r.stages + r.at * r.stage_bytes;
    next(r);
    load_part<A_ACROSS>(float(), f, mine, tile);
}

/* Starts the products of a stage, for as many columns as d has. */
template <int COUNT>
__device__ __forceinline__ void multiply(float (&d)[COUNT], const fragment &f, unsigned b,
                                         int add) {
    const unsigned long long tile = wgmma_descriptor(b, 0, 1024);
    wgmma_pin(d);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < 4; step++) {
        wgmma(float(), d, f.part[0][step], tile + (step * 32 >> 4), add);
        add = 1;
    }
    wgmma_commit();
}

/* The sum over all of K, for a warpgroup's 64 rows of a tile. A stage is loaded while the one
 * before is multiplied. */
template <int A_ACROSS, int, int COUNT>
__device__ __forceinline__ void sum_of_tile(float (&sum)[COUNT], ring &r, int consumer, int steps,
                                            int) {
    const line_pair mine = my_lines<float, A_ACROSS>(consumer);
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        sum[i] = 0;
    if (steps == 0) return;
    fragment f[2]; /* this stage's and the next's */
    int here = r.at, before = 0;
    load<A_ACROSS>(f[0], mine, r);
    for (int step = 0; step < steps; step += 2) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            if (step + half == steps) break;
            const bool first = step + half == 0;
            multiply(sum, f[half], r.stages + here * r.stage_bytes + A_TILE, !first);
            if (!first) {
                wgmma_wait<1>();
                release(r, before);
            }
            before = here;
            here = r.at;
            if (step + half + 1 < steps) load<A_ACROSS>(f[half ^ 1], mine, r);
        }
    }
    wgmma_wait<0>();
    wgmma_pin(sum);
    release(r, before);
}

constexpr int ROW_STEP = 1;
template <int A_ACROSS> __device__ __forceinline__ int my_row() {
    return my_lines<float, A_ACROSS>(0).offset;
}

/* Writes 32 columns of a warp's 16 rows into a buffer. Swapped, its boxes have 32 rows each. Banks:
 * wgmma_fragment.cuh. */
template <bool SWAPPED, int A_ACROSS, int COLUMNS>
__device__ __forceinline__ void write_chunk(const float *sum, int n, unsigned buffer) {
    const int q = threadIdx.x % 4, row = my_row<A_ACROSS>();
#pragma unroll
    for (int j = 0; j < 4; j++) {
        if (n + 8 * j >= COLUMNS) break;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const float *d = sum + 4 * j;
            if (SWAPPED)
                shared_store_pair(
                    box_piece(buffer + row / 32 * OUT_BUFFER / 2, 8 * j + 2 * q + i, row % 32 / 4) +
                        row / 2 % 2 * 8,
                    d[i], d[2 + i]);
            else
                shared_store_pair(box_piece(buffer, row + i, 2 * j + q / 2) + q % 2 * 8, d[2 * i],
                                  d[2 * i + 1]);
        }
    }
}

#include "wgmma_tiles.cuh"

/* The kernels of a number of columns: A row-major or transposed; of the transposes, B. */
#define WGMMA_PRODUCTS(name, COLUMNS)                                                              \
    WGMMA_ENTRY(name##_##COLUMNS, product<COLUMNS, false, 0, 0>)                                   \
    WGMMA_ENTRY(name##_##COLUMNS##_a, product<COLUMNS, false, 1, 0>)                               \
    WGMMA_ENTRY(name##_##COLUMNS##_swapped, product<COLUMNS, true, 0, 0>)                          \
    WGMMA_ENTRY(name##_##COLUMNS##_swapped_a, product<COLUMNS, true, 1, 0>)

#endif
