/* The textures and surfaces of a job: CUDA arrays, or linear memory, and objects whose handles the
 * kernel receives. The texels come from the job's buffers in device memory, and what a kernel has
 * written to a surface goes back there.
 */
#ifndef SMK_CUDA_TEXTURE_H
#define SMK_CUDA_TEXTURE_H

#include "../core/job.h"
#include "context.h"

typedef struct texture_set texture_set;

/* *out: NULL if the job has none. After a failure it may be partly made; destroy it then, too.
 * References of the job are bound in the module, which no other call may use. */
smk_code texture_set_make(device *d, const smk_job *job, CUmodule module,
                          const CUdeviceptr *addresses, texture_set **out, smk_status *status);

/* Replaces the handles of the job in a launch's arguments by those of the device. */
void texture_set_bind(const texture_set *set, unsigned char *args);

/* Enqueued before and after the launches. Texels, and the handles that buffers contain. */
smk_code texture_set_copy_in(device *d, const texture_set *set, CUstream stream,
                             smk_status *status);
smk_code texture_set_copy_out(device *d, const texture_set *set, CUstream stream,
                              smk_status *status);

/* After the buffers have been copied back: the job's handles replace the device's in them. */
void texture_set_restore(const texture_set *set);

/* Once no kernel uses them. The first frees what the device holds; the second is for a lost
 * context. Both free the set, which may be NULL. */
void texture_set_destroy(device *d, texture_set *set);
void texture_set_forget(texture_set *set);

#endif
