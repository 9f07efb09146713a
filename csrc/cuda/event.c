/* A moment of a stream is an event that is recorded there. */
#include "gpu.h"

#include <stdlib.h>

#include "context.h"

struct gpu_event {
    int ordinal;
    CUevent event;
};

smk_code gpu_event_record(int ordinal, void *stream, gpu_event **out, smk_status *status) {
    device *d;
    smk_code code = device_enter(ordinal, &d, status);
    if (code) return code;
    gpu_event *m = calloc(1, sizeof *m);
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

bool gpu_event_query(const gpu_event *m) {
    smk_status unused = {0};
    device *d;
    if (device_enter(m->ordinal, &d, &unused)) return true; /* a lost device runs nothing */
    const int mode = device_relax_capture_mode(d);
    const bool passed = d->cu->cuEventQuery(m->event) != CUDA_ERROR_NOT_READY;
    device_restore_capture_mode(d, mode);
    device_leave(d);
    return passed;
}

smk_code gpu_stream_wait_event(const gpu_event *m, void *stream, smk_status *status) {
    device *d;
    smk_code code = device_enter(m->ordinal, &d, status);
    if (code) return code;
    CUresult result = d->cu->cuStreamWaitEvent(stream, m->event, 0);
    if (result) code = device_fail(d, result, SMK_VALUE, status, "cuStreamWaitEvent");
    device_leave(d);
    return code;
}

void gpu_event_free(gpu_event *m) {
    smk_status unused = {0};
    device *d;
    if (!m) return;
    if (!device_enter(m->ordinal, &d, &unused)) {
        d->cu->cuEventDestroy(m->event);
        device_leave(d);
    }
    free(m);
}
