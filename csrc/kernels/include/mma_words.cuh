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
 * In fp64 with an MN-major A, operands are turned (gemm_fp64.cu): 64 contiguous bytes of 8 rows.
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

__device__ __forceinline__ void store_shared(unsigned to, const uint4 &v) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z),
                 "r"(v.w)
                 : "memory");
}

__device__ __forceinline__ void load_shared(float &x, unsigned from) {
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(from) : "memory");
}
__device__ __forceinline__ void load_shared(double &x, unsigned from) {
    asm volatile("ld.shared.f64 %0, [%1];" : "=d"(x) : "r"(from) : "memory");
}

/* A vector, or the same by elements. blockDim.y is 1, but ptxas does not know it: it would merge
 * the loads. */
template <bool WHOLE> __device__ __forceinline__ void read(vector &v, unsigned from) {
    if constexpr (WHOLE) {
        read_shared(v, from);
    } else {
#pragma unroll
        for (int i = 0; i < V; i++) {
            load_shared(element(v, i), from + i * (unsigned)sizeof(REAL) * blockDim.y);
        }
    }
}

/* Of a group of 8 V lines and a slab: lines first..end - 1 of the lane's V; MN-major, all V come
 * together. */
template <order ORDER, int LINES, bool WHOLE>
__device__ __forceinline__ void load(REAL (*x)[V], unsigned from, int group, int slab, int first,
                                     int end) {
    if (ORDER == ALONG) {
#pragma unroll
        for (int q = first; q < end; q++) {
            vector v;
            read<WHOLE>(v, (from ^ slab * 64) + (group * GROUP_N + q) * 128);
#pragma unroll
            for (int j = 0; j < V; j++) {
                x[q][j] = element(v, j);
            }
        }
    } else {
#pragma unroll
        for (int j = 0; j < V; j++) {
            vector v;
            read<WHOLE>(v, from + (slab * K_SLAB + j) * tile_pitch(ORDER, LINES) + group * 128);
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
        load<ORDER, BLOCK_M, true>(a.x + group * V, from, group, slab, first, first + 2);
}

template <order ORDER>
__device__ __forceinline__ void load_b(b_fragment &b, unsigned from, int group, int slab) {
    load<ORDER, BLOCK_N, true>(b.x, from, group, slab, 0, V);
}

/* Whether mma's 16 rows are rows of A, and C comes out as it is stored. */
__host__ __device__ constexpr bool turned(order of_a) {
    return sizeof(REAL) == 8 && of_a == ACROSS;
}

/* Applied to a sum before it is stored; defined in the kernel's file. */
__device__ __forceinline__ void check(const gemm_args &g, REAL &sum, const block_work &block,
                                      long long row, long long column);

/* A lane's sums are V vectors, x[0] and x[1] of each 8 rows and group of columns. TURNED: in one
 * row, two vectors 4 apart; else at one place in two rows, 4 V apart. */
template <bool TURNED> struct vectors_of_lane {
    static constexpr int NEXT_ROW = TURNED ? 0 : 4 * V, NEXT_COLUMN = TURNED ? 4 * V : 0;
    int row, column; /* of x[0], from the first of the 8 rows and of the group's columns */

    __device__ __forceinline__ explicit vectors_of_lane(const warp_place &w)
        : row((TURNED ? slot(w.eighth) : w.pair) * V),
          column((TURNED ? w.pair : slot(w.eighth)) * V) {}
};

/* Element q of x[i] of these. */
template <bool TURNED>
__device__ __forceinline__ number &place_of_sum(number (&sum)[M_TILES][N_TILES][4], int eighth,
                                                int group, int i, int q) {
    const int m = eighth / 2, half = eighth % 2;
    return TURNED ? sum[m][group * GROUP_TILES + q][2 * half + i]
                  : sum[m][group * V + q / 2 * 2 + half][q % 2 * 2 + i];
}

/* The first of 8 rows, from the warp's first row. */
__device__ __forceinline__ constexpr int rows_from(int eighth) {
    return eighth / V * 8 * V + eighth % V;
}

template <bool TURNED>
__device__ __forceinline__ void check_all(const gemm_args &g, number (&sum)[M_TILES][N_TILES][4],
                                          const warp_place &w, const block_work &block,
                                          long long row, long long column) {
    typedef vectors_of_lane<TURNED> vectors;
    const vectors own(w);
#pragma unroll
    for (int at = 0; at < 2 * M_TILES * GROUPS * 2 * V; at++) {
        const int q = at % V, i = at / V % 2, group = at / (2 * V) % GROUPS;
        const int eighth = at / (2 * V * GROUPS);
        check(g, place_of_sum<TURNED>(sum, eighth, group, i, q), block,
              row + rows_from(eighth) + own.row + i * vectors::NEXT_ROW,
              column + group * GROUP_N + own.column + i * vectors::NEXT_COLUMN + q);
    }
}

/* Calls put(x, down) for each 8 rows: x has the lane's vectors of each group of columns. */
template <bool TURNED, typename Put>
__device__ __forceinline__ void each_8_rows(number (&sum)[M_TILES][N_TILES][4], Put put) {
#pragma unroll
    for (int eighth = 0; eighth < 2 * M_TILES; eighth++) {
        vector x[GROUPS][2];
#pragma unroll
        for (int at = 0; at < GROUPS * 2 * V; at++) {
            const int group = at / (2 * V), i = at / V % 2, q = at % V;
            element(x[group][i], q) = place_of_sum<TURNED>(sum, eighth, group, i, q);
        }
        put(x, rows_from(eighth));
    }
}

/* alpha * sums + beta * C, in whole vectors. C's rows are `pitch` elements apart. OLD: beta is not
 * 0. */
template <bool TURNED, bool OLD>
__device__ __forceinline__ void
store_vectors(const gemm_args &g, number (&sum)[M_TILES][N_TILES][4], const warp_place &w, REAL *C,
              long long pitch, long long columns, REAL alpha, long long row, long long column) {
    typedef vectors_of_lane<TURNED> vectors;
    const vectors own(w);
    const int down_left = (int)min(g.M - row, (long long)WARP_M) - own.row;
    const int across_left = (int)min(columns - column, (long long)WARP_N) - own.column;
    REAL *const c = C + (row + own.row) * pitch + column + own.column;
    each_8_rows<TURNED>(sum, [&](vector(&x)[GROUPS][2], int down) {
        asm volatile("" : "+l"(pitch)); /* else all rows' offsets are computed before the first */
#pragma unroll
        for (int at = 0; at < 2 * GROUPS; at++) {
            const int group = at / 2, i = at % 2;
            const int r = down + i * vectors::NEXT_ROW;
            const int to_column = group * GROUP_N + i * vectors::NEXT_COLUMN;
            const bool exists = r < down_left && to_column < across_left;
            REAL *to = c + r * pitch + to_column;
            vector &y = x[group][i], old;
            if (OLD && exists) old = *reinterpret_cast<const vector *>(to);
#pragma unroll
            for (int q = 0; q < V; q++) {
                element(y, q) *= alpha;
                if (OLD) element(y, q) += (REAL)g.beta * element(old, q);
            }
            store_vector_if(exists, to, reinterpret_cast<uint4 &>(y));
        }
    });
}

/* The same by elements, if C's rows are not whole vectors. By way of 8 rows of 128 bytes of the
 * warp's own, so that a request stores neighbours of one row. There the vectors of row s are
 * swizzled, so that 8 lanes that write together have 8 vectors of 128 bytes. */
template <bool TURNED, bool OLD>
__device__ __forceinline__ void
store_elements(const gemm_args &g, number (&sum)[M_TILES][N_TILES][4], const warp_place &w, REAL *C,
               unsigned space, long long row, long long column) {
    auto place = [&](int s, int at) {
        return space + s * 128 + ((at ^ (TURNED ? s % 2 * 4 : s % 4)) << 4);
    };
    const int along = w.lane % GROUP_N, first = w.lane / GROUP_N;
    const int down_left = (int)min(g.M - row, (long long)WARP_M);
    const int across_left = (int)min(g.N - column, (long long)WARP_N) - along;
    REAL *const c = C + row * g.ldc + column + along;
    long long pitch = g.ldc;
    each_8_rows<TURNED>(sum, [&](vector(&x)[GROUPS][2], int down) {
        asm volatile("" : "+l"(pitch));
#pragma unroll
        for (int group = 0; group < GROUPS; group++) {
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const uint4 v = reinterpret_cast<const uint4 &>(x[group][i]);
                const unsigned to = TURNED ? place(w.eighth, w.pair + 4 * i)
                                           : place(w.pair + 4 * i, slot(w.eighth));
                store_shared(to, v);
            }
            __syncwarp();
#pragma unroll
            for (int i = 0; i < 8; i += 32 / GROUP_N) {
                const int s = first + i, r = down + (TURNED ? slot(s) : s) * V;
                REAL y;
                load_shared(y, place(s, along / V) + along % V * (unsigned)sizeof(REAL));
                if (r >= down_left || group * GROUP_N >= across_left) continue;
                REAL *to = c + r * pitch + group * GROUP_N;
                y *= (REAL)g.alpha;
                if (OLD) y += (REAL)g.beta * *to;
                *to = y;
            }
            __syncwarp();
        }
    });
}

/* 8 lanes that write together have 8 vectors of 128 bytes. */
__device__ __forceinline__ int vector_of_row(int row, int vector) {
    return vector ^ row / V % 8;
}
template <order OF_A>
__device__ __forceinline__ void put(const gemm_args &g, unsigned to,
                                    number (&sum)[M_TILES][N_TILES][4], const warp_place &w,
                                    const block_work &block, long long row, long long column) {
    typedef vectors_of_lane<turned(OF_A)> vectors;
    const vectors own(w);
    check_all<turned(OF_A)>(g, sum, w, block, row, column);
    each_8_rows<turned(OF_A)>(sum, [&](vector(&x)[GROUPS][2], int down) {
#pragma unroll
        for (int at = 0; at < 2 * GROUPS; at++) {
            const int group = at / 2, i = at % 2;
            const int r = w.row + down + own.row + i * vectors::NEXT_ROW;
            const int c = w.column + group * GROUP_N + own.column + i * vectors::NEXT_COLUMN;
            store_shared(to + r * (BLOCK_N * (unsigned)sizeof(REAL)) +
                             (vector_of_row(r, c / V) << 4),
                         reinterpret_cast<const uint4 &>(x[group][i]));
        }
    });
}

/* The kinds of stores differ for all threads alike, and each has code of its own: conditions around
 * each vector made the code of a tile of fp64 2000 instructions, as long as 64 k of products. */
template <order OF_A>
__device__ __forceinline__ void store(const gemm_args &g, number (&sum)[M_TILES][N_TILES][4],
                                      const warp_place &w, const block_work &block, unsigned ring,
                                      long long row, long long column) {
    static_assert(THREADS / 32 * 1024 <= STAGES * STAGE, "a warp has 1 KiB to store by");
    constexpr bool TURNED = turned(OF_A);
    const bool old = (REAL)g.beta != 0; /* the rounded beta: see epilogue() */
    check_all<TURNED>(g, sum, w, block, row, column);
    if (g.split > 1) {
        store_vectors<TURNED, false>(g, sum, w, part_at(g, block.part, 0, 0), g.part_pitch,
                                     g.part_pitch, 1, row, column);
        return;
    }
    REAL *C = g.C + blockIdx.z * g.batch_c;
    if (is_chunks(C, g.ldc, g.N)) {
        if (old)
            store_vectors<TURNED, true>(g, sum, w, C, g.ldc, g.N, (REAL)g.alpha, row, column);
        else
            store_vectors<TURNED, false>(g, sum, w, C, g.ldc, g.N, (REAL)g.alpha, row, column);
        return;
    }
    wait_for_ring();
    const unsigned own = ring + threadIdx.x / 32 * 1024;
    if (old)
        store_elements<TURNED, true>(g, sum, w, C, own, row, column);
    else
        store_elements<TURNED, false>(g, sum, w, C, own, row, column);
}

#endif
