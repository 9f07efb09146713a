/* Sleeping threads, each with a condition of its own, so that starting one wakes no other. */
#define _GNU_SOURCE /* affinities */
#include "team.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "wait.h"

enum { MOST_HELPERS = 64, STACK_BYTES = 1 << 20, LOOK_OUT_NS = 100 * 1000, NOWHERE = -1 };

struct helper {
    pthread_t thread;
    int away_from; /* the core where it may not run, or NOWHERE */
    pthread_cond_t changed;
    enum { IDLE, GIVEN, BEGUN } _Atomic state;
    void (*run)(void *argument);
    void *argument;
    helper *next; /* idle */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static helper *idle;
static int n_helpers;

/* Looks for a change for a while, as of calls that follow each other: a thread that sleeps takes 50 us to wake, 200 in a
 * virtual machine. Not for longer: between the calls of others, whose threads do the same, all would wait for cores. */
static void look_out(const helper *h, int from) {
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        for (int i = 0; i < 50; i++) {
            if ((int)h->state != from) return;
            wait_relax();
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < LOOK_OUT_NS);
}

/* Where all cores are busy the system likes to wake a thread on the core of the one that woke it, which then waits: a
 * helper there helps nobody. It may run on the caller's other cores. */
static void send_away(helper *h) {
    const int here = sched_getcpu();
    cpu_set_t cores;
    if (here < 0 || here == h->away_from || sched_getaffinity(0, sizeof cores, &cores)) return;
    CPU_CLR((size_t)here, &cores);
    if (CPU_COUNT(&cores) && !pthread_setaffinity_np(h->thread, sizeof cores, &cores))
        h->away_from = here;
}

static void *live(void *own) {
    helper *h = own;
    wait_for_lock(&mutex);
    for (;;) {
        if (h->state != GIVEN) {
            pthread_mutex_unlock(&mutex);
            look_out(h, IDLE);
            wait_for_lock(&mutex);
        }
        while (h->state != GIVEN)
            pthread_cond_wait(&h->changed, &mutex);
        h->state = BEGUN;
        pthread_mutex_unlock(&mutex);
        h->run(h->argument);
        wait_for_lock(&mutex);
        h->state = IDLE;
        pthread_cond_broadcast(&h->changed); /* who waits for it */
    }
    return NULL;
}

/* The caller holds the mutex. */
static helper *hire(void) {
    helper *h = n_helpers < MOST_HELPERS ? calloc(1, sizeof *h) : NULL;
    pthread_attr_t attributes;
    if (!h) return NULL;
    h->away_from = NOWHERE;
    pthread_cond_init(&h->changed, NULL);
    bool started = false;
    if (!pthread_attr_init(&attributes)) {
        started = !pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) &&
                  !pthread_attr_setstacksize(&attributes, STACK_BYTES) &&
                  !pthread_create(&h->thread, &attributes, live, h);
        pthread_attr_destroy(&attributes);
    }
    if (started) {
        n_helpers++;
        return h;
    }
    pthread_cond_destroy(&h->changed);
    free(h);
    return NULL;
}

helper *team_start(void (*run)(void *argument), void *argument) {
    wait_for_lock(&mutex);
    helper *h = idle;
    if (h)
        idle = h->next;
    else
        h = hire();
    if (h) {
        send_away(h);
        h->run = run;
        h->argument = argument;
        h->state = GIVEN;
        pthread_cond_broadcast(&h->changed);
    }
    pthread_mutex_unlock(&mutex);
    return h;
}

bool team_is_done(const helper *h) {
    return h->state == IDLE;
}

void team_end(helper *h) {
    wait_for_lock(&mutex);
    if (h->state == GIVEN) h->state = IDLE;
    pthread_mutex_unlock(&mutex);
    look_out(h, BEGUN);
    wait_for_lock(&mutex);
    while (h->state != IDLE)
        pthread_cond_wait(&h->changed, &mutex);
    h->next = idle;
    idle = h;
    pthread_mutex_unlock(&mutex);
}
