/* Pipelines on several GPUs, one thread per GPU. peer_group.h: shared copies. */
#include <stdlib.h>
#include <time.h>

#include "peer_group.h"
#include "pipeline.h"
#include "thread_pool.h"

enum { NAP_NS = 200 * 1000, NAPS_PER_POLL = 100 };

typedef struct part {
    int ordinal, member;
    smk_pipeline pipeline;
    smk_status status;
    peer_group *group;
    pool_thread *thread;
} part;

/* The poll of the caller's thread. The other threads' poll is is_stopped. */
typedef struct group_poll {
    const smk_pipeline *pipeline;
    peer_group *group;
} group_poll;

static int is_stopped(void *group) {
    return atomic_load(&((peer_group *)group)->stopped);
}

static int poll_caller_thread(void *argument) {
    const group_poll *g = argument;
    const smk_pipeline *p = g->pipeline;
    if (p->poll && p->poll(p->poll_arg)) atomic_store(&g->group->stopped, true);
    return is_stopped(g->group);
}

static void run_in(part *p, peer_group *group) {
    if (pipeline_run_member(p->ordinal, &p->pipeline, group, p->member, &p->status))
        atomic_store(&p->group->stopped, true);
}

static void run(void *argument) {
    part *p = argument;
    run_in(p, p->group);
}

/* The caller's thread runs the first part. Then it runs parts that got no thread, unshared. */
static void run_all(part *parts, int n, group_poll *poll) {
    for (int i = 1; i < n; i++) {
        parts[i].thread = thread_pool_start(run, &parts[i]);
        if (!parts[i].thread) peer_group_absent(poll->group);
    }
    run(&parts[0]);
    for (int i = 1; i < n; i++) {
        if (!parts[i].thread) {
            run_in(&parts[i], NULL);
            continue;
        }
        for (int naps = 1; !thread_pool_is_done(parts[i].thread); naps++) {
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
            if (naps % NAPS_PER_POLL == 0) poll_caller_thread(poll);
        }
        thread_pool_join(parts[i].thread);
    }
}

smk_code pipeline_run_gpus(const int *ordinals, const smk_pipeline *pipelines, int n,
                           smk_status *status) {
    if (n == 1) return pipeline_run_gpu(ordinals[0], pipelines, status);
    if (n < 1 || n > SMK_MAX_PIPELINES)
        return smk_fail(status, SMK_VALUE, "expected 1 to %d GPUs, found %d", SMK_MAX_PIPELINES, n);
    part *parts = calloc((size_t)n, sizeof *parts);
    if (!parts) return smk_fail_memory(status, (size_t)n * sizeof *parts, "the parts of a call");
    peer_group group;
    group_poll poll = {pipelines, &group};
    peer_group_init(&group, ordinals, n);
    for (int i = 0; i < n; i++) {
        parts[i] =
            (part){.ordinal = ordinals[i], .member = i, .pipeline = pipelines[i], .group = &group};
        parts[i].pipeline.poll = i ? is_stopped : poll_caller_thread;
        parts[i].pipeline.poll_arg = i ? (void *)&group : (void *)&poll;
    }
    run_all(parts, n, &poll);
    /* The failure that stopped the others is reported rather than their SMK_INTERRUPTED. */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < n; i++)
            if (parts[i].status.code && (pass || parts[i].status.code != SMK_INTERRUPTED))
                smk_fail(status, parts[i].status.code, "%s", parts[i].status.message);
    if (!status->code && is_stopped(&group)) /* interrupted after all parts had finished */
        smk_fail(status, SMK_INTERRUPTED, "interrupted");
    peer_group_destroy(&group);
    free(parts);
    return status->code;
}
