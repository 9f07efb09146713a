/* Which steps the flows of several GPUs have in common, and who brings them. */
#include "flow_group.h"

#include <stdlib.h>

#include "pool.h"

enum { LISTEN_NS = 10 * 1000 * 1000 };

void flow_group_make(flow_group *g, const int *ordinals, int n) {
    *g = (flow_group){.n = n, .ordinals = ordinals};
    pthread_mutex_init(&g->lock, NULL);
    wait_init(&g->changed);
}

void flow_group_free(flow_group *g) {
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
}

bool flow_group_may_pass(const flow_state *f) {
    bool reached = f->flow->resident;
    for (int i = 0; i < f->group->n && reached; i++)
        reached = pool_open_to(f->d, f->group->ordinals[i]);
    return reached;
}

/* ---- with the lock held ---- */

/* Into memory that waits for nothing: so no flow waits for another's kernels. */
static bool can_be_common(const flow_state *f, size_t i) {
    const smk_step *step = &f->flow->steps[i];
    const step_state *s = &f->steps[i];
    return step->kind == SMK_COPY_IN && step->n_after == 0 && s->cut.n && !s->common;
}

static bool are_alike(const smk_rectangle *a, const smk_rectangle *b) {
    return a->host == b->host && a->host_pitch == b->host_pitch && a->pitch == b->pitch &&
           a->width == b->width && a->lines == b->lines;
}

/* The flow's step that copies the same; n_steps: it has none. */
static size_t find_alike(const flow_state *f, const smk_rectangle *r) {
    size_t i = 0;
    while (i < f->flow->n_steps && !(can_be_common(f, i) && are_alike(&f->steps[i].whole, r)))
        i++;
    return i;
}

/* Whether all have it. */
static bool find_everywhere(const flow_group *g, const smk_rectangle *r, size_t *steps) {
    for (int m = 0; m < g->n; m++) {
        steps[m] = find_alike(g->members[m], r);
        if (steps[m] == g->members[m]->flow->n_steps) return false;
    }
    return true;
}

static bool make_room(const flow_group *g) {
    for (int m = 0; m < g->n; m++) {
        flow_state *f = g->members[m];
        f->common = calloc(g->members[0]->flow->n_steps, sizeof *f->common);
        if (!f->common) return false;
    }
    return true;
}

/* They take turns to bring what all have. */
static void share_out(const flow_group *g) {
    const flow_state *first = g->members[0];
    uint32_t n = 0;
    for (size_t i = 0; i < first->flow->n_steps; i++) {
        size_t steps[SMK_MAX_FLOWS];
        if (!can_be_common(first, i) || !find_everywhere(g, &first->steps[i].whole, steps))
            continue;
        for (int m = 0; m < g->n; m++) {
            flow_state *f = g->members[m];
            f->common[n] = (uint32_t)steps[m];
            f->steps[steps[m]].common = n + 1;
            flow_stage(f, steps[m]);
            if (n % (uint32_t)g->n != (uint32_t)m) flow_give_up(f, steps[m]);
        }
        n++;
    }
}

/* They hand over from GPU to GPU if all of them can. */
static void agree(const flow_group *g) {
    bool all = true;
    for (int m = 0; m < g->n; m++)
        all &= g->members[m]->passing != NULL;
    for (int m = 0; m < g->n && !all; m++)
        g->members[m]->passing = NULL;
}

static void count_one(flow_group *g, flow_state *f) {
    g->complete = f && (g->met == 0 || g->complete);
    g->met++;
    if (f) g->members[f->self] = f;
    if (g->met < g->n) return;
    if (g->complete) agree(g);
    if (g->complete && make_room(g)) share_out(g);
    pthread_cond_broadcast(&g->changed);
}

/* ---------------------------- */

void flow_group_miss(flow_group *g) {
    pthread_mutex_lock(&g->lock);
    count_one(g, NULL);
    pthread_mutex_unlock(&g->lock);
}

void flow_group_meet(flow_state *f) {
    flow_group *g = f->group;
    pthread_mutex_lock(&g->lock);
    count_one(g, f);
    while (g->met < g->n)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

void flow_group_part(flow_state *f, bool failed, patience *p) {
    flow_group *g = f->group;
    if (failed) atomic_store(&g->stopped, true);
    pthread_mutex_lock(&g->lock);
    g->parted++;
    pthread_cond_broadcast(&g->changed);
    while (g->complete && g->parted < g->n) {
        smk_status heard = {0};
        wait_for_change(&g->changed, &g->lock, LISTEN_NS);
        pthread_mutex_unlock(&g->lock); /* a signal's handler may be the caller's own code */
        patience_check(p, &heard);      /* whoever listens tells the others */
        pthread_mutex_lock(&g->lock);
    }
    pthread_mutex_unlock(&g->lock);
}
