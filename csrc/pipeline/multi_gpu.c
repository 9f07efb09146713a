/* Flows on several GPUs, a thread for each. What all of them read is brought once, by turns. */
#include <stdlib.h>
#include <time.h>

#include "flow.h"
#include "team.h"

enum { NAP_NS = 200 * 1000, POLL_NAPS = 100 };

typedef struct part {
    int ordinal, index;
    smk_flow flow;
    smk_status status;
    flow_group *group;
    helper *helper;
} part;

/* What the caller's thread listens with; the others are told by it. */
typedef struct listener {
    const smk_flow *flow;
    flow_group *group;
} listener;

static int is_stopped(void *group) {
    return atomic_load(&((flow_group *)group)->stopped);
}

static int listen(void *argument) {
    const listener *l = argument;
    if (l->flow->poll && l->flow->poll(l->flow->poll_arg)) atomic_store(&l->group->stopped, true);
    return is_stopped(l->group);
}

static void run_in(part *p, flow_group *group) {
    if (flow_run(p->ordinal, &p->flow, group, p->index, &p->status))
        atomic_store(&p->group->stopped, true);
}

static void run(void *argument) {
    part *p = argument;
    run_in(p, p->group);
}

/* The first of them is the caller's to run; what no thread could be had for follows, and shares nothing. */
static void run_all(part *parts, int n, listener *l) {
    for (int i = 1; i < n; i++) {
        parts[i].helper = team_start(run, &parts[i]);
        if (!parts[i].helper) flow_group_miss(l->group);
    }
    run(&parts[0]);
    for (int i = 1; i < n; i++) {
        if (!parts[i].helper) {
            run_in(&parts[i], NULL);
            continue;
        }
        for (int naps = 1; !team_is_done(parts[i].helper); naps++) {
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
            if (naps % POLL_NAPS == 0) listen(l);
        }
        team_end(parts[i].helper);
    }
}

smk_code gpu_flows(const int *ordinals, const smk_flow *flows, int n, smk_status *status) {
    if (n == 1) return gpu_flow(ordinals[0], flows, status);
    if (n < 1 || n > SMK_MAX_FLOWS)
        return smk_fail(status, SMK_VALUE, "%d GPUs; there may be 1 to %d", n, SMK_MAX_FLOWS);
    part *parts = calloc((size_t)n, sizeof *parts);
    if (!parts) return smk_fail_memory(status, (size_t)n * sizeof *parts, "the parts of a call");
    flow_group group;
    listener l = {flows, &group};
    flow_group_make(&group, ordinals, n);
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
    flow_group_free(&group);
    free(parts);
    return status->code;
}
