/* Which row variant "auto" stands for. */
#ifndef SMK_AUTO_H
#define SMK_AUTO_H

#include "registry.h"

/* What a float32 gemm may do with its products. */
typedef enum smk_accuracy {
    SMK_ACCURACY_FLOAT32, /* element by element what fp32 sums give; the default */
    SMK_ACCURACY_NORM,    /* in norm: small elements of rows with large ones may lose bits */
    SMK_ACCURACY_TF32,    /* operands rounded to tf32 */
    SMK_N_ACCURACIES
} smk_accuracy;

extern const char *const smk_accuracy_names[SMK_N_ACCURACIES];

typedef struct smk_question {
    smk_op op;
    const char *dtype; /* as a row's */
    smk_accuracy accuracy;
    int sm;              /* of the device; 0: the emulator */
    int64_t M, N, K;     /* gemm */
    smk_strides strides; /* what a row has to take to read the operands where they are */
} smk_question;

/* NULL where the operation has no "auto". */
const smk_row *smk_auto(const smk_question *q);

#endif
