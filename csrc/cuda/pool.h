/* Device memory that is kept for the next call. Allocation and release are ordered on a stream:
 * what is freed while the stream still works is reused only when it has done. */
#ifndef SMK_CUDA_POOL_H
#define SMK_CUDA_POOL_H

#include "context.h"

/* The device's context must be current in all five. bytes > 0. */
smk_code pool_allocate(device *d, CUstream stream, size_t bytes, CUdeviceptr *out,
                       smk_status *status);
smk_code pool_free(device *d, CUstream stream, CUdeviceptr address, smk_status *status);

/* From now on that device reaches this one's pooled memory, by itself; false: it cannot. */
bool pool_open_to(device *d, int ordinal);

/* Bytes held that no call uses, and giving them back to the driver. */
size_t pool_bytes(device *d);
smk_code pool_trim(device *d, smk_status *status);

#endif
