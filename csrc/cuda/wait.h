/* Interruptible waits: the caller's poll function runs about every 50 ms. */
#ifndef SMK_CUDA_WAIT_H
#define SMK_CUDA_WAIT_H

#include "../core/interrupt.h"
#include "context.h"

/* Monotonic time in nanoseconds. */
int64_t wait_now(void);

/* Spin-loop hint: leaves the core's execution units to the sibling hyperthread. */
static inline void wait_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Locks a mutex that others hold for microseconds only. Spins before it sleeps: while all cores are
 * busy, even if only with spinning threads, a sleeping thread wakes up milliseconds late. */
void wait_for_lock(pthread_mutex_t *mutex);

/* Initialises a condition variable for wait_for_change, on the monotonic clock: changes of the
 * system time do not affect it. */
void wait_init(pthread_cond_t *changed);

/* Waits for the condition variable, with the mutex held, for at most `nanoseconds`. */
void wait_for_change(pthread_cond_t *changed, pthread_mutex_t *mutex, int64_t nanoseconds);

/* Waits until the stream is idle. Failures of its work are reported with `what`. On SMK_INTERRUPTED
 * the stream is still busy. */
smk_code wait_for_stream(device *d, CUstream stream, interrupt_poller *p, const char *what,
                         smk_status *status);

#endif
