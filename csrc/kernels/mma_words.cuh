/* How fp32 and fp64 lie for mma.sync, so that every shared access moves 16 bytes; the rest is mma_gemm.cuh.
 *
 * ldmatrix turns 16-bit elements only. But which k of a slab is called the first is free, if A and B agree,
 * and which column of a group too, if C does. V = 16 / sizeof(REAL) elements a vector; lane = 4 g + t.
 *
 *      As[m]: 128 bytes of k    | t0 t1 t2 t3 | t0 t1 t2 t3 |    a lane reads vector t of a slab in row g, and
 *                                   slab 0        slab 1         has V steps of k: k = 4 V slab + V t + j
 *      Bs[k]: 128 bytes of n    | g0 g2 g4 g6 | g1 g3 g5 g7 |    in row V t + j a lane reads a vector: its
 *                                                                column in each of V 8-column products
 *
 * mma's 16 rows are columns of B, two of a lane's vector, and its 8 columns are rows of A: C comes out turned.
 * So the 8 lanes of a t hold 8 vectors of a row of C: 128 neighbouring bytes a row and store.
 * Banks: 16-byte reads are served 8 lanes at a time: two rows g, four t. In As the odd row has its halves
 * swapped (vector ^ 4); in Bs, row V t + j has vector ^ t. Either way the 8 lanes find 8 different vectors of
 * 128 bytes: 4 wavefronts a request, the fewest there are, and no swizzle moves cp.async's 8 out of their 128
 * bytes.
 */
#ifndef SMK_MMA_WORDS_CUH
#define SMK_MMA_WORDS_CUH

#include "common.cuh"

typedef REAL number;
/* Row of A in each eighth of the warp's; the j-th k of this lane among a slab's 4 V. */
typedef struct a_fragment {
    REAL x[WARP_M / 8][V];
} a_fragment;
/* Column of B among the lane's neighbours; k. */
typedef struct b_fragment {
    REAL x[V][V];
} b_fragment;
constexpr int GROUP_N = 8 * V, K_SLAB = 4 * V;

#include "mma_gemm.cuh"

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

/* As numbers: ptxas moves a number of 64 bits that came as words once more. */
__device__ __forceinline__ void read_shared(float4 &v, unsigned from) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(from)
                 : "memory");
}
__device__ __forceinline__ void read_shared(double2 &v, unsigned from) {
    asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(v.x), "=d"(v.y) : "r"(from) : "memory");
}

/* Of a group of 8 V lines and a slab: line `first` to `end` of the lane's V; across K, all of them come
 * together. */
template <order ORDER, int LINES>
__device__ __forceinline__ void load(REAL (*x)[V], unsigned from, int group, int slab, int first,
                                     int end) {
    if (ORDER == ALONG) {
#pragma unroll
        for (int q = first; q < end; q++) {
            vector v;
            read_shared(v, (from ^ slab * 64) + (group * GROUP_N + q) * 128);
#pragma unroll
            for (int j = 0; j < V; j++) {
                x[q][j] = element(v, j);
            }
        }
    } else {
#pragma unroll
        for (int j = 0; j < V; j++) {
            vector v;
            read_shared(v, from + (slab * K_SLAB + j) * tile_pitch(ORDER, LINES) + group * 128);
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

__device__ __forceinline__ void store(const gemm_args &g, number (&sum)[M_TILES][N_TILES][4],
                                      const warp_place &w, const block_work &block, long long row,
                                      long long column) {
    REAL *C = g.C + blockIdx.z * g.batch_c;
    const bool aligned = rows_aligned(C, g.ldc, sizeof(REAL));
#pragma unroll
    for (int m = 0; m < M_TILES; m++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int eighth = 2 * m + i / 2;
            const long long r = row + (eighth / V * 8 + w.pair + i % 2 * 4) * V + eighth % V;
#pragma unroll
            for (int group = 0; group < GROUPS; group++) {
                const long long c = column + group * GROUP_N + slot(w.eighth) * V;
                alignas(16) REAL x[V];
#pragma unroll
                for (int q = 0; q < V; q++) {
                    x[q] = sum[m][group * V + q / 2 * 2 + i / 2][q % 2 * 2 + i % 2];
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
