/* How gemm_skinny reads: the thick operand from global memory into registers, a ring of loads ahead; the
 * thin one through shared memory.
 *
 *      ACROSS  neighbours of the thick operand lie in different rows of it, K apart     lanes 8 x 4 of K
 *      ALONG   neighbours lie along K                                                   lanes 4 x 8 of K
 *
 *      ACROSS, fp32   j: 4 a lane, 32 a warp                 ALONG, fp32   k: 4 a lane, 32 a warp
 *               k  0  |l0 |l1 |..|l7 |  16 bytes each                j  0  |l0 |l4 |..|l28|
 *                  1  |l0 |l1 |..|l7 |  loads n = 0..3                  1  |l0 |l4 |..|l28|
 *                  ..                                                   ..
 *                  4  |l8 |l9 |..|l15|                                  4  |l1 |l5 |..|l29|
 *
 * Either way 8 lanes read 128 neighbouring bytes, and a lane's loads make J x KL elements of it.
 */
#ifndef SMK_SKINNY_PARTS_CUH
#define SMK_SKINNY_PARTS_CUH

#include "split_k.cuh"

typedef part_sum number;

constexpr int WARPS_K = SKINNY_WARPS_K; /* share K; WARPS_J of them are side by side */
constexpr int WIDE = PART_WIDE; /* numbers in 16 bytes: what a read of shared memory brings */

enum direction { ACROSS, ALONG };

template <int ROWS, direction HOW> struct geometry {
    /* Of a load: 16 bytes, or less where its sums would take too many registers. */
    static constexpr int ELEMENTS =
        SKINNY_NEIGHBOURS(ROWS, (int)sizeof(number), 16 / (int)sizeof(REAL));
    static constexpr int LOADS =
        HOW == ACROSS ? 4 : SKINNY_NEIGHBOURS(ROWS, (int)sizeof(number), 4);
    static constexpr int BYTES = ELEMENTS * (int)sizeof(REAL);
    static constexpr int J =
        HOW == ACROSS ? ELEMENTS : LOADS; /* rows of the thick operand, a lane */
    static constexpr int KL = HOW == ACROSS ? LOADS : ELEMENTS; /* of K, a lane */
    static constexpr int LANES_J = HOW == ACROSS ? 8 : 4, LANES_K = 32 / LANES_J;
    static constexpr int WARPS_J = SKINNY_WARPS_J(ROWS), THREADS = 32 * WARPS_J * WARPS_K;
    static constexpr int STRIP = J * LANES_J * WARPS_J;
    static constexpr int UNIT = KL * LANES_K;    /* of K: what a warp takes at a time */
    static constexpr int ROUND = UNIT * WARPS_K; /* of K: what the block takes */
    /* Of the thin operand there are as many rounds between two barriers; the ring has two such. */
    static constexpr int FIT = WARPS_J * SKINNY_RING / (2 * ROUND * ROWS * (int)sizeof(number));
    static constexpr int ROUNDS = FIT < 8 ? FIT : 8;
    static constexpr int PITCH = 2 * ROUNDS * ROUND + WIDE;
    static_assert(KL <= WARPS_K && ROUND <= WIDE * THREADS && SKINNY_STEP % UNIT == 0, "");
};

/* A problem as the kernel sees it: M thin rows, N thick ones, K along both; what a block has of it. */
typedef struct operands {
    const REAL *A, *B;
    long long M, N, K;
    long long lda, step_a; /* thin: elements from row to row, along K */
    long long ldb, step_b; /* thick: elements along K, from row to row */
} operands;

/* ---- the thick operand ---- */

/* Bits of a load. 16 and 8 bytes go past L1: nobody asks for them again. An element's neighbours are asked
 * for next. In PTX, because of an address that went through asm the compiler no longer knows the space. */
template <int BYTES> __device__ __forceinline__ void load_bits(void *to, const REAL *from) {
    if constexpr (BYTES == 16) {
        unsigned *w = static_cast<unsigned *>(to);
        asm volatile("ld.global.nc.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                     : "l"(from));
    } else if constexpr (BYTES == 8 && sizeof(REAL) < 8) {
        unsigned *w = static_cast<unsigned *>(to);
        asm volatile("ld.global.nc.L1::no_allocate.v2.b32 {%0, %1}, [%2];"
                     : "=r"(w[0]), "=r"(w[1])
                     : "l"(from));
    } else if constexpr (BYTES == 8) {
        asm volatile("ld.global.nc.b64 %0, [%1];"
                     : "=l"(*static_cast<unsigned long long *>(to))
                     : "l"(from));
    } else if constexpr (BYTES == 4) {
        asm volatile("ld.global.nc.b32 %0, [%1];" : "=r"(*static_cast<unsigned *>(to)) : "l"(from));
    } else {
        asm volatile("ld.global.nc.b16 %0, [%1];"
                     : "=h"(*static_cast<unsigned short *>(to))
                     : "l"(from));
    }
}

/* What a lane has of a unit, in the bits of REAL. */
template <typename is> struct piece {
    unsigned word[is::LOADS][is::BYTES / 4];

    template <direction HOW> __device__ __forceinline__ number at(int j, int k) const {
        const REAL *own = reinterpret_cast<const REAL *>(word[HOW == ACROSS ? k : j]);
        return widen(own[HOW == ACROSS ? j : k]);
    }
};

/* VECTORS: whole loads, aligned; else element by element, of any strides. Rows past the last one are read
 * from the last one (of vectors, neighbours from the last J), and what becomes of them is not stored. */
template <int ROWS, direction HOW, bool VECTORS> struct thick_reader {
    typedef geometry<ROWS, HOW> is;
    const REAL *rows, *from;
    long long inner, outer; /* elements from element to element of a load, from load to load */
    long long advance;
    int unit, units;
    int j_left; /* rows behind the first that exist; J: all that are wanted */

    __device__ __forceinline__ thick_reader(const operands &g, long long j, int first_unit, int k)
        : unit(first_unit), units((int)(g.K / is::UNIT)) {
        const long long first = min(j, g.N - (HOW == ACROSS && VECTORS ? is::J : 1));
        rows = g.B + first * g.step_b;
        from = rows + ((long long)first_unit * is::UNIT + k) * g.ldb;
        j_left = (int)min(g.N - 1 - first, (long long)is::J);
        inner = HOW == ACROSS ? g.step_b : g.ldb;
        outer = HOW == ACROSS ? g.ldb : g.step_b;
        advance = is::ROUND * g.ldb;
    }

    /* The warp's next unit, if it is whole. */
    __device__ __forceinline__ void load(piece<is> &to) {
        if (unit < units) {
            const REAL *p = from;
#pragma unroll
            for (int n = 0; n < is::LOADS; n++) {
                if (VECTORS) {
                    load_bits<is::BYTES>(to.word[n], p);
                } else {
                    const REAL *q = p;
#pragma unroll
                    for (int e = 0; e < is::ELEMENTS; e++) {
                        load_bits<sizeof(REAL)>(reinterpret_cast<REAL *>(to.word[n]) + e, q);
                        if (HOW == ALONG || e < j_left) q += inner;
                        asm("" : "+l"(q)); /* a sum at a time: products would take registers */
                    }
                }
                if (HOW == ACROSS || n < j_left) p += outer;
                asm("" : "+l"(p));
            }
        }
        from += advance;
        unit += WARPS_K;
    }
};

/* ---- the thin operand ---- */

/* Copies a round at a time to shared memory, as numbers, 16 bytes a thread. Threads go along the rows or down
 * the columns, whichever way its neighbours lie. */
template <int ROWS, direction HOW> struct thin_copier {
    typedef geometry<ROWS, HOW> is;
    static constexpr int ACROSS_ROW = is::ROUND / WIDE, PIECES = ROWS * ACROSS_ROW;
    static constexpr int COUNT = PIECES < is::THREADS ? 1 : PIECES / is::THREADS;
    struct __align__(WIDE * sizeof(REAL)) elements {
        REAL at[WIDE];
    };
    const REAL *from;
    number *to;
    part_vector next[COUNT];
    long long step, apart, advance, k_left;
    int to_apart, k_apart, rows, row_apart, slot;
    bool copies, vectors;

    __device__ __forceinline__ thin_copier(const operands &g, number *shared) : slot(0) {
        const int t = threadIdx.x;
        const bool by_rows = g.step_a == 1;
        const int row = by_rows ? t / ACROSS_ROW : t % ROWS;
        const int k = (by_rows ? t % ACROSS_ROW : t / ROWS) * WIDE;
        row_apart = by_rows ? is::THREADS / ACROSS_ROW : 0;
        k_apart = by_rows ? 0 : is::THREADS / ROWS * WIDE;
        copies = row < ROWS && k < is::ROUND;
        rows = copies ? (int)min(g.M, (long long)ROWS) - row : 0;
        from = g.A + row * g.lda + k * g.step_a;
        to = shared + row * is::PITCH + k;
        to_apart = row_apart * is::PITCH + k_apart;
        step = g.step_a;
        apart = row_apart * g.lda + k_apart * g.step_a;
        advance = is::ROUND * g.step_a;
        k_left = g.K / is::UNIT * is::UNIT - k;
        vectors = by_rows && ((unsigned long long)g.A | (unsigned long long)g.lda * sizeof(REAL)) %
                                     sizeof(elements) ==
                                 0;
    }

    /* What does not exist is 0. */
    __device__ __forceinline__ void load() {
#pragma unroll
        for (int n = 0; n < COUNT; n++) {
            elements e = {};
            if (n * row_apart < rows && n * k_apart < k_left) {
                const REAL *p = from + n * apart;
                if (vectors) {
                    e = *reinterpret_cast<const elements *>(p);
                } else {
#pragma unroll
                    for (int k = 0; k < WIDE; k++) {
                        e.at[k] = *p;
                        p += step;
                    }
                }
            }
#pragma unroll
            for (int k = 0; k < WIDE; k++) {
                next[n].at[k] = widen(e.at[k]);
            }
        }
        from += advance;
        k_left -= is::ROUND;
    }

    __device__ __forceinline__ void store() {
#pragma unroll
        for (int n = 0; n < COUNT; n++) {
            if (copies) {
                *reinterpret_cast<part_vector *>(to + n * to_apart + slot * is::ROUND) = next[n];
            }
        }
        slot = slot == 2 * is::ROUNDS - 1 ? 0 : slot + 1;
    }
};

/* ---- the ends ---- */

/* What the end of K has that fills no unit: an element of it a thread, straight from global memory. */
template <int ROWS, direction HOW, typename is = geometry<ROWS, HOW>>
__device__ __forceinline__ void add_rest(number (&sum)[ROWS][is::J], const operands &g,
                                         const REAL *b, int j_left, long long k) {
    if (k >= g.K) return;
    const REAL *a = g.A + k * g.step_a;
    number x[is::J];
    b += k * g.ldb;
#pragma unroll
    for (int j = 0; j < is::J; j++) {
        x[j] = widen(*b);
        if (j < j_left) b += g.step_b;
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const number y = widen(*a);
        if (i < g.M - 1) a += g.lda;
#pragma unroll
        for (int j = 0; j < is::J; j++) {
            sum[i][j] += x[j] * y;
        }
    }
}

/* Adds the sums of lanes and warps up, and stores a thread's share of ROWS x STRIP. */
template <int ROWS, direction HOW, typename is = geometry<ROWS, HOW>>
__device__ __forceinline__ void store(const gemm_args &all, number (&sum)[ROWS][is::J],
                                      number *shared, bool columns, int part, long long i_block,
                                      long long j_block, int j_thread, int warp_k, int lane_k) {
    const long long rows = (columns ? all.N : all.M) - i_block;
    const long long strip = (columns ? all.M : all.N) - j_block;
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
#pragma unroll
        for (int n = 0; n < is::J; n++) {
#pragma unroll
            for (int lanes = is::LANES_J; lanes < 32; lanes *= 2) {
                sum[i][n] += __shfl_xor_sync(0xffffffff, sum[i][n], lanes);
            }
            if (lane_k == 0) shared[(warp_k * ROWS + i) * is::STRIP + j_thread + n] = sum[i][n];
        }
    }
    __syncthreads();
    const number alpha = (number)all.alpha, beta = (number)all.beta;
    for (int o = threadIdx.x; o < ROWS * is::STRIP; o += is::THREADS) {
        const int i = columns ? o % ROWS : o / is::STRIP, n = columns ? o / ROWS : o % is::STRIP;
        const long long j = j_block + n;
        if (i >= rows || n >= strip) continue;
        number total = 0;
#pragma unroll
        for (int w = 0; w < WARPS_K; w++) {
            total += shared[(w * ROWS + i) * is::STRIP + n];
        }
        const long long row = columns ? j : i_block + i, column = columns ? i_block + i : j;
        if (all.split > 1) {
            *part_at(all, part, row, column) = total;
            continue;
        }
        REAL *c = all.C + blockIdx.z * all.batch_c + row * all.ldc + column;
        total *= alpha;
        *c = narrow(beta == 0 ? total : total + beta * widen(*c), REAL());
    }
}

#endif
