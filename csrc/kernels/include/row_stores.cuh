/* Stores of a warp's 16 rows of C with lanes along rows, through shared memory of the warp's own.
 *
 *      MMA: lane 4 g + t has columns 2 t, 2 t + 1 of row g: 8 rows of 8 columns in one store
 *      here: a row after the other, 32 lanes along it
 *
 * Each lane stores 16 bytes where C's rows begin on 16-byte boundaries. Else it stores one element
 * of fp64, or a word of two 16-bit elements; in rows at odd addresses the first word begins with
 * the second element.
 * Banks: rows in shared memory are 16 bytes longer than their elements (fp64: 64), so that the 8
 * rows (fp64: 2) that lanes write together lie in different banks. Rows shorter than 128 bytes have
 * their groups of 8 columns swapped instead, because a request then reads several.
 *
 * The including file defines WARP_N, the columns, and N_TILES, of 8 columns.
 */
#ifndef SMK_ROW_STORES_CUH
#define SMK_ROW_STORES_CUH

#include "sixteen_bits.cuh"
#include "split_k.cuh"
#include "store_bits.cuh"

/* C from the first of the rows on: what exists of it. */
typedef struct warp_result {
    REAL *C;
    long long pitch;
    int rows, columns;
} warp_result;

/* In shared memory rows have PITCH bytes. */
constexpr int ROW_BYTES = WARP_N * (int)sizeof(REAL);
constexpr bool PADDED = ROW_BYTES >= 128;
constexpr int PITCH = ROW_BYTES + (!PADDED ? 0 : sizeof(REAL) == 8 ? 64 : 16);

__device__ __forceinline__ unsigned place_of(int row, int column) {
    return row * PITCH + (PADDED ? column : column ^ row % (WARP_N / 8) * 8) * (int)sizeof(REAL);
}

template <typename T>
__device__ __forceinline__ void put_pair(unsigned to, float x, float y, T type) {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(pack_pair(x, y, type)) : "memory");
}
__device__ __forceinline__ void put_pair(unsigned to, double x, double y, double) {
    asm volatile("st.shared.v2.f64 [%0], {%1, %2};" ::"r"(to), "d"(x), "d"(y) : "memory");
}

__device__ __forceinline__ void put_rows(unsigned tile, const part_sum (&sum)[N_TILES][4],
                                         part_sum alpha) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < N_TILES; n++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            put_pair(tile + place_of(lane / 4 + 8 * h, 8 * n + lane % 4 * 2), alpha * sum[n][2 * h],
                     alpha * sum[n][2 * h + 1], REAL());
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
typedef bits_of<sizeof(REAL)>::type element_bits;

/* Lanes along the rows, WIDE elements each: LANES of them per row, DOWN rows at once,
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
    const lanes_of<16 / (int)sizeof(REAL)> lanes;
    REAL *c = to.C + lanes.row * to.pitch + lanes.column;
    const long long next = lanes.DOWN * to.pitch;
#pragma unroll 4
    for (int row = lanes.row; row < min(to.rows, 16); row += lanes.DOWN) {
#pragma unroll
        for (int part = 0; part < lanes.PARTS; part++) {
            const int column = lanes.column + part * lanes.SPAN, exist = to.columns - column;
            if (exist >= 16 / (int)sizeof(REAL)) {
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

/* `rows`: the warp's own shared memory, 16 * PITCH bytes. */
__device__ __forceinline__ void store_rows(const warp_result &to, unsigned rows,
                                           const part_sum (&sum)[N_TILES][4], part_sum alpha) {
    put_rows(rows, sum, alpha);
    __syncwarp();
    if (((unsigned long long)to.C | (unsigned long long)to.pitch * sizeof(REAL)) % 16 == 0) {
        store_vectors(to, rows);
    } else {
        store_elements(to, rows, element_bits());
    }
}

#endif
