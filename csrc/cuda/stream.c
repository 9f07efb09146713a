/* The list is a stack: the stream used last is the one whose state is warm. */
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
    bool kept = d->n_free_streams < MOST_FREE_STREAMS;
    if (kept) d->free_streams[d->n_free_streams++] = stream;
    pthread_mutex_unlock(&d->mutex);
    if (!kept) d->cu->cuStreamDestroy(stream);
}
