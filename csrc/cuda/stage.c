/* Staging buffers are reused, because pinning a few MiB takes a millisecond. */
#include "stage.h"

#include <stdlib.h>
#include <string.h>

enum { FENCES = STAGE_KERNEL_FENCES + STAGE_COPY_FENCES, MAX_STAGES = 32, LINE_BYTES = 64 };

static void destroy(device *d, stage *s) {
    d->cu->cuMemFreeHost(s->memory);
    free(s);
}

static stage_fence *fence_of(stage *s, int i) {
    return i < STAGE_KERNEL_FENCES ? &s->ends[i] : &s->copied[i - STAGE_KERNEL_FENCES];
}

/* Allocates the buffer, followed by one cache line per fence. */
static smk_code create(device *d, stage **out, smk_status *status) {
    stage *s = calloc(1, sizeof *s);
    if (!s) return smk_fail_memory(status, sizeof *s, "a stage");
    void *memory = NULL;
    const size_t bytes = STAGE_BYTES + (size_t)FENCES * LINE_BYTES;
    CUresult result = d->cu->cuMemHostAlloc(&memory, bytes, 0);
    if (result) {
        free(s);
        return device_fail(d, result, SMK_ERROR, status,
                           "cuMemHostAlloc of %zu bytes of pinned memory", bytes);
    }
    s->memory = memory;
    char *fences = s->memory + STAGE_BYTES;
    memset(fences, 0, (size_t)FENCES * LINE_BYTES);
    for (int i = 0; i < FENCES; i++)
        fence_of(s, i)->value = (_Atomic uint32_t *)(void *)(fences + (size_t)i * LINE_BYTES);
    *out = s;
    return SMK_OK;
}

CUresult stage_signal(device *d, stage_fence *fence, CUstream stream) {
    const CUdeviceptr address = (CUdeviceptr)(uintptr_t)fence->value;
    const uint32_t next = fence->expected + 1;
    const CUresult result = d->cu->cuStreamWriteValue32(stream, address, next, 0);
    if (result == CUDA_SUCCESS)
        fence->expected = next;
    else /* the end of the enqueued work cannot be signalled, so wait for it */
        d->cu->cuStreamSynchronize(stream);
    return result;
}

CUresult stage_wait(device *d, const stage_fence *fence, CUstream stream) {
    return d->cu->cuStreamWaitValue32(stream, (CUdeviceptr)(uintptr_t)fence->value, fence->expected,
                                      CU_STREAM_WAIT_VALUE_GEQ);
}

/* An interrupted call may have left enqueued copies that wait for its kernels. */
static bool is_idle(const stage *s) {
    for (int i = 0; i < STAGE_KERNEL_FENCES; i++)
        if (!stage_done(&s->ends[i])) return false;
    return !stage_in_use(s);
}

smk_code stage_take(device *d, int n_pipelines, stage **out, smk_status *status) {
    stage *found;
    pthread_mutex_lock(&d->mutex);
    stage **link = &d->stages;
    while (*link && !is_idle(*link))
        link = &(*link)->next;
    if ((found = *link)) {
        *link = found->next;
        d->n_stages--;
    }
    pthread_mutex_unlock(&d->mutex);
    if (!found && create(d, &found, status)) return status->code;
    found->n_copied = n_pipelines > found->n_copied ? n_pipelines : found->n_copied;
    *out = found;
    return SMK_OK;
}

void stage_give(device *d, stage *s) {
    const bool idle = is_idle(s);
    pthread_mutex_lock(&d->mutex);
    const bool kept = d->n_stages < MAX_STAGES || !idle;
    if (kept) {
        s->next = d->stages;
        d->stages = s;
        d->n_stages++;
    }
    pthread_mutex_unlock(&d->mutex);
    if (!kept) destroy(d, s);
}

size_t stage_bytes(device *d) {
    size_t bytes = 0;
    pthread_mutex_lock(&d->mutex);
    for (const stage *s = d->stages; s; s = s->next)
        bytes += STAGE_BYTES;
    pthread_mutex_unlock(&d->mutex);
    return bytes;
}

void stage_trim(device *d) {
    pthread_mutex_lock(&d->mutex);
    for (stage **link = &d->stages; *link;) {
        stage *s = *link;
        if (!is_idle(s)) {
            link = &s->next;
            continue;
        }
        *link = s->next;
        d->n_stages--;
        destroy(d, s);
    }
    pthread_mutex_unlock(&d->mutex);
}
