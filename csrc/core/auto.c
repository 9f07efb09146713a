/* The rules of variant "auto", first come first served. Each says what it was measured with;
 * docs/choosing.md explains them. A row that the device's instructions or the dtype forbid is passed over,
 * so the last rules of an operation are those that always fit.
 */
#include "auto.h"

#include <string.h>

const char *const smk_accuracy_names[SMK_N_ACCURACIES] = {"float32", "norm", "tf32"};

enum { ANY = 1 << SMK_N_ACCURACIES, EMULATED = 1, GPU = 2 };

typedef struct rule {
    smk_op op;
    unsigned accuracies; /* bits by smk_accuracy; ANY: all */
    unsigned where;      /* EMULATED, GPU */
    int64_t side;        /* least of M and N */
    int64_t work;        /* least M N K */
    const char *row;
} rule;

static const rule rules[] = {
    /* The emulator's time is what its instructions take: long vectors and little else. */
    {SMK_GEMM, ANY, EMULATED, 0, 0, "vectorized"},
    /* H200, 1024^3 and up: 2.5 (tf32x3) and 3.7 times (fp16x3) cuBLAS SGEMM at 4096^3, 1.3 times at 1024^3.
     * Below, preparing the operands and the few tiles cost more than the tensor cores save. */
    {SMK_GEMM, 1 << SMK_ACCURACY_TF32, GPU, 128, 1 << 24, "tf32"},
    {SMK_GEMM, 1 << SMK_ACCURACY_NORM, GPU, 128, 1 << 30, "fp16x3"},
    {SMK_GEMM, ANY, GPU, 128, 1 << 27, "tf32x3"},
    /* Types that only tensor cores take. */
    {SMK_GEMM, ANY, EMULATED | GPU, 0, 0, "fp16"},
    {SMK_GEMM, ANY, EMULATED | GPU, 0, 0, "bf16"},
    {SMK_GEMM, ANY, GPU, 0, 0, "mma_fp16"},
    {SMK_GEMM, ANY, GPU, 0, 0, "mma_bf16"},
    /* H200, 4096^3: 39.8 TFLOP/s (pipelined) and about 55 (simt's prototypes); simt's tiles are large. */
    {SMK_GEMM, ANY, GPU, 1024, 1ll << 33, "simt"},
    {SMK_GEMM, ANY, GPU, 0, 0, "pipelined"},
    /* 0.97 of a copy; every other row is behind it. */
    {SMK_TRANSPOSE, ANY, EMULATED | GPU, 0, 0, "vectorized"},
};

static bool takes(const smk_row *row, const char *dtype) {
    for (int i = 0; i < row->n_dtypes; i++)
        if (!strcmp(row->dtypes[i].name, dtype)) return true;
    return false;
}

/* Code of one chip's own instructions runs on no other. */
static bool runs(const smk_row *row, int sm) {
    return sm == 0 || (row->portable ? sm >= row->min_sm : sm == row->min_sm);
}

const smk_row *smk_auto(const smk_question *q) {
    const int64_t side = q->M < q->N ? q->M : q->N;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const rule *r = &rules[i];
        if (r->op != q->op || !(r->where & (q->sm ? GPU : EMULATED)) ||
            (r->accuracies != ANY && !(r->accuracies & 1u << q->accuracy)))
            continue;
        /* In floating point: the product of three sizes need not be a 64-bit number. Where the
         * alternative is no result at all, size does not matter. */
        const double work = (double)q->M * (double)q->N * (double)q->K;
        if (q->strides == SMK_ROWS && (side < r->side || work < (double)r->work)) continue;
        const smk_row *row = smk_row_find(r->op, r->row);
        if (row && takes(row, q->dtype) && runs(row, q->sm) && smk_strides_of(row) >= q->strides)
            return row;
    }
    return NULL;
}
