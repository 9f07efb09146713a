/* Pipelines that run at the same time on several GPUs and read the same host memory, as all parts
 * of a product read one of its operands. Shared copies are distributed round robin among the GPUs:
 *
 *      host memory --(threads)--> slot of 0 --(bus of 0)--> GPU 0 --(NVLink)--> GPU 1, GPU 2 ...
 *
 * If the GPUs cannot access each other's memory, or cannot keep all blocks, each one copies from
 * the slot over its own bus. With several GPUs host memory and host threads are the bottleneck,
 * before the buses.
 */
#ifndef SMK_PIPELINE_PEER_GROUP_H
#define SMK_PIPELINE_PEER_GROUP_H

#include "tasks.h"

typedef struct peer_group {
    atomic_bool stopped; /* one has failed, or the call is interrupted: all end */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n, n_joined, n_left;
    bool complete; /* none is absent, so copies are shared */
    const int *ordinals;
    pipeline_state *members[SMK_MAX_PIPELINES];
} peer_group;

void peer_group_init(peer_group *g, const int *ordinals, int n);
void peer_group_destroy(peer_group *g);

/* Whether the other GPUs can copy from this one's memory. Call it before memory is allocated there.
 * peer_group_join resets peer_stream if not all GPUs can. */
bool peer_group_can_copy(const pipeline_state *p);

/* Joins the group: waits until all members have joined or are absent. If none is absent, the copies
 * that all have in common are then distributed. */
void peer_group_join(pipeline_state *p);

/* Called in place of peer_group_join for a member that failed before. */
void peer_group_absent(peer_group *g);

/* Call it after the pipeline's threads have ended. Waits for the threads of all others, which may
 * still enqueue copies for this one. `failed` stops them. */
void peer_group_leave(pipeline_state *p, bool failed, interrupt_poller *poller);

/* Runs one pipeline, from its first allocation to its last byte. `group`: NULL without peers. */
smk_code pipeline_run_member(int ordinal, const smk_pipeline *pipeline, peer_group *group,
                             int member, smk_status *status);

#endif
