/* The launches of a job on a stream, once or timed. */
#ifndef SMK_CUDA_LAUNCH_H
#define SMK_CUDA_LAUNCH_H

#include "../core/job.h"
#include "module.h"
#include "wait.h"

typedef struct launch_function {
    CUfunction handle;
    bool overlaps; /* its launch may begin while the one before it runs */
} launch_function;

typedef struct launch_plan {
    const smk_job *job;
    launch_function *functions; /* of each launch */
    CUstream stream;
    unsigned char *args; /* args_bytes for each launch, with device addresses */
    void **parameters;   /* into args: those of each launch, one launch after the other */
} launch_plan;

/* Finds the kernels. launch_free is due, also when it failed. */
smk_code launch_find(device *d, launch_plan *plan, module *m, smk_status *status);

/* Fills the plan's arguments: the address of each buffer added to the offsets that stand for
 * pointers, tensor maps encoded. launch_free is due, also when it failed. */
smk_code launch_make_args(device *d, launch_plan *plan, const CUdeviceptr *addresses,
                          smk_status *status);
void launch_free(launch_plan *plan);

/* Puts the launches on the stream, in order. */
smk_code launch_all(device *d, const launch_plan *plan, smk_status *status);

/* Runs them `repeat` times and fills milliseconds. SMK_INTERRUPTED: still busy. */
smk_code launch_timed(device *d, const launch_plan *plan, int repeat, float *milliseconds,
                      interrupt_poller *p, const char *what, smk_status *status);

#endif
