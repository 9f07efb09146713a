/* Each thread has its own condition variable, so that starting one wakes no other. */
#define _GNU_SOURCE /* affinities */
#include "thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "../cuda/wait.h"

enum { MAX_THREADS = 64, STACK_BYTES = 1 << 20, SPIN_NS = 100 * 1000, NO_CORE = -1 };

struct pool_thread {
    pthread_t thread;
    int excluded_core; /* the core that it may not run on, or NO_CORE */
    pthread_cond_t changed;
    enum { IDLE, GIVEN, BEGUN } _Atomic state;
    void (*run)(void *argument);
    void *argument;
    pool_thread *next; /* idle */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pool_thread *idle;
static int n_threads;

/* Spins until the state changes, for calls in quick succession: waking a sleeping thread takes 50
 * us, in a virtual machine 200. Not longer than SPIN_NS: other libraries' threads spin as well, and
 * all would compete for the cores. */
static void spin_wait(const pool_thread *t, int state) {
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        for (int i = 0; i < 50; i++) {
            if ((int)t->state != state) return;
            wait_relax();
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < SPIN_NS);
}

/* If all cores are busy, the scheduler often wakes a thread on the core of the thread that woke it,
 * and one of the two has to wait. So exclude the caller's core. */
static void exclude_core(pool_thread *t) {
    const int here = sched_getcpu();
    cpu_set_t cores;
    if (here < 0 || here == t->excluded_core || sched_getaffinity(0, sizeof cores, &cores)) return;
    CPU_CLR((size_t)here, &cores);
    if (CPU_COUNT(&cores) && !pthread_setaffinity_np(t->thread, sizeof cores, &cores))
        t->excluded_core = here;
}

static void *pool_thread_main(void *argument) {
    pool_thread *t = argument;
    wait_for_lock(&mutex);
    for (;;) {
        if (t->state != GIVEN) {
            pthread_mutex_unlock(&mutex);
            spin_wait(t, IDLE);
            wait_for_lock(&mutex);
        }
        while (t->state != GIVEN)
            pthread_cond_wait(&t->changed, &mutex);
        t->state = BEGUN;
        pthread_mutex_unlock(&mutex);
        t->run(t->argument);
        wait_for_lock(&mutex);
        t->state = IDLE;
        pthread_cond_broadcast(&t->changed); /* for thread_pool_join */
    }
    return NULL;
}

/* With the mutex held. */
static pool_thread *spawn(void) {
    pool_thread *t = n_threads < MAX_THREADS ? calloc(1, sizeof *t) : NULL;
    pthread_attr_t attributes;
    if (!t) return NULL;
    t->excluded_core = NO_CORE;
    pthread_cond_init(&t->changed, NULL);
    bool started = false;
    if (!pthread_attr_init(&attributes)) {
        started = !pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) &&
                  !pthread_attr_setstacksize(&attributes, STACK_BYTES) &&
                  !pthread_create(&t->thread, &attributes, pool_thread_main, t);
        pthread_attr_destroy(&attributes);
    }
    if (started) {
        n_threads++;
        return t;
    }
    pthread_cond_destroy(&t->changed);
    free(t);
    return NULL;
}

pool_thread *thread_pool_start(void (*run)(void *argument), void *argument) {
    wait_for_lock(&mutex);
    pool_thread *t = idle;
    if (t)
        idle = t->next;
    else
        t = spawn();
    if (t) {
        exclude_core(t);
        t->run = run;
        t->argument = argument;
        t->state = GIVEN;
        pthread_cond_broadcast(&t->changed);
    }
    pthread_mutex_unlock(&mutex);
    return t;
}

bool thread_pool_is_done(const pool_thread *t) {
    return t->state == IDLE;
}

void thread_pool_join(pool_thread *t) {
    wait_for_lock(&mutex);
    if (t->state == GIVEN) t->state = IDLE;
    pthread_mutex_unlock(&mutex);
    spin_wait(t, BEGUN);
    wait_for_lock(&mutex);
    while (t->state != IDLE)
        pthread_cond_wait(&t->changed, &mutex);
    t->next = idle;
    idle = t;
    pthread_mutex_unlock(&mutex);
}
