/* What comes before a product by wgmma: operands as TMA and the tensor core want them, in the workspace.
 *
 *     A's rows, B's columns  ->  [part][row][k ...]   K elements of a row together, on 16-byte boundaries
 *
 * An element x becomes PARTS operands: part 0 is x rounded to nearest, part 1 what is left, rounded. What is
 * left has at most half a unit of part 0's last place, and the difference is exact. So two parts of tf32 or
 * fp16, which have 11 bits, keep 2 * 11 + 1 of the 24.
 *
 * SCALED, for fp16, whose numbers end at 2^16: a row is multiplied by the power of two that brings its
 * largest element into [2^14, 2^15); the product divides it out again. Elements down to 2^-17 of the
 * largest keep all of their bits, smaller ones an absolute error of 2^-40 of the largest.
 *
 * Where K is the direction of neighbours a warp packs a row. Otherwise 64 x 64 elements turn round in
 * shared memory, in rows of 65 words: no conflicts, but two-way ones where operands of 16 bits go in pairs.
 * Bytes: 4 read and PARTS * sizeof(operand) written an element; SCALED: 4 read once more.
 *
 * OPERAND_TF32, OPERAND_F16 or OPERAND_BITS (16 bits, taken over) says what the tensor core reads.
 */
#ifndef SMK_WGMMA_PACK_CUH
#define SMK_WGMMA_PACK_CUH

#include "args.h"

#if defined(OPERAND_TF32)
typedef float operand;
__device__ __forceinline__ float rounded(float x, operand &to) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    /* Only what is infinite already may round to infinity. */
    if ((bits & 0x7fffffff) == 0x7f800000) bits = __float_as_uint(x) & 0xffffe000;
    to = __uint_as_float(bits);
    return to;
}
#elif defined(OPERAND_F16)
typedef unsigned short operand;
__device__ __forceinline__ float rounded(float x, operand &to) {
    float back;
    asm("{\n"
        "cvt.rn.f16.f32 %0, %2;\n"
        "cvt.f32.f16 %1, %0;\n"
        "}"
        : "=h"(to), "=f"(back)
        : "f"(x));
    return back;
}
#else
typedef unsigned short operand;
#endif

/* What a lane keeps of an element until it is packed. */
#if defined(OPERAND_BITS)
typedef unsigned short element;
__device__ __forceinline__ element element_at(const REAL *p) {
    return p->bits;
}
__device__ __forceinline__ void split(element x, operand (&parts)[PARTS]) {
    parts[0] = x;
}
#else
typedef float element;
__device__ __forceinline__ element element_at(const REAL *p) {
    return *p;
}
/* Nothing is left of infinity and NaN: not infinity minus infinity. */
__device__ __forceinline__ void split(element x, operand (&parts)[PARTS]) {
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        const float back = rounded(x, parts[i]);
        x = fabsf(x) <= 3.4028235e38f ? x - back : 0.0f;
    }
}
#endif

/* ---- scales ---- */

__device__ __forceinline__ float power_of_two(int e) {
    return __int_as_float((e + 127) << 23);
}

/* A power of two that need not be a float, as the product of two that are. */
typedef struct power {
    float first, second;
} power;

__device__ __forceinline__ power power_of(int e) {
    return {power_of_two(e / 2), power_of_two(e - e / 2)};
}

/* e: 2^e brings what has these bits into [2^14, 2^15); -113 to 163. */
__device__ __forceinline__ int scale_of(unsigned magnitude) {
    if (magnitude == 0) return 0;
    const int denormal = 31 - __clz(magnitude) - 149;
    return 14 - (magnitude >> 23 ? (int)(magnitude >> 23) - 127 : denormal);
}

/* ---- the operand of a block ---- */

/* One of A and B: element (row, k) stands at x[row * row_stride + k * k_stride]. */
typedef struct source {
    const REAL *x;
    long long row_stride, k_stride;
    wgmma_operand to;
    int block; /* among those of this operand */
} source;

__device__ __forceinline__ unsigned *of_batch(unsigned *p, long long bytes) {
    return reinterpret_cast<unsigned *>(reinterpret_cast<unsigned char *>(p) + bytes);
}

/* The first blocks are A's, the others B's. False: there is nothing to do, because all of the batch
 * shares one matrix. */
__device__ __forceinline__ bool choose(const gemm_args &g, const wgmma_args &w, int blocks_of_a,
                                       source &s) {
    const bool a = (int)blockIdx.x < blocks_of_a;
    const long long batch = a ? g.batch_a : g.batch_b;
    s.x = (a ? g.A : g.B) + blockIdx.z * batch;
    s.row_stride = a ? g.lda : g.step_b;
    s.k_stride = a ? g.step_a : g.ldb;
    s.to = a ? w.a : w.b;
    s.block = a ? blockIdx.x : blockIdx.x - blocks_of_a;
    const long long bytes = blockIdx.z * s.to.batch;
    s.to.packed += bytes;
    s.to.magnitude = of_batch(s.to.magnitude, bytes);
    s.to.partial = of_batch(s.to.partial, bytes);
    return blockIdx.z == 0 || batch != 0;
}

__device__ __forceinline__ operand *packed_row(const source &s, const wgmma_args &w, int part,
                                               int row) {
    return reinterpret_cast<operand *>(s.to.packed) + ((long long)part * s.to.rows + row) * w.pitch;
}

#if SCALED
__device__ __forceinline__ unsigned magnitude_of(float x) {
    return __float_as_uint(x) & 0x7fffffff;
}

/* The largest of LARGEST_K elements of 32 rows whose neighbours are in other rows: lanes are rows. */
__device__ __forceinline__ void find_largest(const gemm_args &g, const wgmma_args &w) {
    __shared__ unsigned found[PACK_THREADS / 32][32];
    source s;
    if (!choose(g, w, w.a.searching, s)) return;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int across = (s.to.rows + LARGEST_ROWS - 1) / LARGEST_ROWS;
    const int row = s.block % across * LARGEST_ROWS + lane, chunk = s.block / across;
    const int k_end = (int)min((long long)(chunk + 1) * LARGEST_K, g.K);
    unsigned largest = 0;
    if (row < s.to.rows) {
#pragma unroll 8
        for (int k = chunk * LARGEST_K + warp; k < k_end; k += PACK_THREADS / 32) {
            largest = max(largest, magnitude_of(s.x[row * s.row_stride + k * s.k_stride]));
        }
    }
    found[warp][lane] = largest;
    __syncthreads();
    if (warp == 0 && row < s.to.rows) {
#pragma unroll
        for (int i = 1; i < PACK_THREADS / 32; i++) {
            largest = max(largest, found[i][lane]);
        }
        s.to.partial[(long long)chunk * s.to.rows + row] = largest;
    }
}
#endif

/* ---- packing ---- */

__device__ __forceinline__ void pack_element(const source &s, const wgmma_args &w, int row, int k,
                                             element x) {
    operand parts[PARTS];
    split(x, parts);
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        packed_row(s, w, part, row)[k] = parts[part];
    }
}

/* A warp a row. Vectors where the row begins at a multiple of 16 bytes. */
__device__ __forceinline__ void pack_by_rows(const gemm_args &g, const wgmma_args &w,
                                             const source &s) {
    const int row = s.block * PACK_ROWS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= s.to.rows) return;
    const REAL *from = s.x + row * s.row_stride;
    const int K = (int)g.K;
#if SCALED
    unsigned largest = 0;
#pragma unroll 8
    for (int k = lane; k < K; k += 32) {
        largest = max(largest, magnitude_of(from[k]));
    }
    largest = __reduce_max_sync(0xffffffff, largest);
    if (lane == 0) s.to.magnitude[row] = largest;
    const power scale = power_of(scale_of(largest));
#endif
#if !defined(OPERAND_BITS)
    const bool aligned = (unsigned long long)from % 16 == 0;
    const int whole = aligned ? K / 4 * 4 : 0;
#pragma unroll 4
    for (int k = lane * 4; k < whole; k += 128) {
        const float4 v = *reinterpret_cast<const float4 *>(from + k);
        const float x[4] = {v.x, v.y, v.z, v.w};
        __align__(16) operand parts[PARTS][4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            operand p[PARTS];
#if SCALED
            split(x[i] * scale.first * scale.second, p);
#else
            split(x[i], p);
#endif
#pragma unroll
            for (int part = 0; part < PARTS; part++)
                parts[part][i] = p[part];
        }
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            operand *to = packed_row(s, w, part, row) + k;
            if (sizeof(operand) == 4) {
                *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(parts[part]);
            } else {
                *reinterpret_cast<uint2 *>(to) = *reinterpret_cast<const uint2 *>(parts[part]);
            }
        }
    }
#else
    const int whole = 0;
#endif
#pragma unroll 4
    for (int k = whole + lane; k < K; k += 32) {
        element x = element_at(from + k);
#if SCALED
        x = x * scale.first * scale.second;
#endif
        pack_element(s, w, row, k, x);
    }
}

/* 64 rows of 64 elements, read along the rows' direction and written along K. */
__device__ __forceinline__ void pack_by_tiles(const gemm_args &g, const wgmma_args &w,
                                              const source &s) {
    __shared__ element tile[PACK_TILE][PACK_TILE + 1]; /* [k][row] */
#if SCALED
    __shared__ power scales[PACK_TILE];
#endif
    const int across = (s.to.rows + PACK_TILE - 1) / PACK_TILE;
    const int row0 = s.block % across * PACK_TILE, k0 = s.block / across * PACK_TILE;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int i = 0; i < PACK_TILE / 8; i++) {
#pragma unroll
        for (int half = 0; half < PACK_TILE; half += 32) {
            const int k = warp + 8 * i, row = lane + half;
            if (k0 + k < g.K && row0 + row < s.to.rows) {
                tile[k][row] =
                    element_at(s.x + (row0 + row) * s.row_stride + (k0 + k) * s.k_stride);
            }
        }
    }
#if SCALED
    if (threadIdx.x < PACK_TILE && row0 + (int)threadIdx.x < s.to.rows) {
        const int row = row0 + threadIdx.x;
        const int chunks = (int)((g.K + LARGEST_K - 1) / LARGEST_K);
        unsigned largest = 0;
        for (int chunk = 0; chunk < chunks; chunk++) {
            largest = max(largest, s.to.partial[(long long)chunk * s.to.rows + row]);
        }
        if (k0 == 0) s.to.magnitude[row] = largest;
        scales[threadIdx.x] = power_of(scale_of(largest));
    }
#endif
    __syncthreads();
#pragma unroll
    for (int i = 0; i < PACK_TILE / 8; i++) {
        const int row = warp + 8 * i;
        if (row0 + row >= s.to.rows) break;
        /* Operands of 16 bits go two at a time; where K is odd the second is padding. */
        constexpr int side = sizeof(operand) == 4 ? 32 : 1;
        const int k = sizeof(operand) == 4 ? lane : 2 * lane;
        operand parts[2][PARTS];
#pragma unroll
        for (int j = 0; j < 2; j++) {
            element x = k0 + k + side * j < g.K ? tile[k + side * j][row] : element(0);
#if SCALED
            x = x * scales[row].first * scales[row].second;
#endif
            split(x, parts[j]);
        }
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            operand *to = packed_row(s, w, part, row0 + row) + k0 + k;
            if (sizeof(operand) == 4) {
                if (k0 + k < g.K) to[0] = parts[0][part];
                if (k0 + k + side < g.K) to[side] = parts[1][part];
            } else if (k0 + k < g.K) {
                *reinterpret_cast<unsigned *>(to) =
                    (unsigned)parts[0][part] | (unsigned)parts[1][part] << 16;
            }
        }
    }
}

__device__ __forceinline__ void pack(const gemm_args &g, const wgmma_args &w) {
    source s;
    if (!choose(g, w, w.a.packing, s)) return;
    if (s.to.by_rows) {
        pack_by_rows(g, w, s);
    } else {
        pack_by_tiles(g, w, s);
    }
}

#endif
