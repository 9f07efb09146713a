/* A moment of a stream is an event that is recorded there. */
#include "gpu.h"

#include <stdlib.h>

#include "context.h"

struct gpu_moment {
    int ordinal;
    CUevent event;
};

smk_code gpu_moment_make(int ordinal, void *stream, gpu_moment **out, smk_status *status) {
    device *d;
    smk_code code = device_enter(ordinal, &d, status);
    if (code) return code;
    gpu_moment *m = calloc(1, sizeof *m);
    if (!m) {
        code = smk_fail_memory(status, sizeof *m, "a moment of a stream");
        goto done;
    }
    m->ordinal = ordinal;
    CUresult result = d->cu->cuEventCreate(&m->event, CU_EVENT_DISABLE_TIMING);
    if (!result && (result = d->cu->cuEventRecord(m->event, stream)))
        d->cu->cuEventDestroy(m->event);
    if (result) {
        code = device_fail(d, result, SMK_ERROR, status, "cuEventRecord");
        free(m);
        goto done;
    }
    *out = m;
done:
    device_leave(d);
    return code;
}

bool gpu_moment_has_passed(const gpu_moment *m) {
    smk_status unused = {0};
    device *d;
    if (device_enter(m->ordinal, &d, &unused)) return true; /* a lost device runs nothing */
    const int mode = device_ignore_captures(d);
    const bool passed = d->cu->cuEventQuery(m->event) != CUDA_ERROR_NOT_READY;
    device_heed_captures(d, mode);
    device_leave(d);
    return passed;
}

smk_code gpu_moment_before(const gpu_moment *m, void *stream, smk_status *status) {
    device *d;
    smk_code code = device_enter(m->ordinal, &d, status);
    if (code) return code;
    CUresult result = d->cu->cuStreamWaitEvent(stream, m->event, 0);
    if (result) code = device_fail(d, result, SMK_VALUE, status, "cuStreamWaitEvent");
    device_leave(d);
    return code;
}

void gpu_moment_free(gpu_moment *m) {
    smk_status unused = {0};
    device *d;
    if (!m) return;
    if (!device_enter(m->ordinal, &d, &unused)) {
        d->cu->cuEventDestroy(m->event);
        device_leave(d);
    }
    free(m);
}
