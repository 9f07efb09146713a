/* Planning flows: from a problem whose operands are in host memory to tasks that move and multiply its blocks.
 * A pure function, like plan.h: host addresses are only added to.
 */
#ifndef SMK_PIPELINE_PLAN_H
#define SMK_PIPELINE_PLAN_H

#include "graph.h"
#include "../../core/plan.h"

/* A flow's buffers: the operands', a workspace for each lane, what products keep of A and B. */
enum {
    SMK_PIPELINE_WORKSPACES = SMK_MAX_OPERANDS,
    SMK_PIPELINE_PREPACKED = SMK_PIPELINE_WORKSPACES + SMK_COMPUTE_STREAMS,
    SMK_PIPELINE_BUFFERS = SMK_PIPELINE_PREPACKED + 2
};

typedef struct smk_pipeline_plan {
    smk_buffer buffers[SMK_PIPELINE_BUFFERS]; /* of 0 bytes: it has none */
    smk_task *tasks;
    size_t n_tasks, room; /* tasks there is memory for */
    smk_plan *plans;      /* of each compute task ... */
    smk_job *jobs;        /* ... as a job */
    size_t n_plans;
    bool resident; /* smk_pipeline's */
} smk_pipeline_plan;

/* Where the operands are (element 0 of each; `problem` has no offsets then), and how much of the device's
 * memory may be used: where it is too little for all of them, blocks take turns. */
typedef struct smk_pipeline_query {
    const smk_row *row;
    const smk_dtype *dtype;
    const int64_t *values;
    char *host[SMK_MAX_OPERANDS]; /* A, B, C; x, y */
    size_t memory;                /* bytes */
    int64_t split;  /* parts of K that the plan of the whole product has (smk_plan.split) */
    double seconds; /* that the product is expected to take on the device; 0: not known */
} smk_pipeline_query;

/* SMK_MEMORY if not even the smallest blocks fit. smk_pipeline_plan_free is due in any case. */
smk_code smk_pipeline_plan_gemm(const smk_pipeline_query *question, const smk_gemm *problem,
                                smk_pipeline_plan *out, smk_status *status);
smk_code smk_pipeline_plan_transpose(const smk_pipeline_query *question,
                                     const smk_transpose *problem, smk_pipeline_plan *out,
                                     smk_status *status);

/* How much of M or N (`along`) each part of a product is to have: the given number, or somewhat more where the last one
 * would be no thicker than the product is. Rows of few rows or columns find the thin side by comparing both. */
int64_t smk_pipeline_part(const smk_row *row, int64_t m, int64_t n, int64_t along, int64_t part);
void smk_pipeline_plan_free(smk_pipeline_plan *plan);

#endif
