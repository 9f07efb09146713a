/* Variant "auto": chooses the variant and the parameters with the shortest predicted time.
 * docs/choosing.md explains the prediction and the source of its numbers.
 */
#ifndef SMK_AUTO_H
#define SMK_AUTO_H

#include "registry.h"

/* Rows begin at multiples of 32 bytes, a sector; of 16, which TMA and 16-byte copies need; of 4,
 * which cp.async does; or anywhere. Timings are of 16, 4 or 1. */
typedef enum smk_alignment {
    SMK_ALIGN_1 = 1,
    SMK_ALIGN_4 = 4,
    SMK_ALIGN_16 = 16,
    SMK_ALIGN_32 = 32
} smk_alignment;

typedef struct smk_query {
    smk_op op;
    const char *dtype; /* smk_dtype.name */
    smk_accuracy accuracy;
    int sm;              /* of the device; 0: the emulator */
    int multiprocessors; /* of the device */
    int64_t M, N, K, batch;
    smk_strides strides;     /* layouts that a variant must support to read the operands in place */
    smk_alignment alignment; /* of the rows of both operands */
    bool k_major[2];         /* A's rows, B's columns are contiguous */
    const smk_variant *only; /* NULL: any variant */
} smk_query;

/* Terms of a variant's predicted time. `busiest`: tiles on the most loaded multiprocessor. K
 * is in units of 1024; with split-K it is that of one K range. */
enum {
    SMK_TERM_CALL,   /* 1: launch overhead */
    SMK_TERM_PARTS,  /* 1 with split-K: the reduction launch; less if clusters add the parts */
    SMK_TERM_DEPTH,  /* K: latency of one block. Where operands are packed, all of K */
    SMK_TERM_TILE,   /* busiest: time per tile besides its products; plan_ring.c: per 128 x 128 */
    SMK_TERM_STEP,   /* busiest * K: products; or the microseconds of core/plan_ring.c */
    SMK_TERM_BYTES,  /* 10^6 bytes moved: A, B, C, partial sums and packed copies */
    SMK_TERM_LINES,  /* SMK_TERM_STEP, by rows and columns of a tile that exist; plan_ring.c: 0 */
    SMK_TERM_RESULT, /* 10^6 bytes of C */
    SMK_TERM_FAR,    /* 10^6 bytes moved that L2 does not keep */
    SMK_TERM_TURNED, /* SMK_TERM_DEPTH, times the operands that are not K-major */
    SMK_TERM_LAYOUT, /* SMK_TERM_STEP, if the layout is NN; then of NT, TN and TT */
    SMK_TERM_LAYOUT_LAST = SMK_TERM_LAYOUT + 3,
    SMK_TERM_SECTORS,        /* SMK_TERM_STEP, if rows of A or B do not begin at sectors */
    SMK_TERM_RESULT_SECTORS, /* SMK_TERM_RESULT, if rows of C do not */
    SMK_N_TERMS
};

/* A variant with its parameters, and fitted microseconds per unit of each term. */
typedef struct smk_timing {
    const smk_variant *variant;
    const smk_dtype *dtype;
    int64_t values[SMK_MAX_PARAMS];
    smk_alignment alignment; /* of the operands that were timed */
    int64_t side;            /* max of min(M, N) that it applies to; 0: no limit */
    int along;               /* 1: if the larger operand lies along K; 0: if across; -1: always */
    double cost[SMK_N_TERMS];
} smk_timing;

void smk_timing_terms(const smk_timing *timing, const smk_query *q, double out[SMK_N_TERMS]);

/* Whether the variant can run the query, and the timing applies to it. */
bool smk_timing_fits(const smk_timing *timing, const smk_query *q);

double smk_timing_predicts(const smk_timing *timing, const smk_query *q); /* microseconds */

/* The timing with the shortest predicted time; NULL: none fits. */
const smk_timing *smk_fastest(const smk_timing *timings, size_t n, const smk_query *q);

/* The variant where no time is predicted: on the emulator, and for operations and types without
 * timings. NULL: no variant fits. */
const smk_variant *smk_default_variant(const smk_query *q);

#endif
