/* GEMM on tensor cores by mma.sync, which every chip from sm_80 on has: cp.async fills a ring of tiles,
 * each warp multiplies its part of the tile from registers.
 *
 *      ring       [0]          [1]          [2]      STAGES of 128 bytes of K: (BLOCK_M + BLOCK_N) 128 bytes
 *      warp       |s0 s1 s2 s3|s0 s1 s2 s3|          a tile's steps: slabs of K, groups of columns
 *      loads       s1 s2 s3  s0                      one step ahead: the first step of the next tile is
 *                          ^ wait, barrier, refill   loaded before the last one of this tile is multiplied
 *
 * At a tile's last step everything of it is in registers. So the barrier there says two things: the next
 * tile has landed for everybody, and this one's place is free for the tile STAGES ahead. B's fragments have
 * two sets of registers; A's have one, and each is loaded anew after its last product.
 *
 * Edges: a copy of what does not exist writes zeros and reads nothing. Where rows are not on 16-byte
 * boundaries, or end within 16 bytes, elements are copied one by one, lanes along the row: by cp.async where
 * they have 4 or 8 bytes, else through registers, 16 bytes put together at a time.
 * Where C has few tiles a block makes a part of K only (split_k.cuh).
 * Bytes: M N K (1 / BLOCK_M + 1 / BLOCK_N) elements from L2; blocks go in the order of tile_order.cuh.
 *
 * mma_words.cuh (fp32, fp64) and mma_halves.cuh (16 bits) include this and say how tiles lie and what a warp
 * does with them: the file's functions that are only declared here.
 */
#ifndef SMK_MMA_GEMM_CUH
#define SMK_MMA_GEMM_CUH

#include "args.h"
#include "split_k.cuh"
#include "tile_order.cuh"

constexpr int CHUNK = 16 / sizeof(REAL); /* elements; the unit of copies and swizzles */
constexpr int BLOCK_K = 128 / sizeof(REAL);
constexpr int WARPS_N = BLOCK_N / WARP_N, THREADS = BLOCK_M / WARP_M * WARPS_N * 32;
constexpr int A_PITCH = 128, B_PITCH = BLOCK_N * sizeof(REAL); /* bytes of a row */
constexpr int A_TILE = BLOCK_M * A_PITCH, STAGE = A_TILE + BLOCK_K * B_PITCH;
constexpr int K_SLAB = 16; /* of K: what a step multiplies */
constexpr int GROUPS = WARP_N / GROUP_N, STEPS = BLOCK_K / K_SLAB * GROUPS;
constexpr int M_TILES = WARP_M / 16, N_TILES = WARP_N / 8, GROUP_TILES = GROUP_N / 8;
static_assert(STEPS % 2 == 0, "the set of B's registers must be known in each step");

/* The warp's part of the block's tile, and the lane's place in 8 x 8 numbers: a row or column, a pair. */
typedef struct warp_place {
    int row, column, eighth, pair, lane;
} warp_place;

/* What a block makes: K's first..end - 1 of a tile of C. */
typedef struct block_work {
    tile_place tile;
    int part;
    long long first, end;
} block_work;

/* Addresses of a lane in a stage; the same in every stage but for the stage's own. */
typedef struct lane_reads {
    unsigned a, b;
} lane_reads;

__device__ __forceinline__ lane_reads reads_of(const warp_place &w);
__device__ __forceinline__ void load_a(a_fragment &a, unsigned from, int tile, int slab);
__device__ __forceinline__ void load_b(b_fragment &b, unsigned from, int group, int slab);
/* sum (+)= a * b for 16 rows and a group of columns. Lane's numbers of 16 x 8: 2 of row `eighth`, 2 of
 * row eighth + 8. */
__device__ __forceinline__ void multiply(number (*sum)[4], const a_fragment &a,
                                         const b_fragment &b);
__device__ __forceinline__ void store(const gemm_args &g, number (&sum)[M_TILES][N_TILES][4],
                                      const warp_place &w, const block_work &block, long long row,
                                      long long column);

/* ---- copies ---- */

/* BYTES = 16, 8 or 4 to shared memory, zeros if `exists` is false. */
template <int BYTES>
__device__ __forceinline__ void copy_async(unsigned to, const REAL *from, bool exists) {
    if (BYTES == 16) { /* past L1, which would not be asked again */
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

/* Until at most PENDING of this thread's newest groups are still under way. */
template <int PENDING> __device__ __forceinline__ void copy_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* Whether rows begin and end on 16-byte boundaries. */
__device__ __forceinline__ bool is_chunks(const REAL *x, long long ld, long long columns) {
    const unsigned long long bytes = (unsigned long long)((ld | columns) * (long long)sizeof(REAL));
    return ((unsigned long long)x | bytes) % 16 == 0;
}

/* Of a row of a tile, chunk c lies at place c ^ swizzle(row). */
enum operand_of { OF_A, OF_B };
template <operand_of OPERAND> __device__ __forceinline__ unsigned swizzle(unsigned row);
template <> __device__ __forceinline__ unsigned swizzle<OF_A>(unsigned row);
template <> __device__ __forceinline__ unsigned swizzle<OF_B>(unsigned row);

/* A thread's share of the copies of an operand's tiles: WIDE elements each, the block's threads along
 * the rows. Addresses of what does not exist are never used. */
template <operand_of OPERAND, bool CHUNKS> struct copies {
    static constexpr unsigned ROWS = OPERAND == OF_A ? BLOCK_M : BLOCK_K;
    static constexpr unsigned COLUMNS = OPERAND == OF_A ? BLOCK_K : BLOCK_N;
    static constexpr unsigned WIDE = CHUNKS || sizeof(REAL) < 4 ? CHUNK : 1;
    static constexpr unsigned ACROSS = COLUMNS / WIDE, DOWN = THREADS / ACROSS;
    static constexpr unsigned COUNT = ROWS / DOWN;
    static_assert(THREADS % ACROSS == 0 && ROWS % DOWN == 0, "copies are whole rows, in turn");

    const REAL *from;
    long long ld;
    int others; /* rows of A, columns of B from `from` on */

    __device__ __forceinline__ void start(const REAL *x, long long ld_, long long n,
                                          long long first) {
        const unsigned row = threadIdx.x / ACROSS, column = threadIdx.x % ACROSS * WIDE;
        const long long other = first + (OPERAND == OF_A ? row : column);
        from = OPERAND == OF_A ? x + other * ld_ + column : x + row * ld_ + other;
        ld = ld_;
        others = (int)min(n - other, 0x7fffffffll);
    }

    /* Copy i of COUNT, in turn, to the tile at `tile`, of which k_left of K's elements exist. */
    __device__ __forceinline__ void copy(unsigned tile, int i, int k_left) {
        const unsigned r = threadIdx.x / ACROSS + i * DOWN, e = threadIdx.x % ACROSS * WIDE;
        const unsigned to = tile + r * COLUMNS * (unsigned)sizeof(REAL) +
                            ((e / CHUNK ^ swizzle<OPERAND>(r)) << 4) + e % CHUNK * sizeof(REAL);
        const bool row_exists = OPERAND == OF_A ? i * (int)DOWN < others : (int)r < k_left;
        const int there = row_exists ? (OPERAND == OF_A ? k_left - (int)e : others) : 0;
        const REAL *x = from;
        from += DOWN * ld;
        asm("" : "+l"(from)); /* else COUNT multiples of ld would take registers */
        if (OPERAND == OF_A && i == COUNT - 1)
            from += BLOCK_K - ROWS * ld; /* on to the next tile */
        if constexpr (WIDE * sizeof(REAL) == 16 && !CHUNKS) {
            REAL v[CHUNK] = {};
#pragma unroll
            for (int k = 0; k < CHUNK; k++) {
                if (k < there) v[k] = x[k];
            }
            const uint4 words = reinterpret_cast<const uint4 &>(v);
            asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(words.x),
                         "r"(words.y), "r"(words.z), "r"(words.w)
                         : "memory");
        } else {
            copy_async<WIDE * sizeof(REAL)>(to, x, there > 0);
        }
    }
};

/* ---- the kernel ---- */

/* The sum over g.K of K. */
template <bool CHUNKS>
__device__ __forceinline__ void accumulate(number (&sum)[M_TILES][N_TILES][4], const gemm_args &g,
                                           const REAL *A, const REAL *B, unsigned ring,
                                           const warp_place &w, tile_place block) {
    const int tiles = (int)((g.K + BLOCK_K - 1) / BLOCK_K);
    const lane_reads reads = reads_of(w);
    copies<OF_A, CHUNKS> a_copies;
    copies<OF_B, CHUNKS> b_copies;
    a_copies.start(A, g.lda, g.M, (long long)block.row * BLOCK_M);
    b_copies.start(B, g.ldb, g.N, (long long)block.column * BLOCK_N);
    long long k = 0; /* of the next tile that is copied */
    constexpr int A_COUNT = copies<OF_A, CHUNKS>::COUNT, B_COUNT = copies<OF_B, CHUNKS>::COUNT;
    /* Copies go in turns, each after the products of 16 rows; single elements in few turns of many. */
    constexpr int COPIES = A_COUNT + B_COUNT, GAP = CHUNKS ? 1 : (M_TILES * (STEPS - 1) + 3) / 4;
    constexpr int TURNS = M_TILES * (STEPS - 1) / GAP;
    /* Past the end of K all of a copy is zeros: no tile is special. */
    auto copy = [&](unsigned stage, int first, int last) {
        const int k_left = (int)min(g.K - k, (long long)BLOCK_K);
#pragma unroll CHUNKS ? COPIES : 1
        for (int i = first; i < last; i++) {
            if (i < A_COUNT) {
                a_copies.copy(stage, i, k_left);
            } else {
                b_copies.copy(stage + A_TILE, i - A_COUNT, k_left);
            }
        }
    };
    constexpr bool ASYNC = CHUNKS || sizeof(REAL) >= 4; /* else they are stores */
    auto end_copies = [&]() {
        if (ASYNC) copy_async_commit();
        k += BLOCK_K;
    };
#pragma unroll 1
    for (int tile = 0; tile < STAGES - 1; tile++) {
        copy(ring + tile * STAGE, 0, COPIES);
        end_copies();
    }
    if (ASYNC) copy_async_wait<STAGES - 2>();
    __syncthreads();

    a_fragment a[M_TILES];
    b_fragment b[2];
#pragma unroll
    for (int m = 0; m < M_TILES; m++) {
        load_a(a[m], ring + reads.a, m, 0);
    }
    load_b(b[0], ring + A_TILE + reads.b, 0, 0);
    unsigned at = ring, free = ring + (STAGES - 1) * STAGE;
#pragma unroll 1
    for (int tile = 0; tile < tiles; tile++) {
        unsigned from = at;
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            const int then = (step + 1) % STEPS, group = step % GROUPS;
            if (then == 0) {
                end_copies();
                if (ASYNC) copy_async_wait<STAGES - 2>();
                __syncthreads();
                free = at;
                from = at = at == ring + (STAGES - 1) * STAGE ? ring : at + STAGE;
            }
            load_b(b[(step + 1) % 2], from + A_TILE + reads.b, then % GROUPS, then / GROUPS);
#pragma unroll
            for (int m = 0; m < M_TILES; m++) {
                multiply(&sum[m][group * GROUP_TILES], a[m], b[step % 2]);
                if (then % GROUPS == 0) load_a(a[m], from + reads.a, m, then / GROUPS);
                const int turn = (step * M_TILES + m) / GAP;
                if ((step * M_TILES + m) % GAP == 0 && turn < TURNS) {
                    copy(free, turn * COPIES / TURNS, (turn + 1) * COPIES / TURNS);
                }
            }
        }
    }
}

/* Blocks that run together make all tiles of one part of K: they read the same of A and B. */
__device__ __forceinline__ block_work work_of_block(const gemm_args &g) {
    const int down = (int)((g.M + BLOCK_M - 1) / BLOCK_M);
    const int across = (int)((g.N + BLOCK_N - 1) / BLOCK_N);
    const int part = (int)(blockIdx.x / (unsigned)(down * across));
    const part_range range = range_of(part, (int)g.split, (int)((g.K + BLOCK_K - 1) / BLOCK_K));
    return {place<8>((int)blockIdx.x - part * down * across, down, across), part,
            (long long)range.first * BLOCK_K, min((long long)range.end * BLOCK_K, g.K)};
}

__device__ __forceinline__ void product(const gemm_args &g) {
    extern __shared__ __align__(128) unsigned char shared[];
    const unsigned ring = (unsigned)__cvta_generic_to_shared(shared);
    const block_work block = work_of_block(g);
    const tile_place at = block.tile;
    const REAL *A = g.A + blockIdx.z * g.batch_a + block.first;
    const REAL *B = g.B + blockIdx.z * g.batch_b + block.first * g.ldb;
    gemm_args part = g;
    part.K = block.end - block.first;
    const int warp = (int)threadIdx.x / 32, lane = threadIdx.x % 32;
    const warp_place w = {warp / WARPS_N * WARP_M, warp % WARPS_N * WARP_N, lane / 4, lane % 4,
                          lane};

    number sum[M_TILES][N_TILES][4] = {};
    if (is_chunks(A, g.lda, g.K) && is_chunks(B, g.ldb, g.N)) {
        accumulate<true>(sum, part, A, B, ring, w, at);
    } else {
        accumulate<false>(sum, part, A, B, ring, w, at);
    }
    store(g, sum, w, block, (long long)at.row * BLOCK_M + w.row,
          (long long)at.column * BLOCK_N + w.column);
}

#define MMA_GEMM(name)                                                                             \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        name(const __grid_constant__ gemm_args g) {                                                \
        product(g);                                                                                \
    }                                                                                              \
    SUM_PARTS(name##_reduce)

#endif
