/* Flows on several GPUs, a thread for each: they share nothing but the host's memory and its cores. */
#include "gpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "team.h"

enum { MOST_FLOWS = 64, NAP_NS = 200 * 1000, POLL_NAPS = 100 };

typedef struct part {
    int ordinal;
    smk_flow flow;
    smk_status status;
    atomic_bool *stop;
    helper *helper;
} part;

/* What the caller's thread listens with; the others are told by it. */
typedef struct listener {
    const smk_flow *flow;
    atomic_bool *stop;
} listener;

static int is_stopped(void *stop) {
    return atomic_load((atomic_bool *)stop);
}

static int listen(void *argument) {
    const listener *l = argument;
    if (l->flow->poll && l->flow->poll(l->flow->poll_arg)) atomic_store(l->stop, true);
    return atomic_load(l->stop);
}

static void run(void *argument) {
    part *p = argument;
    if (gpu_flow(p->ordinal, &p->flow, &p->status)) atomic_store(p->stop, true);
}

/* The first of them is the caller's to run; what no thread could be had for follows. */
static void run_all(part *parts, int n, listener *l) {
    for (int i = 1; i < n; i++)
        parts[i].helper = team_start(run, &parts[i]);
    run(&parts[0]);
    for (int i = 1; i < n; i++) {
        if (!parts[i].helper) {
            run(&parts[i]);
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
    if (n < 1 || n > MOST_FLOWS)
        return smk_fail(status, SMK_VALUE, "%d GPUs; there may be 1 to %d", n, MOST_FLOWS);
    part *parts = calloc((size_t)n, sizeof *parts);
    if (!parts) return smk_fail_memory(status, (size_t)n * sizeof *parts, "the parts of a call");
    atomic_bool stop = false;
    listener l = {flows, &stop};
    for (int i = 0; i < n; i++) {
        parts[i] = (part){.ordinal = ordinals[i], .flow = flows[i], .stop = &stop};
        parts[i].flow.poll = i ? is_stopped : listen;
        parts[i].flow.poll_arg = i ? (void *)&stop : (void *)&l;
    }
    run_all(parts, n, &l);
    /* One that was only told to stop says less than the one that was the reason. */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < n; i++)
            if (parts[i].status.code && (pass || parts[i].status.code != SMK_INTERRUPTED))
                smk_fail(status, parts[i].status.code, "%s", parts[i].status.message);
    free(parts);
    return status->code;
}
