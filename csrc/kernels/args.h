/* Kernel arguments: one struct per operation, filled by core/plan*.c and read by the kernels.
 * On the host a pointer is a byte offset into its buffer; the device adds the address (job.h).
 */
#ifndef SMK_ARGS_H
#define SMK_ARGS_H

#ifdef __CUDACC__
#define SMK_POINTER(type) type *__restrict__
#else
#define SMK_POINTER(type) long long
#endif

/* 16-bit elements as raw bits; the instructions that use them define the format. */
typedef struct float16 {
    unsigned short bits;
} float16;
typedef struct bfloat16 {
    unsigned short bits;
} bfloat16;

/* A kernel is compiled with either REAL or ELEMENT; the other only has to name some type. */
#ifndef REAL
#define REAL double
#endif
#ifndef ELEMENT
#define ELEMENT char
#endif

/* The divisor of a division by multiplication, made on the host: a kernel's own division takes
 * some 100 clocks. Rounded down, n / d = n * multiplier / 2^(31 + shift), for both below 2^31. */
typedef struct divisor {
    unsigned multiplier; /* 2^(31 + shift) / d, rounded up */
    int shift;           /* 2^shift is d, or the next power of two */
} divisor;

/* The tiles of C that a launch's blocks take, in the order of tile_order.cuh, and the ranges of K;
 * not of all kernels. */
typedef struct tile_list {
    int down, across, band;                      /* tiles; their rows in a band */
    int even_steps, longer;                      /* of a range; the first `longer` have one more */
    divisor by_all, by_band, by_height, by_last; /* tiles; of a band; rows of one; of the last */
    int rows_per_part;                           /* of a tile, that each block of a cluster adds */
    int strip; /* gemm_gemv: rows of the matrix of a block, or its columns if it is MN-major */
} tile_list;

/* C = alpha*A*B + beta*C, row-major: element (i, j) of A is A[i*lda + j*step_a]; B likewise. The
 * steps are 1, except in variants that take any strides. blockIdx.z is the batch index. */
typedef struct gemm_args {
    SMK_POINTER(const REAL) A;
    SMK_POINTER(const REAL) B;
    SMK_POINTER(REAL) C;
    long long M, N, K;
    long long lda, ldb, ldc;             /* elements */
    long long step_a, step_b;            /* elements */
    long long batch_a, batch_b, batch_c; /* elements from one batch to the next; 0: broadcast */
    double alpha, beta;                  /* beta == 0: C is not read */
    /* Split-K: `split` ranges of K, each done by its own blocks; 1: no split. With more than 1 the
     * sums go to `parts` in the workspace, in rows of `part_pitch` elements: split_k.cuh. */
    long long split, part_pitch;
    SMK_POINTER(unsigned char) parts;
    tile_list tiles;
} gemm_args;

/* CLUSTER_BYTES: of a tile's sums that a cluster of kernels by mma.sync adds, and of thin ones. */
enum { REDUCE_THREADS = 128, CLUSTER_BYTES = 32768 };

/* Rows of a tile that a block of a cluster adds, at most; and the shared bytes for those sums of
 * all others, after an mbarrier. */
#define CLUSTER_ROWS(rows, parts) (((rows) + (parts) - 1) / (parts))
#define CLUSTER_SUM_BYTES(rows, row_bytes, parts)                                                  \
    (16 + CLUSTER_ROWS(rows, parts) * ((parts) - 1) * (row_bytes))

/* Geometry of gemm_skinny and gemm_skinny_mma (8 rows per MMA tile), shared with
 * core/plan_skinny.c.
 *   WARPS_J, WARPS_K   warps of a block side by side, and warps that split K
 *   LANES              lanes of a warp side by side
 *   NEIGHBOURS         columns per lane: `most`, or fewer so that the sums of `rows` rows fit in
 * 64                      registers
 *   RING, MORE         shared bytes: RING for each of WARPS_J, plus MORE once
 *   STEP               split-K ranges are multiples of this many k */
#define SKINNY_WARPS_J(rows) ((rows) < 16 ? 1 : 2)
#define SKINNY_WARPS_K(rows, along, sum_bytes)                                                     \
    ((rows) <= 4 && !(along) && (sum_bytes) == 4 ? 16 : 8)
#define SKINNY_LANES(along) ((along) ? 4 : 8)
#define SKINNY_NEIGHBOURS(rows, sum_bytes, most)                                                   \
    ((rows) * (most) * (sum_bytes) <= 256 ? (most) : 256 / ((rows) * (sum_bytes)))
#define SKINNY_MMA_WARPS_J(tiles, along) ((along) ? (tiles) : 1)
#define SKINNY_MMA_WARPS_K(along)        ((along) ? 8 : 16)
#define SKINNY_MMA_NEIGHBOURS(along)     ((along) ? 32 : 64) /* per warp */
enum { SKINNY_RING = 32768, SKINNY_MORE = 1024, SKINNY_STEP = 128 };

/* gemm_gemv: the most threads of a block; 16-byte loads in flight per thread. */
enum { GEMV_THREADS = 512, GEMV_LOADS = 8 };

/* Rows of C in a band of the tile order of kernels that read by TMA (tile_order.cuh). */
enum { TILE_ORDER_ROWS = 2048 };

/* The ring of kernels that read by TMA and multiply by wgmma: the most stages, and the bytes before
 * them, where their barriers are. */
enum { RING_STAGES = 16, RING_BARRIERS = 1024 };

/* Tiles of gemm_fp16 and gemm_bf16, of block_m rows: the most columns, by the registers that hold
 * the sums, and the buffers for C per warpgroup, each 8 KiB. */
#define WGMMA_MOST_COLUMNS(block_m) ((block_m) == 128 ? 320 : (block_m) == 256 ? 128 : 192)
/* A box of TMA has up to MOST_BOX_ROWS rows; a tile with more columns is copied as two. */
enum { MOST_BOX_ROWS = 256 };
#define WGMMA_OUT_BUFFERS(block_m) ((block_m) > 128 ? 1 : 2)
/* Of wgmma_thin.cuh: the most columns of a thin tile; the value of block_n that asks for a tile of
 * all columns; the most rows and columns of a tile that a cluster adds in the memory of the ring
 * (wider ones were the fastest of 8 calls in 5213); and the bytes from one row of a warpgroup's
 * sums to the next. Swapped, these are rows of 64 columns of C. */
enum { THIN_COLUMNS = 64, THIN_UNIT = 8, SUMMED_ROWS = 128, SUMMED_COLUMNS = 128 };
#define SUM_PITCH(columns, swapped) ((swapped) ? 256 : ((columns) + 31) / 32 * 128)

/* Further arguments of the kernels that read A and B by TMA; core/plan_wgmma.c fills them.
 *
 * A "row" of an operand is a row of A or a column of B (a row of B where smk_wgmma.b_by_rows). A
 * packed operand lies in the workspace row by row, k elements per row, one term after the other
 * (wgmma_pack.cuh). */
enum {
    PACK_THREADS = 256,
    PACK_RESIDENT = 3, /* blocks of a multiprocessor, if there are many */
    PACK_ROWS = 8,
    PACK_PIECES = 128,
    PACK_SHORT = 256, /* bytes: lines up to so many are packed by PACK_FEW threads each */
    PACK_FEW = 8,
    PACK_TILE = 64,
    LARGEST_ROWS = 32,
    LARGEST_K = 1024,
    PANEL_FEW = 8 /* rows of a panel, of which there would be few with LARGEST_ROWS */
};
/* Words of 8 k of a panel. */
#define PANEL_WORDS(rows) (8 * (rows) + 4)

typedef struct wgmma_operand {
    SMK_POINTER(unsigned char) packed;
    /* With two terms: the bits of the largest |element| of each row, [chunks][rows]. */
    SMK_POINTER(unsigned) largest;
    long long batch; /* bytes from one batch to the next in the workspace; 0: broadcast */
    long long row_stride, k_stride; /* elements, of the matrix */
    long long pitch;                /* elements from one packed row to the next */
    int rows, k;                    /* sizes */
    int packing;                    /* clusters that pack it; 0: it is read in place */
    int by_rows;                    /* K-major: a warp packs one row */
    int across;                     /* one term, MN-major: packed rows are the rows of k */
    /* Scaled and MN-major: rows that a cluster packs, k that each of its blocks packs, and that it
     * keeps in shared memory meanwhile; else 0. */
    int panel, range, kept;
    int searching; /* clusters that search for `largest` */
    int chunks;    /* of K in `largest` */
} wgmma_operand;

/* The work items of a launch: all ranges of K, and matrices, of the full tiles of C, which are
 * those of gemm_args, then of narrow ones at the right edge. A block takes every `at_once`-th.
 * The tiles of a cluster whose blocks share operands, a rectangle, count as one. */
typedef struct work_list {
    int items, at_once;
    int split;  /* ranges of K of a matrix ... */
    int ranges; /* ... and of all matrices */
    divisor by_down, by_split;
} work_list;

/* First what a product reads: lines of the constant cache come one after the other. */
typedef struct wgmma_args {
    work_list list;
    int columns;          /* of a tile, where they are an argument: of 16-bit matrices */
    int stages;           /* of the ring, likewise */
    int stage_bytes;      /* that are copied, likewise */
    int multicast;        /* blocks of a cluster that share B's tiles, below each other, and ... */
    int multicast_a;      /* ... A's tiles, side by side; 1: none does */
    int moves_a, moves_b; /* -1: the matrix moves with the batch; 0: it is broadcast */
    int share;            /* columns, or k if B is MN-major, that each copies of a tile of B */
    int share_a;          /* rows, or k if A is MN-major, that each copies of a tile of A */
    int parts;       /* of K that the blocks of a cluster add: of a tile, or of each of those that
                        share; 1: none do */
    int added;       /* rows of C of a warpgroup that each of them adds */
    int swapped;     /* wgmma_thin.cuh: A is B's transpose, B is A's */
    int steps;       /* stages of K */
    int store_boxes; /* C is written by TMA */
    /* Of the product's launch, whose blocks take the tiles of all of them; 1: one per
     * blockIdx.z. */
    long long batches;
    wgmma_operand a, b;
} wgmma_args;

/* y[j*ldy + i*step_y] = x[i*ldx + j*step_x] for i < rows, j < cols. blockIdx.z is the batch index.
 * The steps are 1, except in the kernels for any strides. Only some kernels read the fields after
 * batch_y (core/plan_transpose.c). */
typedef struct transpose_args {
    SMK_POINTER(const ELEMENT) x;
    SMK_POINTER(ELEMENT) y;
    long long rows, cols;
    long long ldx, step_x, ldy, step_y;
    long long batch_x, batch_y;
    long long batches;      /* in this launch */
    int log_rows, log_cols; /* tile size of a block */
    int matrices;           /* per block */
    int copy;               /* both arrays are contiguous in j: a copy of rows */
    int lead;  /* extra rows of x above a tile, so that each row of y starts with a whole sector */
    int pairs; /* strips of x read alternately: transpose_order.cuh */
    int boxes; /* TMA can read x */
    unsigned reciprocal; /* 2^32 / (tiles side by side in y) + 1, to divide by; 0: there is one */
} transpose_args;

/* Probes (small kernels): y from x, float32. */
typedef struct probe_args {
    SMK_POINTER(const float) x;
    SMK_POINTER(float) y;
    long long n_x, n_y;   /* elements */
    long long runtime[4]; /* run-time parameters, in the variant's order */
} probe_args;

#ifndef __CUDACC__
#undef REAL
#undef ELEMENT
#endif
#undef SMK_POINTER

#endif
