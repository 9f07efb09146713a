/* fp16x3_guarded: tiles in which two fp16 terms would lose too much are computed with tf32 terms.
 *
 * Two fp16 terms of a scaled element x represent it to within 2^-25, or 2^-22 |x| where that is
 * more: fp16 ends at 2^-24. A row of A or column of B is wide if it has an element with
 * 0 < |x| < 2 / max(K, 16), which so may lose more than max(2^-22, K 2^-26) of itself. The search
 * for the scales finds the largest and the smallest elements.
 *
 *   tile of C      no row, no column is wide: fp16x3        some are: tf32x3 (twice as many stages)
 *   A              two fp16 planes, packed, by TMA          raw, by loads; the producer's 128 threads
 *                                                           split it and store both planes
 *   B              raw, by TMA; the consumers split it      the same
 *
 * Producer and consumers each find out by themselves, from the same words, so nothing is launched,
 * copied or waited for. In N(0,1) data about one row in 10^4 is wide, whatever K is.
 * Included by wgmma_fp32.cuh.
 */
#ifndef SMK_WGMMA_GUARD_CUH
#define SMK_WGMMA_GUARD_CUH

enum { PRODUCER_BARRIER = 1 + CONSUMERS }; /* a named barrier; the consumers have 1 and 2 */

/* Whether any of 128 threads has x; for all of them. */
__device__ __forceinline__ bool group_any(int barrier, bool x) {
    unsigned any;
    asm volatile("{\n"
                 ".reg .pred x, any;\n"
                 "setp.ne.u32 x, %1, 0;\n"
                 "bar.red.or.pred any, %2, 128, x;\n"
                 "selp.u32 %0, 1, 0, any;\n"
                 "}"
                 : "=r"(any)
                 : "r"((unsigned)x), "r"(barrier)
                 : "memory");
    return any != 0;
}

__device__ __forceinline__ bool is_wide(const wgmma_operand &x, int line) {
    if (line >= x.rows) return false;
    const unsigned *found = of_batch(x.largest, blockIdx.z * x.batch);
    extremes e = NONE;
    for (int chunk = 0; chunk < x.chunks; chunk++)
        include(e, load_extremes(found, (long long)chunk * x.rows + line,
                                 (long long)x.chunks * x.rows));
    const float smallest = __uint_as_float(e.smallest + 1) * power_of_two(scale_of(e.largest));
    return e.smallest != NONE.smallest && smallest * (float)max(x.k, 16) < 2;
}

/* The same for a tile; for all threads of a warpgroup. */
__device__ __forceinline__ bool is_wide(const gemm_args &, const wgmma_args &w, int row0,
                                        int column0, int barrier) {
    const int t = threadIdx.x % 128;
    if (w.steps == 0) return false;
    return group_any(barrier, is_wide(w.a, row0 + t) || is_wide(w.b, column0 + t));
}

/* Stages of tf32 in a range of stages of fp16. */
__device__ __forceinline__ part_range steps_of_words(const gemm_args &g, part_range steps) {
    constexpr int EACH = BLOCK_K<operand> / BLOCK_K<float>;
    const int all = (int)((g.K + BLOCK_K<float> - 1) / BLOCK_K<float>);
    return {EACH * steps.first, min(EACH * steps.end, all)};
}

/* ---- A of wide tiles ----
 *
 * A thread splits 32 elements of a stage. Lanes read adjacent elements: along K, of 32 rows; or, if
 * A is MN-major, along M, of 8 k of 4 rows. (The latter stores with four-way bank conflicts.) */

/* Row and k of element i of this thread. */
template <int BY_ROWS> __device__ __forceinline__ int tile_row(int i) {
    return BY_ROWS ? threadIdx.x / 32 * 32 + i : threadIdx.x % 32 + i / 8 * 32;
}

template <int BY_ROWS> __device__ __forceinline__ int tile_k(int i) {
    return BY_ROWS ? threadIdx.x % 32 : threadIdx.x / 32 * 8 + i % 8;
}

/* Loads a thread's elements of a stage; those outside of A are 0. */
template <int BY_ROWS>
__device__ __forceinline__ void load_a(const gemm_args &g, const wgmma_args &w, float (&x)[32],
                                       int row0, int k) {
    long long step = BY_ROWS ? w.a.row_stride : w.a.k_stride;
    asm volatile("" : "+l"(step)); /* else 32 multiples of it would stay in registers */
    const float *from = g.A + blockIdx.z * g.batch_a +
                        (row0 + tile_row<BY_ROWS>(0)) * w.a.row_stride +
                        (k + tile_k<BY_ROWS>(0)) * w.a.k_stride;
    const int rows = w.a.rows - row0, left = w.a.k - k;
#pragma unroll
    for (int i = 0; i < 32; i++, from += step) {
        if (!BY_ROWS && i % 8 == 0 && i > 0) from += 32 * w.a.row_stride - 8 * step;
        x[i] = 0;
        if (tile_row<BY_ROWS>(i) < rows && tile_k<BY_ROWS>(i) < left) x[i] = *from;
    }
}

/* Stores both terms in a stage's planes of A. */
template <int BY_ROWS>
__device__ __forceinline__ void store_a(const float (&scale)[4], const float (&x)[32], unsigned a) {
    const float own = threadIdx.x < 64 ? (threadIdx.x < 32 ? scale[0] : scale[1])
                                       : (threadIdx.x < 96 ? scale[2] : scale[3]);
#pragma unroll
    for (int i = 0; i < 32; i++) {
        const int row = tile_row<BY_ROWS>(i), k = tile_k<BY_ROWS>(i);
        const unsigned to = box_piece(a, row, k / 4) + k % 4 * 4;
        float parts[2];
        split(x[i], BY_ROWS ? __shfl_sync(0xffffffff, own, i) : scale[i / 8], parts);
        shared_store(to, parts[0]);
        shared_store(to + A_PART, parts[1]);
    }
}

/* Fills the next stage with both tf32 terms of A, and B's tile; for all threads of the producer.
 * `scale`: of rows lane + 32 j. */
template <int B_ACROSS>
__device__ __forceinline__ void fill_words(const gemm_args &g, const wgmma_args &w,
                                           const tensor_map *b_map, const ring &r,
                                           const float (&scale)[4], int k, int row0, int column) {
    const unsigned full = r.full + 8 * r.at;
    unsigned a = r.stages + r.at * STAGE;
    float x[32];
    if (w.a.by_rows)
        load_a<1>(g, w, x, row0, k);
    else
        load_a<0>(g, w, x, row0, k);
    barrier_wait(r.empty + 8 * r.at, r.parity ^ 1);
    if (w.a.by_rows)
        store_a<1>(scale, x, a);
    else
        store_a<0>(scale, x, a);
    fence_async_proxy();
    group_barrier(PRODUCER_BARRIER, 128);
    if (threadIdx.x == 0) {
        barrier_expect(full, B_TILE<float>);
        fill_b<float, B_ACROSS>(g, b_map, full, a + PARTS * A_PART, k, column);
    }
    __syncwarp();
}

/* ---- the producer's warpgroup ---- */

template <int B_ACROSS>
__device__ __forceinline__ void produce(const gemm_args &g, const wgmma_args &w,
                                        const tensor_map *a_map, const tensor_map *b_map, ring &r,
                                        int items, int down, int across) {
    for (int item = blockIdx.x; item < items; item += gridDim.x) {
        const block_work at = work_of(g, w, item, down, across);
        const int row0 = at.tile.row * BLOCK_M, column0 = at.tile.column * BLOCK_N;
        if (!is_wide(g, w, row0, column0, PRODUCER_BARRIER)) {
            for (int step = at.steps.first; step < at.steps.end; step++, next(r))
                if (threadIdx.x == 0) fill<B_ACROSS>(g, w, a_map, b_map, r, step, row0, column0);
            continue;
        }
        const unsigned *found = of_batch(w.a.largest, blockIdx.z * w.a.batch);
        float scale[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int row = row0 + (int)threadIdx.x % 32 + 32 * j;
            scale[j] = power_of_two(scale_of(found[min(row, w.a.rows - 1)]));
        }
        const part_range steps = steps_of_words(g, at.steps);
        for (int step = steps.first; step < steps.end; step++, next(r))
            fill_words<B_ACROSS>(g, w, b_map, r, scale, step * BLOCK_K<float>, row0, column0);
    }
}

#endif
