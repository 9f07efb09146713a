/* Arguments of the kernels of gemm_ozaki2, beside gemm_args; core/plan_ozaki.c fills them.
 *
 * A "row" of an operand is a row of A or a column of B. The planes of an operand hold a byte per
 * element: [batch][modulus][row][k], rows `pitch` bytes apart. C's planes: [batch][modulus][M][N].
 */
#ifndef SMK_OZAKI_ARGS_H
#define SMK_OZAKI_ARGS_H

#ifdef __CUDACC__
#define SMK_POINTER(type) type *__restrict__
#else
#define SMK_POINTER(type) long long
#endif

enum {
    OZAKI_SCALE_ROWS = 32,    /* rows of a block that finds scales, and warps */
    OZAKI_PACK_THREADS = 256, /* a block that packs */
    OZAKI_PACK_K_MAJOR = 8,   /* k per thread if they are adjacent, of one row per warp; else */
    OZAKI_PACK_K = 32,        /* k per warp, of ... */
    OZAKI_PACK_ROWS = 16,     /* ... as many rows */
    OZAKI_GROUP = 16,         /* rows of B that are permuted (ozaki_pack.cuh) */
    OZAKI_COMBINE_THREADS = 256,
    OZAKI_COMBINE_COLUMNS = 4, /* of C per thread */
    OZAKI_STEP = 128,          /* k per stage of the product */
    OZAKI_MAX_K = 65536        /* k per product: its sums stay within 2^30 */
};

typedef struct ozaki_operand {
    SMK_POINTER(unsigned char) planes;
    SMK_POINTER(int) exponent;      /* of each row's scale, [batch][all rows] */
    long long row_stride, k_stride; /* elements, of the matrix */
    long long plane;                /* bytes per modulus */
    long long batch_planes;         /* bytes; 0: broadcast */
    long long batch_exponents;      /* elements; 0: broadcast */
    long long all_rows;             /* of the matrix */
    int rows;                       /* of the block of the matrix that the planes hold */
    int pitch;                      /* bytes from row to row: k of a block, in whole steps */
    int by_rows;                    /* k are adjacent */
    int scaling, packing;           /* blocks that find scales, that pack */
} ozaki_operand;

typedef struct ozaki_args {
    ozaki_operand a, b;
    SMK_POINTER(unsigned char) c; /* planes of the result */
    long long c_plane, c_batch;   /* bytes */
    int c_pitch;                  /* bytes */
    int first_k, k;               /* the range of K that is packed and multiplied */
    int batches;                  /* in this launch */
    int lead;                     /* gemm_ozaki2.cu */
} ozaki_args;

#undef SMK_POINTER

#endif
