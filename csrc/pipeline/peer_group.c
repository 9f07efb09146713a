/* Which tasks the flows of several GPUs have in common, and who brings them. */
#include "peer_group.h"

#include <stdlib.h>

#include "../cuda/pool.h"

enum { LISTEN_NS = 10 * 1000 * 1000 };

void peer_group_init(peer_group *g, const int *ordinals, int n) {
    *g = (peer_group){.n = n, .ordinals = ordinals};
    pthread_mutex_init(&g->lock, NULL);
    wait_init(&g->changed);
}

void peer_group_destroy(peer_group *g) {
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
}

bool peer_group_can_copy(const pipeline_state *f) {
    bool reached = f->flow->resident;
    for (int i = 0; i < f->group->n && reached; i++)
        reached = pool_open_to(f->d, f->group->ordinals[i]);
    return reached;
}

/* ---- with the lock held ---- */

/* Into memory that waits for nothing: so no flow waits for another's kernels. */
static bool can_be_common(const pipeline_state *f, size_t i) {
    const smk_task *task = &f->flow->tasks[i];
    const task_state *s = &f->tasks[i];
    return task->kind == SMK_COPY_IN && task->n_after == 0 && s->cut.n && !s->common;
}

static bool are_alike(const smk_rectangle *a, const smk_rectangle *b) {
    return a->host == b->host && a->host_pitch == b->host_pitch && a->pitch == b->pitch &&
           a->width == b->width && a->lines == b->lines;
}

/* The flow's task that copies the same; n_tasks: it has none. */
static size_t find_alike(const pipeline_state *f, const smk_rectangle *r) {
    size_t i = 0;
    while (i < f->flow->n_tasks && !(can_be_common(f, i) && are_alike(&f->tasks[i].whole, r)))
        i++;
    return i;
}

/* Whether all have it. */
static bool find_everywhere(const peer_group *g, const smk_rectangle *r, size_t *tasks) {
    for (int m = 0; m < g->n; m++) {
        tasks[m] = find_alike(g->members[m], r);
        if (tasks[m] == g->members[m]->flow->n_tasks) return false;
    }
    return true;
}

static bool make_room(const peer_group *g) {
    for (int m = 0; m < g->n; m++) {
        pipeline_state *f = g->members[m];
        f->common = calloc(g->members[0]->flow->n_tasks, sizeof *f->common);
        if (!f->common) return false;
    }
    return true;
}

/* They take turns to bring what all have. */
static void share_out(const peer_group *g) {
    const pipeline_state *first = g->members[0];
    uint32_t n = 0;
    for (size_t i = 0; i < first->flow->n_tasks; i++) {
        size_t tasks[SMK_MAX_PIPELINES];
        if (!can_be_common(first, i) || !find_everywhere(g, &first->tasks[i].whole, tasks))
            continue;
        for (int m = 0; m < g->n; m++) {
            pipeline_state *f = g->members[m];
            f->common[n] = (uint32_t)tasks[m];
            f->tasks[tasks[m]].common = n + 1;
            tasks_stage(f, tasks[m]);
            if (n % (uint32_t)g->n != (uint32_t)m) tasks_skip(f, tasks[m]);
        }
        n++;
    }
}

/* They hand over from GPU to GPU if all of them can. */
static void agree(const peer_group *g) {
    bool all = true;
    for (int m = 0; m < g->n; m++)
        all &= g->members[m]->passing != NULL;
    for (int m = 0; m < g->n && !all; m++)
        g->members[m]->passing = NULL;
}

static void count_one(peer_group *g, pipeline_state *f) {
    g->complete = f && (g->met == 0 || g->complete);
    g->met++;
    if (f) g->members[f->self] = f;
    if (g->met < g->n) return;
    if (g->complete) agree(g);
    if (g->complete && make_room(g)) share_out(g);
    pthread_cond_broadcast(&g->changed);
}

/* ---------------------------- */

void peer_group_absent(peer_group *g) {
    pthread_mutex_lock(&g->lock);
    count_one(g, NULL);
    pthread_mutex_unlock(&g->lock);
}

void peer_group_join(pipeline_state *f) {
    peer_group *g = f->group;
    pthread_mutex_lock(&g->lock);
    count_one(g, f);
    while (g->met < g->n)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

void peer_group_leave(pipeline_state *f, bool failed, interrupt_poller *p) {
    peer_group *g = f->group;
    if (failed) atomic_store(&g->stopped, true);
    pthread_mutex_lock(&g->lock);
    g->parted++;
    pthread_cond_broadcast(&g->changed);
    while (g->complete && g->parted < g->n) {
        smk_status heard = {0};
        wait_for_change(&g->changed, &g->lock, LISTEN_NS);
        pthread_mutex_unlock(&g->lock); /* a signal's handler may be the caller's own code */
        interrupt_poll(p, &heard);      /* whoever listens tells the others */
        pthread_mutex_lock(&g->lock);
    }
    pthread_mutex_unlock(&g->lock);
}
