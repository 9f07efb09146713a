/* Operands of gemm_sliced_k and gemm_small_k in 16 bits and fp64: panels in shared memory for MMA.
 *
 * An operand's lines are the rows of A or the columns of B. A panel consists of rows of memory, so
 * it is K-major (rows of A) or MN-major (rows of B) as the matrix is:
 *
 *      ALONG, a chunk of 128 bytes of k      ACROSS, LINES lines
 *      line 0  | v0 | v1 | .. | v7 |         k 0  | v0 | v1 | ..      vectors of 16 bytes
 *      line 1  | v0 | v1 | .. | v7 |         k 1  | v0 | v1 | ..
 *
 * MMAs are 16 x 8 x 16 for 16 bits, with fp32 sums, and 16 x 8 x 8 for fp64. 16 bits are loaded by
 * ldmatrix. In fp64 the order of k in a slab is free if A and B agree, so that lane 4 g + t has k =
 * 2 t and 2 t + 1: one load of 16 bytes ALONG, two of 8 ACROSS.
 * Banks: vector v of row r is at v ^ swizzle(r), so that every load takes the fewest wavefronts:
 *   16 bits   8 rows of one vector: 8 different vectors of 128 bytes
 *   fp64      ALONG two rows of four vectors; ACROSS four rows of two vectors: the same
 * Edges: a copy of what does not exist writes zeros and reads nothing, up to the end of a slab.
 * Rows on 16-byte boundaries are copied by vectors, others by 8 bytes (fp64) or 4. 16-bit rows at
 * odd addresses have no asynchronous copy: two elements per lane go through registers, and the loads
 * of BATCH pairs are in flight at once.
 */
#ifndef SMK_PANEL_MMA_CUH
#define SMK_PANEL_MMA_CUH

#include "shared_address.cuh"
#include "split_k.cuh"

enum order { ALONG, ACROSS };
constexpr int BYTES = sizeof(REAL), VECTOR = 16 / BYTES; /* elements */
constexpr int CHUNK = 128 / BYTES, SLAB = BYTES == 2 ? 16 : 8; /* of K */
constexpr int BATCH = 8;

/* A block's lines of an operand, from the block's first k on. */
typedef struct operand_lines {
    const REAL *x;
    long long pitch, k;
    int lines;
    int alignment; /* bytes, of all rows: 16 or less */
} operand_lines;

template <order ORDER>
__device__ __forceinline__ operand_lines lines_from(const REAL *x, long long pitch, long long line,
                                                    long long lines, long long k, long long end) {
    const REAL *from = x + (ORDER == ALONG ? line * pitch + k : k * pitch + line);
    const unsigned bits = (unsigned)(unsigned long long)from | (unsigned)pitch * BYTES | 16;
    return {from, pitch, end - k, (int)min(lines - line, 1ll << 30), (int)(bits & -bits)};
}

/* ---- the panel: rows of COLUMNS elements ---- */

template <order ORDER, int LINES> struct panel_of {
    static constexpr int COLUMNS = ORDER == ALONG ? CHUNK : LINES;
    static constexpr int PITCH = COLUMNS * BYTES, VECTORS = COLUMNS / VECTOR;

    static __device__ __forceinline__ int swizzle(int row) {
        if (BYTES == 8) return ORDER == ALONG ? row % 2 * 4 : row / 2 % 4 * 2;
        return VECTORS >= 8 ? row % 8 : row / (8 / VECTORS) % VECTORS;
    }
    static __device__ __forceinline__ unsigned at(int row, int vector) {
        return row * PITCH + (vector ^ swizzle(row)) * 16;
    }
    static __device__ __forceinline__ unsigned at_element(int row, int column) {
        return at(row, column / VECTOR) + column % VECTOR * BYTES;
    }
};

/* ---- copies ---- */

/* `wide` bytes, of which `exist` are read (0 or less: none); the others become zeros. */
template <int WIDE>
__device__ __forceinline__ void copy_async(unsigned to, const REAL *from, int exist) {
    const int size = max(0, min(exist, WIDE));
    if (WIDE == 16) { /* bypasses L1, as the data are read once */
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(size)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from),
                     "n"(WIDE), "r"(size)
                     : "memory");
    }
}

__device__ __forceinline__ void commit_copies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most `PENDING` of this thread's newest groups are still in flight. */
template <int PENDING> __device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* A piece of a row of the panel. */
typedef struct piece {
    unsigned to;
    const REAL *from;
    int exist; /* elements, 0 or less: none */
    bool inside;
} piece;

/* The copy of chunks first..end - 1 in pieces of WIDE elements, lanes along a row. */
template <order ORDER, int LINES, int THREADS, int WIDE> struct chunk_copy {
    typedef panel_of<ORDER, LINES> panel;
    static constexpr int LANES = panel::COLUMNS / WIDE;
    const REAL *x;
    long long pitch;
    unsigned to;
    int left, written, lines; /* k that exist, k that are written */
    int pieces;

    __device__ __forceinline__ chunk_copy(unsigned panel_at, const operand_lines &own, int first,
                                          int end) {
        const long long k = (long long)first * CHUNK;
        x = own.x + k * (ORDER == ALONG ? 1 : own.pitch);
        pitch = own.pitch;
        to = panel_at;
        left = (int)min(own.k - k, 1ll << 30);
        lines = own.lines;
        written = min((left + SLAB - 1) / SLAB * SLAB, (end - first) * CHUNK);
        pieces = (ORDER == ALONG ? (end - first) * LINES : written) * LANES;
    }
    __device__ __forceinline__ piece operator[](int i) const {
        const int column = (THREADS % LANES == 0 ? threadIdx.x : (unsigned)i) % LANES * WIDE;
        const int row = (unsigned)i / LANES;
        const unsigned at = to + panel::at_element(row, column);
        if (ORDER == ALONG) {
            const int line = (unsigned)row % LINES, k = (unsigned)row / LINES * CHUNK + column;
            return {at, x + (line * pitch + k), line < lines ? left - k : 0,
                    i < pieces && k < written};
        }
        return {at, x + (row * pitch + column), row < left ? lines - column : 0, i < pieces};
    }
};

template <order ORDER, int LINES, int THREADS, int WIDE>
__device__ __forceinline__ void copy_async_chunks(unsigned to, const operand_lines &own, int first,
                                                  int end) {
    const chunk_copy<ORDER, LINES, THREADS, WIDE> copy(to, own, first, end);
#pragma unroll 2
    for (int i = threadIdx.x; i < copy.pieces; i += THREADS) {
        const piece p = copy[i];
        if (p.inside) copy_async<WIDE * BYTES>(p.to, p.from, p.exist * BYTES);
    }
}

template <order ORDER, int LINES, int THREADS>
__device__ __forceinline__ void copy_pairs(unsigned to, const operand_lines &own, int first,
                                           int end) {
    const chunk_copy<ORDER, LINES, THREADS, 2> copy(to, own, first, end);
#pragma unroll 1
    for (int i = threadIdx.x; i < copy.pieces; i += BATCH * THREADS) {
        unsigned low[BATCH], high[BATCH];
#pragma unroll
        for (int j = 0; j < BATCH; j++) {
            const piece p = copy[i + j * THREADS];
            const unsigned short *from = reinterpret_cast<const unsigned short *>(p.from);
            low[j] = p.inside && p.exist > 0 ? from[0] : 0;
            high[j] = p.inside && p.exist > 1 ? from[1] : 0;
        }
#pragma unroll
        for (int j = 0; j < BATCH; j++) {
            const piece p = copy[i + j * THREADS];
            if (p.inside) {
                asm volatile("st.shared.b32 [%0], %1;" ::"r"(p.to), "r"(low[j] | high[j] << 16)
                             : "memory");
            }
        }
    }
}

template <order ORDER, int LINES, int THREADS>
__device__ __forceinline__ void copy_panel(unsigned to, const operand_lines &own, int first,
                                           int end) {
    if (own.alignment == 16) {
        copy_async_chunks<ORDER, LINES, THREADS, VECTOR>(to, own, first, end);
    } else if constexpr (BYTES == 8) {
        copy_async_chunks<ORDER, LINES, THREADS, 1>(to, own, first, end);
    } else if (own.alignment >= 4) {
        copy_async_chunks<ORDER, LINES, THREADS, 2>(to, own, first, end);
    } else {
        copy_pairs<ORDER, LINES, THREADS>(to, own, first, end);
    }
}

/* ---- fragments: 16 lines of A and of B in a slab ---- */

typedef struct fragment_16bit {
    unsigned x[4]; /* of A: rows g and g + 8, then the other 8 k; of B: two MMAs */
} fragment_16bit;
typedef struct fragment_fp64 {
    double x[2][2]; /* lines g and g + 8; k */
} fragment_fp64;
template <int N> struct fragment_of {
    typedef fragment_fp64 type;
};
template <> struct fragment_of<2> {
    typedef fragment_16bit type;
};
typedef fragment_of<BYTES>::type fragment;

template <order ORDER, int LINES, bool OF_A>
__device__ __forceinline__ void load_fragment(fragment_16bit &f, unsigned from, int line,
                                              int slab) {
    typedef panel_of<ORDER, LINES> panel;
    const int lane = threadIdx.x % 32, second = lane / 8 % 2, third = lane / 16;
    const int line_half = OF_A ? second : third, k_half = OF_A ? third : second;
    if (ORDER == ALONG) {
        const int row = slab / 4 * LINES + line + lane % 8 + 8 * line_half;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(f.x[0]), "=r"(f.x[1]), "=r"(f.x[2]), "=r"(f.x[3])
                     : "r"(from + panel::at(row, slab % 4 * 2 + k_half))
                     : "memory");
    } else {
        const int row = slab * SLAB + lane % 8 + 8 * k_half;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(f.x[0]), "=r"(f.x[1]), "=r"(f.x[2]), "=r"(f.x[3])
                     : "r"(from + panel::at(row, line / 8 + line_half))
                     : "memory");
    }
}

template <order ORDER, int LINES, bool OF_A>
__device__ __forceinline__ void load_fragment(fragment_fp64 &f, unsigned from, int line, int slab) {
    typedef panel_of<ORDER, LINES> panel;
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int q = 0; q < 2; q++) {
        if (ORDER == ALONG) {
            const int row = slab / 2 * LINES + line + 8 * q + g;
            asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];"
                         : "=d"(f.x[q][0]), "=d"(f.x[q][1])
                         : "r"(from + panel::at(row, slab % 2 * 4 + t))
                         : "memory");
        } else {
#pragma unroll
            for (int j = 0; j < 2; j++) {
                asm volatile(
                    "ld.shared.f64 %0, [%1];"
                    : "=d"(f.x[q][j])
                    : "r"(from + panel::at_element(slab * SLAB + 2 * t + j, line + 8 * q + g))
                    : "memory");
            }
        }
    }
}

/* ---- two MMAs: 16 rows of A, 16 columns of B; sums of rows g and g + 8, columns 2 t, 2 t + 1 ---- */

template <typename T> __device__ __forceinline__ void mma(float (&d)[4], const unsigned *a,
                                                          const unsigned *b, T);
template <>
__device__ __forceinline__ void mma(float (&d)[4], const unsigned *a, const unsigned *b, float16) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
template <>
__device__ __forceinline__ void mma(float (&d)[4], const unsigned *a, const unsigned *b, bfloat16) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <typename T>
__device__ __forceinline__ void multiply(T (*sum)[4], const fragment_16bit &a,
                                         const fragment_16bit &b) {
    mma(sum[0], a.x, b.x, REAL());
    mma(sum[1], a.x, b.x + 2, REAL());
}

/* 8 x 8 x 4, of every chip from sm_80 on: at half the rate of 16 x 8 x 8 on sm_90. */
__device__ __forceinline__ void mma_8x8x4(double *d, double a, double b) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(d[0]), "+d"(d[1])
        : "d"(a), "d"(b));
}

__device__ __forceinline__ void multiply(double (*sum)[4], const fragment_fp64 &a,
                                         const fragment_fp64 &b) {
#pragma unroll
    for (int q = 0; q < 2; q++) {
        double *d = sum[q];
#if __CUDA_ARCH__ >= 900
        asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3},"
            " {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
            : "d"(a.x[0][0]), "d"(a.x[1][0]), "d"(a.x[0][1]), "d"(a.x[1][1]), "d"(b.x[q][0]),
              "d"(b.x[q][1]));
#else
#pragma unroll
        for (int k = 0; k < 2; k++) {
            mma_8x8x4(d, a.x[0][k], b.x[q][k]);
            mma_8x8x4(d + 2, a.x[1][k], b.x[q][k]);
        }
#endif
    }
}

/* A warp's tile at (row, column) of the panels, one slab. */
template <order OF_A, order OF_B, int LINES_A, int LINES_B, int M_TILES, int N_TILES>
__device__ __forceinline__ void multiply_slab(part_sum (&sum)[M_TILES][N_TILES][4], unsigned a_from,
                                              unsigned b_from, int row, int column, int slab) {
    fragment a[M_TILES], b[N_TILES / 2];
#pragma unroll
    for (int m = 0; m < M_TILES; m++) {
        load_fragment<OF_A, LINES_A, true>(a[m], a_from, row + 16 * m, slab);
    }
#pragma unroll
    for (int n = 0; n < N_TILES / 2; n++) {
        load_fragment<OF_B, LINES_B, false>(b[n], b_from, column + 16 * n, slab);
    }
#pragma unroll
    for (int m = 0; m < M_TILES; m++) {
#pragma unroll
        for (int n = 0; n < N_TILES / 2; n++) {
            multiply(&sum[m][2 * n], a[m], b[n]);
        }
    }
}

#endif
