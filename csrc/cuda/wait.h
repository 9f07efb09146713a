/* Waiting for the device without deafness: the caller's poll is asked about every 50 ms. */
#ifndef SMK_CUDA_WAIT_H
#define SMK_CUDA_WAIT_H

#include "context.h"

/* Nanoseconds, since some time. */
int64_t wait_now(void);

/* What a thread does that looks again and again: leaves the core's units to its sibling. */
static inline void wait_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Locks a mutex that is held for microseconds. Where all cores are busy, if only with threads that spin after their own
 * work, a thread that sleeps comes back after milliseconds: so this looks again for a while first. */
void wait_for_lock(pthread_mutex_t *mutex);

/* For wait_for_change, which no change of the system's time makes longer. */
void wait_init(pthread_cond_t *changed);

/* With the mutex held: until there is a change, or for so long. */
void wait_for_change(pthread_cond_t *changed, pthread_mutex_t *mutex, int64_t nanoseconds);

typedef struct interrupt_poller {
    int (*poll)(void *poll_arg); /* may be NULL */
    void *poll_arg;
    int64_t polled; /* when it was last asked, in nanoseconds */
} interrupt_poller;

interrupt_poller interrupt_poller_start(int (*poll)(void *poll_arg), void *poll_arg);

/* SMK_INTERRUPTED if poll is due and says stop. Cheap: made to be called in loops. */
smk_code interrupt_poll(interrupt_poller *p, smk_status *status);

/* Until the stream is idle; a failure of its work is reported as of `what`. When it returns
 * SMK_INTERRUPTED the stream is still busy. */
smk_code wait_for_stream(device *d, CUstream stream, interrupt_poller *p, const char *what,
                         smk_status *status);

#endif
