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
    const unsigned across = (unsigned)((g.N + BLOCK_N - 1) / BLOCK_N);
    unsigned part = 0, tile = blockIdx.x;
    long long first = 0, end = g.K;
    if (g.split > 1) {
        const unsigned tiles = gridDim.x / (unsigned)g.split;
        part = tile / tiles;
        tile -= part * tiles;
        const int chunks = (int)((g.K + CHUNK - 1) / CHUNK);
        const part_range range = range_of((int)part, (int)g.split, chunks);
        first = (long long)range.first * CHUNK;
        end = min((long long)range.end * CHUNK, g.K);
    }
    const unsigned down = tile / across;
    return {(long long)down * BLOCK_M, (long long)(tile - down * across) * BLOCK_N, first, end,
            (int)part};
}

#endif
