/* Shared by the wgmma GEMMs: TMA fills a ring of stages, wgmma consumes it, in different warps.
 *
 *   producer   |A0 B0|A1 B1|A2 B2|A3 B3| wait |A4 B4| ... one thread: waits for `empty`, copies
 *   ring          [0]   [1]   [2]   [3]         [0]
 *   consumers        |0 0 0 0|1 1 1 1|2 2 2 2| ...        1 to 4 warpgroups: wait, multiply;
 *                                                         then C through shared memory, by TMA
 *
 * Blocks are persistent and compute tile after tile of C. The producer runs ahead past the end of a
 * tile, and a tile's last boxes are stored while the next is multiplied. There are as many blocks
 * as share the tiles evenly. With few tiles K is split (split_k.cuh); parts are taken like tiles.
 * The blocks of a cluster may share tiles: those below each other B's, and those side by side A's.
 * Each copies a part of one, and TMA writes it to the rings of all that share it. A stage is free
 * when the consumers of all blocks of the cluster have released it.
 *
 *   wgmma_ring.cuh    the ring
 *   wgmma_stages.cuh  its stages, and wgmma_tiles.cuh the tiles of C, of any number of columns:
 *   wgmma_16bit.cuh     16-bit operands, both read from shared memory
 *   wgmma_thin.cuh      the same for few rows or columns
 *   wgmma_tf32.cuh      fp32 operands, rounded to tf32; the first through registers
 *   wgmma_fp32.cuh    fp32 operands of two terms, or of one in fp16; B through registers
 *   wgmma_pack.cuh    packs operands that TMA cannot read in place, or that are split into terms
 */
#ifndef SMK_WGMMA_GEMM_CUH
#define SMK_WGMMA_GEMM_CUH

#include "hopper.cuh"
#include "split_k.cuh"
#include "tile_order.cuh"
#include "wgmma_pack.cuh"

#ifndef CONSUMERS
#define CONSUMERS 2 /* warpgroups that multiply */
#endif
#include "wgmma_ring.cuh"
constexpr int THREADS = 128 * (CONSUMERS + 1);
/* Buffers for C per warpgroup, their bytes, and the columns of a box. */
#ifndef OUT_BUFFERS
#define OUT_BUFFERS 2
#endif
constexpr int OUT_BUFFER = 64 * 128, OUT_COLUMNS = 32;
constexpr int OUT_ROW = OUT_COLUMNS * sizeof(REAL); /* bytes */
/* Registers per thread. The warpgroups share what the block is launched with: 2 x 128, 3 x 168,
 * 4 x 128 or 5 x 96. A warpgroup that asks for more than is left waits forever. */
#if GUARDED
constexpr int CONSUMER_REGISTERS = 232, PRODUCER_REGISTERS = 40;
#else
constexpr int CONSUMER_REGISTERS = CONSUMERS == 4   ? 112
                                   : CONSUMERS == 3 ? 152
                                   : CONSUMERS == 2 ? 240
                                                    : 216;
constexpr int PRODUCER_REGISTERS = CONSUMERS % 2 ? 40 : 24;
#endif
static_assert(CONSUMERS * CONSUMER_REGISTERS + PRODUCER_REGISTERS <=
                  65536 / THREADS / 8 * 8 * (CONSUMERS + 1),
              "the warpgroups' registers are more than the block has");

/* ---- work items of a block: a range of K of a tile of C ---- */

typedef struct block_work {
    tile_place tile;
    int part, z; /* of K; index in the batch */
    part_range steps;
} block_work;

/* All tiles of one part of K come first, then those of the next, then the next matrix. A launch
 * takes its batch in this way, or in gridDim.z (plan_wgmma.c). Tiles are taken in the order of
 * tile_order.cuh. An item of a cluster is all parts of a tile; `own`: the block's. */
__device__ __forceinline__ block_work work_of(const gemm_args &g, const wgmma_args &w, int item,
                                              int own = 0) {
    const work_list &list = w.list;
    const tile_list &tiles = g.tiles;
    const int full = tiles.down * tiles.across, first_narrow = full * list.ranges;
    const bool narrow = item >= first_narrow;
    const int at = narrow ? item - first_narrow : item;
    const int range = divide(at, narrow ? list.by_down : tiles.by_all);
    const int tile = at - range * (narrow ? tiles.down : full);
    const int z = divide(range, list.by_split), part = range - z * list.split + own;
    const part_range steps = range_of(part, tiles);
    if (narrow) return {{tile, tiles.across}, part, (int)blockIdx.z + z, steps};
    return {place(tile, tiles), part, (int)blockIdx.z + z, steps};
}

/* Index of a part's matrix in the workspace, and in its tensor map. */
__device__ __forceinline__ int matrix_of(const wgmma_args &w, const block_work &at) {
    return at.part * (int)(gridDim.z * w.batches) + at.z;
}

/* The second launch of split-K, which also applies alpha and beta. */
__device__ __forceinline__ void sum_parts(const gemm_args &g, const wgmma_args &) {
    sum_parts(g);
}

/* ---- the ring ---- */

/* In the block's last warp, while others set up the ring: the first copy waits for its map. */
__device__ __forceinline__ void prefetch_maps(const tensor_map *a, const tensor_map *b) {
    if (threadIdx.x != THREADS - 1) return;
    tma_prefetch_map(a);
    tma_prefetch_map(b);
}

/* In the same warp, when it is about to multiply. */
__device__ __forceinline__ void prefetch_result_map(const wgmma_args &w, const tensor_map *c) {
    if (w.store_boxes && threadIdx.x == THREADS - 1) tma_prefetch_map(c);
}

/* Finds the block's first work item in warp 0, which copies its tiles. */
template <typename First>
__device__ __forceinline__ ring ring_init(int stages, int stage_bytes, int sharing, First first) {
    extern __shared__ __align__(1024) unsigned char shared[];
    return ring_at(shared_address(shared), stages, stage_bytes, sharing, first);
}

/* each(item, last) for all items of a block, from `at` on; next(item) finds an item. */
template <typename Next, typename Each>
__device__ __forceinline__ void for_each_item(const work_list &list, int first, block_work at,
                                              Next next, Each each) {
    for (int item = first;; at = next(item)) {
        item += list.at_once;
        each(at, item >= list.items);
        if (item >= list.items) return;
    }
}

/* ---- C: a warpgroup has buffers for boxes: one is stored while another is filled ---- */

__device__ __forceinline__ float load_out(unsigned from, float) {
    return shared_load(from);
}
template <typename T> __device__ __forceinline__ T load_out(unsigned from, T) {
    return shared_load_half<T>(from);
}

/* Adds beta times the old C; element(i) is the place of sum[i], {row, column}. */
template <int REGISTERS, typename Element>
__device__ __forceinline__ void add_old(const gemm_args &g, int z, float (&sum)[REGISTERS],
                                        Element element) {
    const float beta = (float)g.beta;
    const REAL *c = g.C + z * g.batch_c;
#pragma unroll
    for (int i = 0; i < REGISTERS; i++) {
        const int2 at = element(i);
        if (at.x < g.M && at.y < g.N) sum[i] += beta * widen(c[at.x * g.ldc + at.y]);
    }
}

/* Where TMA cannot store: a warpgroup stores 32 columns of a box, from `first` on, by elements to
 * c, of which `rows` and `columns` exist; a row per warp, 8 in flight. Not inline: a kernel stores
 * several boxes, and a block that uses TMA would fetch code around each. */
template <int ROWS, int ROW_BYTES = OUT_ROW>
__device__ __noinline__ void store_box(REAL *c, long long ldc, int rows, int columns, unsigned box,
                                       int first = 0) {
    constexpr int BATCH = 8;
    const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
    const int byte = (first + lane) * sizeof(REAL);
    if (lane >= columns) return;
#pragma unroll 1
    for (int i = warp; i < ROWS; i += 4 * BATCH) {
        REAL *to = c + i * ldc + lane;
        REAL x[BATCH];
#pragma unroll
        for (int r = 0; r < BATCH; r++) {
            x[r] = load_out(box_piece<ROW_BYTES>(box, i + 4 * r, byte / 16) + byte % 16, REAL());
        }
#pragma unroll
        for (int r = 0; r < BATCH; r++) {
            if (i + 4 * r < rows) to[4 * r * ldc] = x[r];
        }
    }
}

#endif
