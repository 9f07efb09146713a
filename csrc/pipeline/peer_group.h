/* Flows that run at the same time on several GPUs and read the same memory of the host, as all parts of a product read
 * one of its operands. They take turns to bring it:
 *
 *      host memory --(threads)--> slot of 0 --(bus of 0)--> GPU 0 --(NVLink)--> GPU 1, GPU 2 ...
 *
 * GPUs that do not reach each other's memory, and flows that have too little of it to keep all blocks, copy from the slot
 * each by its own bus. For the host's memory and threads are what several GPUs have too little of, before their buses.
 */
#ifndef SMK_PIPELINE_PEER_GROUP_H
#define SMK_PIPELINE_PEER_GROUP_H

#include "tasks.h"

typedef struct peer_group {
    atomic_bool stopped; /* all of them are to end */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n, met, parted;
    bool complete; /* all of them have come, and share */
    const int *ordinals;
    pipeline_state *members[SMK_MAX_PIPELINES];
} peer_group;

void peer_group_init(peer_group *g, const int *ordinals, int n);
void peer_group_destroy(peer_group *g);

/* Whether the others can have from this one's GPU what it has brought. Asked before it allocates there; it may then be
 * that not all can, and `passing` is unset when they have met. */
bool peer_group_can_copy(const pipeline_state *f);

/* Waits until all have either met or are missed. Then what all are to copy has been shared out among them, if none is
 * missing. */
void peer_group_join(pipeline_state *f);

/* In place of one that cannot come. */
void peer_group_absent(peer_group *g);

/* No thread of this flow does anything more. Waits for those of the others, which may have something to do for this
 * one. `failed` ends them. */
void peer_group_leave(pipeline_state *f, bool failed, interrupt_poller *p);

#endif
