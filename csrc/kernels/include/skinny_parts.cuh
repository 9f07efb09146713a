/* Shared by gemm_skinny, gemm_skinny_mma and gemm_gemv: a block's place, its loads, its epilogue.
 *
 * The operand of few rows or columns is called thin, the other one thick. Rows of both run along K.
 * Few columns are treated as few rows, with A as the thick operand, since C^T = B^T A^T.
 *
 *      ACROSS  (MN-major) neighbours of the thick operand belong to different rows of it
 *      ALONG   (K-major) they lie along K
 *
 *      ACROSS, fp32   j: 4 per lane, 32 per warp         ALONG, fp32   k: 4 per lane, 32 per warp
 *               k  0  |l0 |l1 |..|l7 |  16 bytes each             j  0  |l0 |l4 |..|l28|
 *                  1  |l0 |l1 |..|l7 |  loads n = 0..3               4  |l0 |l4 |..|l28|
 *                  ..                                                ..
 *                  4  |l8 |l9 |..|l15|                               1  |l1 |l5 |..|l29|
 *
 * Either way adjacent lanes read 64 or 128 contiguous bytes, and a thread has whole loads in flight
 * in registers. The thin operand goes through shared memory, a few rounds of the block at a time.
 *
 * `is` is always the kernel's geometry: ROWS, HOW; LOADS of ELEMENTS per lane, which are J x KL;
 * LANES_J x LANES_K; UNIT of K per warp, ROUND per block; STRIP; `stored`, the thin operand's type
 * in shared memory; PITCH of its rows there; ROUNDS between barriers.
 */
#ifndef SMK_SKINNY_PARTS_CUH
#define SMK_SKINNY_PARTS_CUH

#include "split_k.cuh"

typedef part_sum number;

enum direction { ACROSS, ALONG };

/* The problem as the kernel sees it: M thin rows, N thick rows, K along both; the block's part. */
typedef struct operands {
    const REAL *A, *B;
    long long M, N, K;
    long long lda, step_a; /* thin: elements from row to row, along K */
    long long ldb, step_b; /* thick: elements along K, from row to row */
} operands;

/* A block's tile and part of K. */
typedef struct block_place {
    bool columns; /* C has few columns: it is computed transposed */
    int part;
    long long i, j; /* the block's first rows of the thin and the thick operand */
} block_place;

/* And a thread's place in it. */
template <typename is> struct skinny_place : block_place {
    int warp_j, warp_k, lane_j, lane_k;

    /* Row n of the thread's J, relative to the block's first. */
    __device__ __forceinline__ int row(int n) const {
        return warp_j * is::LANES_J * is::J +
               (is::HOW == ACROSS ? lane_j * is::J + n : lane_j + n * is::LANES_J);
    }
};

/* A block takes `rows` rows of the thin operand and `strip` of the thick one. */
__device__ __forceinline__ operands find_block(block_place &at, const gemm_args &all, int rows,
                                               int strip) {
    at.columns = all.N < all.M;
    const REAL *A = all.A + blockIdx.z * all.batch_a, *B = all.B + blockIdx.z * all.batch_b;
    operands g =
        at.columns ? operands{B, A, all.N, all.M, all.K, all.step_b, all.ldb, all.step_a, all.lda}
                   : operands{A, B, all.M, all.N, all.K, all.lda, all.step_a, all.ldb, all.step_b};
    const tile_list &tiles = all.tiles;
    at.part = divide((int)blockIdx.x, tiles.by_all);
    const int in_part = (int)blockIdx.x - at.part * tiles.down * tiles.across;
    const tile_place tile = tiles.down == 1 ? tile_place{0, in_part} : place(in_part, tiles);
    at.i = (long long)tile.row * rows;
    at.j = (long long)tile.column * strip;
    const part_range range = range_of(at.part, tiles);
    const long long k = (long long)range.first * SKINNY_STEP;
    g.K = min(g.K, (long long)range.end * SKINNY_STEP) - k;
    g.M -= at.i;
    g.A += at.i * g.lda + k * g.step_a;
    g.B += k * g.ldb;
    return g;
}

template <typename is>
__device__ __forceinline__ operands find_place(skinny_place<is> &at, const gemm_args &all) {
    const operands g = find_block(at, all, is::ROWS, is::STRIP);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    at.warp_j = warp % is::WARPS_J;
    at.warp_k = warp / is::WARPS_J;
    at.lane_j = is::lane_j(lane);
    at.lane_k = is::lane_k(lane);
    return g;
}

/* How a lane loads its ELEMENTS of a row of the thick operand. */
enum width {
    VECTORS, /* one aligned load */
    SHIFTED, /* the two aligned ones that contain them */
    SINGLES  /* each for itself, of any strides */
};

template <typename is>
constexpr bool SHIFTS = sizeof(REAL) == 2 && is::ELEMENTS == 8; /* what `whole` can shift */

template <typename is>
__device__ __forceinline__ width width_of(const operands &g, const skinny_place<is> &at) {
    constexpr bool ALONG_K = is::HOW == ALONG;
    constexpr int BYTES = is::ELEMENTS * (int)sizeof(REAL);
    const long long apart = ALONG_K ? (g.N > 1 ? g.step_b : 0) : g.ldb; /* one row has no pitch */
    const unsigned long long first = (unsigned long long)g.B;
    if ((ALONG_K ? g.ldb : g.step_b) != 1 || first % BYTES) return SINGLES;
    const bool whole = ALONG_K || at.j + is::STRIP <= g.N || g.N % is::J == 0;
    if (apart * (long long)sizeof(REAL) % BYTES == 0 && whole) return VECTORS;
    return SHIFTS<is> && apart > 0 && (ALONG_K || g.N >= 2 * is::ELEMENTS) ? SHIFTED : SINGLES;
}

/* ---- the thick operand ---- */

/* Loads BYTES bytes. 16 bytes do not allocate in L1, because they are read once; an element's
 * neighbours are read next. In PTX, because asm() on an address hides its state space. */
template <int BYTES> __device__ __forceinline__ void load_bits(void *to, const REAL *from) {
    if constexpr (BYTES == 16) {
        unsigned *w = static_cast<unsigned *>(to);
        asm volatile("ld.global.nc.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
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

/* The same, if that exists; else `to` stays. */
template <int BYTES>
__device__ __forceinline__ void load_bits_if(void *to, const REAL *from, bool exists) {
    if constexpr (BYTES == 16) {
        unsigned *w = static_cast<unsigned *>(to);
        asm volatile("{.reg .pred p; setp.ne.s32 p, %5, 0;"
                     "@p ld.global.nc.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];}"
                     : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]), "+r"(w[3])
                     : "l"(from), "r"((int)exists));
    } else if constexpr (BYTES == 8) {
        asm volatile("{.reg .pred p; setp.ne.s32 p, %2, 0; @p ld.global.nc.b64 %0, [%1];}"
                     : "+l"(*static_cast<unsigned long long *>(to))
                     : "l"(from), "r"((int)exists));
    } else if constexpr (BYTES == 4) {
        asm volatile("{.reg .pred p; setp.ne.s32 p, %2, 0; @p ld.global.nc.b32 %0, [%1];}"
                     : "+r"(*static_cast<unsigned *>(to))
                     : "l"(from), "r"((int)exists));
    } else {
        asm volatile("{.reg .pred p; setp.ne.s32 p, %2, 0; @p ld.global.nc.b16 %0, [%1];}"
                     : "+h"(*static_cast<unsigned short *>(to))
                     : "l"(from), "r"((int)exists));
    }
}

/* Of 16 bytes that other lanes read as well. */
__device__ __forceinline__ void load_shared_vector_if(unsigned *to, const REAL *from, bool exists) {
    asm volatile("{.reg .pred p; setp.ne.s32 p, %5, 0;"
                 "@p ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4];}"
                 : "+r"(to[0]), "+r"(to[1]), "+r"(to[2]), "+r"(to[3])
                 : "l"(from), "r"((int)exists));
}
__device__ __forceinline__ void load_shared_vector(unsigned *to, const REAL *from) {
    asm volatile("ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "l"(from));
}

/* A lane's part of a unit, as the bits of REAL. */
template <typename is> struct piece {
    unsigned word[is::LOADS][(is::ELEMENTS * sizeof(REAL) + 3) / 4];

    __device__ __forceinline__ REAL &at(int load, int element) {
        return reinterpret_cast<REAL *>(word[load])[element];
    }
    __device__ __forceinline__ REAL at(int load, int element) const {
        return reinterpret_cast<const REAL *>(word[load])[element];
    }
};

/* Two aligned vectors, which contain a lane's part; it begins `skip` elements after the first one's
 * begin, with `apart` more in each load. */
template <typename is> struct wide_piece {
    unsigned word[is::LOADS][8];
    int skip, apart;
};

template <typename is> __device__ __forceinline__ const piece<is> &whole(const piece<is> &x) {
    return x;
}

/* Shifts by 4, 2 and 1 elements. */
template <typename is> __device__ __forceinline__ piece<is> whole(const wide_piece<is> &x) {
    piece<is> y;
#pragma unroll
    for (int n = 0; n < is::LOADS; n++) {
        const int skip = x.skip + n * x.apart;
        unsigned w[7];
#pragma unroll
        for (int i = 0; i < 6; i++)
            w[i] = skip & 4 ? x.word[n][i + 2] : x.word[n][i];
#pragma unroll
        for (int i = 0; i < 5; i++)
            w[i] = skip & 2 ? w[i + 1] : w[i];
#pragma unroll
        for (int i = 0; i < 4; i++)
            y.word[n][i] = __funnelshift_r(w[i], w[i + 1], skip % 2 * 16);
    }
    return y;
}

/* For rows past the last one the last one is read (ACROSS: with VECTORS, the last J; SHIFTED, what
 * follows it in memory); their results are not stored. */
template <typename is, width HOW_WIDE> struct thick_reader {
    /* Vectors that contain a part may end after it. So many rows of K (ALONG: elements) follow it,
     * and the vectors are within the matrix. */
    static constexpr int SPARE = HOW_WIDE != SHIFTED ? 0 : is::HOW == ALONG ? is::ELEMENTS - 1 : 1;
    const REAL *rows, *from;
    long long inner, outer; /* strides between elements of a load, between loads */
    long long advance;
    int unit, units; /* the warp's next one; number of whole ones */
    int more;        /* row steps that stay within the matrix */

    __device__ __forceinline__ thick_reader(const operands &g, const skinny_place<is> &at)
        : unit(at.warp_k), units((int)(max(g.K - SPARE, 0ll) / is::UNIT)) {
        constexpr bool ALONG_K = is::HOW == ALONG;
        const long long last = g.N - (ALONG_K || HOW_WIDE != VECTORS ? 1 : is::J);
        const long long first = min(at.j + at.row(0), last);
        rows = g.B + first * g.step_b;
        from = rows + ((long long)unit * is::UNIT + at.lane_k * is::KL) * g.ldb;
        more = (int)min((g.N - 1 - first) / (ALONG_K ? is::LANES_J : 1), (long long)is::J);
        inner = ALONG_K ? g.ldb : g.step_b;
        outer = ALONG_K ? is::LANES_J * g.step_b : g.ldb;
        advance = is::ROUND * g.ldb;
    }

    /* Elements from the aligned vector's begin to p. */
    static __device__ __forceinline__ int before(const REAL *p) {
        return (int)((unsigned long long)p / sizeof(REAL) % is::ELEMENTS);
    }

    /* Loads the warp's next unit, if it is whole. */
    template <typename piece> __device__ __forceinline__ void load(piece &to) {
        if (unit < units) {
            const REAL *p = from;
            if constexpr (HOW_WIDE == SHIFTED) {
                to.skip = before(p);
                to.apart = (int)(outer % is::ELEMENTS);
            }
#pragma unroll
            for (int n = 0; n < is::LOADS; n++) {
                if constexpr (HOW_WIDE == VECTORS) {
                    load_bits<is::ELEMENTS * sizeof(REAL)>(to.word[n], p);
                } else if constexpr (HOW_WIDE == SHIFTED) {
                    const int skip = before(p);
                    load_shared_vector(to.word[n], p - skip);
                    if (skip) load_shared_vector(to.word[n] + 4, p - skip + is::ELEMENTS);
                } else {
                    const REAL *q = p;
#pragma unroll
                    for (int e = 0; e < is::ELEMENTS; e++) {
                        load_bits<sizeof(REAL)>(&to.at(n, e), q);
                        if (is::HOW == ALONG || e < more) q += inner;
                        asm("" : "+l"(q)); /* otherwise multiples of it take registers */
                    }
                }
                if (is::HOW == ACROSS || n < more) p += outer;
                asm("" : "+l"(p));
            }
        }
        from += advance;
        unit += is::WARPS_K;
    }
};

/* ---- the thin operand ---- */

/* Copies one round at a time to shared memory, 16 bytes per thread, into rows of PITCH. Threads go
 * along the rows or down the columns of the thin operand, whichever is contiguous. */
template <typename is> struct thin_copier {
    typedef typename is::stored stored;
    static constexpr int WIDE = 16 / (int)sizeof(stored);
    static constexpr int IN_ROW = is::ROUND / WIDE, PIECES = is::ROWS * IN_ROW;
    static constexpr int COUNT = PIECES < is::THREADS ? 1 : PIECES / is::THREADS;
    static_assert(IN_ROW <= is::THREADS, "a row of a round is one step of the block");
    struct __align__(WIDE * sizeof(REAL)) elements {
        REAL at[WIDE];
    };
    struct __align__(16) numbers {
        stored at[WIDE];
    };
    const REAL *from;
    stored *to;
    struct round {
        numbers at[COUNT];
    };
    long long step, apart, advance, k_left;
    int to_apart, k_apart, rows, row_apart, slot;
    bool copies, vectors;

    __device__ __forceinline__ thin_copier(const operands &g, stored *shared) : slot(0) {
        const int t = threadIdx.x;
        const bool by_rows = g.step_a == 1;
        const int row = by_rows ? t / IN_ROW : t % is::ROWS;
        const int k = (by_rows ? t % IN_ROW : t / is::ROWS) * WIDE;
        row_apart = by_rows ? is::THREADS / IN_ROW : 0;
        k_apart = by_rows ? 0 : is::THREADS / is::ROWS * WIDE;
        copies = row < is::ROWS && k < is::ROUND;
        rows = copies ? (int)min(g.M, (long long)is::ROWS) - row : 0;
        from = g.A + row * g.lda + k * g.step_a;
        to = shared + row * is::PITCH + k;
        to_apart = row_apart * is::PITCH + k_apart;
        step = g.step_a;
        apart = row_apart * g.lda + k_apart * g.step_a;
        advance = is::ROUND * g.step_a;
        k_left = g.K - k;
        const long long pitch = g.M > 1 ? g.lda * (long long)sizeof(REAL) : 0;
        vectors = by_rows && ((long long)g.A | pitch) % (long long)sizeof(elements) == 0;
    }

    /* Elements that do not exist are 0. */
    __device__ __forceinline__ void load(round &to) {
#pragma unroll
        for (int n = 0; n < COUNT; n++) {
            elements e = {};
            const long long left = n * row_apart < rows ? k_left - n * k_apart : 0;
            const REAL *p = from + n * apart;
            if (vectors && left >= WIDE) {
                e = *reinterpret_cast<const elements *>(p);
            } else {
#pragma unroll
                for (int k = 0; k < WIDE; k++) {
                    if (k < left) e.at[k] = *p;
                    p += step;
                }
            }
#pragma unroll
            for (int k = 0; k < WIDE; k++) {
                to.at[n].at[k] = is::store(e.at[k]);
            }
        }
        from += advance;
        k_left -= is::ROUND;
    }

    __device__ __forceinline__ void store(const round &from) {
#pragma unroll
        for (int n = 0; n < COUNT; n++) {
            if (copies) {
                *reinterpret_cast<numbers *>(to + n * to_apart + slot * is::ROUND) = from.at[n];
            }
        }
        slot = slot == 2 * is::ROUNDS - 1 ? 0 : slot + 1;
    }
};

/* ---- the sums ---- */

/* Defined by the kernel: sum += a lane's part of a unit of the thick operand times thin rows. */
template <typename is, typename sums>
__device__ __forceinline__ void multiply(sums &sum, const piece<is> &x,
                                         const typename is::stored *thin);

/* Defined by the kernel: a unit of K that is not read whole; `thin` is padded with zeros. */
template <typename is, typename sums, width HOW_WIDE>
__device__ __forceinline__ void add_rest(sums &sum, const operands &g, const skinny_place<is> &at,
                                         const thick_reader<is, HOW_WIDE> &thick, int unit,
                                         const typename is::stored *thin);

template <bool, typename A, typename> struct either {
    typedef A type;
};
template <typename A, typename B> struct either<false, A, B> {
    typedef B type;
};

template <typename is, width HOW_WIDE, typename sums>
__device__ __forceinline__ void accumulate(sums &sum, const operands &g, const skinny_place<is> &at,
                                           typename is::stored *shared) {
    thick_reader<is, HOW_WIDE> thick(g, at);
    thin_copier<is> thin(g, shared);
    constexpr int DEPTH = HOW_WIDE == SHIFTED ? 1 : is::DEPTH; /* a wide piece is twice as large */
    typename either<HOW_WIDE == SHIFTED, wide_piece<is>, piece<is>>::type x[DEPTH];
    const int units = thick.units;
    const int rounds = (int)((g.K + is::ROUND - 1) / is::ROUND);
    const typename is::stored *own = shared + at.warp_k * is::UNIT + at.lane_k * is::KL;
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
        thick.load(x[d]);
    }
    constexpr int AHEAD = is::ROUNDS % 4 == 0 && thin.COUNT == 1 ? 4 : 1; /* loads in flight */
#pragma unroll 1
    for (int n = 0; n < is::ROUNDS; n += AHEAD) {
        typename thin_copier<is>::round ahead[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            thin.load(ahead[i]);
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            thin.store(ahead[i]);
        }
    }
    typename thin_copier<is>::round next;
    __syncthreads();
#pragma unroll 1
    for (int first = 0; first < rounds; first += DEPTH) {
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            const int round = first + d;
            if (round >= rounds) break;
            thin.load(next);
            if (round * is::WARPS_K + at.warp_k < units) {
                multiply<is>(sum, whole(x[d]), own + round % (2 * is::ROUNDS) * is::ROUND);
            }
            thick.load(x[d]);
            thin.store(next);
            if ((round + 1) % is::ROUNDS == 0) __syncthreads();
        }
    }
    static_assert(is::ROUNDS >= 2, "the last two rounds are in shared memory");
#pragma unroll 1
    for (int unit = units; (long long)unit * is::UNIT < g.K; unit++) {
        const int round = unit / is::WARPS_K;
        add_rest<is>(sum, g, at, thick, unit, own + round % (2 * is::ROUNDS) * is::ROUND);
    }
    __syncthreads();
}

template <typename is, typename sums>
__device__ __forceinline__ void accumulate(sums &sum, const operands &g, const skinny_place<is> &at,
                                           typename is::stored *shared) {
    const width how = width_of(g, at);
    if (how == VECTORS) return accumulate<is, VECTORS>(sum, g, at, shared);
    if constexpr (SHIFTS<is>) {
        if (how == SHIFTED) return accumulate<is, SHIFTED>(sum, g, at, shared);
    }
    accumulate<is, SINGLES>(sum, g, at, shared);
}

/* ---- epilogue ---- */

/* Place of the sum of thin row i and thick row n, for one of the warps that split K. */
template <typename is>
__device__ __forceinline__ number &sum_at(number *shared, int warp_k, int i, int n) {
    return shared[(warp_k * is::ROWS + i) * is::STRIP + n];
}

/* The result, or this part's sum, of thin row i and thick row n of the block. */
__device__ __forceinline__ void store_sum(const gemm_args &all, const block_place &at, int i, int n,
                                          number total) {
    const number alpha = (number)all.alpha, beta = (number)all.beta;
    const long long row = at.columns ? at.j + n : at.i + i;
    const long long column = at.columns ? at.i + i : at.j + n;
    if (all.split > 1) {
        *part_at(all, at.part, row, column) = total;
        return;
    }
    REAL *c = all.C + blockIdx.z * all.batch_c + row * all.ldc + column;
    total *= alpha;
    *c = narrow(beta == 0 ? total : total + beta * widen(*c), REAL());
}

/* Adds the sums that the warps have left there, and stores ROWS x STRIP results. */
template <typename is>
__device__ __forceinline__ void store_sums(const gemm_args &all, const operands &g,
                                           const skinny_place<is> &at, number *shared) {
    for (int o = threadIdx.x; o < is::ROWS * is::STRIP; o += is::THREADS) {
        const int i = at.columns ? o % is::ROWS : o / is::STRIP;
        const int n = at.columns ? o / is::ROWS : o % is::STRIP;
        if (i >= g.M || at.j + n >= g.N) continue;
        number total = 0;
#pragma unroll
        for (int w = 0; w < is::WARPS_K; w++) {
            total += sum_at<is>(shared, w, i, n);
        }
        store_sum(all, at, i, n, total);
    }
}

#endif
