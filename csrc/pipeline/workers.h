/* What threads do in a running flow. */
#ifndef SMK_PIPELINE_WORKERS_H
#define SMK_PIPELINE_WORKERS_H

#include "tasks.h"

enum { MAX_WORKERS = 16 };

/* One of a flow's threads. */
typedef struct worker {
    pipeline_state *flow;
    interrupt_poller *interrupt_poller; /* of the caller's thread alone */
    int64_t idle_since, asked;          /* 0: it is not */
    smk_status status;
} worker;

/* All of them, the caller first. */
typedef struct workers {
    int n;
    worker workers[MAX_WORKERS];
    struct pool_thread *threads[MAX_WORKERS];
} workers;

/* Wakes as many threads as there is work for: none, for little. They fill slots from now on, before there is memory on
 * the device. workers_join is due, also when it failed. */
smk_code workers_start(pipeline_state *f, workers *crew, interrupt_poller *p, smk_status *status);

/* When memory and kernels are there: the caller, too, moves pieces and starts kernels, until all are on their streams. */
void workers_run(pipeline_state *f, workers *crew);

/* The end of all threads' work, at once where the status tells of a failure. Kernels and copies may still run. */
smk_code workers_join(pipeline_state *f, workers *crew, smk_status *status);

#endif
