/* Copies between host and device: the one place that a faster path (pinned staging, several
 * threads, both directions at once) has to change.
 *
 * Host memory may be reused as soon as transfer_in returns. transfer_out is complete only when the
 * stream is synchronised. */
#ifndef SMK_CUDA_TRANSFER_H
#define SMK_CUDA_TRANSFER_H

#include "wait.h"

smk_code transfer_in(device *d, CUstream stream, CUdeviceptr to, const void *from, size_t bytes,
                     patience *p, smk_status *status);
smk_code transfer_out(device *d, CUstream stream, void *to, CUdeviceptr from, size_t bytes,
                      patience *p, smk_status *status);

#endif
