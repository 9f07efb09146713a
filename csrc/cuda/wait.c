/* cuStreamSynchronize cannot be interrupted, so the stream is polled: first in a tight loop,
 * because most calls end within microseconds, then between sleeps that grow with the time already
 * waited.
 */
#include "wait.h"

#include <time.h>

enum {
    LOCK_TRIES = 64, /* 30 us in all */
    PAUSES = 16,     /* between two tries */
    SPIN_NS = 200 * 1000,
    MAX_SLEEP_NS = 1000 * 1000,
    SLEEP_PART = 16, /* sleep 1/16 of the time waited: a late wake-up costs at most that */
    POLL_NS = 50 * 1000 * 1000
};

int64_t wait_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void wait_for_lock(pthread_mutex_t *mutex) {
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (!pthread_mutex_trylock(mutex)) return;
        for (int k = 0; k < PAUSES; k++)
            wait_relax();
    }
    pthread_mutex_lock(mutex);
}

void wait_init(pthread_cond_t *changed) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void wait_for_change(pthread_cond_t *changed, pthread_mutex_t *mutex, int64_t nanoseconds) {
    const int64_t until = wait_now() + nanoseconds;
    pthread_cond_timedwait(
        changed, mutex,
        &(struct timespec){.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000});
}

smk_code wait_for_stream(device *d, CUstream stream, interrupt_poller *p, const char *what,
                         smk_status *status) {
    for (int64_t start = wait_now();;) {
        CUresult result = d->cu->cuStreamQuery(stream);
        if (result == CUDA_SUCCESS) return SMK_OK;
        if (result != CUDA_ERROR_NOT_READY)
            return device_fail(d, result, SMK_LAUNCH, status, "%s", what);
        smk_code code = interrupt_poll(p, status);
        if (code) return code;

        int64_t waited = wait_now() - start;
        if (waited < SPIN_NS) continue;
        int64_t pause = waited / SLEEP_PART;
        nanosleep(&(struct timespec){.tv_nsec = pause < MAX_SLEEP_NS ? pause : MAX_SLEEP_NS}, NULL);
    }
}
