/* Preparation of operands for products that load tiles by TMA: packs them into the workspace, in
 * the layout that TMA and the tensor core require.
 *
 *     A's rows, B's columns  ->  [term][row][k ...]   K adjacent elements per row, 16-byte aligned
 *
 * (For gemm_tma, which uses no tensor core, B's rows: there "k" below runs along N.)
 *
 * PARTS 1: bits are copied if TMA cannot read them in place. (TMA rounds to tf32 as it loads.)
 *
 * PARTS 2: an element x of A becomes two terms: term 0 is x rounded to nearest, term 1 the rest,
 * rounded. The rest is at most half a unit of term 0's last place, and the difference is exact. So
 * two terms of tf32 or fp16, of 11 bits each, keep 2 * 11 + 1 of the 24. Before that a row is
 * multiplied by the power of two that brings its largest element into [2^14, 2^15); the product
 * divides it out again. fp16, which ends at 2^16, always needs that; tf32 needs it if elements are
 * below 2^-113, because term 1 ends at 2^-136. With fp16, elements down to 2^-17 of the largest
 * keep all of their bits; smaller ones have an absolute error of 2^-40 of the largest. B is split
 * by the product itself; here only the largest elements of its columns are found.
 *
 * SCALED with PARTS 1 (fp16x1): one fp16 term of the scaled element. Both A and B are packed, which
 * halves the bytes that the product reads.
 *
 * A warp packs a row of a K-major operand, or four short ones. It also does so if an MN-major
 * operand is read by MN-major tiles: the copy keeps that layout. A row that begins anywhere is read
 * in aligned 16 bytes; two adjacent ones are shifted into the 16 that are written. Other matrices
 * are transposed in shared memory, 64 x 64 elements in rows of 65 words: no conflicts, except
 * two-way ones where 16-bit operands go in pairs.
 *
 * MN-major rows that are scaled: a cluster packs 32 of them (8 of few), each block a range of K.
 *
 *      read the range             exchange        pack the range, from its end on
 *      block 0 | k k k [k] |     |largest|        | k k k [k] |     [k]: `kept` of k, which stay in
 *      block 1 | k k k [k] | --> |of all | -->    | k k k [k] |     shared memory since they were
 *      ..                                                           read; others are read again
 *
 * All copies of `kept` of k are in flight at once. What is read twice is in L2.
 * Bytes: 4 read and PARTS * sizeof(operand) written per element; 4 more read to find the largest in
 * what the product splits.
 */
#ifndef SMK_WGMMA_PACK_CUH
#define SMK_WGMMA_PACK_CUH

#include "args.h"
#include "cluster.cuh"
#include "overlap.cuh"
#include "store_bits.cuh"

/* SCALED: rows of A and columns of B are multiplied by powers of two. PACK_BOTH: not only of A, as
 * elsewhere, but also of B the scaled terms are packed. */
#ifndef SCALED
#define SCALED (PARTS == 2)
#endif
#ifndef PACK_BOTH
#define PACK_BOTH 0
#endif
/* GUARDED: also the smallest elements of rows are found (wgmma_guard.cuh). */
#ifndef GUARDED
#define GUARDED 0
#endif
#include "unaligned_lines.cuh"

constexpr int PACK_WARPS = PACK_THREADS / 32;

/* ---- one element ---- */

__device__ __forceinline__ float rounded(float x, float &to) {
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(reinterpret_cast<unsigned &>(to)) : "f"(x));
    return to;
}

__device__ __forceinline__ float rounded(float x, unsigned short &to) {
    float back;
    asm("{\n"
        "cvt.rn.f16.f32 %0, %2;\n"
        "cvt.f32.f16 %1, %0;\n"
        "}"
        : "=h"(to), "=f"(back)
        : "f"(x));
    return back;
}

/* Splits x * scale into two terms. */
template <typename T> __device__ __forceinline__ void split(float x, float scale, T (&parts)[2]) {
    const float scaled = x * scale;
    rounded(scaled - rounded(scaled, parts[0]), parts[1]);
}

__device__ __forceinline__ void split(raw x, float, raw (&parts)[1]) {
    parts[0] = x;
}

#if PACK_BOTH
__device__ __forceinline__ void split(float x, float scale, unsigned short (&parts)[1]) {
    rounded(x * scale, parts[0]);
}
#endif

/* Whether an operand of N terms of type T is scaled: a single term only if it is narrower. */
template <typename T, int N> constexpr bool scales = N == 2 || sizeof(T) < sizeof(raw);

/* ---- scales ---- */

__device__ __forceinline__ float power_of_two(int e) {
    return __int_as_float((e + 127) << 23);
}

/* e such that 2^e brings a row whose largest |x| has these bits into [2^14, 2^15). At most 126:
 * then the largest is below 2^-112, all bits of x still fit, and both 2^e and 2^-e are floats.
 * GUARDED: into [2^15, 2^16), unless the largest would round to 2^16, which is fp16's infinity. */
__device__ __forceinline__ int scale_of(unsigned magnitude) {
    const int to = GUARDED && (magnitude & 0x7fffff) < 0x7fe000 ? 142 : 141;
    return min(to - (int)(magnitude >> 23), 126);
}

__device__ __forceinline__ unsigned magnitude_of(float x) {
    return __float_as_uint(x) & 0x7fffffff;
}

/* ---- the operand of a block ---- */

/* A or B: element (row, k) is at x[row * to.row_stride + k * to.k_stride]. */
typedef struct source {
    const REAL *x;
    wgmma_operand to;
    int unit, block; /* cluster and block, among those with the same task */
} source;

__device__ __forceinline__ unsigned *of_batch(unsigned *p, long long bytes) {
    return reinterpret_cast<unsigned *>(reinterpret_cast<unsigned char *>(p) + bytes);
}

__device__ __forceinline__ source source_of(const gemm_args &g, const wgmma_args &w, bool a,
                                            int unit) {
    source s;
    s.x = (a ? g.A : g.B) + blockIdx.z * (a ? g.batch_a : g.batch_b);
    s.to = a ? w.a : w.b;
    s.unit = unit;
    s.block = unit * cluster_size() + (int)blockIdx.y;
    const long long bytes = blockIdx.z * s.to.batch;
    s.to.packed += bytes;
    s.to.largest = of_batch(s.to.largest, bytes);
    return s;
}

template <typename T> __device__ __forceinline__ T *packed_row(const source &s, int part, int row) {
    return reinterpret_cast<T *>(s.to.packed) + ((long long)part * s.to.rows + row) * s.to.pitch;
}

#if SCALED
/* ---- largest elements of rows ---- */

/* Of some elements: the bits of the largest |x| and, GUARDED, those of the smallest that is not 0,
 * minus 1; so that of no elements both are neutral. */
typedef struct extremes {
    unsigned largest, smallest;
} extremes;

constexpr extremes NONE = {0, 0xffffffff};

__device__ __forceinline__ void include(extremes &e, const extremes &more) {
    e.largest = max(e.largest, more.largest);
    if (GUARDED) e.smallest = min(e.smallest, more.smallest);
}

__device__ __forceinline__ void include(extremes &e, float x) {
    include(e, extremes{magnitude_of(x), magnitude_of(x) - 1});
}

/* `count` lines of an array of extremes: first all the largest, then all the smallest. */
__device__ __forceinline__ void store_extremes(unsigned *to, long long at, long long count,
                                               const extremes &e) {
    to[at] = e.largest;
    if (GUARDED) to[count + at] = e.smallest;
}

__device__ __forceinline__ extremes load_extremes(const unsigned *from, long long at,
                                                  long long count) {
    return {from[at], GUARDED ? from[count + at] : 0};
}

/* The extremes of a row, in every one of the THREADS that share it: a warp or the block. */
template <int THREADS>
__device__ __forceinline__ extremes extremes_of_row(const float *from, int K) {
    const int thread = threadIdx.x % THREADS;
    const line_pieces x = pieces_of(from, K);
    extremes e = NONE;
    constexpr int LOADS = 8; /* in flight */
#pragma unroll 1
    for (int j = x.first + thread; j < x.inside; j += THREADS * LOADS) {
        uint4 v[LOADS];
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            v[i] = j + THREADS * i < x.inside ? x.words[j + THREADS * i] : make_uint4(0, 0, 0, 0);
        }
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            include(e, __uint_as_float(v[i].x));
            include(e, __uint_as_float(v[i].y));
            include(e, __uint_as_float(v[i].z));
            include(e, __uint_as_float(v[i].w));
        }
    }
    /* Single elements at both ends. */
    const int before = x.first ? WIDE - x.skew / (int)sizeof(raw) : 0;
    const int behind = max(before, x.inside * WIDE - x.skew / (int)sizeof(raw));
    for (int k = thread; k < before + K - behind; k += THREADS) {
        include(e, from[k < before ? k : k - before + behind]);
    }
    e = {__reduce_max_sync(0xffffffff, e.largest),
         GUARDED ? __reduce_min_sync(0xffffffff, e.smallest) : 0};
    if constexpr (THREADS > 32) {
        constexpr int WARPS = THREADS / 32;
        __shared__ unsigned found[1 + GUARDED][WARPS];
        if (thread % 32 == 0) store_extremes(found[0], thread / 32, WARPS, e);
        __syncthreads();
        for (int warp = 0; warp < WARPS; warp++)
            include(e, load_extremes(found[0], warp, WARPS));
    }
    return e;
}

/* Includes `left` elements a step apart. While COUNT are left, COUNT loads are in flight. */
template <int COUNT>
__device__ __forceinline__ void include_line(extremes &e, const float *&from, long long step,
                                             int &left) {
#pragma unroll 1
    for (; left >= COUNT; left -= COUNT) {
        float x[COUNT];
#pragma unroll
        for (int i = 0; i < COUNT; i++, from += step) {
            x[i] = *from;
        }
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            include(e, x[i]);
        }
    }
}

/* Of what all warps have found, each in its lanes: the same in every warp. */
__device__ __forceinline__ extremes extremes_of_warps(extremes e) {
    __shared__ unsigned found[1 + GUARDED][PACK_WARPS][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    store_extremes(&found[0][warp][lane], 0, PACK_WARPS * 32, e);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < PACK_WARPS; i++) {
        include(e, load_extremes(&found[0][i][lane], 0, PACK_WARPS * 32));
    }
    return e;
}

/* The extremes of LARGEST_K elements of each of 32 rows of an MN-major operand; lanes are rows.
 * Stored at largest[chunk of K][row]. */
__device__ __forceinline__ void extremes_of_chunk(const source &s) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int across = (s.to.rows + LARGEST_ROWS - 1) / LARGEST_ROWS;
    const int row = s.block % across * LARGEST_ROWS + lane, chunk = s.block / across;
    if (chunk >= s.to.chunks) return;
    constexpr int WARPS = PACK_WARPS;
    const int first = chunk * LARGEST_K + warp, end = min((chunk + 1) * LARGEST_K, s.to.k);
    extremes e = NONE;
    if (row < s.to.rows && first < end) {
        const float *from = s.x + row * s.to.row_stride + first * s.to.k_stride;
        int left = (end - first + WARPS - 1) / WARPS;
        include_line<32>(e, from, WARPS * s.to.k_stride, left);
        include_line<8>(e, from, WARPS * s.to.k_stride, left);
        include_line<1>(e, from, WARPS * s.to.k_stride, left);
    }
    e = extremes_of_warps(e);
    if (warp == 0 && row < s.to.rows)
        store_extremes(s.to.largest, (long long)chunk * s.to.rows + row,
                       (long long)s.to.chunks * s.to.rows, e);
}

/* Searches B, whose columns are the rows here. */
__device__ __forceinline__ void search(const source &s) {
    if (!s.to.by_rows) {
        extremes_of_chunk(s);
        return;
    }
    const int row = s.block * PACK_ROWS + threadIdx.x / 32;
    if (row >= s.to.rows) return;
    const extremes e = extremes_of_row<32>(s.x + row * s.to.row_stride, s.to.k);
    if (threadIdx.x % 32 == 0) store_extremes(s.to.largest, row, s.to.rows, e);
}
#endif

/* ---- packing into N terms ---- */

/* Packs COUNT elements of a line, into as many operands of each term. */
template <typename T, int N, int COUNT>
__device__ __forceinline__ void pack_elements(const source &s, int line, int at, float scale,
                                              const several<raw, COUNT> &x) {
    several<T, COUNT> out[N];
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        T parts[N];
        split(x.at[i], scale, parts);
#pragma unroll
        for (int part = 0; part < N; part++)
            out[part].at[i] = parts[part];
    }
#pragma unroll
    for (int part = 0; part < N; part++) {
        T *to = packed_row<T>(s, part, line) + at;
        if constexpr (COUNT == 1)
            *to = out[part].at[0];
        else
            store_bits(to,
                       reinterpret_cast<typename bits_type<sizeof out[part]>::type &>(out[part]));
    }
}

/* A warp packs PACK_PIECES pieces of a line, or all of a line that is scaled. With all THREADS of
 * the block per line, the line is still in L1 when it is read for the second time. */
template <typename T, int N, int THREADS>
__device__ __forceinline__ void pack_by_lines(const source &s) {
    constexpr bool SCALE = scales<T, N>;
    const bool across = !SCALE && s.to.across;
    const int lines = across ? s.to.k : s.to.rows, length = across ? s.to.rows : s.to.k;
    const int shares = SCALE ? 1 : (length + PACK_PIECES * WIDE - 1) / (PACK_PIECES * WIDE);
    const int unit = s.block * (PACK_THREADS / THREADS) + threadIdx.x / THREADS;
    const int lane = threadIdx.x % THREADS;
    const int line = unit / shares, share = unit - line * shares;
    if (line >= lines) return;
    const REAL *from = s.x + line * (across ? s.to.k_stride : s.to.row_stride);
    const line_pieces x = pieces_of(from, length);
    float scale = 1;
#if SCALED
    if (SCALE) {
        const extremes e = extremes_of_row<THREADS>(from, length);
        if (lane == 0) store_extremes(s.to.largest, line, s.to.rows, e);
        scale = power_of_two(scale_of(e.largest));
    }
#endif
    constexpr int BATCH = 2; /* pieces in flight per lane */
    const int first = max(x.first, share * PACK_PIECES);
    const int end = SCALE ? x.end : min(x.end, (share + 1) * PACK_PIECES);
#pragma unroll 1
    for (int j = first + lane; j < end; j += THREADS * BATCH) {
        uint4 low[BATCH], high[BATCH];
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            if (j + THREADS * i < end) {
                low[i] = x.words[j + THREADS * i];
                if (x.skew) high[i] = x.words[j + THREADS * i + 1];
            }
        }
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            if (j + THREADS * i < end) {
                const uint4 piece = x.skew ? joined(low[i], high[i], x.skew) : low[i];
                pack_elements<T, N, WIDE>(s, line, (j + THREADS * i) * WIDE, scale,
                                          reinterpret_cast<const several<raw, WIDE> &>(piece));
            }
        }
    }
    if (share > 0) return;
    const int before = x.first * WIDE, inside = (x.end - x.first) * WIDE;
    for (int k = lane; k < length - inside; k += THREADS) {
        const int at = k < before ? k : k + inside;
        const several<raw, 1> one = {bits_of<REAL>::at(from + at)};
        pack_elements<T, N, 1>(s, line, at, scale, one);
    }
}

/* Packs a tile of 64 rows x 64 k, read MN-major and written K-major. */
template <typename T> __device__ __forceinline__ void pack_by_tiles(const source &s, raw *tile) {
    static_assert(sizeof(T) == sizeof(raw), "bits are copied");
    constexpr int PITCH = PACK_TILE + 1; /* tile: [k][row] */
    const int across = (s.to.rows + PACK_TILE - 1) / PACK_TILE;
    const int row0 = s.block % across * PACK_TILE, k0 = s.block / across * PACK_TILE;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int i = 0; i < PACK_TILE / PACK_WARPS; i++) {
#pragma unroll
        for (int half = 0; half < PACK_TILE; half += 32) {
            const int k = warp + PACK_WARPS * i, row = lane + half;
            if (k0 + k < s.to.k && row0 + row < s.to.rows) {
                tile[k * PITCH + row] = bits_of<REAL>::at(s.x + (row0 + row) * s.to.row_stride +
                                                          (k0 + k) * s.to.k_stride);
            }
        }
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < PACK_TILE / PACK_WARPS; i++) {
        const int row = warp + PACK_WARPS * i;
        if (row0 + row >= s.to.rows) break;
        /* 16-bit operands are stored in pairs; if K is odd, the second of the last is padding. */
        constexpr int PAIR = sizeof(T) == 2, NEXT = PAIR ? 1 : 32;
        const int k = PAIR ? 2 * lane : lane;
        const bool both = k0 + k + NEXT < s.to.k;
        raw x[2];
#pragma unroll
        for (int j = 0; j < 2; j++) {
            x[j] = k0 + k + NEXT * j < s.to.k ? tile[(k + NEXT * j) * PITCH + row] : raw(0);
        }
        T *to = packed_row<T>(s, 0, row0 + row) + k0 + k;
        if (!PAIR) {
            if (k0 + k < s.to.k) to[0] = x[0];
            if (both) to[NEXT] = x[1];
        } else if (k0 + k < s.to.k) {
            *reinterpret_cast<several<T, 2> *>(to) = {x[0], x[1]};
        }
    }
}

#if SCALED
/* ---- MN-major rows that are scaled: a cluster packs a panel of ROWS ---- */

/* Where an element is in a panel: the ROWS of one k, then those of the next. 4 words are free after
 * each 8 of k, so that 4 rows of 64 k, 8 per lane, take as many wavefronts as words per lane. */
template <int ROWS> __device__ __forceinline__ int in_panel(int k, int row) {
    return k / 8 * PANEL_WORDS(ROWS) + k % 8 * ROWS + row;
}

/* BYTES, of which the first `size` are read; the others become zeros. */
template <int BYTES>
__device__ __forceinline__ void copy_to_panel(float *to, const float *from, int size) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "n"(BYTES), "r"(size)
                 : "memory");
}

/* Copies `count` of k, WIDE adjacent rows at a time; zeros for rows that do not exist, and up to a
 * multiple of 8 of k. */
template <int ROWS, int WIDE>
__device__ __forceinline__ void copy_panel(const float *from, const source &s, int rows, int count,
                                           float *panel) {
    constexpr int LANES = ROWS / WIDE, DEEP = PACK_THREADS / LANES;
    const int row = threadIdx.x % LANES * WIDE, size = max(0, min(WIDE, rows - row)) * 4;
    int k = threadIdx.x / LANES;
    from += row * s.to.row_stride + k * s.to.k_stride;
    panel += in_panel<ROWS>(k, row);
#pragma unroll 8
    for (; k < (count + 7) / 8 * 8; k += DEEP) {
        copy_to_panel<WIDE * 4>(panel, from, k < count ? size : 0);
        from += DEEP * s.to.k_stride;
        panel += in_panel<ROWS>(DEEP, 0); /* DEEP is a multiple of 8 */
    }
}

/* The same for the block, from `first` on, by 16 bytes where all begin at multiples. */
template <int ROWS>
__device__ __forceinline__ void read_panel(const source &s, int row0, int first, int count,
                                           float *panel) {
    const float *from = s.x + row0 * s.to.row_stride + first * s.to.k_stride;
    const int rows = min(s.to.rows - row0, ROWS);
    if (s.to.row_stride == 1 && ((unsigned long long)from | s.to.k_stride * 4) % 16 == 0)
        copy_panel<ROWS, 4>(from, s, rows, count, panel);
    else
        copy_panel<ROWS, 1>(from, s, rows, count, panel);
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
}

/* Includes `count` of k. A lane has 4 rows, of which the warp has ROWS / 4 groups. */
template <int ROWS>
__device__ __forceinline__ void include_panel(extremes (&e)[4], int count, const float *panel) {
    constexpr int LANES = ROWS / 4, DEEP = PACK_THREADS / LANES;
    int k = threadIdx.x / LANES;
    panel += in_panel<ROWS>(k, threadIdx.x % LANES * 4);
#pragma unroll 4
    for (; k < count; k += DEEP, panel += in_panel<ROWS>(DEEP, 0)) {
        const uint4 v = *reinterpret_cast<const uint4 *>(panel);
        include(e[0], __uint_as_float(v.x));
        include(e[1], __uint_as_float(v.y));
        include(e[2], __uint_as_float(v.z));
        include(e[3], __uint_as_float(v.w));
    }
}

/* Of another lane. */
__device__ __forceinline__ extremes extremes_of_lane(const extremes &e, int lane) {
    return {__shfl_sync(0xffffffff, e.largest, lane),
            GUARDED ? __shfl_sync(0xffffffff, e.smallest, lane) : 0};
}

/* Of the warp, those of the row that is the lane's number, modulo ROWS. */
template <int ROWS> __device__ __forceinline__ extremes extremes_of_rows(extremes (&e)[4]) {
    const int lane = threadIdx.x % 32;
    extremes own = NONE;
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int apart = ROWS / 4; apart < 32; apart *= 2)
            include(e[i], extremes_of_lane(e[i], lane ^ apart));
        const extremes x = extremes_of_lane(e[i], lane % ROWS / 4);
        if (lane % 4 == i) own = x;
    }
    return own;
}

/* Packs `count` of k from `first` on. scale: of the row that is the lane's number, modulo ROWS. */
template <typename T, int N, int ROWS>
__device__ __forceinline__ void write_panel(const source &s, int row0, int first, int count,
                                            float scale, const float *panel) {
    constexpr int COUNT = 16 / sizeof(T), LANES = PACK_TILE / COUNT;
    constexpr int GROUP = 32 / LANES, GROUPS = ROWS / GROUP; /* of rows */
    const int lane = threadIdx.x % 32, end = GROUPS * ((count + PACK_TILE - 1) / PACK_TILE);
#pragma unroll 1
    for (int at = threadIdx.x / 32; at < end; at += PACK_WARPS) {
        const int row = at % GROUPS * GROUP + lane / LANES;
        const int k = at / GROUPS * PACK_TILE + lane % LANES * COUNT;
        const float of_row = __shfl_sync(0xffffffff, scale, row);
        if (row0 + row >= s.to.rows || k >= count) continue;
        const float *own = panel + in_panel<ROWS>(k, row);
        several<raw, COUNT> x;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            x.at[i] = own[i * ROWS];
        }
        pack_elements<T, N, COUNT>(s, row0 + row, first + k, of_row, x);
    }
}

/* What the blocks of a cluster have found, each in the lanes of all of its warps. */
__device__ __forceinline__ extremes extremes_of_cluster(extremes e) {
    __shared__ unsigned own[1 + GUARDED][32];
    const int lane = threadIdx.x % 32, ranks = cluster_size();
    if (ranks == 1) return e;
    if (threadIdx.x < 32) store_extremes(own[0], lane, 32, e);
    cluster_publish();
    cluster_wait();
#pragma unroll 1
    for (int rank = 0; rank < ranks; rank++) {
        include(e, {load_of_rank(&own[0][lane], rank),
                    GUARDED ? load_of_rank(&own[GUARDED][lane], rank) : 0});
    }
    cluster_publish();
    return e;
}

template <typename T, int N, int ROWS>
__device__ __forceinline__ void pack_panel(const source &s, float *panel) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row0 = s.unit * ROWS;
    const int begin = (int)blockIdx.y * s.to.range, end = min(begin + s.to.range, s.to.k);
    extremes found[4] = {NONE, NONE, NONE, NONE};
    int first = begin, count;
#pragma unroll 1
    for (;; first += count) {
        count = max(0, min(s.to.kept, end - first));
        read_panel<ROWS>(s, row0, first, count, panel);
        include_panel<ROWS>(found, count, panel);
        if (first + count >= end) break;
        __syncthreads();
    }
    const extremes e = extremes_of_cluster(extremes_of_warps(extremes_of_rows<ROWS>(found)));
    if (blockIdx.y == 0 && warp == 0 && lane < ROWS && row0 + lane < s.to.rows)
        store_extremes(s.to.largest, row0 + lane, s.to.rows, e);
    const float scale = power_of_two(scale_of(e.largest));
#pragma unroll 1
    for (;; first -= count) {
        write_panel<T, N, ROWS>(s, row0, first, count, scale, panel);
        if (first == begin) break;
        count = s.to.kept;
        __syncthreads();
        read_panel<ROWS>(s, row0, first - count, count, panel);
    }
    if (cluster_size() > 1) cluster_wait(); /* all have read what this block has found */
}
#endif

template <typename T, int N>
__device__ __forceinline__ void pack_operand(const source &s, raw *space) {
    if (s.to.by_rows || (!scales<T, N> && s.to.across)) {
        const int length = s.to.by_rows ? s.to.k : s.to.rows;
        if (scales<T, N> && s.to.k > LARGEST_K)
            pack_by_lines<T, N, PACK_THREADS>(s);
        else if (!scales<T, N> && length * (int)sizeof(REAL) <= PACK_SHORT)
            pack_by_lines<T, N, PACK_FEW>(s);
        else
            pack_by_lines<T, N, 32>(s);
        return;
    }
#if SCALED
    if constexpr (scales<T, N>) {
        if (s.to.panel == PANEL_FEW)
            pack_panel<T, N, PANEL_FEW>(s, space);
        else
            pack_panel<T, N, LARGEST_ROWS>(s, space);
    } else
#endif
        pack_by_tiles<T>(s, space);
}

/* Clusters in order: those that search B's columns, which take longest, those that pack A, and
 * those that pack B. If a batch shares a matrix, only those of the first batch work on it. */
__device__ __forceinline__ void pack(const gemm_args &g, const wgmma_args &w) {
    extern __shared__ raw space[]; /* a tile, or a panel */
    const int unit = (int)blockIdx.x - (PACK_BOTH ? 0 : w.b.searching);
    const bool of_a = unit >= 0 && unit < w.a.packing;
    overlap_launches();
    if (blockIdx.z != 0 && (of_a ? g.batch_a : g.batch_b) == 0) return;
#if PACK_BOTH
    pack_operand<operand, PARTS>(source_of(g, w, of_a, of_a ? unit : unit - w.a.packing), space);
#else
    if (of_a) {
        pack_operand<operand, PARTS>(source_of(g, w, true, unit), space);
    } else if (unit >= 0) {
        pack_operand<raw, 1>(source_of(g, w, false, unit - w.a.packing), space);
    }
#if SCALED
    else {
        search(source_of(g, w, false, blockIdx.x));
    }
#endif
#endif
}

/* These kernels take the product's parameters. */
#define WGMMA_PREPARE(name, function)                                                              \
    extern "C" __global__ void __launch_bounds__(PACK_THREADS, PACK_RESIDENT)                      \
        name(const __grid_constant__ gemm_args g, const __grid_constant__ wgmma_args w,            \
             const __grid_constant__ tensor_map, const __grid_constant__ tensor_map,               \
             const __grid_constant__ tensor_map) {                                                 \
        function(g, w);                                                                            \
    }

#endif
