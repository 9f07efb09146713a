/* Pooled device memory. Allocation and release are stream-ordered: memory freed on a stream is
 * reused only after the work enqueued on that stream before. */
#ifndef SMK_CUDA_POOL_H
#define SMK_CUDA_POOL_H

#include "context.h"

/* In all functions below, the device's context must be current. bytes > 0. */
smk_code pool_allocate(device *d, CUstream stream, size_t bytes, CUdeviceptr *out,
                       smk_status *status);
smk_code pool_free(device *d, CUstream stream, CUdeviceptr address, smk_status *status);

/* Gives device `ordinal` peer access to this device's pool. False: not possible. */
bool pool_open_to(device *d, int ordinal);

/* Unused bytes that the pool retains; pool_trim returns them to the driver. */
size_t pool_bytes(device *d);
smk_code pool_trim(device *d, smk_status *status);

#endif
