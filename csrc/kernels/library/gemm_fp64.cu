/* GEMM of fp64 matrices on tensor cores: DMMA 16 x 8 x 8.
 *
 *      block 128 x 128 x 16: 8 warps of 64 x 32        four stages of 32 KiB
 *      warp      | slab 0 | slab 1 | slab 0 |          slabs of 8 k: 16 DMMAs each
 *      loads       slab 1   slab 0   slab 1            into the other of two register sets
 *      barriers    empty    full     empty             stage to fill is free; next tile has landed
 *
 * DMMA's first operand has 16 rows. Its registers hold rows g and g + 8, first of 4 k, then of the
 * other 4: what 16-byte loads of an MN-major operand bring, two lines of one k. The second operand
 * has 8 columns, and its registers two k of one: what loads of a K-major operand bring. So A is the
 * first operand if it is MN-major, else the second, and C comes out as it is or transposed. Nothing
 * is moved between shared memory and DMMA, if A and B are of different orders. If they are of one,
 * B is loaded by elements, in twice the wavefronts: there is time for them, but not for the moves
 * and spilled registers that vectors cost (4096 cubed: 8 %). Small warps wait for shared memory, so
 * they move.
 * 16 x 8 x 4 reads and writes the sums twice as often, which costs clocks and power. 16 x 8 x 16
 * needs so many consecutive registers that no second set fits.
 *
 * Clocks: a multiprocessor does 128 multiply-adds per clock, so a stage takes 2048. Shared memory
 * serves 96 wavefronts of loads per warp and 256 of copies, half that time; L2, 16 bytes per clock.
 * mbarriers, because one __syncthreads per tile leaves DMMA idle for 4 % of the time.
 * Power: back-to-back products of more than some ms reach the 700 W limit, at 1.5 to 1.8 GHz.
 * Registers: 128 sums, 2 x 48 of A and B: all 255, so one block per multiprocessor.
 * Banks: mma_words.cuh.
 * FLOPs: 2 M N K at the DMMA rate, rounded to fp64 after each multiply-add.
 * Before sm_90 only 8 x 8 x 4 exists, at half Hopper's rate; ptxas emits it for sm_100 and later.
 * Differs from pipelined by the instruction, a slab loaded ahead, and mbarriers.
 */
#define STAGE_MORE 16 /* two mbarriers */
#include "hopper.cuh"
#include "mma_words.cuh"

/* TURNED: a tile's 16 rows of A by two groups of 8 columns of B; else two groups of 8 rows by 16
 * columns. */
template <bool TURNED>
__device__ __forceinline__ void multiply(double (*sum)[4], const a_fragment &a, int tile,
                                         const b_fragment &b) {
    const double (*rows)[V] = a.x + 2 * tile;
    const double (*x)[V] = TURNED ? rows : b.x, (*y)[V] = TURNED ? b.x : rows;
#pragma unroll
    for (int e = 0; e < 2; e++) {
        double *d = sum[e];
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3},"
                     " {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
                     : "d"(x[0][0]), "d"(x[1][0]), "d"(x[0][1]), "d"(x[1][1]), "d"(y[e][0]),
                       "d"(y[e][1]));
    }
}

__device__ __forceinline__ void check(const gemm_args &, double &, const block_work &, long long,
                                      long long) {}

/* One slab of the warp's rows of A and columns of B. */
typedef struct slab_fragments {
    a_fragment a;
    b_fragment b[GROUPS];
} slab_fragments;

template <order OF_A, order OF_B>
__device__ __forceinline__ void load_slab(slab_fragments &x, unsigned a_from, unsigned b_from,
                                          int slab) {
    constexpr bool WHOLE = OF_A != OF_B || WARP_M * WARP_N < 1024;
#pragma unroll
    for (int m = 0; m < M_TILES; m++) {
        load_a<OF_A>(x.a, a_from, m, slab);
    }
#pragma unroll
    for (int group = 0; group < GROUPS; group++) {
        load<OF_B, BLOCK_N, WHOLE>(x.b[group].x, b_from, group, slab, 0, V);
    }
}

template <order OF_A, order OF_B, int ALIGNED, typename Meanwhile>
__device__ __forceinline__ void
accumulate(number (&sum)[M_TILES][N_TILES][4], long long K, const operand_matrix &A,
           const operand_matrix &B, unsigned ring, const warp_place &w, Meanwhile meanwhile) {
    const unsigned full = ring + STAGES * STAGE, empty = full + STAGES * 8; /* mbarriers */
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            barrier_init(full + stage * 8, THREADS);
            barrier_init(empty + stage * 8, THREADS / 32);
        }
    }
    __syncthreads();
    const int tiles = (int)((K + BLOCK_K - 1) / BLOCK_K);
    const unsigned a_from = reads_of_a<OF_A>(w);
    const unsigned b_from = A_TILE + reads_of_b<OF_B>(w);
    tile_copies<OF_A, OF_B, ALIGNED> copies;
    copies.start(A, B, K);
    constexpr int COPIES = copies.COUNT, TURNS = GROUPS * M_TILES;
#pragma unroll 1
    for (int stage = 0; stage < STAGES - 1; stage++) {
        copies.copy_tile(ring + stage * STAGE);
        copy_async_arrive(full + stage * 8);
    }

    meanwhile();
    slab_fragments x[2];
    barrier_wait(full, 0);
    load_slab<OF_A, OF_B>(x[0], ring + a_from, ring + b_from, 0);
    int at = 0, fill = STAGES - 1; /* stage to use, stage to fill */
    unsigned at_parity = 0, fill_parity = 1;
#pragma unroll 1
    for (int tile = 0; tile < tiles; tile++) {
        const unsigned to = ring + fill * STAGE;
        barrier_wait(empty + fill * 8, fill_parity);
#pragma unroll
        for (int slab = 0; slab < SLABS; slab++) {
            const int then = (slab + 1) % SLABS;
            if (then == 0) {
                __syncwarp();
                if (w.lane == 0) barrier_arrive(empty + at * 8);
                if (++at == STAGES) {
                    at = 0;
                    at_parity ^= 1;
                }
                barrier_wait(full + at * 8, at_parity);
            }
            const unsigned from = ring + at * STAGE;
            load_slab<OF_A, OF_B>(x[then % 2], from + a_from, from + b_from, then);
#pragma unroll
            for (int turn = 0; turn < TURNS; turn++) {
                const int group = turn / M_TILES, m = turn % M_TILES;
                multiply<turned(OF_A)>(&sum[m][group * GROUP_TILES], x[slab % 2].a, m,
                                       x[slab % 2].b[group]);
#pragma unroll
                for (int i = turn * COPIES / TURNS; slab == 0 && i < (turn + 1) * COPIES / TURNS;
                     i++) {
                    copies.copy(to, i);
                }
            }
            if (slab == 0) copy_async_arrive(full + fill * 8);
        }
        if (++fill == STAGES) {
            fill = 0;
            fill_parity ^= 1;
        }
    }
}

MMA_GEMM(gemm_fp64)
