/* Stages of the wgmma GEMMs whose tiles have any number of columns (wgmma_tiles.cuh): BLOCK_M rows
 * of the first operand and `columns` of the second, 128 bytes of K each.
 *
 * The including file defines BLOCK_M, PARTS, `operand`, MOST_COLUMNS of a tile, and what
 * wgmma_gemm.cuh asks for.
 */
#ifndef SMK_WGMMA_STAGES_CUH
#define SMK_WGMMA_STAGES_CUH

#define CONSUMERS   (BLOCK_M / 64)
#define OUT_BUFFERS WGMMA_OUT_BUFFERS(BLOCK_M)
#include "wgmma_gemm.cuh"

/* Of what a kernel computes. */
template <bool SWAPPED> __device__ __forceinline__ int rows_of(const gemm_args &g) {
    return (int)(SWAPPED ? g.N : g.M);
}
template <bool SWAPPED> __device__ __forceinline__ int columns_of(const gemm_args &g) {
    return (int)(SWAPPED ? g.M : g.N);
}

constexpr int STEP_K = 128 / sizeof(operand); /* per stage */
constexpr int A_TILE = BLOCK_M * 128;

/* Bytes of a stage. Rows of an MN-major B's tile have 64 columns. */
template <int B_ACROSS> __device__ __forceinline__ int stage_size(const wgmma_args &w) {
    return A_TILE + (B_ACROSS ? (w.columns + 63) / 64 * 64 : w.columns) * 128;
}

/* What a block copies where those of a cluster share tiles: `mine` is the first of the rows or
 * columns, or of an MN-major tile the first k, that it copies to the blocks of `ranks`. */
typedef struct share {
    int mine;
    unsigned ranks;
} share;

/* A cluster is a rectangle of tiles, column by column; for each part of K that it adds. */
__device__ __forceinline__ int down_of(const wgmma_args &w) {
    return (int)blockIdx.y & (w.multicast - 1);
}
__device__ __forceinline__ int right_of(const wgmma_args &w) {
    return (int)blockIdx.y >> w.multicast / 2 & (w.multicast_a - 1); /* of 1, 2, 4: the logarithm */
}
/* `first`: the rank of the first of them. */
__device__ __forceinline__ share share_of_a(const wgmma_args &w, int first) {
    unsigned row = 1;
    for (int all = w.multicast_a, step = w.multicast; all > 1; all /= 2, step *= 2)
        row |= row << step;
    return {right_of(w) * w.share_a, row << first + down_of(w)};
}
__device__ __forceinline__ share share_of_b(const wgmma_args &w, int first) {
    return {down_of(w) * w.share, (1u << w.multicast) - 1 << first + right_of(w) * w.multicast};
}

/* Fills the next stage with the tiles of one step of K. A K-major tile is one box; an MN-major one
 * has a box per 128 bytes of its rows. Of tiles that blocks share, each copies an equal part to all
 * of them: of the lines, or, if they are MN-major, of k. */
template <int A_ACROSS, int B_ACROSS, bool SHARED>
__device__ __forceinline__ void fill(const wgmma_args &w, const tensor_map *a_map,
                                     const tensor_map *b_map, const ring &r, int step, int row,
                                     int column, int z, share of_a, share of_b) {
    const unsigned full = r.full + 8 * r.at;
    const unsigned a = r.stages + r.at * r.stage_bytes, b = a + A_TILE;
    const int z_a = z & w.moves_a, z_b = z & w.moves_b, k = step * STEP_K;
    if (r.again) barrier_wait(r.empty + 8 * r.at, r.parity ^ 1);
    barrier_expect(full, w.stage_bytes);
    if (SHARED && w.multicast_a > 1) {
        if (A_ACROSS) {
#pragma unroll 1
            for (int m = 0; m < BLOCK_M; m += STEP_K)
                tma_load_multicast(a + (m + of_a.mine) * 128, a_map, full, row + m, k + of_a.mine,
                                   z_a, of_a.ranks);
        } else {
            tma_load_multicast(a + of_a.mine * 128, a_map, full, k, row + of_a.mine, z_a,
                               of_a.ranks);
        }
    } else if (A_ACROSS) {
#pragma unroll
        for (int m = 0; m < BLOCK_M; m += STEP_K)
            tma_load(a + m * 128, a_map, full, row + m, k, z_a);
    } else {
        tma_load(a, a_map, full, k, row, z_a);
    }
    if (SHARED && w.multicast > 1) {
        if (B_ACROSS) {
#pragma unroll 1
            for (int n = 0; n < w.columns; n += 64)
                tma_load_multicast(b + (n + of_b.mine) * 128, b_map, full, column + n,
                                   k + of_b.mine, z_b, of_b.ranks);
        } else {
            tma_load_multicast(b + of_b.mine * 128, b_map, full, k, column + of_b.mine, z_b,
                               of_b.ranks);
        }
    } else if (B_ACROSS) {
#pragma unroll
        for (int n = 0; n < MOST_COLUMNS; n += 64)
            if (n < w.columns) tma_load(b + n * 128, b_map, full, column + n, k, z_b);
    } else {
        tma_load(b, b_map, full, k, column, z_b);
        const int half = w.columns / 2;
        if (MOST_COLUMNS > MOST_BOX_ROWS && w.columns > MOST_BOX_ROWS)
            tma_load(b + half * 128, b_map, full, k, column + half, z_b);
    }
}

/* Those of all steps of a work item. */
template <int A_ACROSS, int B_ACROSS, bool SHARED>
__device__ __forceinline__ void fill_steps(const wgmma_args &w, const tensor_map *a_map,
                                           const tensor_map *b_map, ring &r, const block_work &at) {
    share of_a = {}, of_b = {};
    if (SHARED) {
        of_a = share_of_a(w, r.first);
        of_b = share_of_b(w, r.first);
    }
    for (int step = at.steps.first; step < at.steps.end; step++, next(r)) {
        fill<A_ACROSS, B_ACROSS, SHARED>(w, a_map, b_map, r, step, at.tile.row * BLOCK_M,
                                         at.tile.column * w.columns, at.z, of_a, of_b);
    }
}

/* The same: a loop for blocks that share tiles, and one for others, which is shorter. */
template <int A_ACROSS, int B_ACROSS>
__device__ __forceinline__ void fill_all(const wgmma_args &w, const tensor_map *a_map,
                                         const tensor_map *b_map, ring &r, const block_work &at) {
    if (r.sharing > 1)
        fill_steps<A_ACROSS, B_ACROSS, true>(w, a_map, b_map, r, at);
    else
        fill_steps<A_ACROSS, B_ACROSS, false>(w, a_map, b_map, r, at);
}

#endif
