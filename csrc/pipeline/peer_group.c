/* Finds the tasks that the pipelines of several GPUs have in common, and distributes them. */
#include "peer_group.h"

#include <stdlib.h>

#include "../cuda/pool.h"

enum { POLL_NS = 10 * 1000 * 1000 };

void peer_group_init(peer_group *g, const int *ordinals, int n) {
    *g = (peer_group){.n = n, .ordinals = ordinals};
    pthread_mutex_init(&g->lock, NULL);
    wait_init(&g->changed);
}

void peer_group_destroy(peer_group *g) {
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
}

bool peer_group_can_copy(const pipeline_state *p) {
    bool open = p->graph->resident;
    for (int i = 0; i < p->group->n && open; i++)
        open = pool_open_to(p->d, p->group->ordinals[i]);
    return open;
}

/* ---- with the lock held ---- */

/* Only copies that wait for nothing: no pipeline then waits for another one's kernels. */
static bool can_be_shared(const pipeline_state *p, size_t i) {
    const smk_task *task = &p->graph->tasks[i];
    const task_state *s = &p->tasks[i];
    return task->kind == SMK_COPY_IN && task->n_after == 0 && s->chunks.n && !s->shared;
}

static bool are_alike(const smk_rectangle *a, const smk_rectangle *b) {
    return a->host == b->host && a->host_pitch == b->host_pitch && a->pitch == b->pitch &&
           a->width == b->width && a->height == b->height;
}

/* The pipeline's task that copies the same memory; n_tasks: none. */
static size_t find_alike(const pipeline_state *p, const smk_rectangle *r) {
    size_t i = 0;
    while (i < p->graph->n_tasks && !(can_be_shared(p, i) && are_alike(&p->tasks[i].whole, r)))
        i++;
    return i;
}

/* Whether all members copy this memory; tasks[m] is the task of member m. */
static bool find_everywhere(const peer_group *g, const smk_rectangle *r, size_t *tasks) {
    for (int m = 0; m < g->n; m++) {
        tasks[m] = find_alike(g->members[m], r);
        if (tasks[m] == g->members[m]->graph->n_tasks) return false;
    }
    return true;
}

static bool allocate_shared_tasks(const peer_group *g) {
    for (int m = 0; m < g->n; m++) {
        pipeline_state *p = g->members[m];
        p->shared_tasks = calloc(g->members[0]->graph->n_tasks, sizeof *p->shared_tasks);
        if (!p->shared_tasks) return false;
    }
    return true;
}

/* Round robin: member n % g->n copies shared task n. */
static void distribute(const peer_group *g) {
    const pipeline_state *first = g->members[0];
    uint32_t n = 0;
    for (size_t i = 0; i < first->graph->n_tasks; i++) {
        size_t tasks[SMK_MAX_PIPELINES];
        if (!can_be_shared(first, i) || !find_everywhere(g, &first->tasks[i].whole, tasks))
            continue;
        for (int m = 0; m < g->n; m++) {
            pipeline_state *p = g->members[m];
            p->shared_tasks[n] = (uint32_t)tasks[m];
            p->tasks[tasks[m]].shared = n + 1;
            tasks_stage(p, tasks[m]);
            if (n % (uint32_t)g->n != (uint32_t)m) tasks_skip(p, tasks[m]);
        }
        n++;
    }
}

/* GPUs copy from each other only if all of them can. */
static void agree_on_peer_copies(const peer_group *g) {
    bool all = true;
    for (int m = 0; m < g->n; m++)
        all &= g->members[m]->peer_stream != NULL;
    for (int m = 0; m < g->n && !all; m++)
        g->members[m]->peer_stream = NULL;
}

/* p: NULL for an absent member. */
static void add_member(peer_group *g, pipeline_state *p) {
    g->complete = p && (g->n_joined == 0 || g->complete);
    g->n_joined++;
    if (p) g->members[p->member] = p;
    if (g->n_joined < g->n) return;
    if (g->complete) agree_on_peer_copies(g);
    if (g->complete && allocate_shared_tasks(g)) distribute(g);
    pthread_cond_broadcast(&g->changed);
}

/* ---- without the lock ---- */

void peer_group_absent(peer_group *g) {
    pthread_mutex_lock(&g->lock);
    add_member(g, NULL);
    pthread_mutex_unlock(&g->lock);
}

void peer_group_join(pipeline_state *p) {
    peer_group *g = p->group;
    pthread_mutex_lock(&g->lock);
    add_member(g, p);
    while (g->n_joined < g->n)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

void peer_group_leave(pipeline_state *p, bool failed, interrupt_poller *poller) {
    peer_group *g = p->group;
    if (failed) atomic_store(&g->stopped, true);
    pthread_mutex_lock(&g->lock);
    g->n_left++;
    pthread_cond_broadcast(&g->changed);
    while (g->complete && g->n_left < g->n) {
        smk_status ignored = {0};
        wait_for_change(&g->changed, &g->lock, POLL_NS);
        pthread_mutex_unlock(&g->lock);   /* a signal handler may be the caller's own code */
        interrupt_poll(poller, &ignored); /* an interruption sets g->stopped (multi_gpu.c) */
        pthread_mutex_lock(&g->lock);
    }
    pthread_mutex_unlock(&g->lock);
}
