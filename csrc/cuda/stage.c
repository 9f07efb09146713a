/* Pinning costs a millisecond for some MiB, so stages are kept: as many as the largest call had threads, which
 * flow.c bounds. */
#include "stage.h"

#include <stdlib.h>

enum { ALL_SLOTS = STAGE_WAYS * SLOTS, MOST_STAGES = 32 };

static void destroy(device *d, stage *s) {
    CUevent *events = &s->copied[0][0];
    for (int i = 0; i < ALL_SLOTS; i++)
        if (events[i]) d->cu->cuEventDestroy(events[i]);
    if (s->slots[0][0]) d->cu->cuMemFreeHost(s->slots[0][0]);
    free(s);
}

static smk_code create(device *d, stage **out, smk_status *status) {
    stage *s = calloc(1, sizeof *s);
    if (!s) return smk_fail_memory(status, sizeof *s, "a stage");
    const char *call = "cuMemHostAlloc of pinned memory";
    void *memory = NULL;
    CUresult result = d->cu->cuMemHostAlloc(&memory, (size_t)ALL_SLOTS * SLOT_BYTES, 0);
    CUevent *events = &s->copied[0][0];
    for (int i = 0; i < ALL_SLOTS; i++)
        (&s->slots[0][0])[i] = memory ? (char *)memory + (size_t)i * SLOT_BYTES : NULL;
    for (int i = 0; i < ALL_SLOTS && !result; i++) {
        call = "cuEventCreate";
        result = d->cu->cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING);
    }
    if (result) {
        destroy(d, s);
        return device_fail(d, result, SMK_ERROR, status, "%s", call);
    }
    *out = s;
    return SMK_OK;
}

/* A call that was interrupted may have left copies behind that wait for its kernels. */
static bool is_idle(device *d, const stage *s) {
    const CUevent *events = &s->copied[0][0];
    for (int i = 0; i < ALL_SLOTS; i++)
        if (d->cu->cuEventQuery(events[i]) == CUDA_ERROR_NOT_READY) return false;
    return true;
}

smk_code stage_take(device *d, stage **out, smk_status *status) {
    stage *found;
    pthread_mutex_lock(&d->mutex);
    stage **link = &d->stages;
    while (*link && !is_idle(d, *link))
        link = &(*link)->next;
    if ((found = *link)) {
        *link = found->next;
        d->n_stages--;
    }
    pthread_mutex_unlock(&d->mutex);
    if (!found) return create(d, out, status);
    *out = found;
    return SMK_OK;
}

void stage_give(device *d, stage *s) {
    const bool idle = is_idle(d, s);
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
        bytes += (size_t)ALL_SLOTS * SLOT_BYTES;
    pthread_mutex_unlock(&d->mutex);
    return bytes;
}

void stage_trim(device *d) {
    pthread_mutex_lock(&d->mutex);
    for (stage **link = &d->stages; *link;) {
        stage *s = *link;
        if (!is_idle(d, s)) {
            link = &s->next;
            continue;
        }
        *link = s->next;
        d->n_stages--;
        destroy(d, s);
    }
    pthread_mutex_unlock(&d->mutex);
}
