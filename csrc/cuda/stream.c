/* Free streams form a stack: the stream used last is taken first, because its state is warm. */
#include "stream.h"

smk_code stream_take(device *d, CUstream *out, smk_status *status) {
    *out = NULL;
    pthread_mutex_lock(&d->mutex);
    if (d->n_free_streams) *out = d->free_streams[--d->n_free_streams];
    pthread_mutex_unlock(&d->mutex);
    if (*out) return SMK_OK;

    CUresult result = d->cu->cuStreamCreate(out, CU_STREAM_NON_BLOCKING);
    return result ? device_fail(d, result, SMK_ERROR, status, "cuStreamCreate") : SMK_OK;
}

void stream_give(device *d, CUstream stream) {
    pthread_mutex_lock(&d->mutex);
    bool kept = d->n_free_streams < MAX_FREE_STREAMS;
    if (kept) d->free_streams[d->n_free_streams++] = stream;
    pthread_mutex_unlock(&d->mutex);
    if (!kept) d->cu->cuStreamDestroy(stream);
}

smk_code stream_wait(device *d, CUstream stream, CUstream other, smk_status *status) {
    const driver *cu = d->cu;
    CUevent event;
    CUresult result = cu->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (result) return device_fail(d, result, SMK_ERROR, status, "cuEventCreate");
    const char *call = "cuEventRecord on the stream of an array";
    if (!(result = cu->cuEventRecord(event, other))) {
        call = "cuStreamWaitEvent";
        result = cu->cuStreamWaitEvent(stream, event, 0);
    }
    cu->cuEventDestroy(event); /* the driver frees it once no stream waits for it */
    return result ? device_fail(d, result, SMK_VALUE, status, "%s", call) : SMK_OK;
}
