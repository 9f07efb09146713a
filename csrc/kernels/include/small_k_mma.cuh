/* gemm_small_k by MMA: 16 bits and fp64. Panels and MMAs: panel_mma.cuh; the rest is as in fp32.
 *
 * A warp's tile of C is 16 rows; BLOCK_M / THREAD_M warps share the block's. Lanes of an MMA have
 * 8 rows of two columns, so a warp passes its tile through shared memory of its own, and stores with
 * its lanes along rows: 16 bytes per lane where C's rows begin on 16-byte boundaries, else fp64 by
 * elements. 16-bit rows are stored by words, which in rows at odd addresses begin with their second
 * element. With beta, sums are not rounded before C is added: stored by elements from registers.
 * Banks: rows of the tile are 16 bytes longer than they have elements (fp64: 64), so that the 8 rows
 * (fp64: 2) that lanes write together lie in different banks. Rows shorter than 128 bytes have their
 * groups of 8 columns swapped instead, because a request then reads several.
 */
#ifndef SMK_SMALL_K_MMA_CUH
#define SMK_SMALL_K_MMA_CUH

constexpr int BATCH = 4; /* loads of 16-bit pairs in flight, per thread and operand */
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

/* A warp's tile in shared memory: rows of PITCH bytes. */
constexpr bool PADDED = WARP_N * BYTES >= 128;
constexpr int PITCH = WARP_N * BYTES + (!PADDED ? 0 : BYTES == 8 ? 64 : 16);

__device__ __forceinline__ unsigned place_of(int row, int column) {
    return row * PITCH + (PADDED ? column : column ^ row % (WARP_N / 8) * 8) * BYTES;
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

/* Lanes along the rows of the tile, WIDE elements each: LANES of them per row, DOWN rows at once,
 * PARTS of a row one after the other. */
template <int WIDE> struct lanes_of {
    static constexpr int IN_ROW = WARP_N / WIDE, LANES = IN_ROW < 32 ? IN_ROW : 32;
    static constexpr int DOWN = 32 / LANES, PARTS = IN_ROW / LANES, SPAN = LANES * WIDE;
    int row, column;
    __device__ __forceinline__ lanes_of()
        : row(threadIdx.x % 32 / LANES), column(threadIdx.x % LANES * WIDE) {}
};

/* C's rows begin on 16-byte boundaries. */
__device__ __forceinline__ void store_vectors(const warp_result &to, unsigned tile) {
    const lanes_of<VECTOR> lanes;
    REAL *c = to.C + lanes.row * to.pitch + lanes.column;
    const long long next = lanes.DOWN * to.pitch;
#pragma unroll 4
    for (int row = lanes.row; row < min(to.rows, 16); row += lanes.DOWN) {
#pragma unroll
        for (int part = 0; part < lanes.PARTS; part++) {
            const int column = lanes.column + part * lanes.SPAN, exist = to.columns - column;
            if (exist >= VECTOR) {
                uint4 v;
                get(v, tile + place_of(row, column));
                store_bits(c + part * lanes.SPAN, v);
            } else {
#pragma unroll 1
                for (int j = 0; j < exist; j++) {
                    element_bits x;
                    get(x, tile + place_of(row, column + j));
                    reinterpret_cast<element_bits *>(c + part * lanes.SPAN)[j] = x;
                }
            }
        }
        c += next;
    }
}

/* 16 bits: words; a row at an odd address begins with a single element, and may end with one. */
__device__ __forceinline__ void store_elements(const warp_result &to, unsigned tile,
                                               unsigned short) {
    const lanes_of<2> lanes;
    unsigned short *c =
        reinterpret_cast<unsigned short *>(to.C + lanes.row * to.pitch + lanes.column);
    const long long next = lanes.DOWN * to.pitch;
#pragma unroll 4
    for (int row = lanes.row; row < min(to.rows, 16); row += lanes.DOWN) {
        const int odd = (unsigned)(unsigned long long)c / 2 % 2;
        unsigned short x, y;
#pragma unroll
        for (int part = 0; part < lanes.PARTS; part++) {
            const int at = part * lanes.SPAN + odd;
            const int exist = min(to.columns, WARP_N) - lanes.column - at;
            if (exist >= 1) get(x, tile + place_of(row, lanes.column + at));
            if (exist >= 2) {
                get(y, tile + place_of(row, lanes.column + at + 1));
                *reinterpret_cast<unsigned *>(c + at) = x | (unsigned)y << 16;
            }
            if (exist == 1) c[at] = x;
        }
        if (odd && lanes.column == 0 && to.columns > 0) {
            get(x, tile + place_of(row, 0));
            c[0] = x;
        }
        c += next;
    }
}

__device__ __forceinline__ void store_elements(const warp_result &to, unsigned tile, double) {
    const lanes_of<1> lanes;
    double *c = reinterpret_cast<double *>(to.C + lanes.row * to.pitch + lanes.column);
    const long long next = lanes.DOWN * to.pitch;
#pragma unroll 4
    for (int row = lanes.row; row < min(to.rows, 16); row += lanes.DOWN) {
#pragma unroll
        for (int part = 0; part < lanes.PARTS; part++) {
            const int column = lanes.column + part * lanes.SPAN;
            double x;
            if (column >= to.columns) continue;
            get(x, tile + place_of(row, column));
            c[part * lanes.SPAN] = x;
        }
        c += next;
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
