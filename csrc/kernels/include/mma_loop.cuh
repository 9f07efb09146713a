/* Loop over K of the mma.sync kernels: one barrier per tile, copies by cp.async or by registers.
 *
 *      warp       |s0 s1 s2 s3|s0 s1 s2 s3|          steps of a tile: slabs of K, groups of columns
 *      loads       s1 s2 s3  s0                      one step ahead: the next tile's first step is
 *                          ^ wait, barrier, refill   loaded before this tile's last is multiplied
 *
 * At a tile's last step all of it is in registers. So the barrier there means two things: the next
 * tile has landed for all threads, and this tile's stage is free for the tile STAGES ahead. B's
 * fragments have two sets of registers; A's one, and each is reloaded after its last product.
 * Copies past the end of K write zeros, which is cheaper than a branch. Not those of 16 bits at odd
 * addresses, which are many, or through registers, of some 50 instructions each: they end with K.
 * The last tiles have a loop without them, and nothing is loaded after the last.
 */
#ifndef SMK_MMA_LOOP_CUH
#define SMK_MMA_LOOP_CUH

#include "mma_gemm.cuh"

template <order OF_A, order OF_B, int ALIGNED> struct k_loop {
    typedef tile_copies<OF_A, OF_B, ALIGNED> all_copies;
    static constexpr bool ENDS = sizeof(REAL) == 2 && ALIGNED < CHUNK;
    static constexpr int STEPS = SLABS * GROUPS;
    static_assert(STEPS % 2 == 0, "the set of B's registers must be known in each step");
    /* Copies are spread over the products of 16 rows, except those of the last step; copies through
     * registers are spaced as far apart as possible. */
    static constexpr int PLACES = M_TILES * (STEPS - 1);
    static constexpr int A_TURN = (all_copies::COUNT + PLACES - 1) / PLACES;
    static constexpr int GAP =
        all_copies::ASYNC ? 1 : PLACES / ((all_copies::COUNT + A_TURN - 1) / A_TURN);

    number (&sum)[M_TILES][N_TILES][4];
    all_copies copies;
    const unsigned ring, a_from, b_from;
    unsigned at, free; /* the stage that is multiplied, and the one that is filled */
    a_fragment a;
    b_fragment b[2];

    __device__ __forceinline__ k_loop(number (&of)[M_TILES][N_TILES][4], const operand_matrix &A,
                                      const operand_matrix &B, long long K, unsigned ring_,
                                      const warp_place &w)
        : sum(of), ring(ring_), a_from(reads_of_a<OF_A>(w)), b_from(A_TILE + reads_of_b<OF_B>(w)),
          at(ring_), free(ring_ + (STAGES - 1) * STAGE) {
        copies.start(A, B, K);
    }

    /* Waits for all but the newest STAGES - 2 tiles. */
    __device__ __forceinline__ static void landed() {
        if (all_copies::ASYNC) {
            copy_async_commit();
            copy_async_wait<STAGES - 2>();
        }
        __syncthreads();
    }

    /* Copies a tile, unless it is one past the end of K that need not be zeros. */
    __device__ __forceinline__ void fill(int stage) {
        if (!ENDS || copies.left > 0) copies.copy_tile(ring + stage * STAGE);
    }

    template <typename Meanwhile> __device__ __forceinline__ void begin(Meanwhile meanwhile) {
#pragma unroll 1
        for (int tile = 0; tile < STAGES - 2; tile++) {
            fill(tile);
            if (all_copies::ASYNC) copy_async_commit();
        }
        fill(STAGES - 2);
        meanwhile();
        landed();
#pragma unroll
        for (int m = 0; m < M_TILES; m++) {
            load_a<OF_A>(a, ring + a_from, m, 0);
        }
        load_b<OF_B>(b[0], ring + b_from, 0, 0);
    }

    /* The steps of a tile from STEP on; `from`: the tile that is loaded. A template, because
     * `#pragma unroll` may give up on a loop with many copies, and then fragments are in memory. */
    template <bool COPIES, int STEP = 0>
    __device__ __forceinline__ void multiply_tile(unsigned from, bool last) {
        constexpr int then = (STEP + 1) % STEPS, group = STEP % GROUPS;
        const bool loads = COPIES || then != 0 || !last;
        if (then == 0 && loads) {
            landed();
            free = at;
            from = at = at == ring + (STAGES - 1) * STAGE ? ring : at + STAGE;
        }
        if (loads) load_b<OF_B>(b[(STEP + 1) % 2], from + b_from, then % GROUPS, then / GROUPS);
#pragma unroll
        for (int m = 0; m < M_TILES; m++) {
            multiply(&sum[m][group * GROUP_TILES], a, m, b[STEP % 2]);
            if (then % GROUPS == 0 && loads) load_a<OF_A>(a, from + a_from, m, then / GROUPS);
            const int place = STEP * M_TILES + m;
            if (COPIES && place % GAP == 0) {
#pragma unroll
                for (int i = 0; i < A_TURN; i++) {
                    copies.copy(free, place / GAP * A_TURN + i);
                }
            }
        }
        if constexpr (then != 0) multiply_tile<COPIES, STEP + 1>(from, last);
    }
};

template <order OF_A, order OF_B, int ALIGNED, typename Meanwhile>
__device__ __forceinline__ void
accumulate(number (&sum)[M_TILES][N_TILES][4], long long K, const operand_matrix &A,
           const operand_matrix &B, unsigned ring, const warp_place &w, Meanwhile meanwhile) {
    if (K == 0) return;
    k_loop<OF_A, OF_B, ALIGNED> loop(sum, A, B, K, ring, w);
    const int tiles = (int)((K + BLOCK_K - 1) / BLOCK_K);
    const int with_copies = loop.ENDS ? tiles - (STAGES - 1) : tiles;
    int tile = 0;
    loop.begin(meanwhile);
#pragma unroll 1
    for (; tile < with_copies; tile++)
        loop.multiply_tile<true>(loop.at, false);
    if constexpr (loop.ENDS) {
#pragma unroll 1
        for (; tile < tiles; tile++)
            loop.multiply_tile<false>(loop.at, tile + 1 == tiles);
    }
}

#endif
