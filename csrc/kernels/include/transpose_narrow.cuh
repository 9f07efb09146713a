/* transpose_sector_aligned: kernels for matrices with a short side and no gaps between rows.
 *
 *     tall_skinny: x is one line, y few rows     short_wide: x few rows, y one line
 *     x  [0 1 2|0 1 2|0 1 2|...   y [0 0 0 ...   the mirror image: a thread reads a column and
 *                                   [1 1 1 ...   stores it contiguously in y's line
 *     a thread picks its row out    [2 2 2 ...
 *     of shared memory
 *
 *     small: many matrices, all in one line; reads and writes both follow the line, and finding an
 *            element's source takes two divisions, done by multiplication
 *
 * Banks: odd strides reach different banks by themselves; for even ones element e is at e + e / 32.
 */
#ifndef SMK_TRANSPOSE_NARROW_CUH
#define SMK_TRANSPOSE_NARROW_CUH

#include "transpose_loads.cuh"
#include "transpose_tiles.h"

/* Elements in flight per thread. */
constexpr int NARROW_BATCH = 8, SHORT_WIDE_BATCH = sizeof(ELEMENT) <= 8 ? 16 : 8;

/* Place of element e in a tile that is read or written with a stride of `step`. */
__device__ __forceinline__ unsigned place_of(unsigned e, unsigned step) {
    return e + (e >> (step % 2 ? 31 : 5));
}

/* Threads that share one row of a tile of `rows` rows, a power of 2. */
__device__ __forceinline__ unsigned threads_along(unsigned rows) {
    return rows < NARROW_THREADS ? NARROW_THREADS / rows : 1;
}

/* Copies n contiguous elements from global to shared memory. */
__device__ __forceinline__ void read_line(ELEMENT *cell, const ELEMENT *line, unsigned n,
                                          unsigned step) {
    for (unsigned e = threadIdx.x; e < n; e += NARROW_BATCH * NARROW_THREADS) {
        ELEMENT some[NARROW_BATCH];
#pragma unroll
        for (unsigned s = 0; s < NARROW_BATCH; s++)
            if (e + s * NARROW_THREADS < n) some[s] = load(line + e + s * NARROW_THREADS);
#pragma unroll
        for (unsigned s = 0; s < NARROW_BATCH; s++)
            if (e + s * NARROW_THREADS < n) cell[place_of(e + s * NARROW_THREADS, step)] = some[s];
    }
}

extern "C" __global__ void __launch_bounds__(NARROW_THREADS)
    transpose_sector_aligned_tall_skinny(const __grid_constant__ transpose_args g) {
    extern __shared__ uint4 dynamic[];
    ELEMENT *cell = reinterpret_cast<ELEMENT *>(dynamic);
    const unsigned cols = (unsigned)g.cols, rows = 1u << g.log_rows;
    const long long i0 = (long long)blockIdx.x << g.log_rows;
    const unsigned n = g.rows - i0 < rows ? (unsigned)(g.rows - i0) : rows;
    read_line(cell, g.x + blockIdx.z * g.batch_x + i0 * cols, n * cols, cols);
    __syncthreads();
    const unsigned first = threadIdx.x >> g.log_rows, step = threads_along(rows);
    for (unsigned i = threadIdx.x & (rows - 1); i < n; i += NARROW_THREADS) {
        ELEMENT *to = g.y + blockIdx.z * g.batch_y + first * g.ldy + i0 + i;
#pragma unroll 8
        for (unsigned j = first; j < cols; j += step, to += step * g.ldy)
            *to = cell[place_of(i * cols + j, cols)];
    }
}

extern "C" __global__ void __launch_bounds__(SHORT_WIDE_THREADS)
    transpose_sector_aligned_short_wide(const __grid_constant__ transpose_args g) {
    extern __shared__ uint4 dynamic[];
    ELEMENT *cell = reinterpret_cast<ELEMENT *>(dynamic);
    const unsigned rows = (unsigned)g.rows, cols = 1u << g.log_cols, all = rows << g.log_cols;
    const long long j0 = (long long)blockIdx.x << g.log_cols;
    const unsigned n = g.cols - j0 < cols ? (unsigned)(g.cols - j0) : cols;
    const ELEMENT *from = g.x + blockIdx.z * g.batch_x + j0;
    for (unsigned e = threadIdx.x; e < all; e += SHORT_WIDE_BATCH * SHORT_WIDE_THREADS) {
        ELEMENT some[SHORT_WIDE_BATCH];
#pragma unroll
        for (unsigned s = 0; s < SHORT_WIDE_BATCH; s++) {
            /* Indices are clamped, because with a condition each load would wait for its store. */
            const unsigned f = e + s * SHORT_WIDE_THREADS;
            const unsigned i = min(f >> g.log_cols, rows - 1), j = min(f & (cols - 1), n - 1);
            some[s] = load(from + i * g.ldx + j);
        }
#pragma unroll
        for (unsigned s = 0; s < SHORT_WIDE_BATCH; s++) {
            const unsigned f = e + s * SHORT_WIDE_THREADS, i = f >> g.log_cols, j = f & (cols - 1);
            if (i < rows && j < n) cell[place_of(j * rows + i, rows)] = some[s];
        }
    }
    __syncthreads();
    ELEMENT *line = g.y + blockIdx.z * g.batch_y + j0 * rows;
#pragma unroll 8
    for (unsigned e = threadIdx.x; e < n * rows; e += SHORT_WIDE_THREADS)
        line[e] = cell[place_of(e, rows)];
}

extern "C" __global__ void __launch_bounds__(NARROW_THREADS)
    transpose_sector_aligned_small(const __grid_constant__ transpose_args g) {
    extern __shared__ uint4 dynamic[];
    ELEMENT *cell = reinterpret_cast<ELEMENT *>(dynamic);
    const unsigned rows = (unsigned)g.rows, cols = (unsigned)g.cols, size = rows * cols;
    const long long z0 = (long long)blockIdx.z * g.matrices;
    const unsigned left = g.batches - z0 < g.matrices ? (unsigned)(g.batches - z0) : g.matrices;
    read_line(cell, g.x + z0 * size, left * size, cols);
    __syncthreads();
    /* e / d by multiplication, for e d < 2^32 */
    const unsigned by_rows = 0xffffffffu / rows + 1, by_cols = 0xffffffffu / cols + 1;
    ELEMENT *line = g.y + z0 * size;
#pragma unroll 8
    for (unsigned e = threadIdx.x; e < left * size; e += NARROW_THREADS) {
        const unsigned column = rows == 1 ? e : __umulhi(e, by_rows), i = e - column * rows;
        const unsigned z = cols == 1 ? column : __umulhi(column, by_cols), j = column - z * cols;
        line[e] = cell[place_of(z * size + i * cols + j, cols)];
    }
}

#endif
