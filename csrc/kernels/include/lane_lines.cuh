/* Operands of gemm_direct: a lane's words of rows of A or columns of B, its lines, from global memory.
 *
 * ALONG, a K-major operand: lines g, g + 8, ..; of each 4 adjacent words of k, which lane 4 g + t has
 * at 4 t words of a slab. ACROSS, an MN-major one: N adjacent lines, N g and so on, of each of these
 * k. Words are two 16-bit elements or one fp64; those of two k of an MN-major operand are joined.
 */
#ifndef SMK_LANE_LINES_CUH
#define SMK_LANE_LINES_CUH

#include "args.h"

enum order { ALONG, ACROSS };
constexpr int BYTES = sizeof(REAL), PER_WORD = BYTES == 2 ? 2 : 1;
constexpr int WORDS = 4, OWN = WORDS * PER_WORD, SLAB = 4 * OWN; /* k: of a lane, of a warp */

template <int SIZE> struct bits_of {
    typedef double element, word;
};
template <> struct bits_of<2> {
    typedef unsigned short element;
    typedef unsigned word;
};
typedef bits_of<BYTES>::element element;
typedef bits_of<BYTES>::word word;

__device__ __forceinline__ unsigned join(unsigned short low, unsigned short high) {
    return low | (unsigned)high << 16;
}
__device__ __forceinline__ double join(double x, double) {
    return x;
}

template <int N> struct __align__(N * sizeof(element)) neighbours {
    element at[N];
};

/* N neighbours, of which the first `exist` do; others are 0. WIDE: all or none, and p is aligned. */
template <bool WIDE, int N>
__device__ __forceinline__ void load(element (&x)[N], const element *p, int exist) {
    constexpr int MOST = N < 16 / BYTES ? N : 16 / BYTES;
#pragma unroll
    for (int i = 0; i < N; i += MOST) {
        neighbours<MOST> v = {};
        if (WIDE) {
            if (exist > 0) v = *reinterpret_cast<const neighbours<MOST> *>(p + i);
        } else {
#pragma unroll
            for (int j = 0; j < MOST; j++) {
                if (i + j < exist) v.at[j] = p[i + j];
            }
        }
#pragma unroll
        for (int j = 0; j < MOST; j++) {
            x[i + j] = v.at[j];
        }
    }
}

/* A lane's N lines of an operand, rows of A or columns of B, from a slab on. */
template <order ORDER, int N> struct lane_lines {
    const element *from;
    long long pitch;
    int exist; /* lines, from the lane's first one on */

    __device__ __forceinline__ lane_lines(const REAL *x, long long row_pitch, long long first,
                                          long long lines)
        : pitch(row_pitch) {
        const int g = threadIdx.x % 32 / 4, k = threadIdx.x % 4 * OWN;
        const long long line = first + (ORDER == ALONG ? g : g * N);
        from = reinterpret_cast<const element *>(x) +
               (ORDER == ALONG ? line * pitch + k : k * pitch + line);
        exist = (int)min(max(lines - line, 0ll), 8ll * N);
    }
    static __device__ __forceinline__ int line(int n) {
        const int g = threadIdx.x % 32 / 4;
        return ORDER == ALONG ? 8 * n + g : g * N + n;
    }
    /* Of the slab that begins at k, `left` k exist from the lane's own on. */
    template <bool WIDE>
    __device__ __forceinline__ void load_slab(word (&x)[N][WORDS], long long k, int left) const {
        element of[N][OWN];
        if (ORDER == ALONG) {
#pragma unroll
            for (int n = 0; n < N; n++) {
                load<WIDE>(of[n], from + 8 * n * pitch + k, 8 * n < exist ? left : 0);
            }
        } else {
#pragma unroll
            for (int j = 0; j < OWN; j++) {
                element across[N];
                load<WIDE>(across, from + (k + j) * pitch, j < left ? exist : 0);
#pragma unroll
                for (int n = 0; n < N; n++) {
                    of[n][j] = across[n];
                }
            }
        }
#pragma unroll
        for (int n = 0; n < N; n++) {
#pragma unroll
            for (int w = 0; w < WORDS; w++) {
                x[n][w] = join(of[n][PER_WORD * w], of[n][PER_WORD * w + PER_WORD - 1]);
            }
        }
    }
};

/* Whether a lane's neighbours are all there, or none, and aligned. */
template <order ORDER, int N>
__device__ __forceinline__ bool wide(const REAL *x, long long pitch, long long lines, long long k) {
    constexpr int BOTH = (ORDER == ALONG ? OWN : N), AT = BOTH * BYTES < 16 ? BOTH * BYTES : 16;
    return (ORDER == ALONG ? k : lines) % BOTH == 0 &&
           ((unsigned long long)x | (unsigned long long)pitch * BYTES) % AT == 0;
}

#endif
