/* Flows that run at the same time on several GPUs and read the same memory of the host, as all parts of a product read
 * one of its operands: one of them brings it into a slot, and from there it goes to all of their GPUs. Memory and
 * threads are what several GPUs have too little of, before their buses.
 */
#ifndef SMK_CUDA_FLOW_GROUP_H
#define SMK_CUDA_FLOW_GROUP_H

#include "flow_steps.h"

typedef struct flow_group {
    atomic_bool stopped; /* all of them are to end */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n, met, parted;
    bool complete; /* all of them have come, and share */
    flow_state *members[SMK_MAX_FLOWS];
} flow_group;

void flow_group_make(flow_group *g, int n);
void flow_group_free(flow_group *g);

/* Waits until all have either met or are missed. Then what all are to copy has been shared out among them, if none is
 * missing. */
void flow_group_meet(flow_state *f);

/* In place of one that cannot come. */
void flow_group_miss(flow_group *g);

/* No thread of this flow does anything more. Waits for those of the others, which may have something to do for this
 * one. `failed` ends them. */
void flow_group_part(flow_state *f, bool failed, patience *p);

#endif
