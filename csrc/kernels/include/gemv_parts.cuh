/* The two orders in which gemm_gemv reads its matrix. */
#ifndef SMK_GEMV_PARTS_CUH
#define SMK_GEMV_PARTS_CUH

#include "skinny_parts.cuh"

constexpr int WIDE = 16 / sizeof(REAL); /* elements of a vector of 16 bytes */

/* What a `piece` has: one load of V elements. */
template <int V> struct load_of {
    static constexpr int ELEMENTS = V, LOADS = 1;
};

/* V elements, each in a register: packed to a `piece`, 16-bit loads would wait for each other. */
template <int V> struct singles {
    REAL x[V];
    __device__ __forceinline__ REAL at(int, int element) const { return x[element]; }
};
template <int V> __device__ __forceinline__ const singles<V> &whole(const singles<V> &x) {
    return x;
}

/* Elements from p to the next boundary of 16 bytes. */
__device__ __forceinline__ int to_boundary(const REAL *p) {
    return (int)(-((unsigned long long)p / sizeof(REAL)) % WIDE);
}

/* An element, or 0: read by a predicated instruction, as branches would make loads wait for each
 * other. */
__device__ __forceinline__ REAL load_if(const REAL *p, bool exists) {
    REAL x = {};
    load_bits_if<sizeof(REAL)>(&x, p, exists);
    return x;
}

/* Calls load(i, left) for COUNT loads of which `left / each` exist, then add(i) for each; and again
 * for all that is left. A load takes the registers of the one that was added before it, so ptxas
 * cannot put it off: it does so with fp64, to 2 loads in flight. */
template <int COUNT, typename Load, typename Add>
__device__ __forceinline__ void stream(long long left, int each, Load load, Add add) {
    if (left <= 0) return;
    const long long round = (long long)COUNT * each;
    const int first = (int)min(left, round);
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        load(i, first);
#pragma unroll 1
    for (left -= round; left > 0; left -= round) {
        const int now = (int)min(left, round);
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            add(i);
            load(i, now);
        }
    }
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        add(i);
}

/* ---- ALONG: a group of threads has a row ---- */

/* The thread's share of K, V elements at a time. HOW vectors of x are read: SHIFTED, from the aligned
 * ones that contain what those of the row are multiplied by. */
template <int V, width HOW>
__device__ __forceinline__ number sum_row(const operands &g, const REAL *row) {
    constexpr int AHEAD = HOW == SINGLES && V == 8 ? 2 : GEMV_LOADS / 2; /* by registers */
    constexpr int SPARE = HOW == SHIFTED ? V : 0; /* the second vector is within x */
    constexpr int ENDS = 3;                       /* V lanes have up to 3 V - 2 elements */
    typedef piece<load_of<V>> vector;
    typedef typename either<HOW == SHIFTED, wide_piece<load_of<V>>, vector>::type vectors_of_x;
    typedef typename either<HOW == SINGLES, singles<V>, vectors_of_x>::type vector_of_x;
    const int lane = threadIdx.x, lanes = blockDim.x;
    const int head = V > 1 ? (int)min((long long)to_boundary(row), g.K) : 0;
    const long long whole_k = max(g.K - head - SPARE, 0ll) / V * V;
    const long long step = V > 1 ? 1 : g.ldb;
    REAL end[ENDS], end_x[ENDS];
#pragma unroll
    for (int i = 0; i < ENDS; i++) {
        const int e = lane + i * lanes;
        const long long k = e < head ? e : whole_k + e;
        end[i] = load_if(row + k * step, k < g.K);
        end_x[i] = load_if(g.A + k * g.step_a, k < g.K);
    }
    const long long first = head + lane * V;
    const REAL *x = g.A + first * g.step_a;
    row += first * step;
    const int advance = lanes * V;
    number sum = 0;
    vector y[AHEAD];
    vector_of_x by[AHEAD];
    const auto load = [&](int i, int left) {
        const bool exists = i * advance < left;
        y[i] = {};
        by[i] = {};
        load_bits_if<V *(int)sizeof(REAL)>(y[i].word[0], row, exists);
        if constexpr (HOW == VECTORS) load_shared_vector_if(by[i].word[0], x, exists);
        if constexpr (HOW == SHIFTED) {
            by[i].skip = (WIDE - to_boundary(x)) % WIDE;
            load_shared_vector_if(by[i].word[0], x - by[i].skip, exists);
            load_shared_vector_if(by[i].word[0] + 4, x - by[i].skip + WIDE, exists);
        }
        if constexpr (HOW == SINGLES) {
            const REAL *p = x;
#pragma unroll
            for (int e = 0; e < V; e++) {
                by[i].x[e] = load_if(p, exists);
                p += g.step_a;
                asm("" : "+l"(p)); /* otherwise multiples of it take registers */
            }
        }
        row += advance * step;
        x += advance * g.step_a;
    };
    const auto add = [&](int i) {
        const auto own = whole(by[i]);
#pragma unroll
        for (int e = 0; e < V; e++)
            sum += widen(own.at(0, e)) * widen(y[i].at(0, e));
    };
    stream<AHEAD>(whole_k - lane * V, advance, load, add);
#pragma unroll
    for (int i = 0; i < ENDS; i++)
        sum += widen(end_x[i]) * widen(end[i]);
    return sum;
}

__device__ __forceinline__ number sum_row(const operands &g, const REAL *row) {
    if (g.ldb != 1) return sum_row<1, SINGLES>(g, row);
    const bool unit = g.step_a == 1;
    if (unit && to_boundary(g.A) == to_boundary(row)) return sum_row<WIDE, VECTORS>(g, row);
    if constexpr (WIDE == 8) {
        if (unit && to_boundary(g.A) == 0) return sum_row<WIDE, SHIFTED>(g, row);
    }
    return sum_row<WIDE, SINGLES>(g, row);
}

/* Adds a group's sums, over the lanes of a warp, and over its warps in shared memory; for lane 0. */
__device__ __forceinline__ number add_lanes(number sum, number *shared) {
    const int lane = threadIdx.x, lanes = blockDim.x, warps = lanes / 32;
    for (int apart = min(lanes, 32) / 2; apart > 0; apart /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, apart);
    if (lanes <= 32) return sum;
    number *own = shared + threadIdx.y * warps;
    if (lane % 32 == 0) own[lane / 32] = sum;
    __syncthreads();
    if (lane > 0) return sum;
    sum = 0;
    for (int w = 0; w < warps; w++)
        sum += own[w];
    return sum;
}

__device__ __forceinline__ void along(const gemm_args &all, const operands &g,
                                      const block_place &at, number *shared) {
    const int n = threadIdx.y;
    const bool exists = at.j + n < g.N;
    const number sum =
        add_lanes(exists ? sum_row(g, g.B + (at.j + n) * g.step_b) : (number)0, shared);
    if (exists && threadIdx.x == 0) store_sum(all, at, 0, n, sum);
}

/* ---- ACROSS: a thread has WIDE columns in each row of a slice of K ---- */

/* sum[e] += column e of a thread's `rows` rows, whose addresses are `apart` elements from each other.
 * WHOLE: by one aligned vector; else those from `begin` to `end`. */
template <bool WHOLE>
__device__ __forceinline__ void add_rows(number (&sum)[WIDE], const operands &g, long long rows,
                                         const REAL *from, const REAL *x, int slices, int begin,
                                         int end) {
    constexpr int AHEAD = WHOLE || WIDE < 8 ? GEMV_LOADS : 4; /* by registers */
    const long long apart = slices * g.ldb, x_apart = slices * g.step_a;
    typename either<WHOLE, piece<load_of<WIDE>>, singles<WIDE>>::type y[AHEAD];
    REAL by[AHEAD];
    const auto load = [&](int i, int left) {
        const bool exists = i < left;
        y[i] = {};
        if constexpr (WHOLE) {
            load_bits_if<16>(y[i].word[0], from, exists);
        } else {
            const REAL *p = from;
#pragma unroll
            for (int e = 0; e < WIDE; e++) {
                y[i].x[e] = load_if(p, exists && e >= begin && e < end);
                p += g.step_b;
                asm("" : "+l"(p)); /* otherwise multiples of it take registers */
            }
        }
        by[i] = load_if(x, exists);
        from += apart;
        x += x_apart;
    };
    const auto add = [&](int i) {
#pragma unroll
        for (int e = 0; e < WIDE; e++)
            sum[e] += widen(by[i]) * widen(y[i].at(0, e));
    };
    stream<AHEAD>(rows, 1, load, add);
}

__device__ __forceinline__ void across(const gemm_args &all, const operands &g,
                                       const block_place &at, number *shared) {
    const int lanes = blockDim.x, slices = blockDim.y, strip = all.tiles.strip;
    const int log_lanes = 31 - __clz(lanes), log_slices = 31 - __clz(slices);
    const int thread = (int)threadIdx.y * lanes + (int)threadIdx.x;
    const int warp = thread / 32, warps = lanes * slices / 32;
    const int in_warp = thread % 32 >> log_lanes;
    /* A warp's rows, K of which are WIDE apart, begin at the same place modulo 16 bytes. */
    const int slice = warp % WIDE + WIDE * (in_warp + (32 >> log_lanes) * (warp / WIDE));
    const REAL *columns = g.B + at.j * g.step_b;
    const int skip = WIDE - to_boundary(columns), more = (int)(g.ldb % WIDE);
    const auto skip_of = [&](int w) {
        return strip < lanes * WIDE ? (skip + w % WIDE * more) & WIDE - 1 : 0;
    };
    const int first = (int)threadIdx.x * WIDE - skip_of(warp);
    const REAL *from = columns + slice * g.ldb + first * g.step_b, *x = g.A + slice * g.step_a;
    const int begin = at.j == 0 && first < 0 ? -first : 0;
    const int end = (int)max(0ll, min(g.N - at.j - first, (long long)WIDE));
    const long long rows = g.K - slice + slices - 1 >> log_slices;
    number sum[WIDE] = {};
    if (begin == 0 && end == WIDE && g.step_b == 1 && to_boundary(from) == 0)
        add_rows<true>(sum, g, rows, from, x, slices, 0, WIDE);
    else
        add_rows<false>(sum, g, rows, from, x, slices, begin, end);
    for (int apart = lanes; apart < 32; apart *= 2) {
#pragma unroll
        for (int e = 0; e < WIDE; e++)
            sum[e] += __shfl_xor_sync(0xffffffff, sum[e], apart);
    }
    const int width = lanes * WIDE;
    if (in_warp == 0) {
#pragma unroll
        for (int e = 0; e < WIDE; e++)
            shared[warp * width + (int)threadIdx.x * WIDE + e] = sum[e];
    }
    __syncthreads();
    if (thread >= strip || at.j + thread >= g.N) return;
    number total = 0;
#pragma unroll 4
    for (int w = 0; w < warps; w++)
        total += shared[w * width + thread + skip_of(w)];
    store_sum(all, at, 0, thread, total);
}

#endif
