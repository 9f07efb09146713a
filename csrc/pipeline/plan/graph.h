/* A computation on arrays in host memory, cut into tasks, so that copies in, kernels and copies out run at
 * the same time: what a pipelined kernel does with tiles and shared memory, one level up.
 *
 *      in:       A0 B0 | B1 | A1 |  B2   | A2 |
 *      compute:          C00 | C01| C10 C11 | ...
 *      out:                    C00 |  C01  | C10 ...
 *
 * Three queues, each in the order of the list. A task names the earlier ones, of other queues, whose end it
 * waits for; so the list itself says how blocks share the device's memory. core/plan_flow.c makes them,
 * cuda/flow.c runs them.
 */
#ifndef SMK_PIPELINE_GRAPH_H
#define SMK_PIPELINE_GRAPH_H

#include "../../core/job.h"

enum { SMK_MAX_AFTER = 6, SMK_COMPUTE_STREAMS = 4, SMK_MAX_PIPELINES = 16 };

/* Lines of bytes in host memory, and where they lie in a buffer on the device. */
typedef struct smk_rectangle {
    char *host;
    ptrdiff_t host_pitch; /* bytes from line to line; may be negative */
    uint32_t buffer;
    size_t offset, pitch; /* bytes, in the buffer */
    size_t width, lines;  /* bytes of a line */
} smk_rectangle;

typedef enum smk_task_kind { SMK_COPY_IN, SMK_COMPUTE, SMK_COPY_OUT, SMK_N_KINDS } smk_task_kind;

typedef struct smk_task {
    smk_task_kind kind;
    smk_rectangle rectangle; /* copies */
    const smk_job *job; /* computes: pointers, arguments, launches; its buffers are the flow's */
    int lane;           /* computes: kernels of different lanes may run at the same time */
    uint32_t after[SMK_MAX_AFTER];
    int n_after;
} smk_task;

typedef struct smk_pipeline {
    smk_image image;
    const smk_buffer *buffers; /* on the device: of so many bytes, or SMK_ON_DEVICE already */
    size_t n_buffers;
    const smk_task *tasks;
    size_t n_tasks;
    bool resident;      /* nothing makes room for anything, and tasks name all that they wait for */
    void *stream;       /* kernels run on it, if it is not NULL */
    void *const *after; /* n_after CUstreams whose queued work has to be done first */
    size_t n_after;

    /* As in smk_job; `repeat` is of the only compute task. */
    int (*poll)(void *poll_arg);
    void *poll_arg;
    int repeat;
    float *milliseconds;
    smk_transfer *transfer;

    _Atomic size_t
        *delivered; /* bytes of the results that are where they belong; NULL: nobody asks */
    int share;      /* so many flows share the host's cores; 0: this one has them */
} smk_pipeline;

#endif
