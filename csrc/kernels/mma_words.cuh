/* How fp32 and fp64 lie for mma.sync, so that every shared access moves 16 bytes; the rest is mma_gemm.cuh.
 *
 * ldmatrix turns 16-bit elements only. But which k of a slab is called the first is free, if A and B agree,
 * and which line of a group of 8 V too (a row of A, a column of B), if C does: A's lines and B's are taken
 * alike, and each matrix as it lies. V = 16 / sizeof(REAL) elements a vector; lane = 4 g + t.
 *
 *      along: line, 128 bytes of k   | t0 t1 t2 t3 | t0 t1 t2 t3 |   a lane reads vector t of a half in each of
 *                                        half 0        half 1        its V lines, slot(g) V + q; V k a vector
 *      across: k, 128 bytes of lines | g0 g2 g4 g6 | g1 g3 g5 g7 |   in each of its 4 k a lane reads the vector
 *                                                                    slot(g): its V lines
 *
 * A lane's k are 4 V half + V t + j, so either way it has the same lines and k: x[q][j]. Line slot(g) V + q is
 * row or column g of the q-th of V 8-line products. slot() puts the even g into the first half: lanes with 2 t
 * and 2 t + 1 as columns of C hold vectors t and t + 4, 64 neighbouring bytes a row and store, whole sectors.
 * Banks: 16-byte reads are served 8 lanes at a time: two g, four t. Along K, lines with odd g have their halves
 * swapped (vector ^ 4); across, row V t + j has vector ^ t. Either way the 8 lanes find 8 different vectors of
 * 128 bytes: 4 wavefronts a request, the fewest there are, and no swizzle moves cp.async's 8 out of their 128
 * bytes.
 */
#ifndef SMK_MMA_WORDS_CUH
#define SMK_MMA_WORDS_CUH

#include "common.cuh"

typedef REAL number;
/* Row of A in each eighth of the warp's; the j-th k of this lane among a slab's 16. */
typedef struct a_fragment {
    REAL x[WARP_M / 8][4];
} a_fragment;
/* Column of B, of each 8-column product; k. */
typedef struct b_fragment {
    REAL x[V][4];
} b_fragment;
constexpr int GROUP_N = 8 * V;

#include "mma_gemm.cuh"

constexpr int HALVES = K_SLAB / (4 * V); /* of 128 bytes, in a slab */
static_assert(WARP_M % GROUP_N == 0, "A's rows come in groups as B's columns do");

template <> __device__ __forceinline__ unsigned swizzle<ALONG>(unsigned row) {
    return row / (4 * V) % 2 * 4;
}
template <> __device__ __forceinline__ unsigned swizzle<ACROSS>(unsigned row) {
    return row / V % 4;
}

/* The vector of lines that lane 4 g + t takes of a group: of V, one in each of V products. */
__device__ __forceinline__ int slot(int eighth) {
    return eighth / 2 + eighth % 2 * 4;
}

/* From line `line` of a tile of LINES lines on. */
template <order ORDER, int LINES>
__device__ __forceinline__ unsigned reads_from(const warp_place &w, int line) {
    if (ORDER == ALONG)
        return (line + slot(w.eighth) * V) * 128 + ((w.pair ^ w.eighth % 2 * 4) << 4);
    return V * w.pair * tile_pitch(ORDER, LINES) + line * (int)sizeof(REAL) +
           ((slot(w.eighth) ^ w.pair) << 4);
}

template <order ORDER> __device__ __forceinline__ unsigned reads_of_a(const warp_place &w) {
    return reads_from<ORDER, BLOCK_M>(w, w.row);
}

template <order ORDER> __device__ __forceinline__ unsigned reads_of_b(const warp_place &w) {
    return reads_from<ORDER, BLOCK_N>(w, w.column);
}

__device__ __forceinline__ vector shared_vector(unsigned from) {
    uint4 v;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(from)
                 : "memory");
    return reinterpret_cast<vector &>(v);
}

__device__ __forceinline__ void load_shared(float &x, unsigned from) {
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(from) : "memory");
}
__device__ __forceinline__ void load_shared(double &x, unsigned from) {
    asm volatile("ld.shared.f64 %0, [%1];" : "=d"(x) : "r"(from) : "memory");
}

/* Of a group of 8 V lines and a slab: line `first` to `end` of the lane's V; across K, all of them come
 * together. */
template <order ORDER, int LINES>
__device__ __forceinline__ void load(REAL (*x)[4], unsigned from, int group, int slab, int first,
                                     int end) {
    if (ORDER == ALONG) {
#pragma unroll
        for (int q = first; q < end; q++) {
#pragma unroll
            for (int half = 0; half < HALVES; half++) {
                vector v = shared_vector((from ^ (slab * HALVES + half) * 64) +
                                         (group * GROUP_N + q) * 128);
#pragma unroll
                for (int j = 0; j < V; j++) {
                    x[q][half * V + j] = element(v, j);
                }
            }
        }
    } else {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            vector v = shared_vector(
                from + (slab * K_SLAB + j / V * 4 * V + j % V) * tile_pitch(ORDER, LINES) +
                group * 128);
#pragma unroll
            for (int q = 0; q < V; q++) {
                x[q][j] = element(v, q);
            }
        }
    }
}

template <order ORDER>
__device__ __forceinline__ void load_a(a_fragment &a, unsigned from, int tile, int slab) {
    const int group = tile * 2 / V, first = tile * 2 % V;
    if (ORDER == ALONG || first + 2 == V)
        load<ORDER, BLOCK_M>(a.x + group * V, from, group, slab, first, first + 2);
}

template <order ORDER>
__device__ __forceinline__ void load_b(b_fragment &b, unsigned from, int group, int slab) {
    load<ORDER, BLOCK_N>(b.x, from, group, slab, 0, V);
}

/* What a sum becomes before it is stored; of the kernel's file. */
__device__ __forceinline__ void check(const gemm_args &g, REAL &sum, const block_work &block,
                                      long long row, long long column);

/* A group's columns of 8 rows, slot by slot from `row` on, where rows of C are not on 16-byte boundaries: by
 * way of 8 x 128 bytes of the warp's own, so that lanes store neighbours. Odd rows have their halves swapped,
 * as in As. */
__device__ __forceinline__ void store_along(const gemm_args &g, REAL *C, const vector (&x)[2],
                                            unsigned own, const warp_place &w, long long row,
                                            long long column) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint4 v = reinterpret_cast<const uint4 &>(x[i]);
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(
                         own + w.eighth * 128 + ((w.pair ^ (i + w.eighth) % 2 * 4) << 4)),
                     "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                     : "memory");
    }
    __syncwarp();
    const int along = w.lane % GROUP_N;
#pragma unroll
    for (int first = 0; first < 8; first += 32 / GROUP_N) {
        const int eighth = first + w.lane / GROUP_N;
        const long long r = row + slot(eighth) * V, c = column + along;
        REAL sum;
        load_shared(sum, own + eighth * 128 + ((along / V ^ eighth % 2 * 4) << 4) +
                             along % V * (unsigned)sizeof(REAL));
        REAL *to = C + r * g.ldc + c;
        if (r < g.M && c < g.N) *to = epilogue(g, sum, to);
    }
    __syncwarp();
}

__device__ __forceinline__ void store(const gemm_args &g, number (&sum)[M_TILES][N_TILES][4],
                                      const warp_place &w, const block_work &block, unsigned ring,
                                      long long row, long long column) {
    static_assert(THREADS / 32 * 1024 <= STAGES * STAGE, "a warp has 1 KiB to store by");
    REAL *C = g.C + blockIdx.z * g.batch_c;
    const bool aligned = rows_aligned(C, g.ldc, sizeof(REAL)), along = !aligned && g.split == 1;
    const unsigned own = ring + threadIdx.x / 32 * 1024;
    if (along) { /* the ring is empty, and nobody reads it */
        copy_async_wait<0>();
        __syncthreads();
    }
#pragma unroll
    for (int eighth = 0; eighth < 2 * M_TILES; eighth++) {
        const long long first = row + (eighth / V * 8 * V + eighth % V);
        const long long r = first + slot(w.eighth) * V;
#pragma unroll
        for (int group = 0; group < GROUPS; group++) {
            vector x[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const long long c = column + group * GROUP_N + (w.pair + i * 4) * V;
#pragma unroll
                for (int q = 0; q < V; q++) {
                    element(x[i], q) = sum[eighth / 2][group * V + q][eighth % 2 * 2 + i];
                    check(g, element(x[i], q), block, r, c + q);
                }
                if (g.split > 1) {
                    if (r < g.M && c < g.part_pitch)
                        store_vector(part_at(g, block.part, r, c), reinterpret_cast<uint4 &>(x[i]));
                } else if (aligned) {
                    store_epilogue(g, &element(x[i], 0), C + r * g.ldc + c, true,
                                   r < g.M ? g.N - c : 0);
                }
            }
            if (along) store_along(g, C, x, own, w, first, column + group * GROUP_N);
        }
    }
}

#endif
