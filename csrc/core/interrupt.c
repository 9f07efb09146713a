/* Reads the clock every 2^14 steps, and calls the caller's poll about every 50 ms. */
#include "interrupt.h"

#include <stdatomic.h>
#include <time.h>

#ifndef CLOCK_MONOTONIC_COARSE /* of Linux */
#define CLOCK_MONOTONIC_COARSE CLOCK_MONOTONIC
#endif

/* At most 50 ms on a clock with 4 ms ticks. */
static const int64_t poll_interval_ns = 46 * 1000 * 1000;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t); /* cheap; accurate to a few milliseconds */
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

interrupt_poller interrupt_start(int (*poll)(void *poll_arg), void *poll_arg,
                                 const _Atomic bool *cancel) {
    return (interrupt_poller){
        .poll = poll, .poll_arg = poll_arg, .cancel = cancel, .last_poll_ns = now_ns()};
}

bool interrupt_look(interrupt_poller *p) {
    p->work = 0;
    if (p->stopped) return true;
    if (p->cancel && atomic_load(p->cancel)) return p->stopped = true;
    if (!p->poll) return false;
    const int64_t time = now_ns();
    if (time - p->last_poll_ns < poll_interval_ns) return false;
    p->last_poll_ns = time;
    return p->stopped = p->poll(p->poll_arg) != 0;
}

smk_code interrupt_poll(interrupt_poller *p, smk_status *status) {
    return interrupt_look(p) ? smk_fail(status, SMK_INTERRUPTED, "interrupted") : SMK_OK;
}
