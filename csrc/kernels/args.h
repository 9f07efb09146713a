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
    SMK_POINTER(unsigned char) workspace; /* as many bytes as the row says, times the batch */
    long long M, N, K;
    long long lda, ldb, ldc;             /* elements */
    long long step_a, step_b;            /* elements */
    long long batch_a, batch_b, batch_c; /* elements from one batch to the next; 0: broadcast */
    long long batch_workspace;           /* bytes */
    double alpha, beta;                  /* beta == 0: C is not read */
} gemm_args;

/* y[j*ldy + i] = x[i*ldx + j] for i < rows, j < cols. blockIdx.z is the batch. */
typedef struct transpose_args {
    SMK_POINTER(const ELEMENT) x;
    SMK_POINTER(ELEMENT) y;
    long long rows, cols;
    long long ldx, ldy;
    long long batch_x, batch_y;
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
