/* Pinning costs a millisecond for some MiB, so stages are kept: as many as the largest call had threads, which
 * flow.c bounds. */
#include "stage.h"

#include <stdlib.h>
#include <string.h>

enum { ALL_SLOTS = STAGE_WAYS * SLOTS, MOST_STAGES = 32, LINE_BYTES = 64 };

static void destroy(device *d, stage *s) {
    d->cu->cuMemFreeHost(s->slots[0][0]);
    free(s);
}

/* The slots, and a line of the cache for each slot's mark. */
static smk_code create(device *d, stage **out, smk_status *status) {
    stage *s = calloc(1, sizeof *s);
    if (!s) return smk_fail_memory(status, sizeof *s, "a stage");
    void *memory = NULL;
    const size_t bytes = (size_t)ALL_SLOTS * (SLOT_BYTES + LINE_BYTES);
    CUresult result = d->cu->cuMemHostAlloc(&memory, bytes, 0);
    if (result) {
        free(s);
        return device_fail(d, result, SMK_ERROR, status,
                           "cuMemHostAlloc of %zu bytes of pinned memory", bytes);
    }
    char *marks = (char *)memory + (size_t)ALL_SLOTS * SLOT_BYTES;
    memset(marks, 0, (size_t)ALL_SLOTS * LINE_BYTES);
    for (size_t way = 0; way < STAGE_WAYS; way++)
        for (size_t slot = 0; slot < SLOTS; slot++) {
            const size_t i = way * SLOTS + slot;
            s->slots[way][slot] = (char *)memory + i * SLOT_BYTES;
            s->marks[way][slot] = (_Atomic uint32_t *)(void *)(marks + i * LINE_BYTES);
        }
    *out = s;
    return SMK_OK;
}

CUresult stage_expect(device *d, stage *s, stage_way way, int slot, CUstream stream) {
    const CUdeviceptr mark = (CUdeviceptr)(uintptr_t)s->marks[way][slot];
    return d->cu->cuStreamWriteValue32(stream, mark, ++s->expected[way][slot], 0);
}

/* A call that was interrupted may have left copies behind that wait for its kernels. */
static bool is_idle(const stage *s) {
    for (int way = 0; way < STAGE_WAYS; way++)
        for (int slot = 0; slot < SLOTS; slot++)
            if (!stage_has_come(s, (stage_way)way, slot)) return false;
    return true;
}

smk_code stage_take(device *d, stage **out, smk_status *status) {
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
    if (!found) return create(d, out, status);
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
        bytes += (size_t)ALL_SLOTS * SLOT_BYTES;
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
