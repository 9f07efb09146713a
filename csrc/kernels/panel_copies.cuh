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
    long long pitch;
    int lines, k;
    bool vectors; /* rows begin and end on 16-byte boundaries */
} operand_lines;

template <order ORDER>
__device__ __forceinline__ operand_lines lines_from(const float *x, long long pitch, long long line,
                                                    long long lines, long long k, long long end) {
    const float *from = x + (ORDER == ALONG ? line * pitch + k : k * pitch + line);
    return {from, pitch, (int)min(lines - line, (long long)1 << 30), (int)(end - k),
            rows_aligned(from, pitch | (ORDER == ALONG ? end - k : lines), sizeof(float))};
}

__device__ __forceinline__ int swizzle(int line) {
    return line / 4 % 8;
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

/* Chunks first..end - 1 by THREADS, WIDE elements a copy. A thread has a column of them; where a chunk has fewer
 * rows than threads can copy at once, several chunks are. */
template <order ORDER, int LINES, int THREADS, int WIDE>
__device__ __forceinline__ void copy_chunks(unsigned to, const operand_lines &own, int first,
                                            int end) {
    constexpr int COLUMNS = ORDER == ALONG ? CHUNK : LINES, ROWS = ORDER == ALONG ? LINES : CHUNK;
    constexpr int LANES = COLUMNS / WIDE, DOWN = THREADS / LANES, BYTES = LINES * CHUNK * 4;
    constexpr int ROUNDS = ROWS > DOWN ? ROWS / DOWN : 1, AT_ONCE = DOWN > ROWS ? DOWN / ROWS : 1;
    static_assert(ROUNDS * DOWN == ROWS * AT_ONCE, "whole rows, in turns");
    const int column = threadIdx.x % LANES * WIDE, down = threadIdx.x / LANES, row = down % ROWS;
    const int line = ORDER == ALONG ? row : column, filled = (own.k + SLAB - 1) / SLAB * SLAB;
    int chunk = first + down / ROWS, k = chunk * CHUNK + (ORDER == ALONG ? column : row);
    const float *from = own.x + (ORDER == ALONG ? line * own.pitch + k : k * own.pitch + line);
    to += (chunk - first) * BYTES + row * COLUMNS * 4;
#pragma unroll 1
    for (; chunk < end; chunk += AT_ONCE) {
        /* Of rows from here on: that are written, and that exist. */
        const int written = ORDER == ALONG ? (k < filled ? ROWS : 0) : filled - k;
        const int more_k = own.k - k, more_lines = own.lines - line;
        const int exist =
            ORDER == ALONG ? (more_k > 0 ? more_lines : 0) : (more_lines > 0 ? more_k : 0);
        const float *next = from;
#pragma unroll
        for (int i = 0; i < ROUNDS; i++) {
            const int vector_at = column / 4 ^ (ORDER == ALONG ? swizzle(row + i * DOWN) : 0);
            const unsigned place = to + i * (DOWN * COLUMNS * 4) + vector_at * 16 + column % 4 * 4;
            if (i * DOWN < written) copy_async<WIDE>(place, next, i * DOWN < exist);
            next += DOWN * own.pitch;
            asm("" : "+l"(next)); /* else multiples of the pitch would take registers */
        }
        k += AT_ONCE * CHUNK;
        to += AT_ONCE * BYTES;
        from += AT_ONCE * CHUNK * (ORDER == ALONG ? 1 : own.pitch);
    }
}

template <order ORDER, int LINES, int THREADS>
__device__ __forceinline__ void copy_panel(unsigned to, const operand_lines &own, int first,
                                           int end) {
    if (own.vectors) {
        copy_chunks<ORDER, LINES, THREADS, 4>(to, own, first, end);
    } else {
        copy_chunks<ORDER, LINES, THREADS, 1>(to, own, first, end);
    }
}

/* A slab of the lines line, line + 1, line + 2, line + 3, and of each 4 that are STEP further: x[line][k]. */
template <order ORDER, int LINES, int STEP, int OWN>
__device__ __forceinline__ void load_fragment(float (&x)[OWN][SLAB], const float *panel, int line,
                                              int slab) {
#pragma unroll
    for (int group = 0; group < OWN / 4; group++) {
        const int at = line + group * STEP;
        const float *along = panel + slab / 8 * (LINES * CHUNK) + (slab % 8 ^ swizzle(at)) * 4;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            vector v = *reinterpret_cast<const vector *>(
                ORDER == ALONG ? along + (at + i) * CHUNK : panel + (slab * SLAB + i) * LINES + at);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                (ORDER == ALONG ? x[group * 4 + i][j] : x[group * 4 + j][i]) = element(v, j);
            }
        }
    }
}

#endif
