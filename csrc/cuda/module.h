/* Loaded modules, cached by their image's key and reference-counted by the calls that run them. */
#ifndef SMK_CUDA_MODULE_H
#define SMK_CUDA_MODULE_H

#include "../core/job.h"
#include "context.h"
#include "texture.h"

typedef struct module module;

smk_code module_acquire(device *d, const smk_image *image, module **out, smk_status *status);
void module_release(device *d, module *m);
CUmodule module_handle(const module *m);

/* For interrupted calls, whose kernels may still run: releases the module, and destroys the streams
 * `own` and the textures (or NULL), once the work now on `stream` has ended. */
enum { MAX_OWN_STREAMS = 16 };
void module_release_after(device *d, module *m, CUstream stream, const CUstream *own, int n_own,
                          texture_set *textures);

/* Releases the module and never unloads it, because the end of its kernels is not observed. */
void module_keep(device *d, module *m);

/* A kernel of the module, opted in to shared_bytes of dynamic shared memory. *virtual_sm: the
 * virtual architecture that its PTX was compiled for (90). */
smk_code module_function(device *d, module *m, const char *entry, size_t shared_bytes,
                         CUfunction *out, int *virtual_sm, smk_status *status);

#endif
