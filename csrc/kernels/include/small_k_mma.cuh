/* gemm_small_k by MMA: 16 bits and fp64. Panels and MMAs: panel_mma.cuh; the rest is as in fp32.
 *
 * A warp's tile of C is 16 rows; BLOCK_M / THREAD_M warps share the block's. Lanes of an MMA have
 * 8 rows of two columns, so a warp passes its tile through shared memory of its own, and stores with
 * its lanes along rows: 16 bytes per lane where C's rows begin on 16-byte boundaries, else fp64 by
 * elements. 16-bit rows are stored by words, which in rows at odd addresses begin with their second
 * element. With beta, sums are not rounded before C is added: stored by elements from registers.
 * Banks: row r of the tile has groups of 8 columns at group ^ r % 8 (fp64: r % 2).
 */
#ifndef SMK_SMALL_K_MMA_CUH
#define SMK_SMALL_K_MMA_CUH

#include "panel_mma.cuh"

constexpr int BLOCK_N = 32 * THREAD_N, WARPS = BLOCK_M / THREAD_M, THREADS = 32 * WARPS;
constexpr int WARP_M = 16, WARPS_N = WARPS * WARP_M / BLOCK_M, WARP_N = BLOCK_N / WARPS_N;
constexpr int N_TILES = WARP_N / 8;
static_assert(WARPS_N >= 1 && N_TILES % 2 == 0, "whole pairs of MMAs");

typedef part_sum warp_sums[1][N_TILES][4];

/* C from the warp's tile on: what exists of it. */
typedef struct warp_result {
    REAL *C;
    long long pitch;
    int rows, columns;
} warp_result;

/* Offset in the warp's 16 x WARP_N elements. */
__device__ __forceinline__ unsigned place_of(int row, int column) {
    constexpr int GROUPS = WARP_N / 8, SPREAD = BYTES == 8 ? 2 : 8;
    const int group = row % (SPREAD < GROUPS ? SPREAD : GROUPS);
    return (row * WARP_N + (column ^ group * 8)) * BYTES;
}

template <typename T>
__device__ __forceinline__ void put_pair(unsigned to, float x, float y, T type) {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(pack_pair(x, y, type)) : "memory");
}
__device__ __forceinline__ void put_pair(unsigned to, double x, double y, double) {
    asm volatile("st.shared.v2.f64 [%0], {%1, %2};" ::"r"(to), "d"(x), "d"(y) : "memory");
}

__device__ __forceinline__ void put_tile(unsigned tile, const warp_sums &sum, part_sum alpha) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < N_TILES; n++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            put_pair(tile + place_of(lane / 4 + 8 * h, 8 * n + lane % 4 * 2),
                     alpha * sum[0][n][2 * h], alpha * sum[0][n][2 * h + 1], REAL());
        }
    }
}

__device__ __forceinline__ void get(unsigned short &x, unsigned from) {
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(x) : "r"(from) : "memory");
}
__device__ __forceinline__ void get(double &x, unsigned from) {
    asm volatile("ld.shared.f64 %0, [%1];" : "=d"(x) : "r"(from) : "memory");
}
__device__ __forceinline__ void get(uint4 &x, unsigned from) {
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(from)
                 : "memory");
}

template <int N> struct bits_of {
    typedef double type;
};
template <> struct bits_of<2> {
    typedef unsigned short type;
};
typedef bits_of<BYTES>::type element_bits;

/* C's rows begin on 16-byte boundaries. */
__device__ __forceinline__ void store_vectors(const warp_result &to, unsigned tile) {
    constexpr int LANES = WARP_N / VECTOR;
#pragma unroll 4
    for (int first = 0; first < 16 * LANES; first += 32) {
        const unsigned i = first + threadIdx.x % 32;
        const int row = i / LANES, column = i % LANES * VECTOR;
        if (row >= to.rows || column >= to.columns) continue;
        REAL *c = to.C + row * to.pitch + column;
        if (column + VECTOR <= to.columns) {
            uint4 v;
            get(v, tile + place_of(row, column));
            store_bits(c, v);
        } else {
            for (int j = 0; column + j < to.columns; j++) {
                element_bits x;
                get(x, tile + place_of(row, column + j));
                reinterpret_cast<element_bits *>(c)[j] = x;
            }
        }
    }
}

/* 16 bits: words; a row at an odd address begins and ends with a single element. */
__device__ __forceinline__ void store_elements(const warp_result &to, unsigned tile,
                                               unsigned short) {
    constexpr int LANES = WARP_N / 2;
#pragma unroll 4
    for (int first = 0; first < 16 * LANES; first += 32) {
        const unsigned i = first + threadIdx.x % 32;
        const int row = i / LANES;
        if (row >= to.rows) continue;
        unsigned short *c = reinterpret_cast<unsigned short *>(to.C + row * to.pitch);
        const int odd = (unsigned long long)c / 2 % 2;
        const int column = i % LANES * 2 + odd, end = min(to.columns, WARP_N);
        unsigned short x, y;
        if (odd && column == 1 && end > 0) {
            get(x, tile + place_of(row, 0));
            c[0] = x;
        }
        if (column >= end) continue;
        get(x, tile + place_of(row, column));
        if (column + 1 < end) {
            get(y, tile + place_of(row, column + 1));
            *reinterpret_cast<unsigned *>(c + column) = x | (unsigned)y << 16;
        } else {
            c[column] = x;
        }
    }
}

__device__ __forceinline__ void store_elements(const warp_result &to, unsigned tile, double) {
#pragma unroll 4
    for (int first = 0; first < 16 * WARP_N; first += 32) {
        const unsigned i = first + threadIdx.x % 32;
        const int row = i / WARP_N, column = i % WARP_N;
        if (row >= to.rows || column >= to.columns) continue;
        double x;
        get(x, tile + place_of(row, column));
        reinterpret_cast<double *>(to.C)[row * to.pitch + column] = x;
    }
}

/* alpha * sums + beta * C, from registers. */
__device__ __forceinline__ void store_with_beta(const warp_result &to, const warp_sums &sum,
                                                part_sum alpha, part_sum beta) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < N_TILES; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = lane / 4 + i / 2 * 8, column = 8 * n + lane % 4 * 2 + i % 2;
            REAL *c = to.C + row * to.pitch + column;
            if (row < to.rows && column < to.columns) {
                *c = narrow(alpha * sum[0][n][i] + beta * widen(*c), REAL());
            }
        }
    }
}

/* `tile`: the warp's own shared memory. */
__device__ __forceinline__ void store(const warp_result &to, unsigned tile, const warp_sums &sum,
                                      part_sum alpha, part_sum beta) {
    if (beta != 0) {
        store_with_beta(to, sum, alpha, beta);
        return;
    }
    put_tile(tile, sum, alpha);
    __syncwarp();
    if (((unsigned long long)to.C | (unsigned long long)to.pitch * BYTES) % 16 == 0) {
        store_vectors(to, tile);
    } else {
        store_elements(to, tile, element_bits());
    }
}

#endif
