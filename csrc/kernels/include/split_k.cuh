/* Split-K: K is cut into parts, so that a result of few tiles keeps all multiprocessors busy.
 *
 *   A: |  K 0  |  K 1  |  K 2  |   parts, in the workspace       C
 *   B: the same rows of K          [part][batch][M][N]
 *                                  +----+ +----+ +----+  second  +----+
 *   blocks: tiles of C x parts ->  | 0  | | 1  | | 2  |  launch  |    |  alpha (0 + 1 + 2) + beta C
 *                                  +----+ +----+ +----+ ------>  +----+
 *
 * Each part is a product of its own, left as sums (fp32; of fp64 matrices fp64) before alpha and
 * beta. The second launch adds them in a fixed order, so results do not change from run to run. A
 * thread adds 16 bytes of sums; if there are many parts, up to 32 threads each add a share of them,
 * and combine these in shared memory, two by two.
 *
 * With few parts, kernels by mma.sync, and those by wgmma for few rows or columns of 16 bits, need
 * no second launch and no workspace from sm_90 on. The blocks of a tile of C are a cluster, and each
 * adds a share of the tile's rows. The others copy their sums of these to its shared memory, where
 * an mbarrier counts the bytes.
 *
 * Bytes besides the product's: 2 SPLIT M N sizeof(sum), written and read; C once. Rows of parts
 * begin and end on 16-byte boundaries, so all of it moves 16 bytes at a time, whatever C's leading
 * dimension. Errors: sums are SPLIT times shorter, plus SPLIT - 1 additions.
 * core/plan_split.c chooses the number of parts.
 */
#ifndef SMK_SPLIT_K_CUH
#define SMK_SPLIT_K_CUH

#include "args.h"
#include "cluster.cuh"
#include "overlap.cuh"
#include "sixteen_bits.cuh"
#include "store_bits.cuh"
#include "tile_order.cuh"

/* The type in which products of REAL are summed. */
template <typename T> struct sum_of {
    typedef float type;
};
template <> struct sum_of<double> {
    typedef double type;
};
typedef sum_of<REAL>::type part_sum;

constexpr int PART_WIDE = 16 / sizeof(part_sum); /* sums per 16-byte access */

/* Address of sum (row, column) of a matrix of sums. */
__device__ __forceinline__ part_sum *sums_at(const gemm_args &g, long long matrix, long long row,
                                             long long column) {
    return reinterpret_cast<part_sum *>(g.parts) + (matrix * g.M + row) * g.part_pitch + column;
}

/* The same of a part, in this block's batch. */
__device__ __forceinline__ part_sum *part_at(const gemm_args &g, int part, long long row,
                                             long long column) {
    return sums_at(g, (long long)part * gridDim.z + blockIdx.z, row, column);
}

struct __align__(PART_WIDE * sizeof(REAL)) result_vector {
    REAL at[PART_WIDE];
};

typedef struct __align__(16) part_vector {
    part_sum at[PART_WIDE];
} part_vector;

__device__ __forceinline__ void add(part_vector &sum, const uint4 &bits) {
    const part_vector &more = reinterpret_cast<const part_vector &>(bits);
#pragma unroll
    for (int k = 0; k < PART_WIDE; k++) {
        sum.at[k] += more.at[k];
    }
}

/* alpha * sum + beta * C; C is not read if beta is 0, after it is rounded to the sums' type. */
typedef struct alpha_beta {
    part_sum alpha, beta;
} alpha_beta;

/* Computed here, and not where it is used, which is at the end of a kernel. */
__device__ __forceinline__ void pin(float &x) {
    asm volatile("" : "+f"(x));
}
__device__ __forceinline__ void pin(double &x) {
    asm volatile("" : "+d"(x));
}

__device__ __forceinline__ alpha_beta alpha_beta_of(const gemm_args &g) {
    alpha_beta by = {(part_sum)g.alpha, (part_sum)g.beta};
    pin(by.alpha);
    pin(by.beta);
    return by;
}

/* PART_WIDE adjacent elements of C, of which `exist` do. */
__device__ __forceinline__ void finish(REAL *c, int exist, alpha_beta by, part_vector sum) {
    const bool whole = exist >= PART_WIDE && (unsigned long long)c % sizeof(result_vector) == 0;
    result_vector x;
#pragma unroll
    for (int k = 0; k < PART_WIDE; k++) {
        sum.at[k] *= by.alpha;
    }
    if (by.beta != 0) {
        if (whole) x = *reinterpret_cast<const result_vector *>(c);
#pragma unroll
        for (int k = 0; k < PART_WIDE; k++) {
            if (!whole && k < exist) x.at[k] = c[k];
            sum.at[k] += by.beta * widen(x.at[k]);
        }
    }
#pragma unroll
    for (int k = 0; k < PART_WIDE; k++) {
        x.at[k] = narrow(sum.at[k], REAL());
        if (!whole && k < exist) c[k] = x.at[k];
    }
    if (whole) store_bits(c, reinterpret_cast<bits_type<sizeof x>::type &>(x));
}

/* A thread's rows of C: every `down`-th of a tile from `first` to `end`, and PART_WIDE elements of
 * each from (row, column) on, where the tile begins. */
typedef struct own_rows {
    REAL *c;
    int first, end, down, exist;

    __device__ __forceinline__ own_rows(const gemm_args &g, long long z, long long row,
                                        long long column, int first_, int end_, int down_)
        : c(g.C + z * g.batch_c + (row + first_) * g.ldc + column), first(first_),
          end((int)min(g.M - row, (long long)end_)), down(down_),
          exist((int)min(g.N - column, (long long)PART_WIDE)) {
        if (exist <= 0) end = 0;
    }
} own_rows;

/* load(row of the tile) loads their sums. */
template <typename Load>
__device__ __forceinline__ void finish_rows(own_rows own, long long ldc, alpha_beta by, Load load) {
#pragma unroll 1
    for (; own.first < own.end; own.first += own.down, own.c += own.down * ldc)
        finish(own.c, own.exist, by, load(own.first));
}

/* ---- the second launch: a thread computes PART_WIDE adjacent elements of C ---- */

/* While COUNT parts are left, adds COUNT; all their loads are issued before the first use. */
template <int COUNT>
__device__ __forceinline__ void add_parts(part_vector &sum, const part_sum *&from, long long next,
                                          int &left) {
#pragma unroll 1
    for (; left >= COUNT; left -= COUNT) {
        uint4 more[COUNT];
#pragma unroll
        for (int i = 0; i < COUNT; i++, from += next) {
            more[i] = *reinterpret_cast<const uint4 *>(from);
        }
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            add(sum, more[i]);
        }
    }
}

/* A thread's share: every blockDim.y-th part. */
__device__ __forceinline__ part_vector sum_share(const gemm_args &g, long long row,
                                                 long long column) {
    const unsigned groups = blockDim.y, split = (unsigned)g.split;
    const part_sum *from = part_at(g, threadIdx.y, row, column);
    const long long next = groups * (gridDim.z * g.M * g.part_pitch);
    int left = (int)((split + groups - 1 - threadIdx.y) / groups);
    part_vector sum = {};
    add_parts<4>(sum, from, next, left);
    add_parts<2>(sum, from, next, left);
    add_parts<1>(sum, from, next, left);
    return sum;
}

__device__ __forceinline__ void sum_parts(const gemm_args &g) {
    __shared__ uint4 shares[REDUCE_THREADS];
    const unsigned across = (unsigned)(g.part_pitch / PART_WIDE);
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const long long row = i / across, column = (long long)(i % across) * PART_WIDE;
    part_vector sum = {};
    overlap_launches();
    if (row < g.M) sum = sum_share(g, row, column);
    if (blockDim.y > 1) {
        shares[threadIdx.y * blockDim.x + threadIdx.x] = reinterpret_cast<uint4 &>(sum);
#pragma unroll 1
        for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
            __syncthreads();
            if (threadIdx.y < half) {
                add(sum, shares[(threadIdx.y + half) * blockDim.x + threadIdx.x]);
                shares[threadIdx.y * blockDim.x + threadIdx.x] = reinterpret_cast<uint4 &>(sum);
            }
        }
        if (threadIdx.y > 0) return;
    }
    if (row >= g.M) return;

    finish_rows(own_rows(g, blockIdx.z, row, column, 0, 1, 1), g.ldc, alpha_beta_of(g),
                [&](int) { return sum; });
}

/* ---- one launch, from sm_90 on: a tile's blocks are a cluster ---- */

__device__ __forceinline__ uint4 load_bits(unsigned from) {
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(from)
                 : "memory");
    return v;
}

/* What a block of a cluster adds: its own sums, then the others' in the order of their ranks. Those of
 * `rank` are the block `to`'s part number: */
__device__ __forceinline__ int part_for(int to, int rank) {
    return rank - (rank > to);
}

/* 16 bytes of its own, and of all `others`, `next` bytes apart. */
__device__ __forceinline__ part_vector sum_of_parts(unsigned own, unsigned from, int next,
                                                    int others) {
    constexpr int LOADS = 4; /* in flight */
    part_vector sum = {};
    add(sum, load_bits(own));
#pragma unroll 1
    for (; others > 0; others -= LOADS, from += LOADS * next) {
        uint4 more[LOADS];
#pragma unroll
        for (int p = 0; p < LOADS; p++) {
            if (p < others) more[p] = load_bits(from + p * next);
        }
#pragma unroll
        for (int p = 0; p < LOADS; p++) {
            if (p < others) add(sum, more[p]);
        }
    }
    return sum;
}

/* A tile of sums in each block of a cluster, which are those of a part of K: ROWS x COLUMNS, at
 * `sums`, vectors of 16 bytes in any order in a row. Each block adds a share of the rows. The others
 * copy theirs to it, so that nothing is waited for but these copies. */
template <int ROWS, int COLUMNS, int THREADS> struct cluster_sums {
    static constexpr int ACROSS = COLUMNS / PART_WIDE, DOWN = THREADS / ACROSS;
    static constexpr int PITCH = COLUMNS * (int)sizeof(part_sum);
    static_assert(THREADS % ACROSS == 0, "a thread's vectors are below each other");

    unsigned barrier, copied;      /* an mbarrier, and after it the rows of all others: addresses */
    int parts, rank, share, exist; /* `share` rows per block, `exist` of the tile */

    __device__ __forceinline__ cluster_sums(const gemm_args &g, unsigned shared, long long row)
        : barrier(shared), copied(shared + 16), parts((int)cluster_size()),
          rank((int)cluster_rank()), share((int)g.tiles.rows_per_part),
          exist((int)min(g.M - row, (long long)ROWS)) {}

    /* Rows that the block `of` adds. */
    __device__ __forceinline__ int rows(int of) const {
        return max(0, min(share, exist - of * share));
    }
    /* Early, for all threads of the cluster; each then waits with cluster_wait(). */
    __device__ __forceinline__ void begin() const {
        if (threadIdx.x == 0) expect_bytes(barrier, rows(rank) * (parts - 1) * PITCH);
        cluster_arrive();
    }
    /* Adds the sums, which this thread's are part of, and stores C's tile at (row, column).
     * place(row, vector): where a vector is, from the first of the row `share` * n on. */
    template <typename Place>
    __device__ __forceinline__ void finish(const gemm_args &g, unsigned sums, long long row,
                                           long long column, Place place) const {
        const int vector = threadIdx.x % ACROSS, first = rank * share;
        fence_writes();
        __syncthreads();
        copy_to_each(parts, warp_of_block(), THREADS / 32, [&](int to) {
            if (to != rank && rows(to) > 0)
                copy_to_rank(copied + part_for(to, rank) * share * PITCH, sums + to * share * PITCH,
                             rows(to) * PITCH, barrier, to);
        });
        const alpha_beta by = alpha_beta_of(g);
        const own_rows own(g, blockIdx.z, row, column + vector * PART_WIDE,
                           first + threadIdx.x / ACROSS, first + rows(rank), DOWN);
        wait_for_bytes(barrier);
        cluster_arrive();
        finish_rows(own, g.ldc, by, [&](int r) {
            const unsigned at = (r - first) * PITCH + (place(r, vector) << 4);
            return sum_of_parts(sums + first * PITCH + at, copied + at, share * PITCH, parts - 1);
        });
        cluster_wait(); /* all copies have been made: a block that exits takes its sums with it */
    }
};

#define SUM_PARTS(name)                                                                            \
    extern "C" __global__ void __launch_bounds__(REDUCE_THREADS)                                   \
        name(const __grid_constant__ gemm_args g) {                                                \
        sum_parts(g);                                                                              \
    }

#endif
