/* Layout of 16-bit elements for mma.sync, read by ldmatrix; the rest is in mma_gemm.cuh.
 *
 *   ALONG: rows of 128 bytes of k, 8 chunks          ldmatrix.x4: 16 lines, 2 chunks: 16 x 16
 *   ACROSS: rows of BLOCK_M or BLOCK_N lines         ldmatrix.x4.trans: 16 k and 2 chunks of lines
 *
 * Lines are the rows of A or the columns of B. In both layouts chunk c of a row is at c ^ row % 8:
 * a matrix is one chunk of 8 rows, so 8 different chunks of 128 bytes. Rows of 32 lines have 4
 * chunks, and two rows 128 bytes: there it is c ^ row / 2 % 4. Banks: 4 wavefronts per ldmatrix.x4,
 * the minimum; 8 lanes of cp.async stay within 128 bytes.
 *
 * Per slab of 16 k a warp of 64 x 64 takes 4 + 4 ldmatrix.x4, 32 wavefronts, for 32 MMAs.
 * Sums are fp32, products exact. Stores: a lane has pairs of columns, four lanes 8 columns of a
 * row. Four lanes transpose 4 x 4 such pairs; each stores 16 bytes, so 64 contiguous bytes per row.
 * Where C's rows do not begin on 16-byte boundaries, they pass through the ring: row_stores.cuh.
 */
#ifndef SMK_MMA_HALVES_CUH
#define SMK_MMA_HALVES_CUH

#include "args.h"

typedef float number;
/* Rows g and g + 8 of the first 8 k, then of the other 8; two k per word. */
typedef struct a_fragment {
    unsigned x[WARP_M / 16][4];
} a_fragment;
/* The first 8 k and the other 8, of one MMA and of the next. */
typedef struct b_fragment {
    unsigned x[4];
} b_fragment;
constexpr int GROUP_N = 16, K_SLAB = 16;

#include "mma_gemm.cuh"
#include "mma_loop.cuh"
#include "row_stores.cuh"

template <order ORDER, int LINES> __device__ __forceinline__ unsigned swizzle(unsigned row) {
    constexpr int CHUNKS = tile_pitch(ORDER, LINES) / 16, TURN = CHUNKS < 8 ? CHUNKS : 8;
    return row / (8 / TURN) % TURN;
}

/* Offset of the row and chunk whose address this lane passes, of 16 rows and 2 chunks. The second
 * of the four matrices has the other 8 lines of A, the other 8 k of B; `rows`: rows, not chunks. */
template <order ORDER, int LINES>
__device__ __forceinline__ unsigned reads_from(const warp_place &w, int line, bool rows) {
    const int row = w.lane % 8 + (rows ? w.lane / 8 % 2 : w.lane / 16) * 8;
    const int chunk = (rows ? w.lane / 16 : w.lane / 8 % 2) + (ORDER == ALONG ? 0 : line / CHUNK);
    return ((ORDER == ALONG ? line : 0) + row) * tile_pitch(ORDER, LINES) +
           ((chunk ^ swizzle<ORDER, LINES>(row)) << 4);
}

template <order ORDER> __device__ __forceinline__ unsigned reads_of_a(const warp_place &w) {
    return reads_from<ORDER, BLOCK_M>(w, w.row, ORDER == ALONG);
}

template <order ORDER> __device__ __forceinline__ unsigned reads_of_b(const warp_place &w) {
    return reads_from<ORDER, BLOCK_N>(w, w.column, ORDER == ACROSS);
}

/* Loads 16 lines and 16 k. MN-major matrices are transposed as they are loaded. */
template <order ORDER, int LINES>
__device__ __forceinline__ void load(unsigned *x, unsigned from, int tile, int slab) {
    static_assert(WARP_M <= 64 && WARP_N <= 64, "the lines of a warp stay within 128 bytes");
    if (ORDER == ALONG) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"((from ^ slab * 32) + 16 * tile * 128)
                     : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"((from ^ tile * 32) + slab * K_SLAB * tile_pitch(ORDER, LINES))
                     : "memory");
    }
}

template <order ORDER>
__device__ __forceinline__ void load_a(a_fragment &a, unsigned from, int tile, int slab) {
    load<ORDER, BLOCK_M>(a.x[tile], from, tile, slab);
}

template <order ORDER>
__device__ __forceinline__ void load_b(b_fragment &b, unsigned from, int group, int slab) {
    load<ORDER, BLOCK_N>(b.x, from, group, slab);
}

/* The kernel's file defines MMA_INPUT, "f16" or "bf16". */
__device__ __forceinline__ void multiply(number (*sum)[4], const a_fragment &a, int tile,
                                         const b_fragment &b) {
    const unsigned *x = a.x[tile];
#pragma unroll
    for (int q = 0; q < 2; q++) {
        float *d = sum[q];
        asm("mma.sync.aligned.m16n8k16.row.col.f32." MMA_INPUT "." MMA_INPUT ".f32"
            " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(b.x[2 * q]), "r"(b.x[2 * q + 1]));
    }
}

/* Transposes 4 x 4 words of 4 lanes: lane i's word j becomes lane j's word i. */
__device__ __forceinline__ void turn(unsigned (&word)[4], int lane) {
#pragma unroll
    for (int bit = 1; bit <= 2; bit *= 2) {
        const bool odd = lane & bit;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (i & bit) continue;
            const unsigned got = __shfl_xor_sync(0xffffffff, odd ? word[i] : word[i | bit], bit);
            word[i] = odd ? got : word[i];
            word[i | bit] = odd ? word[i | bit] : got;
        }
    }
}

/* 16 lanes that write together, of 4 rows, have 128 different bytes. */
__device__ __forceinline__ int vector_of_row(int row, int vector) {
    return vector ^ row % 4 * 2;
}
template <order>
__device__ __forceinline__ void put(const gemm_args &, unsigned to,
                                    number (&sum)[M_TILES][N_TILES][4], const warp_place &w,
                                    const block_work &, long long, long long) {
#pragma unroll
    for (int m = 0; m < M_TILES; m++) {
#pragma unroll
        for (int at = 0; at < 2 * N_TILES; at++) {
            const int n = at / 2, h = at % 2, r = w.row + 16 * m + 8 * h + w.eighth;
            const int vector = vector_of_row(r, w.column / 4 + 2 * n + w.pair / 2);
            const float *d = &sum[m][n][2 * h];
            asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to + r * (BLOCK_N * 4) +
                                                                  (vector << 4) + w.pair % 2 * 8),
                         "f"(d[0]), "f"(d[1])
                         : "memory");
        }
    }
}

template <order>
__device__ __forceinline__ void store(const gemm_args &g, number (&sum)[M_TILES][N_TILES][4],
                                      const warp_place &w, const block_work &block, unsigned ring,
                                      long long row, long long column) {
    REAL *C = g.C + blockIdx.z * g.batch_c;
    const float alpha = (float)g.alpha, beta = (float)g.beta;
    const bool turned = beta == 0 && is_chunks(C, g.ldc, g.N);
    if (g.split == 1 && beta == 0 && !turned) {
        wait_for_ring();
        const unsigned rows = ring + threadIdx.x / 32 * (16 * PITCH);
        static_assert(THREADS / 32 * (16 * PITCH) <= STAGES * STAGE, "rows of all warps at once");
#pragma unroll
        for (int m = 0; m < M_TILES; m++) {
            const long long first = row + 16 * m;
            __syncwarp();
            store_rows({C + first * g.ldc + column, g.ldc, (int)min(g.M - first, 16ll),
                        (int)min(g.N - column, (long long)WARP_N)},
                       rows, sum[m], alpha);
        }
        return;
    }
#pragma unroll
    for (int m = 0; m < M_TILES; m++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const long long r = row + 16 * m + 8 * h + w.eighth;
            REAL *c = C + r * g.ldc;
            if (g.split > 1) {
#pragma unroll
                for (int n = 0; n < N_TILES; n++) {
                    const long long at = column + 8 * n + 2 * w.pair;
                    const float *d = &sum[m][n][2 * h];
                    if (r < g.M && at < g.part_pitch) {
                        *reinterpret_cast<float2 *>(part_at(g, block.part, r, at)) =
                            make_float2(d[0], d[1]);
                    }
                }
            } else if (turned) {
#pragma unroll
                for (int n = 0; n < N_TILES; n += 4) {
                    unsigned word[4];
#pragma unroll
                    for (int q = 0; q < 4; q++) {
                        const float *d = &sum[m][n + q][2 * h];
                        word[q] = pack_pair(alpha * d[0], alpha * d[1], REAL());
                    }
                    turn(word, w.pair);
                    const long long at = column + 8 * (n + w.pair);
                    if (r < g.M && at < g.N) {
                        *reinterpret_cast<uint4 *>(c + at) =
                            make_uint4(word[0], word[1], word[2], word[3]);
                    }
                }
            } else {
#pragma unroll
                for (int i = 0; i < 2 * N_TILES; i++) {
                    const long long at = column + i / 2 * 8 + 2 * w.pair + i % 2;
                    if (r >= g.M || at >= g.N) continue;
                    const float x = alpha * sum[m][i / 2][2 * h + i % 2];
                    c[at] = narrow(x + beta * widen(c[at]), REAL()); /* beta is not 0 here */
                }
            }
        }
    }
}

#endif
