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
 * no second launch and no workspace from sm_90 on. The blocks of a tile of C are a cluster and leave
 * their sums in shared memory. Then each adds, for its share of the tile, the sums of all: two
 * barriers of the cluster in place of a launch.
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
__device__ __forceinline__ void finish(REAL *c, int exist, alpha_beta by, const part_vector &sum) {
    const bool whole = exist >= PART_WIDE && (unsigned long long)c % sizeof(result_vector) == 0;
    result_vector x;
    if (by.beta != 0 && whole) x = *reinterpret_cast<const result_vector *>(c);
#pragma unroll
    for (int k = 0; k < PART_WIDE; k++) {
        part_sum y = by.alpha * sum.at[k];
        if (by.beta != 0) {
            if (!whole && k < exist) x.at[k] = c[k];
            y += by.beta * widen(x.at[k]);
        }
        x.at[k] = narrow(y, REAL());
        if (!whole && k < exist) c[k] = x.at[k];
    }
    if (whole) store_bits(c, reinterpret_cast<bits_type<sizeof x>::type &>(x));
}

/* A thread's rows of C: every `step`-th from row `first` to `end` of a tile, PART_WIDE elements of
 * each from (row, column) on, the tile's first row. load(row of the tile) loads their sums. */
template <typename Load>
__device__ __forceinline__ void finish_rows(const gemm_args &g, long long z, long long row,
                                            long long column, int first, int end, int step,
                                            alpha_beta by, Load load) {
    const int exist = (int)min(g.N - column, (long long)PART_WIDE);
    end = (int)min(g.M - row, (long long)end);
    REAL *c = g.C + z * g.batch_c + (row + first) * g.ldc + column;
    if (exist <= 0) return;
#pragma unroll 1
    for (; first < end; first += step, c += step * g.ldc)
        finish(c, exist, by, load(first));
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

    finish_rows(g, blockIdx.z, row, column, 0, 1, 1, alpha_beta_of(g), [&](int) { return sum; });
}

/* ---- one launch, from sm_90 on: a tile's blocks are a cluster ---- */

/* 16 bytes at this block's address, but of the block `rank` of the cluster. */
__device__ __forceinline__ uint4 load_of_rank(unsigned from, unsigned rank) {
    uint4 v = {};
#if __CUDA_ARCH__ >= 900
    unsigned there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(from), "r"(rank));
    asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(there)
                 : "memory");
#endif
    return v;
}

/* The sum, over the blocks of the cluster, of the 16 bytes at this address. */
__device__ __forceinline__ part_vector sum_of_cluster(unsigned from, int parts) {
    constexpr int LOADS = 4; /* in flight */
    part_vector sum = {};
#pragma unroll 1
    for (int first = 0; first < parts; first += LOADS) {
        uint4 more[LOADS];
#pragma unroll
        for (int p = 0; p < LOADS; p++) {
            if (first + p < parts) more[p] = load_of_rank(from, first + p);
        }
#pragma unroll
        for (int p = 0; p < LOADS; p++) {
            if (first + p < parts) add(sum, more[p]);
        }
    }
    return sum;
}

/* Each block has the sums of its part of K in shared memory: 16 bytes of them at place(row, vector).
 * It adds those of all parts for its share of the tile of C at (row, column). */
template <int ROWS, int COLUMNS, int THREADS, typename Place>
__device__ __forceinline__ void sum_cluster(const gemm_args &g, long long row, long long column,
                                            Place place) {
    constexpr int ACROSS = COLUMNS / PART_WIDE, DOWN = THREADS / ACROSS;
    static_assert(THREADS % ACROSS == 0, "a thread's vectors are below each other");
    const int parts = (int)cluster_size(), vector = threadIdx.x % ACROSS;
    const alpha_beta by = alpha_beta_of(g);
    cluster_barrier();
    finish_rows(g, blockIdx.z, row, column + vector * PART_WIDE,
                (int)cluster_rank() * DOWN + threadIdx.x / ACROSS, ROWS, parts * DOWN, by,
                [&](int r) { return sum_of_cluster(place(r, vector), parts); });
    cluster_barrier(); /* no block exits while others read from it */
}

#define SUM_PARTS(name)                                                                            \
    extern "C" __global__ void __launch_bounds__(REDUCE_THREADS)                                   \
        name(const __grid_constant__ gemm_args g) {                                                \
        sum_parts(g);                                                                              \
    }

#endif
