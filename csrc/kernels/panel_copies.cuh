/* How gemm_panel's operands come to shared memory, and from there to registers, in fours.
 *
 * An operand's lines are the rows of A and the columns of B. In memory its neighbours lie along K (rows of A) or
 * across it (rows of B), and so they lie in the panel, which is chunks of 32 k, which are 8 slabs of 4:
 *
 *      along, 32 k                       across, LINES
 *      line 0  | s0 | s1 | .. | s7 |     k 0  | l0 .. l3 | l4 .. l7 | ..      a vector: 4 k of a line, or
 *      line 1  | s0 | s1 | .. | s7 |     k 1  | l0 .. l3 | l4 .. l7 | ..      4 lines of a k
 *      ..                                ..
 *
 * A thread's fragment is a slab of groups of 4 neighbouring lines: four vectors of a group, either way.
 * Banks: a 16-byte read is served 8 lanes at a time. Across, lanes with different groups find different vectors of
 * one row. Along, groups are 4 rows of 128 bytes apart, so slab s of a line lies at s ^ (line / 4) % 8: 8 groups
 * are 8 different vectors of 128 bytes. Copies fill whole rows of 128 bytes, in an order that does not matter.
 * Edges: a copy of what does not exist writes zeros and reads nothing, up to the end of the last slab. Where rows
 * are not on 16-byte boundaries, or end within 16 bytes, elements are copied one by one, lanes along the row.
 */
#ifndef SMK_PANEL_COPIES_CUH
#define SMK_PANEL_COPIES_CUH

#include "common.cuh"

enum order { ALONG, ACROSS };
constexpr int SLAB = 4, CHUNK = 32; /* of K */

/* A block's lines of an operand, from its first k on. */
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

/* Of a row of 8 vectors along K; for lanes whose lines are GROUP apart. */
template <int GROUP> __device__ __forceinline__ int swizzle(int line) {
    return line / GROUP % 8;
}

template <int WIDE>
__device__ __forceinline__ void copy_async(unsigned to, const float *from, bool exists) {
    if (WIDE == 4) { /* past L1, which would not be asked again */
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                     "r"(exists ? 16 : 0)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from),
                     "r"(exists ? 4 : 0)
                     : "memory");
    }
}

/* Chunks first..end - 1, by THREADS, WIDE elements a copy, a warp's lanes along a row. Where a chunk has fewer
 * rows than threads can copy at once, along K, several chunks are. */
template <order ORDER, int LINES, int GROUP, int THREADS, int WIDE>
__device__ __forceinline__ void copy_chunks(unsigned to, const operand_lines &own, int first,
                                            int end) {
    constexpr int COLUMNS = ORDER == ALONG ? CHUNK : LINES, LANES = COLUMNS / WIDE;
    constexpr int DOWN = THREADS / LANES, BYTES = LINES * CHUNK * 4;
    const int column = threadIdx.x % LANES * WIDE, down = threadIdx.x / LANES;
    /* Of K from the first chunk on: what exists, and what is written. */
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
            const int exist = k < left ? own.lines - line : 0; /* rows, from here on */
            const float *next = from;
#pragma unroll
            for (int i = 0; i < ROUNDS; i++) {
                const int vector_at = column / 4 ^ swizzle<GROUP>(line + i * DOWN);
                copy_async<WIDE>(to + i * (DOWN * CHUNK * 4) + vector_at * 16 + column % 4 * 4,
                                 next, i * DOWN < exist);
                next += DOWN * own.pitch;
                asm("" : "+l"(next)); /* else multiples of the pitch would take registers */
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

/* A slab of GROUP neighbouring lines from `line` on, and of each GROUP that are STEP further: x[line][k]. */
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

#endif
