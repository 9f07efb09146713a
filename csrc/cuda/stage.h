/* Staging buffers: pinned memory for copies between pageable host memory and a device.
 *
 * Copy engines can access only pinned memory. For pageable memory the driver stages copies itself,
 * but on a single core.
 */
#ifndef SMK_CUDA_STAGE_H
#define SMK_CUDA_STAGE_H

#include "context.h"

/* A copy has a fixed cost of some 10 us on the engine: an eighth of the time for these bytes. */
enum { STAGE_BYTES = 4 << 20 };

/* Max compute streams of a pipeline; max pipelines that share a stage. */
enum { STAGE_KERNEL_FENCES = 4, STAGE_COPY_FENCES = 16 };

typedef enum stage_way { STAGE_IN, STAGE_OUT, STAGE_WAYS } stage_way;

/* A fence: a sequence number that the GPU writes to pinned memory when work has ended. Waiting
 * threads read the memory; querying a CUDA event would hold up threads that enqueue the next
 * copies. */
typedef struct stage_fence {
    _Atomic uint32_t *value; /* sequence number of the last finished work */
    uint32_t expected;       /* sequence number of the last enqueued work */
} stage_fence;

typedef struct stage {
    char *memory;
    /* Ends of kernels, per compute stream. A pipeline uses those of its first stage. */
    stage_fence ends[STAGE_KERNEL_FENCES];
    /* The last copy from or to this stage, per pipeline that shares it. n_copied: fences in use. */
    stage_fence copied[STAGE_COPY_FENCES];
    int n_copied;
    struct stage *next;
} stage;

/* Enqueues the write of the next sequence number, after the work now on the stream. */
CUresult stage_signal(device *d, stage_fence *fence, CUstream stream);

/* Work enqueued on the stream from now on waits until the fence reaches its expected value. */
CUresult stage_wait(device *d, const stage_fence *fence, CUstream stream);

/* Whether the work with this sequence number has ended. */
static inline bool stage_reached(const stage_fence *fence, uint32_t expected) {
    return (int32_t)(atomic_load_explicit(fence->value, memory_order_acquire) - expected) >= 0;
}

static inline bool stage_done(const stage_fence *fence) {
    return stage_reached(fence, fence->expected);
}

/* A fence of an unfinished copy; NULL: the stage is free. */
static inline const stage_fence *stage_in_use(const stage *s) {
    for (int i = 0; i < s->n_copied; i++)
        if (!stage_done(&s->copied[i])) return &s->copied[i];
    return NULL;
}

/* Takes an idle stage, or creates one, to be shared by n_pipelines. */
smk_code stage_take(device *d, int n_pipelines, stage **out, smk_status *status);
void stage_give(device *d, stage *s);

/* Bytes of the stages that no call holds; stage_trim frees those that are idle. */
size_t stage_bytes(device *d);
void stage_trim(device *d);

#endif
