/* Work that lasts asks about every 50 ms whether to go on: the reader, the decoder, a launch. It holds no
 * lock then, as the caller's poll may run anything, another call of the emulator too. */
#ifndef EMU_INTERRUPT_H
#define EMU_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct interrupt_poller {
    int (*poll)(void *poll_arg); /* nonzero: stop. NULL: nobody is asked */
    void *poll_arg;
    const _Atomic bool *cancel; /* stop once it is true, if not NULL */
    int64_t polled;             /* when, in nanoseconds */
    uint32_t work;              /* since the clock was last read */
    bool stopped;               /* it stays so */
} interrupt_poller;

interrupt_poller interrupt_start(int (*poll)(void *poll_arg), void *poll_arg,
                                 const _Atomic bool *cancel);

/* Whether to stop; reads the clock. */
bool interrupt_look(interrupt_poller *p);

/* The same after `work` more steps of some nanoseconds each. Cheap: made for loops. */
static inline bool interrupt_due(interrupt_poller *p, uint32_t work) {
    enum { STEPS = 1 << 14 };
    p->work += work < STEPS ? work : STEPS;
    return p->work >= STEPS ? interrupt_look(p) : p->stopped;
}

#endif
