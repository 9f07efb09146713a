/* Pipeline planning: from a problem whose operands are in host memory to a task graph. A pure
 * function, like core/plan.h: no host memory is accessed.
 */
#ifndef SMK_PIPELINE_PLAN_H
#define SMK_PIPELINE_PLAN_H

#include "graph.h"
#include "../../core/plan.h"

/* Buffers of a pipeline: the operands, a workspace per compute stream, prepacked A and B. */
enum {
    SMK_PIPELINE_WORKSPACES = SMK_MAX_OPERANDS,
    SMK_PIPELINE_PREPACKED = SMK_PIPELINE_WORKSPACES + SMK_COMPUTE_STREAMS,
    SMK_PIPELINE_BUFFERS = SMK_PIPELINE_PREPACKED + 2
};

typedef struct smk_pipeline_plan {
    smk_buffer buffers[SMK_PIPELINE_BUFFERS]; /* 0 bytes: not used */
    smk_task *tasks;
    size_t n_tasks, capacity;
    smk_plan *plans; /* n_plans: the launches of each compute task ... */
    smk_job *jobs;   /* ... and the same as a job */
    size_t n_plans;
    bool resident; /* as in smk_pipeline */
} smk_pipeline_plan;

typedef struct smk_pipeline_query {
    const smk_variant *variant;
    const smk_dtype *dtype;
    const int64_t *values;
    char *host[SMK_MAX_OPERANDS]; /* element 0 of A, B, C or of x, y; the problem's offsets are 0 */
    size_t memory;                /* bytes of device memory that may be used */
    int64_t split;                /* K ranges of the product planned as a whole (smk_plan.split) */
    double seconds;               /* predicted time of the product on the device; 0: not known */
    const struct transfer_rates *rates; /* rates.h; NULL: the default chip */
} smk_pipeline_query;

/* SMK_MEMORY: not even the smallest blocks fit. Call smk_pipeline_plan_free even on failure. */
smk_code smk_pipeline_plan_gemm(const smk_pipeline_query *query, const smk_gemm *problem,
                                smk_pipeline_plan *out, smk_status *status);
smk_code smk_pipeline_plan_transpose(const smk_pipeline_query *query, const smk_transpose *problem,
                                     smk_pipeline_plan *out, smk_status *status);
void smk_pipeline_plan_free(smk_pipeline_plan *plan);

/* The size of the parts that M or N (`extent`) of an m x n product is cut into: `part` or somewhat
 * more. Skinny variants compare M and N to find the thin side, so the last part must be thicker. */
int64_t smk_pipeline_part(const smk_variant *variant, int64_t m, int64_t n, int64_t extent,
                          int64_t part);

#endif
