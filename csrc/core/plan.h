/* Launch planning: from a problem and a variant to launches. A pure function.
 *
 *     smk_gemm | smk_transpose | smk_probe   the problem: sizes and strides, no memory
 *           |  + variant, values
 *     smk_plan                               launches and their arguments
 *
 * blockIdx.x counts the tiles of one result, row by row. blockIdx.z counts the batch. Adjacent
 * batch dimensions that a single stride describes are folded; the largest folded dimension becomes
 * blockIdx.z, in chunks of at most 65535, and the others become separate launches. No array is
 * accessed, so tests can plan problems that fit no machine.
 */
#ifndef SMK_PLAN_H
#define SMK_PLAN_H

#include "job.h"
#include "registry.h"

enum { SMK_MAX_BATCH = 64, SMK_MAX_OPERANDS = 3, SMK_MAX_MAPS = 3, SMK_MAX_POINTERS = 16 };

/* A batch of row-major matrices within a buffer. Element (i, j) of batch (p, q, ...) is at byte
 * offset + (p*batch[0] + q*batch[1] + ... + i*ld + j*step) * itemsize. */
typedef struct smk_matrix {
    int64_t offset;               /* bytes; buffers begin at multiples of 16 */
    int64_t ld, step;             /* elements; step is 1 for variants that read only SMK_ROWS */
    int64_t batch[SMK_MAX_BATCH]; /* elements; 0: broadcast */
} smk_matrix;

typedef struct smk_batch {
    int n;
    int64_t size[SMK_MAX_BATCH];
} smk_batch;

/* Room for a prepacked operand (packed copy, largest elements), which later products can reuse. */
typedef struct smk_prepacked {
    int64_t offset, bytes; /* in its buffer; too few bytes: prepacked in the workspace, no reuse */
    bool made;             /* an earlier product has already filled it */
} smk_prepacked;

/* Prepacking of A and B. */
typedef struct smk_prepack {
    smk_prepacked prepacked[2];
    bool only;       /* prepack, but do not multiply */
    bool for_blocks; /* products of several blocks may share it */
} smk_prepack;

/* Whether a device has clusters of blocks. sm 0: the emulator. */
static inline bool smk_has_clusters(int sm) {
    return sm == 0 || sm >= 90;
}

/* C = alpha*A*B + beta*C. Buffers: 0, 1, 2 are A, B, C; 3 the workspace; 4, 5 prepacked A, B. */
typedef struct smk_gemm {
    int64_t M, N, K;
    smk_batch batch;
    smk_matrix a, b, c;
    double alpha, beta;
    int64_t multiprocessors; /* of the device; for rows with split-K or persistent blocks */
    bool clusters;           /* the device has clusters of blocks */
    smk_prepack prepack;
} smk_gemm;

/* y[j][i] = x[i][j]. Buffers 0, 1 are x, y. */
typedef struct smk_transpose {
    int64_t rows, cols; /* of x */
    smk_batch batch;
    smk_matrix x, y;
    bool in_place;           /* y is the memory of x; for rows with an in-place kernel */
    int64_t multiprocessors; /* of the device; for rows with persistent blocks */
} smk_transpose;

/* Buffers 0, 1 are x, y; both are vectors. */
typedef struct smk_probe {
    int64_t n_x;
    int64_t offset_x; /* bytes */
} smk_probe;

typedef struct smk_plan {
    smk_launch *launches; /* none: there is nothing to compute */
    size_t n_launches;
    unsigned char *args; /* args_bytes for each launched batch */
    size_t args_bytes;
    uint32_t parameters[2 + SMK_MAX_MAPS]; /* byte offsets of the kernel parameters */
    size_t n_parameters;
    smk_pointer pointers[SMK_MAX_POINTERS];
    size_t n_pointers;
    smk_tensor_map maps[SMK_MAX_MAPS];
    size_t n_maps;
    size_t workspace;          /* bytes; the buffer after the operands' */
    size_t prepacked_bytes[2]; /* of prepacked A, B. 0: not prepacked, or in the workspace */
    int64_t split;             /* K ranges; 0: the variant has no split-K */
} smk_plan;

/* `values`: of the parameters, from smk_variant_values. After success, call smk_plan_free. */
smk_code smk_plan_gemm(const smk_variant *variant, const smk_dtype *dtype, const int64_t *values,
                       const smk_gemm *problem, smk_plan *plan, smk_status *status);
smk_code smk_plan_transpose(const smk_variant *variant, const smk_dtype *dtype,
                            const int64_t *values, const smk_transpose *problem, smk_plan *plan,
                            smk_status *status);
smk_code smk_plan_probe(const smk_variant *variant, const smk_dtype *dtype, const int64_t *values,
                        const smk_probe *problem, smk_plan *plan, smk_status *status);
void smk_plan_free(smk_plan *plan);

/* *n_y: elements of y for n elements of x. SMK_VALUE if n is too small. */
smk_code smk_probe_size(const smk_variant *variant, const smk_dtype *dtype, const int64_t *values,
                        int64_t n, int64_t *n_y, smk_status *status);

#endif
