/* What the kernels share: where a block's tile lies, 16-byte vectors, cp.async, the epilogue.
 *
 * No standard headers: NVRTC compiles this too. Nothing here reads or writes shared memory but the
 * cp.async macros, so a trace shows each access at the kernel's own line.
 */
#ifndef SMK_COMMON_CUH
#define SMK_COMMON_CUH

#include "args.h"

/* ---- the tile of a block ---- */

typedef struct tile_origin {
    long long row, column; /* of the tile's first element in the result */
} tile_origin;

/* The grid is one line of tiles, row by row, because gridDim.y stops at 65535. A launch has fewer
 * than 2^31 blocks, so 32 bits are enough to divide. */
__device__ __forceinline__ tile_origin block_tile(long long columns, int tile_rows,
                                                  int tile_columns) {
    const unsigned across = (unsigned)((columns + tile_columns - 1) / tile_columns);
    const unsigned down = blockIdx.x / across;
    const unsigned right = blockIdx.x - down * across;
    return {(long long)down * tile_rows, (long long)right * tile_columns};
}

/* ---- 16-byte vectors of REAL: the widest access a thread has ---- */

template <typename T> struct vector_of;
template <> struct vector_of<float> {
    typedef float4 type;
};
template <> struct vector_of<double> {
    typedef double2 type;
};
typedef vector_of<REAL>::type vector;

constexpr int V = sizeof(vector) / sizeof(REAL);

/* Element i; with i known to the compiler this is a register's name. */
__device__ __forceinline__ REAL &element(vector &v, int i) {
    return reinterpret_cast<REAL *>(&v)[i];
}

/* Whether every row of a matrix starts on a 16-byte boundary. */
__device__ __forceinline__ bool rows_aligned(const void *base, long long ld, int itemsize) {
    return ((unsigned long long)base | (unsigned long long)(ld * itemsize)) % 16 == 0;
}

/* V elements from p; `whole`: p is aligned and all of them exist. Otherwise the first `valid` of them
 * exist, the rest is 0. `whole` should be the same for the whole block, so that nothing diverges. */
__device__ __forceinline__ vector load_vector(const REAL *p, bool whole, long long valid) {
    if (whole) return *reinterpret_cast<const vector *>(p);
    vector v;
#pragma unroll
    for (int i = 0; i < V; i++) {
        element(v, i) = i < valid ? p[i] : REAL(0);
    }
    return v;
}

/* 16 bytes to p, aligned. In PTX, because the compiler takes a vector apart that was put together from
 * registers and would store it in four pieces, each touching every sector. */
__device__ __forceinline__ void store_vector(void *p, uint4 v) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z),
                 "r"(v.w)
                 : "memory");
}

/* ---- the end of a GEMM ---- */

/* alpha * sum + beta * C; beta == 0 does not read C, whatever stands there. Zero is what REAL makes of
 * it: a beta too small for a float must not turn a NaN in C into one in the result. */
__device__ __forceinline__ REAL epilogue(const gemm_args &g, REAL sum, const REAL *c) {
    const REAL scaled = (REAL)g.alpha * sum;
    const REAL beta = (REAL)g.beta;
    return beta == 0 ? scaled : scaled + beta * *c;
}

/* The same for those of V neighbours that are in first..valid - 1; aligned: c is on a 16-byte boundary. */
__device__ __forceinline__ void store_epilogue(const gemm_args &g, const REAL *sums, REAL *c,
                                               bool aligned, long long valid, long long first = 0) {
    vector v;
    if (aligned && valid >= V && first <= 0) {
        if ((REAL)g.beta != 0) v = *reinterpret_cast<const vector *>(c);
#pragma unroll
        for (int i = 0; i < V; i++) {
            element(v, i) = epilogue(g, sums[i], &element(v, i));
        }
        store_vector(c, reinterpret_cast<uint4 &>(v));
    } else {
#pragma unroll
        for (int i = 0; i < V; i++) {
            if (i >= first && i < valid) c[i] = epilogue(g, sums[i], c + i);
        }
    }
}

/* ---- cp.async: global to shared memory without a register, in the background ----
 *
 * Macros, so that the copy is attributed to the line that asks for it. Copies join the group that the
 * next commit closes; a thread sees its own copies after waiting, the others' after a barrier too.
 */

#include "shared_address.cuh"

/* 16 bytes, both sides aligned to 16; .cg: past the L1 cache, which would not be asked again. */
#define COPY_ASYNC_16(to, from)                                                                    \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from)  \
                 : "memory")

/* sizeof(*(to)) = 4, 8 or 16 bytes, aligned to as many. */
#define COPY_ASYNC_WORD(to, from)                                                                  \
    do {                                                                                           \
        if constexpr (sizeof(*(to)) == 16)                                                         \
            COPY_ASYNC_16(to, from);                                                               \
        else                                                                                       \
            asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(to)),    \
                         "l"(from), "n"(sizeof(*(to)))                                             \
                         : "memory");                                                              \
    } while (0)

/* sizeof(*(to)) = 4 or 8 bytes if `exists`, otherwise 0 is written and nothing is read. */
#define COPY_ASYNC_OR_ZERO(to, from, exists)                                                       \
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)),        \
                 "l"(from), "n"(sizeof(*(to))), "r"((exists) ? (int)sizeof(*(to)) : 0)             \
                 : "memory")

#define COPY_ASYNC_COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")

/* A vector from base + at; `whole` and `valid` as in load_vector. What does not exist is not read: its
 * address is base, which does. */
#define COPY_ASYNC_VECTOR(to, base, at, whole, valid)                                              \
    do {                                                                                           \
        if (whole) {                                                                               \
            COPY_ASYNC_16(to, (base) + (at));                                                      \
        } else {                                                                                   \
            _Pragma("unroll") for (int i_ = 0; i_ < V; i_++) {                                     \
                const bool exists_ = i_ < (valid);                                                 \
                COPY_ASYNC_OR_ZERO(&element(*(to), i_), (base) + (exists_ ? (at) + i_ : 0),        \
                                   exists_);                                                       \
            }                                                                                      \
        }                                                                                          \
    } while (0)

/* Until at most `pending` of this thread's newest groups are still under way. */
#define COPY_ASYNC_WAIT(pending) asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory")

#endif
