/* GEMM of 16-bit matrices by wgmma, both operands read from shared memory (see wgmma_gemm.cuh).
 *
 * Operands are K-major (A row-major, B transposed) or MN-major (A transposed, B row-major). wgmma
 * reads 16-bit elements either way, so nothing is copied first unless rows are not 16-byte aligned.
 * A tile has any multiple of 16 columns, up to 320: the more widths there are, the more results are
 * whole waves of tiles. One at C's right edge computes no more columns than exist. Few rows or
 * columns, and tiles whose ranges of K a cluster adds, have kernels of their own (wgmma_thin.cuh).
 *
 * Arithmetic per stage (64 k) of 128 x 256: 1024 clocks of tensor core for 48 KiB from L2; of 128 x
 * 320, which is two instructions, 1280 for 56 KiB; of 192 x 192: 1152 clocks for 48 KiB; of 64 x
 * 128: 256 for 24 KiB. Of 256 x 128, 1024 for 48 KiB; four warpgroups store its part of C at the
 * same time, which counts where K is short. A multiprocessor receives at most 64 bytes per clock,
 * so 128 x 128 is where both take as long.
 * Banks: wgmma reads 64 + columns rows of 32 bytes in columns / 2 clocks, 80 B/clk for 256 columns
 * and 96 for 128, of 128 B/clk; the 128-byte swizzle puts 8 rows of a column in different banks.
 *
 * The including file defines WGMMA_INPUT.
 */
#ifndef SMK_WGMMA_16BIT_CUH
#define SMK_WGMMA_16BIT_CUH

#define PARTS              1
#define MOST_COLUMNS       WGMMA_MOST_COLUMNS(BLOCK_M)
#define WGMMA_K            "16"
#define WGMMA_MAJORS(A, B) ", " A ", " B
typedef unsigned short operand;
#include "wgmma_stages.cuh"

/* wgmma() of more columns than the instruction has: of the first 256, and of the others. */
template <int A_ACROSS, int B_ACROSS, int COUNT>
__device__ __forceinline__ void wgmma_of(float (&d)[COUNT], unsigned long long a,
                                         unsigned long long b, int add) {
    constexpr int MOST = 128; /* registers, of 256 columns */
    if constexpr (COUNT > MOST) {
        wgmma<A_ACROSS, B_ACROSS>(reinterpret_cast<float (&)[MOST]>(d), a, b, add);
        wgmma<A_ACROSS, B_ACROSS>(reinterpret_cast<float (&)[COUNT - MOST]>(d[MOST]), a,
                                  b + (2 * MOST * 128 >> 4), add);
    } else {
        wgmma<A_ACROSS, B_ACROSS>(d, a, b, add);
    }
}

/* Waits for a stage and starts its products, d (+)= A B, for as many columns as d has. */
template <int A_ACROSS, int B_ACROSS, int COUNT>
__device__ __forceinline__ void multiply(float (&d)[COUNT], const ring &r, int consumer, int add) {
    /* Bytes from 32 bytes of K to the next. */
    constexpr int a_step = A_ACROSS ? 16 * 128 : 32, b_step = B_ACROSS ? 16 * 128 : 32;
    const unsigned a = r.stages + r.at * r.stage_bytes + consumer * 64 * 128;
    const unsigned b = r.stages + r.at * r.stage_bytes + A_TILE;
    const unsigned long long a_tile = wgmma_descriptor(a, STEP_K * 128, 1024);
    const unsigned long long b_tile = wgmma_descriptor(b, STEP_K * 128, 1024);
    barrier_wait(r.full + 8 * r.at, r.parity);
    wgmma_pin(d);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; k++) {
        wgmma_of<A_ACROSS, B_ACROSS>(d, a_tile + (k * a_step >> 4), b_tile + (k * b_step >> 4),
                                     add);
        add = 1;
    }
    wgmma_commit();
    wgmma_pin(d);
}

/* Columns of a tile: a multiple of 16; of a thin one up to 32 of 8; where clusters add, above 128
 * of 32. */
enum widths { ANY, THIN, SUMMED };
__device__ constexpr int width(widths of, int i) {
    if (of == THIN) return i < 4 ? 8 * (i + 1) : 16 * (i - 1);
    return of == SUMMED && i >= 8 ? 32 * (i - 3) : 16 * (i + 1);
}

/* The sum over all of K, for a warpgroup's 64 rows of a tile of `columns`. Each width has a loop of
 * its own, since wgmma's is part of the instruction; FIRST to LAST are those that may be meant. */
template <int A_ACROSS, int B_ACROSS, widths OF, int FIRST, int LAST, int COUNT>
__device__ __forceinline__ void accumulate(float (&sum)[COUNT], ring &r, int consumer, int steps,
                                           int columns) {
    if constexpr (FIRST < LAST) {
        constexpr int MIDDLE = (FIRST + LAST) / 2;
        if (columns <= width(OF, MIDDLE))
            accumulate<A_ACROSS, B_ACROSS, OF, FIRST, MIDDLE>(sum, r, consumer, steps, columns);
        else
            accumulate<A_ACROSS, B_ACROSS, OF, MIDDLE + 1, LAST>(sum, r, consumer, steps, columns);
    } else {
        constexpr int USED = width(OF, FIRST) / 2;
        float (&used)[USED] = reinterpret_cast<float (&)[USED]>(sum);
        sum_stages<BLOCK_M == 64 ? 2 : 1>(
            used, r, steps, [&](int add) { multiply<A_ACROSS, B_ACROSS>(used, r, consumer, add); });
    }
}

template <int A_ACROSS, int B_ACROSS>
__device__ __forceinline__ void sum_of_tile(float (&sum)[MOST_COLUMNS / 2], ring &r, int consumer,
                                            int steps, int columns) {
    accumulate<A_ACROSS, B_ACROSS, ANY, 0, MOST_COLUMNS / 16 - 1>(sum, r, consumer, steps, columns);
}

/* Of a warpgroup's 64 rows, those of a thread: my_row(), and ROW_STEP further. */
constexpr int ROW_STEP = 8;
template <int A_ACROSS> __device__ __forceinline__ int my_row() {
    const int t = threadIdx.x % 128;
    return t / 32 * 16 + t % 32 / 4;
}

/* Writes 64 columns of a warp's 16 rows into a buffer, of boxes of 64 rows x 32 columns. Swapped,
 * they are 32 columns in rows of 64. A tile of an odd number of 32 columns ends with one box. */
template <bool SWAPPED, int, int COLUMNS>
__device__ __forceinline__ void write_chunk(const float *sum, int n, unsigned buffer) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
#pragma unroll
    for (int j = 0; j < 8; j += 2) {
        if (n + 8 * j >= COLUMNS) break;
        const unsigned box = buffer + j / 4 * OUT_BUFFER / 2;
        const float *d = sum + 4 * j;
        const unsigned left = pack_pair(d[0], d[1], REAL()), below = pack_pair(d[2], d[3], REAL());
        const unsigned right = pack_pair(d[4], d[5], REAL()), last = pack_pair(d[6], d[7], REAL());
        if (SWAPPED) {
            const int row = 8 * (j % 4 + lane / 16) + lane % 8, piece = 2 * warp + lane / 8 % 2;
            shared_store_transposed(box_piece<128>(box, row, piece), left, below, right, last);
        } else {
            shared_store_matrices(box_piece<64>(box, warp * 16 + lane % 16, j % 4 + lane / 16),
                                  left, below, right, last);
        }
    }
}

#include "wgmma_tiles.cuh"

#define WGMMA_PRODUCT(name, A_ACROSS, B_ACROSS)                                                    \
    WGMMA_ENTRY(name, product<MOST_COLUMNS, false, A_ACROSS, B_ACROSS>)
#define WGMMA_SWAPPED_PRODUCT(name, A_ACROSS, B_ACROSS)                                            \
    WGMMA_ENTRY(name, product<MOST_COLUMNS, true, A_ACROSS, B_ACROSS>)

#endif
