/* fp16x3_guarded: sums that two fp16 terms may have spoilt are computed again.
 *
 * Two fp16 terms of a scaled element x represent it to within 2^-25, or 2^-22 |x| where that is
 * more: fp16 ends at 2^-24. A row of A or column of B is wide if it has an element with
 * 0 < |x| < 2 / max(K, 16), which so may lose more than max(2^-22, K 2^-26) of itself. The search
 * for the scales finds the largest and the smallest elements. In N(0,1) data about one row in 10^4
 * is wide, whatever K is.
 *
 * All small elements together cost a sum of a wide row or column less than K 2^-8. That is within the bound (choosing.md) if
 * the scaled sum is LEAST_SUM or more, as most are: the largest products are about 2^31. So a tile
 * with a wide row or column is first computed as any other. Then
 *
 *   no sum is below LEAST_SUM    it is kept
 *   few are                      warps compute these by FFMAs
 *   more                         the tile is computed again, as tf32x3 does (twice as many stages):
 *                                A   raw, by cp.async; the producer's 128 threads split it and
 *                                    store both planes
 *                                B   raw, by TMA; the consumers split it, as before
 *
 * Producer and consumers each find out by themselves, from the same words, whether a tile is wide;
 * the consumers then tell the producer whether they need it again.
 * Included by wgmma_fp32.cuh.
 */
#ifndef SMK_WGMMA_GUARD_CUH
#define SMK_WGMMA_GUARD_CUH

enum { PRODUCER_BARRIER = 1 + CONSUMERS, VERDICT_BARRIER }; /* the consumers have 1 and 2 */

constexpr float LEAST_SUM = 0x1p19f;
enum { MOST_UNSURE = 32 }; /* of a warp's 2048 sums */

/* Whether any of `threads` threads has x; for all of them. */
__device__ __forceinline__ bool group_any(int barrier, int threads, bool x) {
    unsigned any;
    asm volatile("{\n"
                 ".reg .pred x, any;\n"
                 "setp.ne.u32 x, %1, 0;\n"
                 "bar.red.or.pred any, %2, %3, x;\n"
                 "selp.u32 %0, 1, 0, any;\n"
                 "}"
                 : "=r"(any)
                 : "r"((unsigned)x), "r"(barrier), "r"(threads)
                 : "memory");
    return any != 0;
}

/* For producer and consumers. */
__device__ __forceinline__ bool block_any(bool x) {
    return group_any(VERDICT_BARRIER, THREADS, x);
}

/* Of a row of A or column of B. */
enum { EMPTY = 0, IS_NARROW = 1, IS_WIDE = 2 }; /* EMPTY: all 0, or outside */

__device__ __forceinline__ int state_of(const wgmma_operand &x, int line) {
    if (line >= x.rows) return EMPTY;
    const unsigned *found = of_batch(x.largest, blockIdx.z * x.batch);
    extremes e = NONE;
    for (int chunk = 0; chunk < x.chunks; chunk++)
        include(e, load_extremes(found, (long long)chunk * x.rows + line,
                                 (long long)x.chunks * x.rows));
    if (e.largest == 0) return EMPTY;
    const float smallest = __uint_as_float(e.smallest + 1) * power_of_two(scale_of(e.largest));
    return smallest * (float)max(x.k, 16) < 2 ? IS_WIDE : IS_NARROW;
}

/* Whether a tile has a wide row or column; for all threads of a warpgroup. `state` becomes that of
 * row threadIdx.x % 128. */
__device__ __forceinline__ bool is_wide(const wgmma_args &w, int row0, int column0, int barrier,
                                        int &state) {
    const int t = threadIdx.x % 128;
    if (w.steps == 0) return false;
    state = state_of(w.a, row0 + t);
    return group_any(barrier, 128, state == IS_WIDE || state_of(w.b, column0 + t) == IS_WIDE);
}

/* Stages of tf32 in a range of stages of fp16. */
__device__ __forceinline__ part_range steps_of_words(const gemm_args &g, part_range steps) {
    constexpr int EACH = BLOCK_K<operand> / BLOCK_K<float>;
    const int all = (int)((g.K + BLOCK_K<float> - 1) / BLOCK_K<float>);
    return {EACH * steps.first, min(EACH * steps.end, all)};
}

/* ---- A of wide tiles ----
 *
 * A thread splits 32 elements of a stage. It copies them to shared memory a stage ahead, behind the
 * tiles, which with tf32 leave 16 KiB of a stage. Lanes copy adjacent elements: along K, of 32 rows;
 * or, if A is MN-major, along M, of 8 k of 4 rows. (The latter stores with four-way bank conflicts.)
 */

/* Row and k of element i of this thread. */
template <int BY_ROWS> __device__ __forceinline__ int tile_row(int i) {
    return BY_ROWS ? threadIdx.x / 32 * 32 + i : threadIdx.x % 32 + i / 8 * 32;
}

template <int BY_ROWS> __device__ __forceinline__ int tile_k(int i) {
    return BY_ROWS ? threadIdx.x % 32 : threadIdx.x / 32 * 8 + i % 8;
}

/* Where thread t has element i: 512 i bytes on. */
__device__ __forceinline__ unsigned raw_of(const ring &r) {
    static_assert(PARTS * A_PART + B_TILE<float> + BLOCK_M * BLOCK_K<float> * 4 <= STAGE);
    return r.stages + r.at * STAGE + PARTS * A_PART + B_TILE<float> + threadIdx.x * 4;
}

/* Starts the copies of a thread's elements to the next stage. Those outside of A are 0. */
template <int BY_ROWS>
__device__ __forceinline__ void copy_a(const gemm_args &g, const wgmma_args &w, const ring &r,
                                       int row0, int k0) {
    const float *a = g.A + blockIdx.z * g.batch_a;
    const unsigned to = raw_of(r);
    barrier_wait(r.empty + 8 * r.at, r.parity ^ 1);
#pragma unroll 4
    for (int i = 0; i < 32; i++) {
        const int row = row0 + tile_row<BY_ROWS>(i), k = k0 + tile_k<BY_ROWS>(i);
        const bool exists = row < w.a.rows && k < w.a.k;
        const float *from = exists ? a + row * w.a.row_stride + k * w.a.k_stride : a;
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to + 512 * i), "l"(from),
                     "r"(exists ? 4 : 0)
                     : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Splits the copied elements of a stage into the planes of A. `scale`: of rows lane + 32 j. */
template <int BY_ROWS>
__device__ __forceinline__ void split_a(const ring &r, const float (&scale)[4]) {
    const unsigned a = r.stages + r.at * STAGE, from = raw_of(r);
    const float low = threadIdx.x % 64 < 32 ? scale[0] : scale[1];
    const float high = threadIdx.x % 64 < 32 ? scale[2] : scale[3];
    const float own = threadIdx.x < 64 ? low : high;
#pragma unroll 4
    for (int i = 0; i < 32; i++) {
        const int row = tile_row<BY_ROWS>(i), k = tile_k<BY_ROWS>(i);
        const unsigned to = box_piece(a, row, k / 4) + k % 4 * 4;
        const float of_group =
            i < 16 ? i < 8 ? scale[0] : scale[1] : (i < 24 ? scale[2] : scale[3]);
        float parts[2];
        split(shared_load(from + 512 * i), BY_ROWS ? __shfl_sync(0xffffffff, own, i) : of_group,
              parts);
        shared_store(to, parts[0]);
        shared_store(to + A_PART, parts[1]);
    }
}

/* Fills stages with both tf32 terms of A, and B's tile; for all threads of the producer. */
template <int BY_ROWS, int B_ACROSS>
__device__ __forceinline__ void fill_words(const gemm_args &g, const wgmma_args &w,
                                           const tensor_map *b_map, ring &r, part_range steps,
                                           int row0, int column0) {
    const unsigned *found = of_batch(w.a.largest, blockIdx.z * w.a.batch);
    float scale[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const int row = row0 + (int)threadIdx.x % 32 + 32 * j;
        scale[j] = power_of_two(scale_of(found[min(row, w.a.rows - 1)]));
    }
    copy_a<BY_ROWS>(g, w, r, row0, steps.first * BLOCK_K<float>);
    for (int step = steps.first; step < steps.end; step++) {
        const int k = step * BLOCK_K<float>;
        ring ahead = r;
        next(ahead);
        if (step + 1 < steps.end) {
            copy_a<BY_ROWS>(g, w, ahead, row0, k + BLOCK_K<float>);
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        } else {
            asm volatile("cp.async.wait_group 0;" ::: "memory");
        }
        split_a<BY_ROWS>(r, scale);
        fence_async_proxy();
        group_barrier(PRODUCER_BARRIER, 128);
        if (threadIdx.x == 0) {
            const unsigned full = r.full + 8 * r.at;
            barrier_expect(full, B_TILE<float>);
            fill_b<float, B_ACROSS>(b_map, full, r.stages + r.at * STAGE + PARTS * A_PART, k,
                                    column0, blockIdx.z & w.moves_b);
        }
        __syncwarp();
        r = ahead;
    }
}

/* ---- the producer's warpgroup ---- */

template <int B_ACROSS>
__device__ __forceinline__ void produce(const gemm_args &g, const wgmma_args &w,
                                        const tensor_map *a_map, const tensor_map *b_map, ring &r) {
    for (int item = blockIdx.x; item < w.list.items; item += gridDim.x) {
        const block_work at = work_of(g, w, item);
        const int row0 = at.tile.row * BLOCK_M, column0 = at.tile.column * BLOCK_N;
        for (int step = at.steps.first; step < at.steps.end; step++, next(r))
            if (threadIdx.x == 0) fill<B_ACROSS>(w, a_map, b_map, r, step, row0, column0);
        int state;
        if (!is_wide(w, row0, column0, PRODUCER_BARRIER, state) || !block_any(false)) continue;
        const part_range steps = steps_of_words(g, at.steps);
        if (w.a.by_rows)
            fill_words<1, B_ACROSS>(g, w, b_map, r, steps, row0, column0);
        else
            fill_words<0, B_ACROSS>(g, w, b_map, r, steps, row0, column0);
    }
}

#endif
