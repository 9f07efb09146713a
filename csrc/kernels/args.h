/* Kernel arguments: one struct an operation, read by the kernels and written by core/plan.c.
 * On the host a pointer is a byte offset into its buffer until the device adds an address (job.h).
 */
#ifndef SMK_ARGS_H
#define SMK_ARGS_H

#ifdef __CUDACC__
#define SMK_POINTER(type) type *__restrict__
#else
#define SMK_POINTER(type) long long
#endif

/* Elements of 16 bits, as bits: what they mean is a matter of the instructions. */
typedef struct float16 {
    unsigned short bits;
} float16;
typedef struct bfloat16 {
    unsigned short bits;
} bfloat16;

/* A kernel is compiled with the one of these that it uses; the other only has to be a type. */
#ifndef REAL
#define REAL double
#endif
#ifndef ELEMENT
#define ELEMENT char
#endif

/* C = alpha*A*B + beta*C, row-major: element (i, j) of A is A[i*lda + j*step_a], of B likewise. The
 * steps are 1 but for rows of the table that take any strides. blockIdx.z is the batch. */
typedef struct gemm_args {
    SMK_POINTER(const REAL) A;
    SMK_POINTER(const REAL) B;
    SMK_POINTER(REAL) C;
    long long M, N, K;
    long long lda, ldb, ldc;             /* elements */
    long long step_a, step_b;            /* elements */
    long long batch_a, batch_b, batch_c; /* elements from one batch to the next; 0: broadcast */
    double alpha, beta;                  /* beta == 0: C is not read */
    /* Parts of K, each a block's; 1: all of it. Of more, sums go to the workspace: split_k.cuh. */
    long long split, part_pitch; /* elements of a row of sums */
    SMK_POINTER(unsigned char) parts;
} gemm_args;

enum { REDUCE_THREADS = 128 };

/* gemm_skinny and gemm_skinny_mma (of 8 rows a tile): the warps of a block, side by side and sharing K; the lanes
 * of one side by side; how many of `most` neighbours a lane makes of `rows` rows, so that their sums fit 64
 * registers; shared bytes for each of WARPS_J and in all; steps of K that parts are made of. */
#define SKINNY_WARPS_J(rows) ((rows) < 16 ? 1 : 2)
#define SKINNY_WARPS_K(rows, along, sum_bytes)                                                     \
    ((rows) <= 4 && !(along) && (sum_bytes) == 4 ? 16 : 8)
#define SKINNY_LANES(rows, along) (!(along) ? 8 : (rows) == 1 ? 1 : 4)
#define SKINNY_NEIGHBOURS(rows, sum_bytes, most)                                                   \
    ((rows) * (most) * (sum_bytes) <= 256 ? (most) : 256 / ((rows) * (sum_bytes)))
#define SKINNY_MMA_WARPS_J(tiles, along) ((along) ? (tiles) : 1)
#define SKINNY_MMA_WARPS_K(along)        ((along) ? 8 : 16)
#define SKINNY_MMA_NEIGHBOURS(along)     ((along) ? 32 : 64) /* of a warp */
enum { SKINNY_RING = 32768, SKINNY_MORE = 1024, SKINNY_STEP = 128 };

enum { WGMMA_NARROW = 64 }; /* columns of a tile of 16-bit elements that takes little time */

/* What the kernels that read A and B by TMA take beside gemm_args; core/plan_wgmma.c fills it.
 *
 * An operand is A, whose rows are meant, or B, whose columns are (or rows, smk_wgmma). Packed, it lies in the
 * workspace row by row, k elements each, one part after the other. */
enum {
    PACK_THREADS = 256,
    PACK_ROWS = 8,
    PACK_PIECES = 128,
    PACK_TILE = 64,
    LARGEST_ROWS = 32,
    LARGEST_K = 1024
};

typedef struct wgmma_operand {
    SMK_POINTER(unsigned char) packed;
    SMK_POINTER(unsigned) largest; /* of two parts: |element|s as bits, [chunks][rows] */
    SMK_POINTER(unsigned)
    partial;         /* the same before A is packed by tiles, of LARGEST_K elements each */
    long long batch; /* bytes from one batch's to the next in the workspace; 0: broadcast */
    long long row_stride, k_stride; /* elements, of the matrix */
    long long pitch;                /* elements from one packed row to the next */
    int rows, k;                    /* sizes */
    int packing;                    /* blocks that pack it; 0: it is read where it is */
    int by_rows;                    /* a warp takes a row: its elements are neighbours */
    int across;    /* of one part: the packed rows are those of k, and run across K */
    int searching; /* blocks that look for the largest; of A in a launch before */
    int chunks;
} wgmma_operand;

typedef struct wgmma_args {
    wgmma_operand a, b;
    int steps;       /* stages of K */
    int store_boxes; /* C is written by TMA */
} wgmma_args;

/* y[j*ldy + i*step_y] = x[i*ldx + j*step_x] for i < rows, j < cols. blockIdx.z is the batch. The steps are 1 but
 * for kernels that take any strides; what stands behind them is theirs too: core/plan_transpose.c. */
typedef struct transpose_args {
    SMK_POINTER(const ELEMENT) x;
    SMK_POINTER(ELEMENT) y;
    long long rows, cols;
    long long ldx, step_x, ldy, step_y;
    long long batch_x, batch_y;
    long long batches;      /* of this launch */
    int log_rows, log_cols; /* of a block's tile */
    int matrices;           /* of a block's tile */
    int copy;               /* both arrays have their neighbours in j */
    int lead;               /* rows of x before a tile that it may take part in */
    int pairs;              /* of strips of x, read in turns: transpose_order.cuh */
    int boxes;              /* TMA can read x */
} transpose_args;

/* The small kernels: y from x, float32. */
typedef struct probe_args {
    SMK_POINTER(const float) x;
    SMK_POINTER(float) y;
    long long n_x, n_y;   /* elements */
    long long runtime[4]; /* run-time parameters in the row's order */
} probe_args;

#ifndef __CUDACC__
#undef REAL
#undef ELEMENT
#endif
#undef SMK_POINTER

#endif
