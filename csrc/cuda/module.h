/* Loaded code. A module is kept by its image's key until many others have been used since, and is
 * held (counted) by each call that runs it. */
#ifndef SMK_CUDA_MODULE_H
#define SMK_CUDA_MODULE_H

#include "../core/job.h"
#include "context.h"

typedef struct module module;

smk_code module_acquire(device *d, const smk_image *image, module **out, smk_status *status);
void module_release(device *d, module *m);

/* Releases the module, and destroys those streams of our own, when what is now on `stream` has run: for
 * kernels that were left running. */
enum { MOST_OWN_STREAMS = 16 };
void module_release_after(device *d, module *m, CUstream stream, const CUstream *own, int n_own);

/* Releases the module, but never unloads it: nobody says when its kernels have run. */
void module_keep(device *d, module *m);

/* A kernel of the module, allowed to use this much dynamic shared memory; *virtual_sm: what its PTX was
 * compiled for, 90. */
smk_code module_function(device *d, module *m, const char *entry, size_t shared_bytes,
                         CUfunction *out, int *virtual_sm, smk_status *status);

#endif
