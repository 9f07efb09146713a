/* What threads do in a running flow. */
#ifndef SMK_CUDA_FLOW_WORK_H
#define SMK_CUDA_FLOW_WORK_H

#include "flow_steps.h"

enum { FLOW_MOST_THREADS = 16 };

/* One of a flow's threads. */
typedef struct flow_worker {
    flow_state *flow;
    patience *patience;        /* of the caller's thread alone */
    int64_t idle_since, asked; /* 0: it is not */
    smk_status status;
} flow_worker;

/* All of them, the caller first. */
typedef struct flow_crew {
    int n;
    flow_worker workers[FLOW_MOST_THREADS];
    struct helper *helpers[FLOW_MOST_THREADS];
} flow_crew;

/* Wakes as many threads as there is work for: none, for little. They fill slots from now on, before there is memory on
 * the device. flow_end is due, also when it failed. */
smk_code flow_begin(flow_state *f, flow_crew *crew, patience *p, smk_status *status);

/* When memory and kernels are there: the caller, too, moves pieces and starts kernels, until all are on their streams. */
void flow_work(flow_state *f, flow_crew *crew);

/* The end of all threads' work, at once where the status tells of a failure. Kernels and copies may still run. */
smk_code flow_end(flow_state *f, flow_crew *crew, smk_status *status);

#endif
