/* gpu_event: a CUDA event without timing. */
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
    gpu_event *e = calloc(1, sizeof *e);
    if (!e) {
        code = smk_fail_memory(status, sizeof *e, "an event");
        goto done;
    }
    e->ordinal = ordinal;
    CUresult result = d->cu->cuEventCreate(&e->event, CU_EVENT_DISABLE_TIMING);
    if (!result && (result = d->cu->cuEventRecord(e->event, stream)))
        d->cu->cuEventDestroy(e->event);
    if (result) {
        code = device_fail(d, result, SMK_ERROR, status, "cuEventRecord");
        free(e);
        goto done;
    }
    *out = e;
done:
    device_leave(d);
    return code;
}

bool gpu_event_query(const gpu_event *e) {
    smk_status unused = {0};
    device *d;
    if (device_enter(e->ordinal, &d, &unused)) return true; /* nothing runs on a lost device */
    const int mode = device_relax_capture_mode(d);
    const bool done = d->cu->cuEventQuery(e->event) != CUDA_ERROR_NOT_READY;
    device_restore_capture_mode(d, mode);
    device_leave(d);
    return done;
}

smk_code gpu_stream_wait_event(const gpu_event *e, void *stream, smk_status *status) {
    device *d;
    smk_code code = device_enter(e->ordinal, &d, status);
    if (code) return code;
    CUresult result = d->cu->cuStreamWaitEvent(stream, e->event, 0);
    if (result) code = device_fail(d, result, SMK_VALUE, status, "cuStreamWaitEvent");
    device_leave(d);
    return code;
}

void gpu_event_free(gpu_event *e) {
    smk_status unused = {0};
    device *d;
    if (!e) return;
    if (!device_enter(e->ordinal, &d, &unused)) {
        d->cu->cuEventDestroy(e->event);
        device_leave(d);
    }
    free(e);
}
