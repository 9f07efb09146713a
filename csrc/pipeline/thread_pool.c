/* Sleeping threads, each with a condition of its own, so that starting one wakes no other. */
#define _GNU_SOURCE /* affinities */
#include "thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "../cuda/wait.h"

enum { MOST_HELPERS = 64, STACK_BYTES = 1 << 20, LOOK_OUT_NS = 100 * 1000, NOWHERE = -1 };

struct pool_thread {
    pthread_t thread;
    int excluded_core; /* the core where it may not run, or NOWHERE */
    pthread_cond_t changed;
    enum { IDLE, GIVEN, BEGUN } _Atomic state;
    void (*run)(void *argument);
    void *argument;
    pool_thread *next; /* idle */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pool_thread *idle;
static int n_helpers;

/* Looks for a change for a while, as of calls that follow each other: a thread that sleeps takes 50 us to wake, 200 in a
 * virtual machine. Not for longer: between the calls of others, whose threads do the same, all would wait for cores. */
static void spin_wait(const pool_thread *h, int from) {
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
 * pool_thread there helps nobody. It may run on the caller's other cores. */
static void exclude_core(pool_thread *h) {
    const int here = sched_getcpu();
    cpu_set_t cores;
    if (here < 0 || here == h->excluded_core || sched_getaffinity(0, sizeof cores, &cores)) return;
    CPU_CLR((size_t)here, &cores);
    if (CPU_COUNT(&cores) && !pthread_setaffinity_np(h->thread, sizeof cores, &cores))
        h->excluded_core = here;
}

static void *worker_main(void *own) {
    pool_thread *h = own;
    wait_for_lock(&mutex);
    for (;;) {
        if (h->state != GIVEN) {
            pthread_mutex_unlock(&mutex);
            spin_wait(h, IDLE);
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
static pool_thread *spawn(void) {
    pool_thread *h = n_helpers < MOST_HELPERS ? calloc(1, sizeof *h) : NULL;
    pthread_attr_t attributes;
    if (!h) return NULL;
    h->excluded_core = NOWHERE;
    pthread_cond_init(&h->changed, NULL);
    bool started = false;
    if (!pthread_attr_init(&attributes)) {
        started = !pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) &&
                  !pthread_attr_setstacksize(&attributes, STACK_BYTES) &&
                  !pthread_create(&h->thread, &attributes, worker_main, h);
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

pool_thread *thread_pool_start(void (*run)(void *argument), void *argument) {
    wait_for_lock(&mutex);
    pool_thread *h = idle;
    if (h)
        idle = h->next;
    else
        h = spawn();
    if (h) {
        exclude_core(h);
        h->run = run;
        h->argument = argument;
        h->state = GIVEN;
        pthread_cond_broadcast(&h->changed);
    }
    pthread_mutex_unlock(&mutex);
    return h;
}

bool thread_pool_is_done(const pool_thread *h) {
    return h->state == IDLE;
}

void thread_pool_join(pool_thread *h) {
    wait_for_lock(&mutex);
    if (h->state == GIVEN) h->state = IDLE;
    pthread_mutex_unlock(&mutex);
    spin_wait(h, BEGUN);
    wait_for_lock(&mutex);
    while (h->state != IDLE)
        pthread_cond_wait(&h->changed, &mutex);
    h->next = idle;
    idle = h;
    pthread_mutex_unlock(&mutex);
}
