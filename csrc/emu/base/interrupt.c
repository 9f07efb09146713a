/* The clock is read every some ten thousand steps, the caller asked every 50 ms. */
#include "interrupt.h"

#include <stdatomic.h>
#include <time.h>

static const int64_t interval = 46 * 1000 * 1000; /* 50 ms by a clock that ticks every 4 */

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t); /* asked often, and a few milliseconds off */
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

interrupt_poller interrupt_start(int (*poll)(void *poll_arg), void *poll_arg,
                                 const _Atomic bool *cancel) {
    return (interrupt_poller){
        .poll = poll, .poll_arg = poll_arg, .cancel = cancel, .polled = now()};
}

bool interrupt_look(interrupt_poller *p) {
    p->work = 0;
    if (p->stopped) return true;
    if (p->cancel && atomic_load(p->cancel)) return p->stopped = true;
    if (!p->poll) return false;
    const int64_t time = now();
    if (time - p->polled < interval) return false;
    p->polled = time;
    return p->stopped = p->poll(p->poll_arg) != 0;
}
