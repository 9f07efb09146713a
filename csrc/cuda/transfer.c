/* The driver copies pageable memory through its own staging buffers and returns when it has read
 * it. That cannot be interrupted, so large copies go in slices.
 */
#include "transfer.h"

enum { SLICE_BYTES = 32 << 20 }; /* 2 to 3 ms of a pageable copy */

static size_t slice(size_t bytes) {
    return bytes < SLICE_BYTES ? bytes : SLICE_BYTES;
}

smk_code transfer_in(device *d, CUstream stream, CUdeviceptr to, const void *from, size_t bytes,
                     patience *p, smk_status *status) {
    const char *source = from;
    for (size_t done = 0, n; done < bytes; done += n) {
        n = slice(bytes - done);
        CUresult result = d->cu->cuMemcpyHtoDAsync(to + done, source + done, n, stream);
        if (result)
            return device_fail(d, result, SMK_ERROR, status, "cuMemcpyHtoDAsync of %zu bytes", n);
        smk_code code = patience_check(p, status);
        if (code) return code;
    }
    return SMK_OK;
}

smk_code transfer_out(device *d, CUstream stream, void *to, CUdeviceptr from, size_t bytes,
                      patience *p, smk_status *status) {
    char *target = to;
    for (size_t done = 0, n; done < bytes; done += n) {
        n = slice(bytes - done);
        CUresult result = d->cu->cuMemcpyDtoHAsync(target + done, from + done, n, stream);
        if (result)
            return device_fail(d, result, SMK_ERROR, status, "cuMemcpyDtoHAsync of %zu bytes", n);
        smk_code code = patience_check(p, status);
        if (code) return code;
    }
    return SMK_OK;
}
