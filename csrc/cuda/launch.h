/* The launches of a job on a stream, once or timed. */
#ifndef SMK_CUDA_LAUNCH_H
#define SMK_CUDA_LAUNCH_H

#include "../core/job.h"
#include "wait.h"

typedef struct launch_plan {
    const smk_job *job;
    CUfunction function;
    CUstream stream;
    unsigned char *args; /* args_bytes for each launch, with device addresses */
} launch_plan;

/* The arguments of all launches, malloc'ed, with the address of each buffer added to the offsets
 * that stand for pointers, and with tensor maps encoded. */
smk_code launch_patch_args(device *d, const smk_job *job, const CUdeviceptr *addresses,
                           unsigned char **out, smk_status *status);

/* Puts the launches on the stream, in order. */
smk_code launch_all(device *d, const launch_plan *plan, smk_status *status);

/* Runs them job->repeat times and fills job->milliseconds. SMK_INTERRUPTED: still busy. */
smk_code launch_timed(device *d, const launch_plan *plan, patience *p, const char *what,
                      smk_status *status);

#endif
