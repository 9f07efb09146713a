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

/* The sum of 16 bytes of all parts, in their order: part `rank` is at `own`, the others `next` bytes
 * apart. */
__device__ __forceinline__ part_vector sum_of_parts(unsigned own, unsigned others, int next,
                                                    int parts, int rank) {
    constexpr int LOADS = 4; /* in flight */
    part_vector sum = {};
#pragma unroll 1
    for (int first = 0; first < parts; first += LOADS) {
        uint4 more[LOADS];
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            const int part = first + i;
            const unsigned from = part == rank ? own : others + (part - (part > rank)) * next;
            if (part < parts) more[i] = load_bits(from);
        }
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            if (first + i < parts) add(sum, more[i]);
        }
    }
    return sum;
}

/* The blocks of a cluster, which have the sums of a part of K each: `rows` rows of `pitch` bytes, of
 * which a block adds `share`. The others copy theirs to it, so that nothing is waited for but these
 * copies. `groups` of threads of a block may have rows of their own. */
typedef struct cluster_parts {
    int parts, rank, share, rows, pitch;
    int each, place; /* blocks of the cluster per part, and this one's place among them */

    __device__ __forceinline__ cluster_parts(int parts_, int rank_, int share_, int rows_,
                                             int pitch_, int each_ = 1, int place_ = 0)
        : parts(parts_), rank(rank_), share(share_), rows(rows_), pitch(pitch_), each(each_),
          place(place_) {}
    __device__ __forceinline__ int rows_of(int block) const {
        return max(0, min(share, rows - block * share));
    }
    __device__ __forceinline__ int first() const { return rank * share; }
    __device__ __forceinline__ int part_bytes() const { return share * pitch; }
    /* Of the others' rows; none without a cluster. */
    __device__ __forceinline__ int bytes() const { return (parts - 1) * part_bytes(); }

    /* Early, for all threads of the cluster: each then waits with cluster_wait(). */
    __device__ __forceinline__ void begin(unsigned barrier, int thread, int groups) const {
        if (threadIdx.x == thread) {
            barrier_init(barrier, 1);
            barrier_init_done();
            barrier_expect(barrier, groups * (parts - 1) * rows_of(rank) * pitch);
        }
        cluster_arrive();
    }
    /* For a warp: the other blocks may copy to this one. Each waits for that at its `barrier`. */
    __device__ __forceinline__ void give(unsigned barrier) const {
        const int part = threadIdx.x % 32;
        if (part < parts && part != rank) barrier_arrive_of_rank(barrier, part * each + place);
    }
    /* Copies the rows at `sums` to the blocks that add them; for whole warps, this one of `warps`,
     * which meet by sync(). */
    template <typename Sync>
    __device__ __forceinline__ void send(unsigned sums, unsigned copied, unsigned barrier, int warp,
                                         int warps, Sync sync) const {
        fence_async_proxy();
        sync();
        copy_to_each(parts, warp, warps, [&](int to) {
            if (to != rank && rows_of(to) > 0)
                copy_to_rank(copied + (rank - (rank > to)) * part_bytes(), sums + to * part_bytes(),
                             rows_of(to) * pitch, barrier, to * each + place);
        });
    }
    /* Adds them, and stores the thread's rows of C. place(row): the byte of its vector in a row. */
    template <typename Place>
    __device__ __forceinline__ void add_all(own_rows own, long long ldc, alpha_beta by,
                                            unsigned sums, unsigned copied, unsigned barrier,
                                            Place place) const {
        barrier_wait(barrier, 0);
        cluster_arrive();
        finish_rows(own, ldc, by, [&](int row) {
            const unsigned at = row * pitch + place(row);
            return sum_of_parts(sums + at, copied + at - first() * pitch, part_bytes(), parts,
                                rank);
        });
        cluster_wait(); /* all copies have been made: a block that exits takes its sums with it */
    }
} cluster_parts;

/* The same of a tile of ROWS x COLUMNS sums, for all THREADS of a block: at `sums`, vectors of 16
 * bytes in any order in a row. */
template <int ROWS, int COLUMNS, int THREADS> struct cluster_sums {
    static constexpr int ACROSS = COLUMNS / PART_WIDE;
    static constexpr int PITCH = COLUMNS * (int)sizeof(part_sum);
    static_assert(THREADS % ACROSS == 0, "a thread's vectors are below each other");

    cluster_parts all;
    unsigned barrier; /* an mbarrier, and after it the rows of all others: an address */

    __device__ __forceinline__ cluster_sums(const gemm_args &g, unsigned shared, long long row)
        : all(cluster_size(), (int)blockIdx.y, g.tiles.rows_per_part,
              (int)min(g.M - row, (long long)ROWS), PITCH),
          barrier(shared) {}
    __device__ __forceinline__ void begin() const { all.begin(barrier, 0, 1); }
    /* Adds the sums, which this thread's are part of, and stores C's tile at (row, column).
     * place(row, vector): where a vector is in a row. */
    template <typename Place>
    __device__ __forceinline__ void finish(const gemm_args &g, unsigned sums, long long row,
                                           long long column, Place place) const {
        const unsigned copied = barrier + 16;
        const int vector = threadIdx.x % ACROSS, first = all.first() + threadIdx.x / ACROSS;
        all.send(sums, copied, barrier, warp_of_block(), THREADS / 32, [] { __syncthreads(); });
        const alpha_beta by = alpha_beta_of(g);
        const own_rows own(g, blockIdx.z, row, column + vector * PART_WIDE, first,
                           all.first() + all.rows_of(all.rank), THREADS / ACROSS);
        all.add_all(own, g.ldc, by, sums, copied, barrier,
                    [&](int r) { return place(r, vector) << 4; });
    }
};

#define SUM_PARTS(name)                                                                            \
    extern "C" __global__ void __launch_bounds__(REDUCE_THREADS)                                   \
        name(const __grid_constant__ gemm_args g) {                                                \
        sum_parts(g);                                                                              \
    }

#endif
