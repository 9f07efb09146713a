/* Shared by the kernels: tile origin of a block, 16-byte vectors, cp.async, the GEMM epilogue.
 *
 * No standard headers, because NVRTC compiles this too. Only the cp.async macros access shared
 * memory here, so a trace attributes each access to the kernel's own line.
 */
#ifndef SMK_COMMON_CUH
#define SMK_COMMON_CUH

#include "args.h"

/* ---- tile origin of a block ---- */

typedef struct tile_origin {
    long long row, column; /* of the tile's first element in the result */
} tile_origin;

/* The grid is one-dimensional, tiles in row-major order, because gridDim.y is limited to 65535. A
 * launch has fewer than 2^31 blocks, so a 32-bit division suffices. */
__device__ __forceinline__ tile_origin block_tile(long long columns, int tile_rows,
                                                  int tile_columns) {
    const unsigned across = (unsigned)((columns + tile_columns - 1) / tile_columns);
    const unsigned down = blockIdx.x / across;
    const unsigned right = blockIdx.x - down * across;
    return {(long long)down * tile_rows, (long long)right * tile_columns};
}

/* ---- 16-byte vectors of REAL, the widest access of a thread ---- */

template <typename T> struct vector_of;
template <> struct vector_of<float> {
    typedef float4 type;
};
template <> struct vector_of<double> {
    typedef double2 type;
};
typedef vector_of<REAL>::type vector;

constexpr int V = sizeof(vector) / sizeof(REAL);

/* Element i. If i is a compile-time constant, this is one register. */
__device__ __forceinline__ REAL &element(vector &v, int i) {
    return reinterpret_cast<REAL *>(&v)[i];
}

/* Whether every row of a matrix starts on a 16-byte boundary. */
__device__ __forceinline__ bool rows_aligned(const void *base, long long ld, int itemsize) {
    return ((unsigned long long)base | (unsigned long long)(ld * itemsize)) % 16 == 0;
}

/* V elements from p. `whole`: p is aligned and all V exist. Otherwise the first `valid` exist and
 * the others read as 0. `whole` should be uniform in the block, to avoid divergence. */
__device__ __forceinline__ vector load_vector(const REAL *p, bool whole, long long valid) {
    if (whole) return *reinterpret_cast<const vector *>(p);
    vector v;
#pragma unroll
    for (int i = 0; i < V; i++) {
        element(v, i) = i < valid ? p[i] : REAL(0);
    }
    return v;
}

/* 16-byte store to p, which is aligned. In PTX, because the compiler splits a vector assembled from
 * registers into four stores, each of which touches every sector. */
__device__ __forceinline__ void store_vector(void *p, uint4 v) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z),
                 "r"(v.w)
                 : "memory");
}

/* The same without a branch around it, so that several stores have registers of their own. */
__device__ __forceinline__ void store_vector_if(bool exists, void *p, uint4 v) {
    asm volatile("{\n"
                 ".reg .pred exists;\n"
                 "setp.ne.b32 exists, %5, 0;\n"
                 "@exists st.global.v4.b32 [%0], {%1, %2, %3, %4};\n"
                 "}" ::"l"(p),
                 "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"((int)exists)
                 : "memory");
}

/* ---- GEMM epilogue ---- */

/* alpha * sum + beta * C. If beta == 0, C is not read, whatever it holds. The test is on beta
 * rounded to REAL: a beta that underflows to 0 must not carry a NaN from C into the result. */
__device__ __forceinline__ REAL epilogue(const gemm_args &g, REAL sum, const REAL *c) {
    const REAL scaled = (REAL)g.alpha * sum;
    const REAL beta = (REAL)g.beta;
    return beta == 0 ? scaled : scaled + beta * *c;
}

/* The same for elements first..valid - 1 of V neighbours. aligned: c is 16-byte aligned. */
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

/* ---- cp.async: asynchronous copy from global to shared memory, not through registers ----
 *
 * Macros, so that a trace attributes the copy to the line that issues it. Copies join the group of
 * the next commit. After a wait a thread sees its own copies; those of others need a barrier too.
 */

#include "shared_address.cuh"

/* 16 bytes, both addresses 16-byte aligned. .cg bypasses L1, since the data are read only once. */
#define COPY_ASYNC_16(to, from)                                                                    \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from)  \
                 : "memory")

/* sizeof(*(to)) = 4, 8 or 16 bytes, aligned to their size. */
#define COPY_ASYNC_WORD(to, from)                                                                  \
    do {                                                                                           \
        if constexpr (sizeof(*(to)) == 16)                                                         \
            COPY_ASYNC_16(to, from);                                                               \
        else                                                                                       \
            asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(to)),    \
                         "l"(from), "n"(sizeof(*(to)))                                             \
                         : "memory");                                                              \
    } while (0)

/* sizeof(*(to)) = 4 or 8 bytes. If `exists` is false, zeros are written and nothing is read. */
#define COPY_ASYNC_OR_ZERO(to, from, exists)                                                       \
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)),        \
                 "l"(from), "n"(sizeof(*(to))), "r"((exists) ? (int)sizeof(*(to)) : 0)             \
                 : "memory")

#define COPY_ASYNC_COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")

/* A vector from base + at; `whole` and `valid` as in load_vector. Elements that do not exist are
 * not read; base, which is a valid address, takes the place of theirs. */
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

/* Waits until at most `pending` of this thread's newest groups are still in flight. */
#define COPY_ASYNC_WAIT(pending) asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory")

#endif
