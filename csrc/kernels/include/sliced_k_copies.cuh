/* gemm_sliced_k's operands: copies to shared memory, and loads from there to registers, by fours.
 *
 * An operand's lines are the rows of A or the columns of B. In memory it is K-major (rows of A) or
 * MN-major (rows of B), and so it is in the panel, which is chunks of 32 k, each of 8 slabs of 4 k:
 *
 *      ALONG, 32 k                       ACROSS, LINES lines
 *      line 0  | s0 | s1 | .. | s7 |     k 0  | l0 .. l3 | l4 .. l7 | ..    vector: 4 k of a line,
 *      line 1  | s0 | s1 | .. | s7 |     k 1  | l0 .. l3 | l4 .. l7 | ..    or 4 lines of a k
 *      ..                                ..
 *
 * A thread's fragment is a slab of groups of 4 adjacent lines: four vectors per group, either way.
 * Banks: a 16-byte load is served 8 lanes at a time. ACROSS, lanes with different groups read
 * different vectors of one row. ALONG, groups are 4 rows of 128 bytes apart, so slab s of a line is
 * at s ^ (line / 4) % 8: 8 groups are 8 different vectors of 128 bytes. Copies fill whole rows.
 * Edges: a copy of what does not exist writes zeros and reads nothing, up to the end of the last
 * slab. Where rows do not begin and end on 16-byte boundaries: by elements, along the row.
 */
#ifndef SMK_SLICED_K_COPIES_CUH
#define SMK_SLICED_K_COPIES_CUH

#include "common.cuh"

enum order { ALONG, ACROSS };
constexpr int SLAB = 4, CHUNK = 32; /* of K */

/* A block's lines of an operand, from the block's first k on. */
typedef struct operand_lines {
    const float *x;
    long long pitch, k;
    int lines;
    bool vectors; /* rows begin and end on 16-byte boundaries */
} operand_lines;

template <order ORDER>
__device__ __forceinline__ operand_lines lines_from(const float *x, long long pitch, long long line,
                                                    long long lines, long long k, long long end) {
    const float *from = x + (ORDER == ALONG ? line * pitch + k : k * pitch + line);
    return {from, pitch, end - k, (int)min(lines - line, 1ll << 30),
            rows_aligned(from, pitch | (ORDER == ALONG ? end - k : lines), sizeof(float))};
}

/* Swizzle within a row of 8 vectors along K, for lanes whose lines are GROUP apart. */
template <int GROUP> __device__ __forceinline__ int swizzle(int line) {
    return line / GROUP % 8;
}

template <int WIDE>
__device__ __forceinline__ void copy_async(unsigned to, const float *from, bool exists) {
    if (WIDE == 4) { /* bypasses L1, as the data are read once */
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                     "r"(exists ? 16 : 0)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from),
                     "r"(exists ? 4 : 0)
                     : "memory");
    }
}

/* Copies chunks first..end - 1 with THREADS threads, WIDE elements each, a warp's lanes along a
 * row. Where a K-major chunk has fewer rows than threads copy at once, they copy several chunks. */
template <order ORDER, int LINES, int GROUP, int THREADS, int WIDE>
__device__ __forceinline__ void copy_chunks(unsigned to, const operand_lines &own, int first,
                                            int end) {
    constexpr int COLUMNS = ORDER == ALONG ? CHUNK : LINES, LANES = COLUMNS / WIDE;
    constexpr int DOWN = THREADS / LANES, BYTES = LINES * CHUNK * 4;
    const int column = threadIdx.x % LANES * WIDE, down = threadIdx.x / LANES;
    /* k from the first chunk on: how many exist, and how many are written. */
    const int left = (int)min(own.k - (long long)first * CHUNK, 1ll << 30);
    const int written = min((left + SLAB - 1) / SLAB * SLAB, (end - first) * CHUNK);
    const float *x = own.x + (long long)first * CHUNK * (ORDER == ALONG ? 1 : own.pitch);
    if (ORDER == ACROSS) {
        const float *from = x + down * own.pitch + column;
        to += (down * COLUMNS + column) * 4;
        const bool exists = column < own.lines;
#pragma unroll 4
        for (int k = down; k < written; k += DOWN) {
            copy_async<WIDE>(to, from, exists && k < left);
            to += DOWN * COLUMNS * 4;
            from += DOWN * own.pitch;
        }
    } else {
        constexpr int ROUNDS = LINES > DOWN ? LINES / DOWN : 1;
        constexpr int AT_ONCE = DOWN > LINES ? DOWN / LINES : 1;
        static_assert(ROUNDS * DOWN == LINES * AT_ONCE, "whole rows, in turns");
        const int line = down % LINES;
        int k = down / LINES * CHUNK + column;
        const float *from = x + line * own.pitch + k;
        to += down / LINES * BYTES + line * (CHUNK * 4);
#pragma unroll 1
        for (; k < written; k += AT_ONCE * CHUNK) {
            const int exist = k < left ? own.lines - line : 0; /* rows left */
            const float *next = from;
#pragma unroll
            for (int i = 0; i < ROUNDS; i++) {
                const int vector_at = column / 4 ^ swizzle<GROUP>(line + i * DOWN);
                copy_async<WIDE>(to + i * (DOWN * CHUNK * 4) + vector_at * 16 + column % 4 * 4,
                                 next, i * DOWN < exist);
                next += DOWN * own.pitch;
                asm("" : "+l"(next)); /* otherwise pitch multiples take registers */
            }
            to += AT_ONCE * BYTES;
            from += AT_ONCE * CHUNK;
        }
    }
}

template <order ORDER, int LINES, int GROUP, int THREADS>
__device__ __forceinline__ void copy_panel(unsigned to, const operand_lines &own, int first,
                                           int end) {
    if (own.vectors) {
        copy_chunks<ORDER, LINES, GROUP, THREADS, 4>(to, own, first, end);
    } else {
        copy_chunks<ORDER, LINES, GROUP, THREADS, 1>(to, own, first, end);
    }
}

template <int N> struct neighbours {
    typedef vector type;
};
template <> struct neighbours<1> {
    typedef float type;
};

/* Loads a slab of GROUP adjacent lines from `line` on and of more groups STEP apart: x[line][k]. */
template <order ORDER, int LINES, int GROUP, int STEP, int OWN>
__device__ __forceinline__ void load_fragment(float (&x)[OWN][SLAB], const float *panel, int line,
                                              int slab) {
#pragma unroll
    for (int group = 0; group < OWN; group += GROUP) {
        const int at = line + group / GROUP * STEP;
        if (ORDER == ALONG) {
            const float *from = panel + slab / 8 * (LINES * CHUNK) + at * CHUNK +
                                (slab % 8 ^ swizzle<GROUP>(at)) * 4;
#pragma unroll
            for (int i = 0; i < GROUP; i++) {
                vector v = *reinterpret_cast<const vector *>(from + i * CHUNK);
#pragma unroll
                for (int k = 0; k < SLAB; k++) {
                    x[group + i][k] = element(v, k);
                }
            }
        } else {
#pragma unroll
            for (int k = 0; k < SLAB; k++) {
                typedef typename neighbours<GROUP>::type wide;
                const wide v =
                    *reinterpret_cast<const wide *>(panel + (slab * SLAB + k) * LINES + at);
#pragma unroll
                for (int i = 0; i < GROUP; i++) {
                    x[group + i][k] = reinterpret_cast<const float *>(&v)[i];
                }
            }
        }
    }
}

template <int M, int N>
__device__ __forceinline__ void multiply_slab(float (&sum)[M][N], const float (&x)[M][SLAB],
                                              const float (&y)[N][SLAB]) {
#pragma unroll
    for (int k = 0; k < SLAB; k++) {
#pragma unroll
        for (int m = 0; m < M; m++) {
#pragma unroll
            for (int n = 0; n < N; n++) {
                sum[m][n] += x[m][k] * y[n][k];
            }
        }
    }
}

#endif
