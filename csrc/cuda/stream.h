/* Streams: each call runs on one of its own, taken from a short list, so that calls from many
 * threads overlap. */
#ifndef SMK_CUDA_STREAM_H
#define SMK_CUDA_STREAM_H

#include "context.h"

smk_code stream_take(device *d, CUstream *out, smk_status *status);

/* Takes an idle stream back. */
void stream_give(device *d, CUstream stream);

/* What is put on `stream` from now on waits for what is on `other` by now. */
smk_code stream_wait(device *d, CUstream stream, CUstream other, smk_status *status);

#endif
