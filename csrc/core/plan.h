/* Launch planning: from shapes and a row of the registry to launches, as a pure function.
 *
 *     smk_gemm | smk_transpose | smk_probe   what is asked: sizes and strides, no memory
 *           |  + row, values
 *     smk_plan                               what a device runs: launches and their arguments
 *
 * blockIdx.x counts the tiles of one result (row by row), blockIdx.z the batch. All batch
 * dimensions that one stride describes are folded into blockIdx.z, in chunks of its limit; what
 * does not fold becomes further launches. Nothing here touches an array, so a test can plan what no
 * machine holds.
 */
#ifndef SMK_PLAN_H
#define SMK_PLAN_H

#include "job.h"
#include "registry.h"

enum { SMK_MAX_BATCH = 64, SMK_MAX_OPERANDS = 3, SMK_MAX_MAPS = 3, SMK_MAX_POINTERS = 16 };

/* A stack of row-major matrices within a buffer. Element (i, j) of batch (p, q, ...) stands at
 * offset + (p*batch[0] + q*batch[1] + ... + i*ld + j*step) * itemsize. */
typedef struct smk_matrix {
    int64_t offset;               /* bytes; buffers begin at multiples of 16 */
    int64_t ld, step;             /* elements; step is 1 where a row reads rows alone */
    int64_t batch[SMK_MAX_BATCH]; /* elements; 0: broadcast */
} smk_matrix;

typedef struct smk_batch {
    int n;
    int64_t size[SMK_MAX_BATCH];
} smk_batch;

/* Room for what a product makes of an operand before it multiplies, where other products of that operand find it. */
typedef struct smk_kept {
    int64_t offset, bytes; /* 0 bytes: it is made in the workspace */
    bool made;             /* by an earlier product */
} smk_kept;

/* What a product makes of A and B before it multiplies. */
typedef struct smk_making {
    smk_kept kept[2];
    bool only; /* what is kept, and no product */
} smk_making;

/* C = alpha*A*B + beta*C. Buffers 0, 1, 2 are A, B, C; 3 is the workspace; 4 and 5 what is kept of A and B. */
typedef struct smk_gemm {
    int64_t M, N, K;
    smk_batch batch;
    smk_matrix a, b, c;
    double alpha, beta;
    int64_t multiprocessors; /* of the device; of rows that cut K, or have one block on each */
    smk_making making;
} smk_gemm;

/* y[j][i] = x[i][j]. Buffers 0, 1 are x, y. */
typedef struct smk_transpose {
    int64_t rows, cols; /* of x */
    smk_batch batch;
    smk_matrix x, y;
    bool in_place;           /* y is x, element by element: of rows with a kernel for that */
    int64_t multiprocessors; /* of the device; of rows whose blocks stay */
} smk_transpose;

/* Buffers 0, 1 are x, y; both are lists of elements. */
typedef struct smk_probe {
    int64_t n_x;
    int64_t offset_x; /* bytes */
} smk_probe;

typedef struct smk_plan {
    smk_launch *launches; /* none: there is nothing to compute */
    size_t n_launches;
    unsigned char *args; /* args_bytes for each batch that is launched */
    size_t args_bytes;
    uint32_t parameters[2 + SMK_MAX_MAPS]; /* where each begins */
    size_t n_parameters;
    smk_pointer pointers[SMK_MAX_POINTERS];
    size_t n_pointers;
    smk_tensor_map maps[SMK_MAX_MAPS];
    size_t n_maps;
    size_t workspace; /* bytes of the buffer behind the operands' */
    size_t kept[2]; /* bytes of what is kept; 0: nothing has to be made, or the workspace has it */
    int64_t split;  /* parts of K; 0: the row does not cut it */
} smk_plan;

/* `values` are the row's, from smk_row_values. On success smk_plan_free is due. */
smk_code smk_plan_gemm(const smk_row *row, const smk_dtype *dtype, const int64_t *values,
                       const smk_gemm *problem, smk_plan *plan, smk_status *status);
smk_code smk_plan_transpose(const smk_row *row, const smk_dtype *dtype, const int64_t *values,
                            const smk_transpose *problem, smk_plan *plan, smk_status *status);
smk_code smk_plan_probe(const smk_row *row, const smk_dtype *dtype, const int64_t *values,
                        const smk_probe *problem, smk_plan *plan, smk_status *status);
void smk_plan_free(smk_plan *plan);

/* How many elements a probe makes of n, and whether n is enough. */
smk_code smk_probe_size(const smk_row *row, const smk_dtype *dtype, const int64_t *values,
                        int64_t n, int64_t *n_y, smk_status *status);

#endif
