/* Flows on several GPUs, a thread for each. What all of them read is brought once, by turns. */
#include <stdlib.h>
#include <time.h>

#include "pipeline.h"
#include "run.h"
#include "thread_pool.h"

enum { NAP_NS = 200 * 1000, POLL_NAPS = 100 };

typedef struct part {
    int ordinal, index;
    smk_pipeline flow;
    smk_status status;
    peer_group *group;
    pool_thread *pool_thread;
} part;

/* What the caller's thread listens with; the others are told by it. */
typedef struct listener {
    const smk_pipeline *flow;
    peer_group *group;
} listener;

static int is_stopped(void *group) {
    return atomic_load(&((peer_group *)group)->stopped);
}

static int listen(void *argument) {
    const listener *l = argument;
    if (l->flow->poll && l->flow->poll(l->flow->poll_arg)) atomic_store(&l->group->stopped, true);
    return is_stopped(l->group);
}

static void run_in(part *p, peer_group *group) {
    if (pipeline_run_group(p->ordinal, &p->flow, group, p->index, &p->status))
        atomic_store(&p->group->stopped, true);
}

static void run(void *argument) {
    part *p = argument;
    run_in(p, p->group);
}

/* The first of them is the caller's to run; what no thread could be had for follows, and shares nothing. */
static void run_all(part *parts, int n, listener *l) {
    for (int i = 1; i < n; i++) {
        parts[i].pool_thread = thread_pool_start(run, &parts[i]);
        if (!parts[i].pool_thread) peer_group_absent(l->group);
    }
    run(&parts[0]);
    for (int i = 1; i < n; i++) {
        if (!parts[i].pool_thread) {
            run_in(&parts[i], NULL);
            continue;
        }
        for (int naps = 1; !thread_pool_is_done(parts[i].pool_thread); naps++) {
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
            if (naps % POLL_NAPS == 0) listen(l);
        }
        thread_pool_join(parts[i].pool_thread);
    }
}

smk_code pipeline_run_gpus(const int *ordinals, const smk_pipeline *flows, int n,
                           smk_status *status) {
    if (n == 1) return pipeline_run_gpu(ordinals[0], flows, status);
    if (n < 1 || n > SMK_MAX_PIPELINES)
        return smk_fail(status, SMK_VALUE, "%d GPUs; there may be 1 to %d", n, SMK_MAX_PIPELINES);
    part *parts = calloc((size_t)n, sizeof *parts);
    if (!parts) return smk_fail_memory(status, (size_t)n * sizeof *parts, "the parts of a call");
    peer_group group;
    listener l = {flows, &group};
    peer_group_init(&group, ordinals, n);
    for (int i = 0; i < n; i++) {
        parts[i] = (part){.ordinal = ordinals[i], .index = i, .flow = flows[i], .group = &group};
        parts[i].flow.poll = i ? is_stopped : listen;
        parts[i].flow.poll_arg = i ? (void *)&group : (void *)&l;
    }
    run_all(parts, n, &l);
    /* One that was only told to stop says less than the one that was the reason. */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < n; i++)
            if (parts[i].status.code && (pass || parts[i].status.code != SMK_INTERRUPTED))
                smk_fail(status, parts[i].status.code, "%s", parts[i].status.message);
    if (!status->code && is_stopped(&group)) /* heard when all was done */
        smk_fail(status, SMK_INTERRUPTED, "interrupted");
    peer_group_destroy(&group);
    free(parts);
    return status->code;
}
