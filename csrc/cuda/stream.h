/* Streams for reuse. Each call takes one of its own, so calls of several threads overlap. */
#ifndef SMK_CUDA_STREAM_H
#define SMK_CUDA_STREAM_H

#include "context.h"

smk_code stream_take(device *d, CUstream *out, smk_status *status);

/* Returns an idle stream to the list. */
void stream_give(device *d, CUstream stream);

/* Work enqueued on `stream` from now on waits for the work now enqueued on `other`. */
smk_code stream_wait(device *d, CUstream stream, CUstream other, smk_status *status);

#endif
