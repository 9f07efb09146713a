/* See host_thread.h. */
#include "host_thread.h"

#ifdef __wasm__

unsigned host_thread_limit(void) {
    return 1;
}

bool host_thread_start(pthread_t *id, void *(*main)(void *), void *arg) {
    (void)id, (void)main, (void)arg;
    return false;
}

void host_thread_join(pthread_t id) {
    (void)id;
}

#else
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* Asked for once: it takes as long as a small launch. */
static long processors(void) {
    static long known;
    long n = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (!n) __atomic_store_n(&known, n = sysconf(_SC_NPROCESSORS_ONLN), __ATOMIC_RELAXED);
    return n;
}

unsigned host_thread_limit(void) {
    const char *given = getenv("SMEMKERN_EMU_THREADS");
    const long n = given && atoi(given) > 0 ? atoi(given) : processors();
    return n < 1 ? 1 : (unsigned)n;
}

bool host_thread_start(pthread_t *id, void *(*main)(void *), void *arg) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = !pthread_create(id, NULL, main, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

void host_thread_join(pthread_t id) {
    pthread_join(id, NULL);
}

#endif
