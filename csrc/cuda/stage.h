/* Pinned memory that bytes pass through on their way between host and device.
 *
 * The copy engines reach only memory that stays where it is; ordinary memory may move. The driver would
 * copy it through such memory too, on one core.
 */
#ifndef SMK_CUDA_STAGE_H
#define SMK_CUDA_STAGE_H

#include "context.h"

/* A copy costs the engine some 10 us beside its bytes, which is an eighth of what these take. */
enum { STAGE_BYTES = 4 << 20 };

/* Streams of a pipeline's kernels; pipelines that may share a stage. */
enum { STAGE_KERNEL_FENCES = 4, STAGE_COPY_FENCES = 16 };

typedef enum stage_way { STAGE_IN, STAGE_OUT, STAGE_WAYS } stage_way;

/* That work has ended the device itself writes down, in pinned memory too: threads that wait read that, where
 * asking the driver for an event would keep it from queueing the next copies. */
typedef struct stage_fence {
    _Atomic uint32_t *value; /* of the last work that ended ... */
    uint32_t expected;       /* ... and of the last that was queued */
} stage_fence;

typedef struct stage {
    char *memory;
    stage_fence ends[STAGE_KERNEL_FENCES]; /* of kernels: a flow uses those of its first stage */
    stage_fence copied[STAGE_COPY_FENCES]; /* of the last copy from or to it, by each flow ... */
    int n_copied;                          /* ... of those that it has served */
    struct stage *next;
} stage;

/* Behind what is to be told of was put on the stream. */
CUresult stage_signal(device *d, stage_fence *mark, CUstream stream);

/* What is put on the stream from now on comes after that. */
CUresult stage_wait(device *d, const stage_fence *mark, CUstream stream);

/* Whether so much has ended: what `expected` was when it was queued. */
static inline bool stage_reached(const stage_fence *mark, uint32_t expected) {
    return (int32_t)(atomic_load_explicit(mark->value, memory_order_acquire) - expected) >= 0;
}

static inline bool stage_done(const stage_fence *mark) {
    return stage_reached(mark, mark->expected);
}

/* A mark that has not come yet, of its copies; NULL: it is free. */
static inline const stage_fence *stage_in_use(const stage *s) {
    for (int i = 0; i < s->n_copied; i++)
        if (!stage_done(&s->copied[i])) return &s->copied[i];
    return NULL;
}

/* An idle one, for so many flows: kept from an earlier call, or new. */
smk_code stage_take(device *d, int n_flows, stage **out, smk_status *status);
void stage_give(device *d, stage *s);

/* What is kept for later calls, in bytes, and giving it back to the system. */
size_t stage_bytes(device *d);
void stage_trim(device *d);

#endif
