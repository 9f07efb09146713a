/* How gemm_simt moves a tile: from global memory to registers, one round later to shared memory.
 *
 * A thread holds LOADS vectors of the next tile: of A, V adjacent k of every A_STEP-th row; of B, V
 * columns of every WARPS-th row. Rows on 16-byte boundaries are read 16 bytes at a time, others
 * word by word, B's with lanes along the row, so that a request touches 5 sectors and not 17. A is
 * stored transposed, one word at a time: 4 chunks x 8 rows per warp, which the A_PAD words after
 * every V rows of As[k][m] spread over 32 banks.
 * Loads and stores of shared memory are PTX, so that their width and order are as written here.
 */
#ifndef SMK_SIMT_TILES_CUH
#define SMK_SIMT_TILES_CUH

#include "common.cuh"

#define WARPS    (THREADS / 32)
#define CHUNKS   (BLOCK_K / V)
#define A_STEP   (THREADS / CHUNKS)
#define A_LOADS  (BLOCK_M / A_STEP)
#define B_ACROSS (BLOCK_N / (32 * V))
#define LOADS    (A_LOADS + BLOCK_K / WARPS * B_ACROSS)
#define STORES   (A_LOADS * V + LOADS - A_LOADS)

/* Byte offsets in shared memory: row k of A's tile, row k of B's, the other buffer. */
#define A_PAD   8
#define A_AT(k) (4 * ((k) * BLOCK_M + (k) / V * A_PAD))
#define B_AT(k) (A_AT(BLOCK_K) + 4 * (k) * BLOCK_N)
#define BUFFER  B_AT(BLOCK_K)

#define LOAD_SHARED(v, from)                                                                       \
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"                                        \
                 : "=f"((v).x), "=f"((v).y), "=f"((v).z), "=f"((v).w)                              \
                 : "r"(from))
#define STORE_SHARED(to, v)                                                                        \
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"((v).x), "f"((v).y),     \
                 "f"((v).z), "f"((v).w)                                                            \
                 : "memory")
#define STORE_SHARED_WORD(to, word)                                                                \
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(word) : "memory")

/* `wanted` becomes a predicate, not a branch, across which ptxas would schedule nothing. */
#define LOAD_VECTOR_IF(wanted, v, from)                                                            \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %5, 0;\n"                                       \
                 "@p ld.global.v4.f32 {%0, %1, %2, %3}, [%4];\n}"                                  \
                 : "=f"((v).x), "=f"((v).y), "=f"((v).z), "=f"((v).w)                              \
                 : "l"(from), "r"(wanted))
#define LOAD_WORDS_IF(wanted, v, from, apart)                                                      \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %5, 0;\n"                                       \
                 "@p ld.global.f32 %0, [%4];\n@p ld.global.f32 %1, [%4 + %6];\n"                   \
                 "@p ld.global.f32 %2, [%4 + %7];\n@p ld.global.f32 %3, [%4 + %8];\n}"             \
                 : "=f"((v).x), "=f"((v).y), "=f"((v).z), "=f"((v).w)                              \
                 : "l"(from), "r"(wanted), "n"(4 * (apart)), "n"(8 * (apart)), "n"(12 * (apart)))

/* How global memory is read. CHECKED: word by word, 0 for elements outside the matrix. */
enum access { VECTORS, WORDS, CHECKED };

/* The indices n of loads and stores are compile-time constants, so all of this is registers. */
template <access how> struct tile_mover {
    const gemm_args &g;
    const REAL *A, *B, *a_from, *b_from;
    long long row, column, k; /* of the tile to load: the thread's row of A, first column, k */
    unsigned a_k, warp, lane, a_to, b_to;
    vector next[LOADS];

    __device__ __forceinline__ tile_mover(const gemm_args &args, const REAL *a, const REAL *b,
                                          tile_origin tile, long long first_k, unsigned shared)
        : g(args), A(a), B(b), column(tile.column), k(first_k) {
        const unsigned t = threadIdx.x;
        lane = t % 32, warp = t / 32, a_k = t % CHUNKS * V;
        row = tile.row + t / CHUNKS;
        a_from = A + row * g.lda + k + a_k;
        b_from = B + (k + warp) * g.ldb + column + lane * (how == VECTORS ? V : 1);
        a_to = shared + A_AT(V) * (t % CHUNKS) + 4 * (t / CHUNKS);
        b_to = shared + B_AT(warp);
    }

    __device__ __forceinline__ void load_checked(int n) {
        const int s = n - A_LOADS;
#pragma unroll
        for (int e = 0; e < V; e++) {
            const bool is_a = n < A_LOADS;
            const long long at_k = k + (is_a ? a_k + e : warp + s / B_ACROSS * WARPS);
            const long long at_row = row + n * A_STEP;
            const long long at_column = column + lane + (s % B_ACROSS * V + e) * 32;
            const bool exists = at_k >= 0 && at_k < g.K && (is_a ? at_row < g.M : at_column < g.N);
            const REAL *from = is_a ? A + at_row * g.lda + at_k : B + at_k * g.ldb + at_column;
            element(next[n], e) = exists ? *from : REAL(0);
        }
    }

    __device__ __forceinline__ void load(int n, int wanted) {
        const int s = n - A_LOADS;
        const REAL *a = a_from + n * A_STEP * g.lda;
        const REAL *b = b_from + s / B_ACROSS * WARPS * g.ldb + s % B_ACROSS * 32 * V;
        if (how == CHECKED) {
            load_checked(n);
        } else if (how == VECTORS) {
            LOAD_VECTOR_IF(wanted, next[n], n < A_LOADS ? a : b);
        } else if (n < A_LOADS) {
            LOAD_WORDS_IF(wanted, next[n], a, 1);
        } else {
            LOAD_WORDS_IF(wanted, next[n], b, 32);
        }
    }

    __device__ __forceinline__ void advance() {
        k += BLOCK_K;
        a_from += BLOCK_K;
        b_from += BLOCK_K * g.ldb;
    }

    /* A's words one by one, then B's vectors; `vectors`: whether B was loaded as vectors. */
    __device__ __forceinline__ void store(int n, unsigned buffer, bool vectors) {
        if (n < A_LOADS * V) {
            STORE_SHARED_WORD(a_to + buffer + 4 * (n % V * BLOCK_M + n / V * A_STEP),
                              element(next[n / V], n % V));
            return;
        }
        const int s = n - A_LOADS * V;
        vector &v = next[A_LOADS + s];
        const unsigned to =
            b_to + buffer + 4 * (s / B_ACROSS * WARPS * BLOCK_N + s % B_ACROSS * 32 * V);
        if (vectors) {
            STORE_SHARED(to + 4 * lane * V, v);
        } else {
#pragma unroll
            for (int e = 0; e < V; e++) {
                STORE_SHARED_WORD(to + 4 * (lane + e * 32), element(v, e));
            }
        }
    }
};

#endif
