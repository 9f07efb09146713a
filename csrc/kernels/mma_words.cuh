/* How fp32 and fp64 lie for mma.sync, so that every shared access moves 16 bytes; the rest is mma_gemm.cuh.
 *
 * ldmatrix turns 16-bit elements only. But which k of a slab is called the first is free, if A and B agree,
 * and which column of a group too, if C does. V = 16 / sizeof(REAL) elements a vector; lane = 4 g + t.
 *
 *      As[m]: 128 bytes of k    | t0 t1 t2 t3 | t0 t1 t2 t3 |    a lane reads vector t of a half in row g, and
 *                                   half 0        half 1         has V steps of k: k = 4 V half + V t + j
 *      Bs[k]: 128 bytes of n    | g0 g2 g4 g6 | g1 g3 g5 g7 |    in row V t + j a lane reads a vector: its
 *                                                                column in each of V 8-column products
 *
 * So lanes with 2 t and 2 t + 1 as columns of C hold vectors t and t + 4: 64 neighbouring bytes a row and
 * store, whole sectors.
 * Banks: 16-byte reads are served 8 lanes at a time: two rows g, four t. In As the odd row has its halves
 * swapped (vector ^ 4); in Bs, row V t + j has vector ^ t. Either way the 8 lanes find 8 different vectors of
 * 128 bytes: 4 wavefronts a request, the fewest there are, and no swizzle moves cp.async's 8 out of their 128
 * bytes.
 */
#ifndef SMK_MMA_WORDS_CUH
#define SMK_MMA_WORDS_CUH

#include "common.cuh"

typedef REAL number;
/* 2 j + h: row g + 8 h, and the j-th k of this lane among the slab's 16. */
typedef struct a_fragment {
    REAL x[8];
} a_fragment;
/* Column, of each 8-column product; k. */
typedef struct b_fragment {
    REAL x[V][4];
} b_fragment;
constexpr int GROUP_N = 8 * V;

#include "mma_gemm.cuh"

constexpr int HALVES = K_SLAB / (4 * V); /* of 128 bytes, in a slab */

template <> __device__ __forceinline__ unsigned swizzle<OF_A>(unsigned row) {
    return row % 2 * 4;
}
template <> __device__ __forceinline__ unsigned swizzle<OF_B>(unsigned row) {
    return row / V % 4;
}

__device__ __forceinline__ lane_reads reads_of(const warp_place &w) {
    const int slot = w.eighth / 2 + w.eighth % 2 * 4;
    return {
        (unsigned)((w.row + w.eighth) * A_PITCH + ((w.pair ^ w.eighth % 2 * 4) << 4)),
        (unsigned)(V * w.pair * B_PITCH + w.column * (int)sizeof(REAL) + ((slot ^ w.pair) << 4))};
}

__device__ __forceinline__ vector shared_vector(unsigned from) {
    uint4 v;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(from)
                 : "memory");
    return reinterpret_cast<vector &>(v);
}

__device__ __forceinline__ void load_a(a_fragment &a, unsigned from, int tile, int slab) {
#pragma unroll
    for (int half = 0; half < HALVES; half++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            vector v =
                shared_vector((from ^ (slab * HALVES + half) * 64) + (16 * tile + 8 * h) * A_PITCH);
#pragma unroll
            for (int j = 0; j < V; j++) {
                a.x[2 * (half * V + j) + h] = element(v, j);
            }
        }
    }
}

__device__ __forceinline__ void load_b(b_fragment &b, unsigned from, int group, int slab) {
#pragma unroll
    for (int j = 0; j < 4; j++) {
        vector v =
            shared_vector(from + (slab * K_SLAB + j / V * 4 * V + j % V) * B_PITCH + group * 128);
#pragma unroll
        for (int q = 0; q < V; q++) {
            b.x[q][j] = element(v, q);
        }
    }
}

/* What a sum becomes before it is stored; of the kernel's file. */
__device__ __forceinline__ void check(const gemm_args &g, REAL &sum, const block_work &block,
                                      long long row, long long column);

__device__ __forceinline__ void store(const gemm_args &g, number (&sum)[M_TILES][N_TILES][4],
                                      const warp_place &w, const block_work &block, long long row,
                                      long long column) {
    REAL *C = g.C + blockIdx.z * g.batch_c;
    const bool aligned = rows_aligned(C, g.ldc, sizeof(REAL));
#pragma unroll
    for (int m = 0; m < M_TILES; m++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const long long r = row + 16 * m + 8 * h + w.eighth;
#pragma unroll
            for (int i = 0; i < GROUPS * 2; i++) {
                const long long c = column + i / 2 * GROUP_N + (w.pair + i % 2 * 4) * V;
                alignas(16) REAL x[V];
#pragma unroll
                for (int q = 0; q < V; q++) {
                    x[q] = sum[m][i / 2 * V + q][2 * h + i % 2];
                    check(g, x[q], block, r, c + q);
                }
                if (g.split == 1) {
                    store_epilogue(g, x, C + r * g.ldc + c, aligned, r < g.M ? g.N - c : 0);
                } else if (r < g.M && c < g.part_pitch) {
                    store_vector(part_at(g, block.part, r, c), reinterpret_cast<uint4 &>(x));
                }
            }
        }
    }
}

#endif
