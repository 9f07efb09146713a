/* GEMM on tensor cores by mma.sync, which every chip from sm_80 on has. cp.async fills a ring of
 * tiles; each warp multiplies its part of the tile from registers.
 *
 *      ring     [0]        [1]        [2]      STAGES stages of (BLOCK_M + BLOCK_N) x 128 bytes
 *
 * The loop over K is in mma_loop.cuh, for fp64 in gemm_fp64.cu.
 *
 * A and B are read in place, K-major (ALONG, as the rows of A) or MN-major (ACROSS, as the rows of
 * B). A tile consists of rows of memory, so both are copied alike, and fragments can be loaded from
 * either. There is one kernel for each of the four combinations.
 * Edges: a copy of elements that do not exist writes zeros and reads nothing. Where rows do not
 * begin and end on 16-byte boundaries, elements are copied one by one, lanes along the row: 5
 * sectors per request. Elements of 4 or 8 bytes use cp.async; others go through registers, 16 bytes
 * assembled at a time. In fp32 that is 4 times the copies, of 3 instructions each, because all the
 * rest is precomputed. They are unrolled: ptxas cannot move MMAs into a loop. (A loop took 27
 * instructions per copy and 2.3 times the kernel's time; this takes 1.2 times.)
 * Where C has few tiles, a block computes a part of K only (split_k.cuh).
 * Bytes: M N K (1 / BLOCK_M + 1 / BLOCK_N) elements from L2; tile_order.cuh orders the blocks.
 *
 * mma_words.cuh (fp32, fp64) and mma_halves.cuh (16 bits) include this. They define the layout of
 * tiles and a warp's work on them: the functions that are only declared here.
 */
#ifndef SMK_MMA_GEMM_CUH
#define SMK_MMA_GEMM_CUH

#include "args.h"
#include "split_k.cuh"
#include "tile_order.cuh"

constexpr int CHUNK = 16 / sizeof(REAL); /* elements; the unit of copies and swizzles */
constexpr int BLOCK_K = 128 / sizeof(REAL);
constexpr int WARPS_N = BLOCK_N / WARP_N, THREADS = BLOCK_M / WARP_M * WARPS_N * 32;
/* An operand's layout, in memory and in a tile: ALONG is K-major, ACROSS is MN-major. Its lines are
 * the rows of A or the columns of B. */
enum order { ALONG, ACROSS };
__host__ __device__ constexpr int tile_pitch(order how, int lines) { /* bytes per row */
    return how == ALONG ? 128 : lines * (int)sizeof(REAL);
}
constexpr int A_TILE = BLOCK_M * 128, STAGE = A_TILE + BLOCK_N * 128;
/* Whether the parts of a tile may be added by a cluster (core/plan_split.c). */
constexpr int TILE_BYTES = BLOCK_M * BLOCK_N * (int)sizeof(part_sum);
constexpr bool KEEPS_SUMS = TILE_BYTES <= CLUSTER_BYTES && TILE_BYTES <= STAGES * STAGE;
#ifndef STAGE_MORE
#define STAGE_MORE 0 /* bytes of a stage that are not tiles, after all tiles */
#endif
typedef cluster_sums<BLOCK_M, BLOCK_N, THREADS> tile_sums;
constexpr int SLABS = BLOCK_K / K_SLAB, GROUPS = WARP_N / GROUP_N;
constexpr int M_TILES = WARP_M / 16, N_TILES = WARP_N / 8, GROUP_TILES = GROUP_N / 8;

/* Origin of the warp's part of the block's tile; the lane's row or column and pair in 8 x 8. */
typedef struct warp_place {
    int row, column, eighth, pair, lane;
} warp_place;

/* The work of a block: k = first..end - 1 of a tile of C. */
typedef struct block_work {
    tile_place tile;
    int part;
    bool cluster; /* of the blocks that compute the tile's parts */
    long long first, end;
} block_work;

/* Offset at which a lane reads a tile; the same in every stage, as tiles are 128-byte aligned. */
template <order ORDER> __device__ __forceinline__ unsigned reads_of_a(const warp_place &w);
template <order ORDER> __device__ __forceinline__ unsigned reads_of_b(const warp_place &w);
/* Loads a slab of 16 rows of A. Where a load brings more rows, the last of their tiles does it. */
template <order ORDER>
__device__ __forceinline__ void load_a(a_fragment &a, unsigned from, int tile, int slab);
/* Loads a slab of one group of columns of B. */
template <order ORDER>
__device__ __forceinline__ void load_b(b_fragment &b, unsigned from, int group, int slab);
/* sum += a * b for a tile of 16 rows and a group of columns. Only store() depends on which elements
 * of C a lane has. */
__device__ __forceinline__ void multiply(number (*sum)[4], const a_fragment &a, int tile,
                                         const b_fragment &b);
/* Writes a warp's sums to rows of shared memory, in which vectors are at vector_of_row(). */
__device__ __forceinline__ int vector_of_row(int row, int vector);
template <order OF_A>
__device__ __forceinline__ void put(const gemm_args &g, unsigned to,
                                    number (&sum)[M_TILES][N_TILES][4], const warp_place &w,
                                    const block_work &block, long long row, long long column);
template <order OF_A>
__device__ __forceinline__ void store(const gemm_args &g, number (&sum)[M_TILES][N_TILES][4],
                                      const warp_place &w, const block_work &block, unsigned ring,
                                      long long row, long long column);

/* ---- copies ---- */

/* Copies BYTES = 16, 8 or 4 to shared memory; zeros if `exists` is false. */
template <int BYTES>
__device__ __forceinline__ void copy_async(unsigned to, const REAL *from, bool exists) {
    if (BYTES == 16) { /* bypasses L1, as the data are read once */
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                     "r"(exists ? 16 : 0)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from),
                     "n"(BYTES), "r"(exists ? BYTES : 0)
                     : "memory");
    }
}

__device__ __forceinline__ void copy_async_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most PENDING of this thread's newest groups are still in flight. */
template <int PENDING> __device__ __forceinline__ void copy_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* Waits until the ring may be reused: until no copy and no load of the block is left. */
__device__ __forceinline__ void wait_for_ring() {
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
}

/* Whether rows begin and end on boundaries of BYTES. */
template <int BYTES>
__device__ __forceinline__ bool is_aligned(const REAL *x, long long pitch, long long columns) {
    const unsigned long long bytes =
        (unsigned long long)((pitch | columns) * (long long)sizeof(REAL));
    return ((unsigned long long)x | bytes) % BYTES == 0;
}
__device__ __forceinline__ bool is_chunks(const REAL *x, long long pitch, long long columns) {
    return is_aligned<16>(x, pitch, columns);
}

/* Chunk c of a row of a tile is at c ^ swizzle(row), which must be linear: bits of row, no sums. */
template <order ORDER, int LINES> __device__ __forceinline__ unsigned swizzle(unsigned row);

/* cp.async copies 4 bytes or more. */
template <int ALIGNED> constexpr bool IS_ASYNC = ALIGNED * sizeof(REAL) >= 4;

/* Whether there is code for copies of two 16-bit elements. With 64 x 64 sums per warp it would take
 * more registers than there are. */
constexpr bool PAIRS = sizeof(REAL) == 2 && WARP_M * WARP_N < 64 * 64;

/* A thread's share of the copies of an operand's tiles of LINES lines: WIDE elements each, a warp's
 * lanes along a row. ALIGNED: rows begin and end at multiples of so many elements. A thread's copies
 * are DOWN rows or LANES copies apart, which are compile-time constants, so a row of copies needs
 * one new address. Addresses of elements that do not exist are never dereferenced. */
template <order ORDER, int LINES, int ALIGNED> struct copies {
    static constexpr int ROWS = ORDER == ALONG ? LINES : BLOCK_K;
    static constexpr int COLUMNS = ORDER == ALONG ? BLOCK_K : LINES;
    static constexpr int PITCH = tile_pitch(ORDER, LINES);
    static constexpr int WIDE = IS_ASYNC<ALIGNED> ? ALIGNED : CHUNK;
    static constexpr int LANES = COLUMNS / WIDE < 32 ? COLUMNS / WIDE : 32;
    static constexpr int PARTS = COLUMNS / WIDE / LANES, DOWN = THREADS / LANES;
    static constexpr int COUNT = ROWS / DOWN * PARTS;
    static_assert(ROWS % DOWN == 0 && (DOWN & (DOWN - 1)) == 0, "copies are whole rows, in turn");

    const REAL *from;
    long long pitch;
    unsigned to;  /* offset in a tile */
    int lines, k; /* lines that exist from the thread's first copy on, and that copy's k */

    __device__ __forceinline__ void start(const REAL *x, long long pitch_, long long n,
                                          long long first) {
        const int row = threadIdx.x / LANES, column = threadIdx.x % LANES * WIDE;
        const long long line = first + (ORDER == ALONG ? row : column);
        k = ORDER == ALONG ? column : row;
        from = x + (ORDER == ALONG ? line * pitch_ + k : k * pitch_ + line);
        pitch = pitch_;
        to = row * PITCH + ((column / CHUNK ^ swizzle<ORDER, LINES>(row)) << 4) +
             column % CHUNK * (int)sizeof(REAL);
        lines = (int)min(n - line, 0x7fffffffll);
    }

    /* Copy i of COUNT, in order, to the tile at `tile`, of whose k the first k_left exist. */
    __device__ __forceinline__ void copy(unsigned tile, int i, int k_left) {
        copy_async<WIDE * sizeof(REAL)>(place(tile, i), from + along(i), there(i, k_left) > 0);
        advance(i);
    }

    /* The same in two steps, through registers. */
    __device__ __forceinline__ void load(REAL (&v)[CHUNK], int i, int k_left) {
#pragma unroll
        for (int j = 0; j < CHUNK; j++) {
            v[j] = j < there(i, k_left) ? from[along(i) + j] : REAL();
        }
        advance(i);
    }
    __device__ __forceinline__ void store(unsigned tile, int i, const REAL (&v)[CHUNK]) {
        const uint4 words = reinterpret_cast<const uint4 &>(v);
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(place(tile, i)), "r"(words.x),
                     "r"(words.y), "r"(words.z), "r"(words.w)
                     : "memory");
    }

  private:
    __device__ static constexpr int down(int i) { return i / PARTS * DOWN; }
    __device__ static constexpr int along(int i) { return i % PARTS * LANES * WIDE; }
    __device__ __forceinline__ unsigned place(unsigned tile, int i) {
        return (tile + to ^ swizzle<ORDER, LINES>(down(i)) << 4) +
               (unsigned)(down(i) * PITCH + along(i) * (int)sizeof(REAL));
    }
    /* Elements of its row of the matrix that exist from copy i on. */
    __device__ __forceinline__ int there(int i, int k_left) {
        const bool row_exists = down(i) < (ORDER == ALONG ? lines : k_left - k);
        return row_exists ? (ORDER == ALONG ? k_left - k : lines) - along(i) : 0;
    }
    __device__ __forceinline__ void advance(int i) {
        if (i % PARTS == PARTS - 1) {
            from += DOWN * pitch;
            asm("" : "+l"(from)); /* otherwise multiples of the pitch take registers */
            __builtin_assume(__isGlobal(from));
        }
        if (ORDER == ALONG && i == COUNT - 1) from += BLOCK_K - ROWS * pitch; /* the next tile */
    }
};

/* An operand's matrix: `n` lines, in rows of memory that are `pitch` elements apart. */
typedef struct operand_matrix {
    const REAL *x;
    long long pitch, n, first; /* first: line of the block's tile */
} operand_matrix;

/* A thread's share of the copies of both operands, tile after tile. Tiles past the end of K are all
 * zeros, so none needs a special case; mma_loop.cuh leaves some out. */
template <order OF_A, order OF_B, int ALIGNED> struct tile_copies {
    typedef copies<OF_A, BLOCK_M, ALIGNED> of_a;
    typedef copies<OF_B, BLOCK_N, ALIGNED> of_b;
    /* If not, copies go through registers: stored when the next is loaded, or after the last. */
    static constexpr bool ASYNC = IS_ASYNC<ALIGNED>;
    static constexpr int COPIES = of_a::COUNT + of_b::COUNT, COUNT = COPIES + !ASYNC;

    of_a a;
    of_b b;
    long long left; /* of K, from this tile on */
    REAL passing[CHUNK];

    __device__ __forceinline__ void start(const operand_matrix &A, const operand_matrix &B,
                                          long long K) {
        a.start(A.x, A.pitch, A.n, A.first);
        b.start(B.x, B.pitch, B.n, B.first);
        left = K;
    }
    /* Copy i of COUNT, in order; the last one moves on to the next tile. */
    __device__ __forceinline__ void copy(unsigned stage, int i) {
        const int k_left = (int)min(left, (long long)BLOCK_K), of_b_i = i - of_a::COUNT;
        if (!ASYNC && i > 0 && i <= of_a::COUNT) a.store(stage, i - 1, passing);
        if (!ASYNC && i > of_a::COUNT && i <= COPIES) b.store(stage + A_TILE, of_b_i - 1, passing);
        if (i < of_a::COUNT) {
            ASYNC ? a.copy(stage, i, k_left) : a.load(passing, i, k_left);
        } else if (i < COPIES) {
            ASYNC ? b.copy(stage + A_TILE, of_b_i, k_left) : b.load(passing, of_b_i, k_left);
        }
        if (i == COUNT - 1) left -= BLOCK_K;
    }
    __device__ __forceinline__ void copy_tile(unsigned stage) {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            copy(stage, i);
        }
    }
};

/* ---- the kernel ---- */

/* The sum over all of K, which is not 0 in a cluster. meanwhile(): while the first copies are on
 * their way. Defined in mma_loop.cuh or in the kernel's own file. */
template <order OF_A, order OF_B, int ALIGNED, typename Meanwhile>
__device__ __forceinline__ void accumulate(number (&sum)[M_TILES][N_TILES][4], long long K,
                                           const operand_matrix &A, const operand_matrix &B,
                                           unsigned ring, const warp_place &w, Meanwhile meanwhile);

/* Concurrent blocks compute the tiles of one part of K, so they read the same of A and B; those of a
 * cluster, all parts of a tile. */
__device__ __forceinline__ block_work work_of_block(const gemm_args &g) {
    const bool cluster = cluster_size() > 1;
    const int at = (int)blockIdx.x, all = g.tiles.down * g.tiles.across;
    const int part = cluster ? (int)blockIdx.y : divide(at, g.tiles.by_all);
    const part_range range = range_of(part, g.tiles);
    return {place(cluster ? at : at - part * all, g.tiles), part, cluster,
            (long long)range.first * BLOCK_K, min((long long)range.end * BLOCK_K, g.K)};
}

template <order OF_A, order OF_B> __device__ __forceinline__ void product(const gemm_args &g) {
    extern __shared__ __align__(128) unsigned char shared[];
    const unsigned ring = (unsigned)__cvta_generic_to_shared(shared);
    const block_work block = work_of_block(g);
    const REAL *a = g.A + blockIdx.z * g.batch_a, *b = g.B + blockIdx.z * g.batch_b;
    const operand_matrix A = {a + block.first * (OF_A == ALONG ? 1 : g.step_a),
                              OF_A == ALONG ? g.lda : g.step_a, g.M,
                              (long long)block.tile.row * BLOCK_M};
    const operand_matrix B = {b + block.first * (OF_B == ALONG ? 1 : g.ldb),
                              OF_B == ALONG ? g.step_b : g.ldb, g.N,
                              (long long)block.tile.column * BLOCK_N};
    const long long K = block.end - block.first;
    const int warp = (int)threadIdx.x / 32, lane = threadIdx.x % 32;
    const warp_place w = {warp / WARPS_N * WARP_M, warp % WARPS_N * WARP_N, lane / 4, lane % 4,
                          lane};

    number sum[M_TILES][N_TILES][4] = {};
    const bool adds = KEEPS_SUMS && block.cluster;
    const unsigned sums_at = ring + STAGES * (STAGE + STAGE_MORE);
    if (adds) tile_sums(g, sums_at, A.first).begin();
    const auto meanwhile = [&] {
        if (adds) cluster_wait(); /* all have begun */
    };
    overlap_launches();
    const long long in_row_a = OF_A == ALONG ? g.K : g.M, in_row_b = OF_B == ALONG ? g.K : g.N;
    if (is_chunks(A.x, A.pitch, in_row_a) && is_chunks(B.x, B.pitch, in_row_b)) {
        accumulate<OF_A, OF_B, CHUNK>(sum, K, A, B, ring, w, meanwhile);
    } else if (PAIRS && is_aligned<4>(A.x, A.pitch, in_row_a) &&
               is_aligned<4>(B.x, B.pitch, in_row_b)) {
        accumulate<OF_A, OF_B, PAIRS ? 2 : 1>(sum, K, A, B, ring, w, meanwhile);
    } else {
        accumulate<OF_A, OF_B, 1>(sum, K, A, B, ring, w, meanwhile);
    }
    if (adds) {
        wait_for_ring();
        put<OF_A>(g, ring, sum, w, block, A.first + w.row, B.first + w.column);
        tile_sums(g, sums_at, A.first).finish(g, ring, A.first, B.first, vector_of_row);
        return;
    }
    store<OF_A>(g, sum, w, block, ring, A.first + w.row, B.first + w.column);
}

/* Warps of 32 x 32 need at most 168 registers, except fp64, so a multiprocessor has 12 of them. */
constexpr int WARPS_RESIDENT = WARP_M * WARP_N * sizeof(number) <= 4096 ? 12 : 8;
constexpr int BLOCKS = THREADS < 32 * WARPS_RESIDENT ? 32 * WARPS_RESIDENT / THREADS : 1;

#define MMA_GEMM_ENTRY(name, of_a, of_b)                                                           \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                  \
        name(const __grid_constant__ gemm_args g) {                                                \
        product<of_a, of_b>(g);                                                                    \
    }

/* One kernel per combination of layouts; _a, _b, _ab: A, B or both are column-major. */
#define MMA_GEMM(name)                                                                             \
    MMA_GEMM_ENTRY(name, ALONG, ACROSS)                                                            \
    MMA_GEMM_ENTRY(name##_a, ACROSS, ACROSS)                                                       \
    MMA_GEMM_ENTRY(name##_b, ALONG, ALONG)                                                         \
    MMA_GEMM_ENTRY(name##_ab, ACROSS, ALONG)                                                       \
    SUM_PARTS(name##_reduce)

#endif
