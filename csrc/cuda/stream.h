/* Streams: each call runs on one of its own, taken from a short list, so that calls from many
 * threads overlap. */
#ifndef SMK_CUDA_STREAM_H
#define SMK_CUDA_STREAM_H

#include "context.h"

smk_code stream_take(device *d, CUstream *out, smk_status *status);

/* An idle stream goes back to the list. A busy one (its kernel was interrupted) is destroyed: the
 * driver lets go of it when its work is done, and nobody queues behind that work. */
void stream_give(device *d, CUstream stream, bool idle);

#endif
