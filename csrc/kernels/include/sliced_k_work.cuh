/* What a block of gemm_sliced_k computes: a tile of C, or a split-K part of one. CHUNK: the k of
 * its copies. */
#ifndef SMK_SLICED_K_WORK_CUH
#define SMK_SLICED_K_WORK_CUH

#include "args.h"
#include "split_k.cuh"

/* The work of a block: k = first..end - 1 of the tile of C at (row, column). */
typedef struct block_work {
    long long row, column, first, end;
    int part;
} block_work;

__device__ __forceinline__ block_work work_of_block(const gemm_args &g) {
    const int item = (int)blockIdx.x, part = divide(item, g.tiles.by_all);
    const tile_place tile = place(item - part * g.tiles.down * g.tiles.across, g.tiles);
    const part_range range = range_of(part, g.tiles);
    return {(long long)tile.row * BLOCK_M, (long long)tile.column * BLOCK_N,
            (long long)range.first * CHUNK, min((long long)range.end * CHUNK, g.K), part};
}

#endif
