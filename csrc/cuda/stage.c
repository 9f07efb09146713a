/* Pinning costs a millisecond for some MiB, so stages are kept. */
#include "stage.h"

#include <stdlib.h>
#include <string.h>

enum { MARKS = STAGE_KERNEL_FENCES + STAGE_COPY_FENCES, MOST_STAGES = 32, LINE_BYTES = 64 };

static void destroy(device *d, stage *s) {
    d->cu->cuMemFreeHost(s->memory);
    free(s);
}

static stage_fence *mark_of(stage *s, int i) {
    return i < STAGE_KERNEL_FENCES ? &s->ends[i] : &s->copied[i - STAGE_KERNEL_FENCES];
}

/* The memory, and a line of the cache for each mark. */
static smk_code create(device *d, stage **out, smk_status *status) {
    stage *s = calloc(1, sizeof *s);
    if (!s) return smk_fail_memory(status, sizeof *s, "a stage");
    void *memory = NULL;
    const size_t bytes = STAGE_BYTES + (size_t)MARKS * LINE_BYTES;
    CUresult result = d->cu->cuMemHostAlloc(&memory, bytes, 0);
    if (result) {
        free(s);
        return device_fail(d, result, SMK_ERROR, status,
                           "cuMemHostAlloc of %zu bytes of pinned memory", bytes);
    }
    s->memory = memory;
    char *marks = s->memory + STAGE_BYTES;
    memset(marks, 0, (size_t)MARKS * LINE_BYTES);
    for (int i = 0; i < MARKS; i++)
        mark_of(s, i)->value = (_Atomic uint32_t *)(void *)(marks + (size_t)i * LINE_BYTES);
    *out = s;
    return SMK_OK;
}

CUresult stage_signal(device *d, stage_fence *mark, CUstream stream) {
    const CUdeviceptr address = (CUdeviceptr)(uintptr_t)mark->value;
    const uint32_t next = mark->expected + 1;
    const CUresult result = d->cu->cuStreamWriteValue32(stream, address, next, 0);
    if (result == CUDA_SUCCESS)
        mark->expected = next;
    else /* no mark will say when what was queued has ended, so it ends now */
        d->cu->cuStreamSynchronize(stream);
    return result;
}

CUresult stage_wait(device *d, const stage_fence *mark, CUstream stream) {
    return d->cu->cuStreamWaitValue32(stream, (CUdeviceptr)(uintptr_t)mark->value, mark->expected,
                                      CU_STREAM_WAIT_VALUE_GEQ);
}

/* A call that was interrupted may have left work behind that waits for its kernels. */
static bool is_idle(const stage *s) {
    for (int i = 0; i < STAGE_KERNEL_FENCES; i++)
        if (!stage_done(&s->ends[i])) return false;
    return !stage_in_use(s);
}

smk_code stage_take(device *d, int n_flows, stage **out, smk_status *status) {
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
    found->n_copied = n_flows > found->n_copied ? n_flows : found->n_copied;
    *out = found;
    return SMK_OK;
}

void stage_give(device *d, stage *s) {
    const bool idle = is_idle(s);
    pthread_mutex_lock(&d->mutex);
    const bool kept = d->n_stages < MOST_STAGES || !idle;
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
