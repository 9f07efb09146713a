/* The task graph of a host-device pipeline: a computation on arrays in host memory, cut into
 * blocks, so that copies in, kernels and copies out overlap.
 *
 *      in:       A0 B0 | B1 | A1 |  B2   | A2 |
 *      compute:          C00 | C01| C10 C11 | ...
 *      out:                    C00 |  C01  | C10 ...
 *
 * Copies in, copies out and each compute stream are queues, which run in list order. A task lists
 * the earlier tasks of other queues that must end before it starts. These dependencies also order
 * the reuse of device memory. plan.c makes graphs; ../run.c and ../run_emu.c run them.
 */
#ifndef SMK_PIPELINE_GRAPH_H
#define SMK_PIPELINE_GRAPH_H

#include "../../core/job.h"

enum { SMK_MAX_AFTER = 6, SMK_COMPUTE_STREAMS = 4, SMK_MAX_PIPELINES = 16 };

/* A 2D copy between host memory and a buffer on the device: `height` rows of `width` bytes. */
typedef struct smk_rectangle {
    char *host;
    ptrdiff_t host_pitch; /* bytes from row to row; may be negative */
    uint32_t buffer;
    size_t offset, pitch; /* bytes, in the buffer */
    size_t width, height;
} smk_rectangle;

typedef enum smk_task_kind { SMK_COPY_IN, SMK_COMPUTE, SMK_COPY_OUT, SMK_N_KINDS } smk_task_kind;

typedef struct smk_task {
    smk_task_kind kind;
    smk_rectangle rectangle; /* copies */
    const smk_job *job;      /* computes; the pipeline's buffers replace those of the job */
    int compute_stream;      /* computes: kernels of different streams may overlap */
    uint32_t after[SMK_MAX_AFTER];
    int n_after;
} smk_task;

typedef struct smk_pipeline {
    smk_image image;
    const smk_buffer *buffers; /* device memory: `bytes` to allocate, or SMK_ON_DEVICE */
    size_t n_buffers;
    const smk_task *tasks;
    size_t n_tasks;
    /* No device memory is reused, and `after` is complete: copies in may run in any order. */
    bool resident;
    void *stream;       /* a CUstream that all kernels run on; NULL: streams of our own */
    void *const *after; /* n_after CUstreams; the pipeline starts after their enqueued work */
    size_t n_after;

    /* As in smk_job. `repeat`: there is a single compute task. */
    int (*poll)(void *poll_arg);
    void *poll_arg;
    int repeat;
    float *milliseconds;
    smk_transfer *transfer;

    _Atomic size_t *delivered; /* incremented by bytes of results in host memory; may be NULL */
    int n_concurrent;          /* pipelines that divide the host's cores; 0: this one only */
} smk_pipeline;

#endif
