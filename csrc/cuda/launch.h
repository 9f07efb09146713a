/* Runs the launches of a job on a stream, once or timed. */
#ifndef SMK_CUDA_LAUNCH_H
#define SMK_CUDA_LAUNCH_H

#include "../core/job.h"
#include "module.h"
#include "texture.h"
#include "wait.h"

typedef struct launch_function {
    CUfunction handle;
    bool overlaps; /* may start before the previous launch has ended */
} launch_function;

typedef struct launch_plan {
    const smk_job *job;
    CUmodule module;
    launch_function *functions; /* one per launch */
    CUstream stream;
    unsigned char *args;   /* args_bytes per launch, with device addresses */
    void **parameters;     /* n_parameters pointers into args per launch */
    texture_set *textures; /* NULL: none. Not freed by launch_free: kernels may still run */
} launch_plan;

/* Looks up the kernels. Call launch_free, even after a failure. */
smk_code launch_find(device *d, launch_plan *plan, module *m, smk_status *status);

/* Fills the arguments: adds the buffers' addresses to the pointers' offsets, and encodes tensor
 * maps. Call launch_free, even after a failure. */
smk_code launch_make_args(device *d, launch_plan *plan, const CUdeviceptr *addresses,
                          smk_status *status);
void launch_free(launch_plan *plan);

/* Enqueues the launches in order. */
smk_code launch_all(device *d, const launch_plan *plan, smk_status *status);

/* The same between the copies of texels to textures and from surfaces. */
smk_code launch_with_textures(device *d, const launch_plan *plan, smk_status *status);

/* Runs the launches `repeat` times and fills milliseconds. On SMK_INTERRUPTED the stream is still
 * busy. */
smk_code launch_timed(device *d, const launch_plan *plan, int repeat, float *milliseconds,
                      interrupt_poller *p, const char *what, smk_status *status);

#endif
