/* Cancellation of long work: parsing and decoding of PTX, launches on the emulator, and waits for
 * a GPU poll about every 50 ms.
 *
 * Hold no lock while polling: the caller's poll may run any code, including another call.
 */
#ifndef SMK_INTERRUPT_H
#define SMK_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

#include "status.h"

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

/* The same as a code: SMK_INTERRUPTED, or SMK_OK. */
smk_code interrupt_poll(interrupt_poller *p, smk_status *status);

/* Adds `work` steps of a few nanoseconds each; reads the clock only every 2^14 steps. For loops. */
static inline bool interrupt_due(interrupt_poller *p, uint32_t work) {
    enum { STEPS = 1 << 14 };
    p->work += work < STEPS ? work : STEPS;
    return p->work >= STEPS ? interrupt_look(p) : p->stopped;
}

#endif
