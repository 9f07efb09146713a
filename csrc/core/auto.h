/* Which row variant "auto" stands for, and with which parameters: the one that is predicted to be the
 * fastest. docs/choosing.md explains the prediction and where its numbers come from.
 */
#ifndef SMK_AUTO_H
#define SMK_AUTO_H

#include "registry.h"

/* What a float32 gemm may do with its products; each allows what those before it allow. */
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
    int multiprocessors; /* of the device */
    int64_t M, N, K, batch;
    smk_strides strides; /* what a row has to take to read the operands where they are */
    bool aligned;        /* rows of both operands begin at multiples of 16 bytes */
    const smk_row *only; /* NULL: any */
} smk_question;

/* What a row's time on a GPU is made of; `busiest` is the number of tiles on the multiprocessor that
 * has most of them, a thousand of K are 1024. */
enum {
    SMK_TERM_CALL,  /* 1: launches */
    SMK_TERM_PARTS, /* 1 where K is cut into parts: the launch that adds them up */
    SMK_TERM_DEPTH, /* thousands of K, of a part: what one block waits for; of all where rows are packed */
    SMK_TERM_TILE,  /* busiest: what a tile takes beside its products */
    SMK_TERM_STEP,  /* busiest times thousands of K, of a part: products */
    SMK_TERM_BYTES, /* 10^6 bytes moved: A, B, C, parts and packed copies */
    SMK_N_TERMS
};

/* A row with its parameters, and the microseconds that each term takes, as they were fitted to
 * measured times. */
typedef struct smk_timing {
    const smk_row *row;
    const smk_dtype *dtype;
    int64_t values[SMK_MAX_PARAMS];
    smk_accuracy accuracy; /* what the row's results have */
    bool aligned;          /* how its operands lay when it was timed */
    int64_t side;          /* it is for results with at most so many rows, or columns; 0: for all */
    double cost[SMK_N_TERMS];
} smk_timing;

void smk_timing_terms(const smk_timing *timing, const smk_question *q, double out[SMK_N_TERMS]);

/* Whether the row can answer the question at all. */
bool smk_timing_fits(const smk_timing *timing, const smk_question *q);

double smk_timing_predicts(const smk_timing *timing, const smk_question *q); /* microseconds */

/* The fastest of n by prediction; NULL: none fits. */
const smk_timing *smk_fastest(const smk_timing *timings, size_t n, const smk_question *q);

/* Where nothing is predicted: on the emulator, and of operations that have one best row. NULL: there is
 * no row for the question. */
const smk_row *smk_only_choice(const smk_question *q);

#endif
