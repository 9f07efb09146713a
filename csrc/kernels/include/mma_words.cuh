/* Layout of fp32 and fp64 for mma.sync: every shared access moves 16 bytes. See also mma_gemm.cuh.
 *
 * ldmatrix handles 16-bit elements only. But the order of the k in a slab is free if A and B agree,
 * and that of lines in a group of 8 V (rows of A, columns of B) is free if C agrees. Lines of A and
 * B are loaded alike, in either layout. V = 16 / sizeof(REAL) elements per vector; lane = 4 g + t.
 *
 *   ALONG: line, 128 bytes of k   | t0 t1 t2 t3 | t0 t1 t2 t3 |  a lane loads vector t of a half (V
 *                                     half 0        half 1       k) in its V lines, slot(g) V + q
 *   ACROSS: k, 128 bytes of lines | g0 g2 g4 g6 | g1 g3 g5 g7 |  a lane loads vector slot(g) (its V
 *                                                                lines) in each of its V k
 *
 * A lane's k are 4 V half + V t + j, so either layout gives it the same lines and k: x[q][j]. Line
 * slot(g) V + q is row or column g of the q-th of V 8-line products.
 * mma's 16 rows are columns of B, two of a lane's vector, and its 8 columns rows of A: C comes out
 * transposed. So the 8 lanes of one t hold 8 vectors of a row of C: 128 contiguous bytes per store.
 * Banks: 16-byte loads are served 8 lanes at a time: two g, four t. ALONG, lines with odd g have
 * their halves swapped (vector ^ 4); ACROSS, row V t + j has vector ^ t. Either way the 8 lanes
 * read 8 different vectors of 128 bytes: 4 wavefronts per request, the minimum. No swizzle moves 8
 * lanes of cp.async out of their 128 bytes.
 */
#ifndef SMK_MMA_WORDS_CUH
#define SMK_MMA_WORDS_CUH

#include "common.cuh"

typedef REAL number;
/* x[i][j]: a row of A from the warp's i-th 8 rows; this lane's j-th k among a slab's 4 V. */
typedef struct a_fragment {
    REAL x[WARP_M / 8][V];
} a_fragment;
/* x[q][j]: the q-th of the lane's adjacent columns of B; k as above. */
typedef struct b_fragment {
    REAL x[V][V];
} b_fragment;
constexpr int GROUP_N = 8 * V, K_SLAB = 4 * V;

#include "mma_gemm.cuh"

static_assert(WARP_M % GROUP_N == 0, "A's rows come in groups as B's columns do");

template <order ORDER, int LINES> __device__ __forceinline__ unsigned swizzle(unsigned row) {
    return ORDER == ALONG ? row / (4 * V) % 2 * 4 : row / V % 4;
}

/* The vector of lines that lane 4 g + t takes of a group: V lines, one in each of V products. */
__device__ __forceinline__ int slot(int eighth) {
    return eighth / 2 + eighth % 2 * 4;
}

/* Offset from line `line` of a tile of LINES lines on. */
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

/* Typed loads, because ptxas adds a move for a 64-bit number that was loaded as words. */
__device__ __forceinline__ void read_shared(float4 &v, unsigned from) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(from)
                 : "memory");
}
__device__ __forceinline__ void read_shared(double2 &v, unsigned from) {
    asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(v.x), "=d"(v.y) : "r"(from) : "memory");
}

__device__ __forceinline__ void load_shared(float &x, unsigned from) {
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(from) : "memory");
}
__device__ __forceinline__ void load_shared(double &x, unsigned from) {
    asm volatile("ld.shared.f64 %0, [%1];" : "=d"(x) : "r"(from) : "memory");
}

/* Of a group of 8 V lines and a slab: lines first..end - 1 of the lane's V; MN-major, all V come
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

/* Applied to a sum before it is stored; defined in the kernel's file. */
__device__ __forceinline__ void check(const gemm_args &g, REAL &sum, const block_work &block,
                                      long long row, long long column);

/* Stores a group's columns of 8 rows V apart, from `row` on, if C's rows are not 16-byte aligned.
 * By way of 8 x 128 bytes of the warp's own, so that a request stores neighbours of one row. There
 * row s has vector ^ s % 4: 8 lanes that write together have four rows and two halves. */
__device__ __forceinline__ void store_along(const gemm_args &g, REAL *C, const vector (&x)[2],
                                            unsigned own, const warp_place &w, long long row,
                                            long long column) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint4 v = reinterpret_cast<const uint4 &>(x[i]);
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(
                         own + (w.pair + 4 * i) * 128 + ((slot(w.eighth) ^ w.pair) << 4)),
                     "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                     : "memory");
    }
    __syncwarp();
    const int along = w.lane % GROUP_N;
#pragma unroll
    for (int first = 0; first < 8; first += 32 / GROUP_N) {
        const int s = first + w.lane / GROUP_N;
        const long long r = row + s * V, c = column + along;
        REAL sum;
        load_shared(sum, own + s * 128 + ((along / V ^ s % 4) << 4) +
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
    if (along) { /* the ring is reused: no copy or load is left */
        copy_async_wait_all();
        __syncthreads();
    }
#pragma unroll
    for (int eighth = 0; eighth < 2 * M_TILES; eighth++) {
        const long long first = row + (eighth / V * 8 * V + eighth % V);
#pragma unroll
        for (int group = 0; group < GROUPS; group++) {
            const long long c = column + group * GROUP_N + slot(w.eighth) * V;
            vector x[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const long long r = first + (w.pair + i * 4) * V;
#pragma unroll
                for (int q = 0; q < V; q++) {
                    element(x[i], q) =
                        sum[eighth / 2][group * V + q / 2 * 2 + eighth % 2][q % 2 * 2 + i];
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
