/* Cancellation of long work: the PTX parser, the decoder and launches poll about every 50 ms.
 *
 * Hold no lock while polling: the caller's poll may run any code, including another emulator call.
 */
#ifndef EMU_INTERRUPT_H
#define EMU_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct interrupt_poller {
    int (*poll)(void *poll_arg); /* nonzero: stop. NULL: no polling */
    void *poll_arg;
    const _Atomic bool *cancel; /* if not NULL: stop once it is true */
    int64_t last_poll_ns;       /* time of the last poll */
    uint32_t work;              /* steps since the clock was last read */
    bool stopped;               /* never reset */
} interrupt_poller;

interrupt_poller interrupt_start(int (*poll)(void *poll_arg), void *poll_arg,
                                 const _Atomic bool *cancel);

/* True: stop. Reads the clock. */
bool interrupt_look(interrupt_poller *p);

/* Adds `work` steps of a few nanoseconds each; reads the clock only every 2^14 steps. For loops. */
static inline bool interrupt_due(interrupt_poller *p, uint32_t work) {
    enum { STEPS = 1 << 14 };
    p->work += work < STEPS ? work : STEPS;
    return p->work >= STEPS ? interrupt_look(p) : p->stopped;
}

#endif
