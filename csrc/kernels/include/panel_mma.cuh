/* Operands of gemm_small_k in 16 bits and fp64: panels in shared memory for MMA.
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
 * of BATCH pairs, which the including file defines, are in flight at once.
 */
#ifndef SMK_PANEL_MMA_CUH
#define SMK_PANEL_MMA_CUH

#include "mma_16x8.cuh"
#include "shared_address.cuh"
#include "split_k.cuh"

enum order { ALONG, ACROSS };
constexpr int BYTES = sizeof(REAL), VECTOR = 16 / BYTES;       /* elements */
constexpr int CHUNK = 128 / BYTES, SLAB = BYTES == 2 ? 16 : 8; /* of K */

/* A block's lines of an operand, from the block's first k on. */
typedef struct operand_lines {
    const REAL *x;
    long long pitch;
    int lines;
    unsigned alignment; /* bytes, of all rows: 16 or less */
} operand_lines;

template <order ORDER>
__device__ __forceinline__ operand_lines lines_from(const REAL *x, long long pitch, long long line,
                                                    long long lines, long long k) {
    const REAL *from = x + (ORDER == ALONG ? line * pitch + k : k * pitch + line);
    const unsigned bits = (unsigned)(unsigned long long)from | (unsigned)pitch * BYTES | 16;
    return {from, pitch, (int)min(lines - line, 1ll << 30), bits & -bits};
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

__device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* WIDE bytes, of which the first `size` are read; the others become zeros. */
template <int WIDE>
__device__ __forceinline__ void copy_async(unsigned to, const REAL *from, int size) {
    if (WIDE == 16) { /* bypasses L1, as the data are read once */
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(size)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from),
                     "n"(WIDE), "r"(size)
                     : "memory");
    }
}

/* A thread's pieces of a chunk, WIDE elements each, lanes along a row: in rows `down`, down + step,
 * and so on. K-major rows have as many lanes as the chunk has pieces of k, up to a power of two.
 * Where threads are fewer than a row has pieces, a thread has PER_ROW of them, SPAN elements apart. */
template <order ORDER, int LINES, int THREADS, int WIDE> struct pieces_of {
    typedef panel_of<ORDER, LINES> panel;
    static constexpr int ROWS = ORDER == ALONG ? LINES : CHUNK, LANES = panel::COLUMNS / WIDE;
    static constexpr int PER_ROW = LANES > THREADS ? LANES / THREADS : 1, SPAN = THREADS * WIDE;
    const operand_lines &own;
    const REAL *x;
    unsigned to, thread;
    int here, written; /* k that exist, k that are written */
    int column, down, step;
    long long next_row; /* elements */

    __device__ __forceinline__ pieces_of(const operand_lines &of, unsigned panel_at, int k)
        : own(of), x(of.x), to(panel_at), thread(threadIdx.x), here(k) {
        asm volatile("" : "+r"(thread)); /* otherwise all copies' addresses are computed first */
        start_chunk();
    }
    __device__ __forceinline__ void start_chunk() {
        written = min((here + SLAB - 1) / SLAB * SLAB, CHUNK);
        constexpr unsigned FULL = LANES > THREADS ? THREADS : LANES;
        unsigned lanes = FULL;
        if (ORDER == ALONG) lanes = 1u << 32 - __clz(max(written / WIDE - 1, 1));
        const unsigned shift = 31 - __clz(lanes);
        column = (thread & lanes - 1) * WIDE;
        down = thread >> shift;
        step = THREADS >> shift;
        next_row = step * own.pitch;
    }
    __device__ __forceinline__ void next_chunk() {
        x += ORDER == ALONG ? CHUNK : CHUNK * own.pitch;
        to += ROWS * panel::PITCH;
        here -= CHUNK;
        start_chunk();
    }
    __device__ __forceinline__ int rows() const { return ORDER == ALONG ? LINES : written; }
    __device__ __forceinline__ bool inside() const { return ORDER == ACROSS || column < written; }
    __device__ __forceinline__ const REAL *from(int part) const {
        return x + (down * own.pitch + column + part * SPAN);
    }
    /* Elements that exist from the piece on, in rows that exist; 0 or less: none. */
    __device__ __forceinline__ int exist(int part) const {
        return (ORDER == ALONG ? here : own.lines) - column - part * SPAN;
    }
    __device__ __forceinline__ bool has_row(int row) const {
        return row < (ORDER == ALONG ? own.lines : here);
    }
    __device__ __forceinline__ unsigned place(int row, int part) const {
        return to + panel::at_element(row, column + part * SPAN);
    }
};

template <order ORDER, int LINES, int THREADS, int WIDE>
__device__ __forceinline__ void copy_async_panel(unsigned to, const operand_lines &own, int k) {
    pieces_of<ORDER, LINES, THREADS, WIDE> pieces(own, to, k);
#pragma unroll 1
    for (;; pieces.next_chunk()) {
#pragma unroll
        for (int part = 0; part < pieces.PER_ROW && pieces.inside(); part++) {
            const int size = max(0, min(pieces.exist(part) * BYTES, WIDE * BYTES));
            const REAL *from = pieces.from(part);
#pragma unroll 1
            for (int row = pieces.down; row < pieces.rows(); row += pieces.step) {
                copy_async<WIDE * BYTES>(pieces.place(row, part), from,
                                         pieces.has_row(row) ? size : 0);
                from += pieces.next_row;
            }
        }
        if (pieces.here <= CHUNK) return;
    }
}

/* Elements on their way through registers, two per piece: BATCH rows from `first` steps on. */
struct pairs {
    unsigned short low[BATCH], high[BATCH];

    template <typename PIECES>
    __device__ __forceinline__ void load(const PIECES &pieces, const REAL *&from, int part,
                                         int first) {
        const int exist = pieces.exist(part);
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            if ((first + i) * pieces.step >= pieces.rows()) break; /* for all lanes */
            const bool row = pieces.has_row(pieces.down + (first + i) * pieces.step);
            const unsigned short *pair = reinterpret_cast<const unsigned short *>(from);
            low[i] = row && exist > 0 ? pair[0] : 0;
            high[i] = row && exist > 1 ? pair[1] : 0;
            from += pieces.next_row;
        }
    }
    template <typename PIECES>
    __device__ __forceinline__ void store(const PIECES &pieces, int part, int first) const {
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            if ((first + i) * pieces.step >= pieces.rows()) break;
            const int row = pieces.down + (first + i) * pieces.step;
            if (pieces.inside() && row < pieces.rows()) {
                asm volatile("st.shared.b32 [%0], %1;" ::"r"(pieces.place(row, part)),
                             "r"(low[i] | (unsigned)high[i] << 16)
                             : "memory");
            }
        }
    }
};

/* 16-bit rows at odd addresses, of one operand or both: the loads of BATCH pieces of each are in
 * flight at once. An operand with no k is left out. */
template <order OF_A, order OF_B, int LINES_A, int LINES_B, int THREADS>
__device__ __forceinline__ void copy_pairs(unsigned a_to, unsigned b_to, const operand_lines &A,
                                           const operand_lines &B, int a_k, int b_k) {
    pieces_of<OF_A, LINES_A, THREADS, 2> a(A, a_to, a_k);
    pieces_of<OF_B, LINES_B, THREADS, 2> b(B, b_to, b_k);
    constexpr int PARTS = a.PER_ROW > b.PER_ROW ? a.PER_ROW : b.PER_ROW;
#pragma unroll 1
    for (;; a.next_chunk(), b.next_chunk()) {
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            const int a_rows = a.here > 0 && part < a.PER_ROW ? a.rows() : 0;
            const int b_rows = b.here > 0 && part < b.PER_ROW ? b.rows() : 0;
            const REAL *a_from = a.from(part), *b_from = b.from(part);
#pragma unroll 1
            for (int first = 0; first * a.step < a_rows || first * b.step < b_rows;
                 first += BATCH) {
                pairs of_a, of_b;
                if (a_rows > 0) of_a.load(a, a_from, part, first);
                if (b_rows > 0) of_b.load(b, b_from, part, first);
                if (a_rows > 0) of_a.store(a, part, first);
                if (b_rows > 0) of_b.store(b, part, first);
            }
        }
        if (a.here <= CHUNK && b.here <= CHUNK) return;
    }
}

/* Copies an operand asynchronously, if its rows allow that. */
template <order ORDER, int LINES, int THREADS>
__device__ __forceinline__ bool copy_operand(unsigned to, const operand_lines &own, int k) {
    if (own.alignment == 16) {
        copy_async_panel<ORDER, LINES, THREADS, VECTOR>(to, own, k);
    } else if (BYTES == 8) {
        copy_async_panel<ORDER, LINES, THREADS, 1>(to, own, k);
    } else if (own.alignment >= 4) {
        copy_async_panel<ORDER, LINES, THREADS, 4 / (BYTES < 4 ? BYTES : 4)>(to, own, k);
    } else {
        return false;
    }
    return true;
}

/* Copies the next k of both operands, k > 0, and waits for them. */
template <order OF_A, order OF_B, int LINES_A, int LINES_B, int THREADS>
__device__ __forceinline__ void copy_panels(unsigned a_to, unsigned b_to, const operand_lines &A,
                                            const operand_lines &B, int k) {
    const bool a_done = copy_operand<OF_A, LINES_A, THREADS>(a_to, A, k);
    const bool b_done = copy_operand<OF_B, LINES_B, THREADS>(b_to, B, k);
    if constexpr (BYTES == 2) {
        if (!a_done || !b_done) {
            copy_pairs<OF_A, OF_B, LINES_A, LINES_B, THREADS>(a_to, b_to, A, B, a_done ? 0 : k,
                                                              b_done ? 0 : k);
        }
    }
    wait_for_copies();
    __syncthreads();
}

template <order ORDER> __device__ __forceinline__ void advance(operand_lines &own, int k) {
    own.x += ORDER == ALONG ? k : k * own.pitch;
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

template <typename T>
__device__ __forceinline__ void multiply(T (*sum)[4], const fragment_16bit &a,
                                         const fragment_16bit &b) {
#pragma unroll
    for (int q = 0; q < 2; q++) {
        mma_16x8(sum[q], a.x[0], a.x[1], a.x[2], a.x[3], b.x[2 * q], b.x[2 * q + 1], REAL());
    }
}

template <typename T>
__device__ __forceinline__ void multiply(T (*sum)[4], const fragment_fp64 &a,
                                         const fragment_fp64 &b) {
#pragma unroll
    for (int q = 0; q < 2; q++) {
        mma_16x8(sum[q], a.x[0][0], a.x[1][0], a.x[0][1], a.x[1][1], b.x[q][0], b.x[q][1], REAL());
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
