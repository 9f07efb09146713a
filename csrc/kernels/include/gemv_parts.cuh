/* The two orders in which gemm_gemv reads its matrix; THIN: vectors that it is multiplied by. */
#ifndef SMK_GEMV_PARTS_CUH
#define SMK_GEMV_PARTS_CUH

#include "skinny_parts.cuh"

constexpr int WIDE = 16 / sizeof(REAL); /* elements of a vector of 16 bytes */

/* What a `piece` has: COUNT loads of V elements. */
template <int V, int COUNT> struct loads_of {
    static constexpr int ELEMENTS = V, LOADS = COUNT;
};

/* Elements from p to the next boundary of 16 bytes. */
__device__ __forceinline__ int to_boundary(const REAL *p) {
    return (int)(-((unsigned long long)p / sizeof(REAL)) % WIDE);
}

/* use(n, p) for p in each of N rows, which are `apart`; in row `last` again for those after it. */
template <int N, typename Use>
__device__ __forceinline__ void each_row(const REAL *p, long long apart, int last, Use use) {
#pragma unroll
    for (int n = 0; n < N; n++) {
        use(n, p);
        if (n < last) p += apart;
        asm("" : "+l"(p)); /* otherwise multiples of `apart` take registers */
    }
}

/* The same for elements of a row. */
template <int N, typename Use>
__device__ __forceinline__ void each_element(const REAL *p, long long step, Use use) {
    each_row<N>(p, step, N, use);
}

/* ---- ALONG ---- */

/* sum[t][n] += row n times vector t, of the thread's share of K, V elements at a time. The rows are
 * WIDE apart. HOW vectors are read: SHIFTED, from the aligned ones that contain what those of the
 * rows are multiplied by. */
template <int V, width HOW, int THIN, int ROWS>
__device__ __forceinline__ void add_rows(number (&sum)[THIN][ROWS], const operands &g,
                                         const REAL *row, int last) {
    /* Singles of 16 bits wait for each other, to be packed; shifted vectors take two registers for
     * one. */
    constexpr int AHEAD = HOW == SINGLES && V == 8             ? 1
                          : HOW == SHIFTED && THIN * ROWS >= 4 ? 1
                                                               : GEMV_LOADS / ROWS;
    constexpr int SPARE = HOW == SHIFTED ? V : 0; /* the second vector is within A */
    typedef loads_of<V, AHEAD> of_x;
    typedef typename either<HOW == SHIFTED, wide_piece<of_x>, piece<of_x>>::type piece_of_x;
    const int lane = threadIdx.x, head = V > 1 ? (int)min((long long)to_boundary(row), g.K) : 0;
    const int last_x = (int)min(g.M, (long long)THIN) - 1;
    const long long whole_k = max(g.K - head - SPARE, 0ll) / V * V;
    const long long apart = WIDE * g.step_b, step = V > 1 ? 1 : g.ldb;
    /* The ends: at most 3 V - 2 elements, which is fewer than there are lanes. */
    REAL end_x[THIN] = {}, end[ROWS] = {};
    if (lane < (int)(g.K - whole_k)) {
        const long long k = lane < head ? lane : whole_k + lane;
        each_row<THIN>(g.A + k * g.step_a, g.lda, last_x,
                       [&](int t, const REAL *p) { end_x[t] = *p; });
        each_row<ROWS>(row + k * step, apart, last, [&](int n, const REAL *p) { end[n] = *p; });
    }
    const REAL *x = g.A + (head + lane * V) * g.step_a;
    row += (head + lane * V) * step;
    const int advance = (int)blockDim.x * V;
#pragma unroll 1
    for (long long left = whole_k - lane * V; left > 0;) {
        piece<loads_of<V, AHEAD * ROWS>> y = {};
        piece_of_x by[THIN] = {};
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            if (left > 0) {
                each_row<ROWS>(row, apart, last, [&](int n, const REAL *p) {
                    load_bits<V *(int)sizeof(REAL)>(y.word[i * ROWS + n], p);
                });
                each_row<THIN>(x, g.lda, last_x, [&](int t, const REAL *p) {
                    if constexpr (HOW == VECTORS) load_shared_vector(by[t].word[i], p);
                    if constexpr (HOW == SHIFTED) {
                        by[t].skip = (WIDE - to_boundary(p)) % WIDE;
                        load_shared_vector(by[t].word[i], p - by[t].skip);
                        load_shared_vector(by[t].word[i] + 4, p - by[t].skip + WIDE);
                    }
                    if constexpr (HOW == SINGLES)
                        each_element<V>(p, g.step_a,
                                        [&](int e, const REAL *q) { by[t].at(i, e) = *q; });
                });
            }
            left -= advance;
            row += advance * step;
            x += advance * g.step_a;
        }
#pragma unroll
        for (int t = 0; t < THIN; t++) {
            const piece<of_x> own = whole(by[t]);
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
#pragma unroll
                for (int e = 0; e < V; e++) {
#pragma unroll
                    for (int n = 0; n < ROWS; n++)
                        sum[t][n] += widen(own.at(i, e)) * widen(y.at(i * ROWS + n, e));
                }
            }
        }
    }
#pragma unroll
    for (int t = 0; t < THIN; t++) {
#pragma unroll
        for (int n = 0; n < ROWS; n++)
            sum[t][n] += widen(end_x[t]) * widen(end[n]);
    }
}

template <int THIN, int ROWS>
__device__ __forceinline__ void add_rows(number (&sum)[THIN][ROWS], const operands &g,
                                         const REAL *row, int last) {
    if (g.ldb != 1) return add_rows<1, SINGLES>(sum, g, row, last);
    const bool unit = g.step_a == 1, alike = g.M == 1 || g.lda % WIDE == 0;
    if (unit && alike && to_boundary(g.A) == to_boundary(row))
        return add_rows<WIDE, VECTORS>(sum, g, row, last);
    if constexpr (WIDE == 8) {
        if (unit && to_boundary(g.A) == 0 && (g.M == 1 || g.lda > 0))
            return add_rows<WIDE, SHIFTED>(sum, g, row, last);
    }
    add_rows<WIDE, SINGLES>(sum, g, row, last);
}

/* Adds a group's sums, over the lanes of a warp, and over its warps in shared memory. False: the
 * thread does not have them afterwards. */
template <int COUNT>
__device__ __forceinline__ bool add_lanes(number (&sum)[COUNT], number *shared) {
    const int lane = threadIdx.x, lanes = blockDim.x;
    number *own = shared + threadIdx.y * (lanes / 32) * COUNT;
#pragma unroll
    for (int n = 0; n < COUNT; n++) {
        for (int apart = min(lanes, 32) / 2; apart > 0; apart /= 2)
            sum[n] += __shfl_xor_sync(0xffffffff, sum[n], apart);
        if (lanes > 32 && lane % 32 == 0) own[lane / 32 * COUNT + n] = sum[n];
    }
    if (lanes <= 32) return true;
    __syncthreads();
    if (lane >= 32) return false;
#pragma unroll
    for (int n = 0; n < COUNT; n++) {
        sum[n] = lane < lanes / 32 ? own[lane * COUNT + n] : 0;
        for (int apart = 16; apart > 0; apart /= 2)
            sum[n] += __shfl_xor_sync(0xffffffff, sum[n], apart);
    }
    return true;
}

/* A group, the threads of one threadIdx.y, has ROWS rows. */
template <int THIN, int ROWS>
__device__ __forceinline__ void along(const gemm_args &all, const operands &g,
                                      const block_place &at, number *shared) {
    const int group = threadIdx.y;
    const int first = ROWS == 1 ? group : group / WIDE * ROWS * WIDE + group % WIDE;
    const long long left = g.N - at.j - first;
    const int last = left > 0 ? (int)min((left - 1) / WIDE, (long long)ROWS - 1) : -1;
    number sum[THIN][ROWS] = {};
    if (left > 0) add_rows(sum, g, g.B + (at.j + first) * g.step_b, last);
    if (!add_lanes(reinterpret_cast<number(&)[THIN * ROWS]>(sum), shared)) return;
#pragma unroll
    for (int t = 0; t < THIN; t++) {
#pragma unroll
        for (int n = 0; n < ROWS; n++) {
            if (threadIdx.x == n && n <= last && t < g.M)
                store_sum(all, at, t, first + n * WIDE, sum[t][n]);
        }
    }
}

/* ---- ACROSS ---- */

/* Row k of the matrix is read by the lanes of a slice, WIDE elements each from `first` on: by an
 * aligned vector where all of them exist, else those that do. */
template <int THIN>
__device__ __forceinline__ void across(const gemm_args &all, const operands &g,
                                       const block_place &at, number *shared) {
    const int lanes = blockDim.x, slices = blockDim.y, rows_of_warp = 32 / lanes;
    const int warp = (threadIdx.y * lanes + threadIdx.x) / 32, warps = lanes * slices / 32;
    const int in_warp = threadIdx.y % rows_of_warp;
    const int slice = warp % WIDE + WIDE * (in_warp + rows_of_warp * (warp / WIDE));
    const REAL *strip = g.B + at.j * g.step_b;
    const auto skip_of = [&](int k) {
        const bool overlap = all.tiles.strip < lanes * WIDE;
        return overlap ? (WIDE - to_boundary(strip + k * g.ldb)) % WIDE : 0;
    };
    const int first = (int)threadIdx.x * WIDE - skip_of(slice);
    const REAL *from = strip + slice * g.ldb + first * g.step_b, *x = g.A + slice * g.step_a;
    const int begin = at.j == 0 && first < 0 ? -first : 0;
    const int end = (int)max(0ll, min(g.N - at.j - first, (long long)WIDE));
    const int last_x = (int)min(g.M, (long long)THIN) - 1;
    const bool whole = begin == 0 && end == WIDE && g.step_b == 1 && to_boundary(from) == 0;
    number sum[THIN][WIDE] = {};
#pragma unroll 1
    for (long long left = g.K - slice; left > 0;) {
        piece<loads_of<WIDE, GEMV_LOADS>> y = {};
        REAL by[GEMV_LOADS][THIN] = {};
#pragma unroll
        for (int i = 0; i < GEMV_LOADS; i++) {
            if (left > 0) {
                if (whole) {
                    load_bits<16>(y.word[i], from);
                } else {
                    each_element<WIDE>(from, g.step_b, [&](int e, const REAL *p) {
                        if (e >= begin && e < end) y.at(i, e) = *p;
                    });
                }
                each_row<THIN>(x, g.lda, last_x, [&](int t, const REAL *p) { by[i][t] = *p; });
            }
            left -= slices;
            from += slices * g.ldb;
            x += slices * g.step_a;
        }
#pragma unroll
        for (int i = 0; i < GEMV_LOADS; i++) {
#pragma unroll
            for (int e = 0; e < WIDE; e++) {
#pragma unroll
                for (int t = 0; t < THIN; t++)
                    sum[t][e] += widen(by[i][t]) * widen(y.at(i, e));
            }
        }
    }
#pragma unroll
    for (int t = 0; t < THIN; t++) {
#pragma unroll
        for (int e = 0; e < WIDE; e++) {
            for (int apart = lanes; apart < 32; apart *= 2)
                sum[t][e] += __shfl_xor_sync(0xffffffff, sum[t][e], apart);
            if (in_warp == 0)
                shared[((t * warps + warp) * lanes + threadIdx.x) * WIDE + e] = sum[t][e];
        }
    }
    __syncthreads();
    for (int o = threadIdx.y * lanes + threadIdx.x; o < THIN * all.tiles.strip;
         o += lanes * slices) {
        const int t = o / all.tiles.strip, n = o % all.tiles.strip;
        if (t >= g.M || at.j + n >= g.N) continue;
        number total = 0;
        for (int w = 0; w < warps; w++)
            total += shared[(t * warps + w) * lanes * WIDE + n + skip_of(w % WIDE)];
        store_sum(all, at, t, n, total);
    }
}

#endif
