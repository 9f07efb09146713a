/* The threads of a running pipeline. */
#ifndef SMK_PIPELINE_WORKERS_H
#define SMK_PIPELINE_WORKERS_H

#include "tasks.h"

enum { MAX_WORKERS = 16 };

typedef struct worker {
    pipeline_state *pipeline;
    interrupt_poller *interrupt_poller; /* the caller's thread; NULL: others */
    int64_t idle_since, queried;        /* wait_now's time; idle_since is 0 for a busy one */
    smk_status status;
} worker;

/* workers[0] is the caller's thread. */
typedef struct workers {
    int n;
    worker workers[MAX_WORKERS];
    struct pool_thread *threads[MAX_WORKERS];
} workers;

/* Starts as many threads as there is work for; only the caller's if there is little. They begin to
 * fill slots before device memory is allocated. Call workers_join, also after failure. */
smk_code workers_start(pipeline_state *p, workers *all, interrupt_poller *poller,
                       smk_status *status);

/* After device memory is allocated and kernels are prepared: the caller's thread works too, until
 * all tasks are on their streams. */
void workers_run(pipeline_state *p, workers *all);

/* Joins the workers; cancels them if status is an error. Kernels and copies may still run. */
smk_code workers_join(pipeline_state *p, workers *all, smk_status *status);

#endif
