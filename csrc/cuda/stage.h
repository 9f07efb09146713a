/* Pinned memory that bytes pass through on their way between host and device.
 *
 * The copy engines reach only memory that stays where it is; ordinary memory may move. The driver would
 * copy it through such memory too, on one core. A stage is what one thread needs to do that itself: two
 * slots in each direction, so that it fills (empties) one while the engine works on the other.
 */
#ifndef SMK_CUDA_STAGE_H
#define SMK_CUDA_STAGE_H

#include "context.h"

/* Small enough to stay in a cache between the core and the copy engine, large enough that starting a copy,
 * about 2 us, is a tenth of making it. */
enum { SLOT_BYTES = 1 << 20, SLOTS = 2 };

typedef enum stage_way { STAGE_IN, STAGE_OUT, STAGE_WAYS } stage_way;

/* That a slot's copy has ended the device itself writes down, in pinned memory too: threads that wait read that,
 * where asking the driver for an event would keep it from queueing the next copies. */
typedef struct stage {
    char *slots[STAGE_WAYS][SLOTS];
    _Atomic uint32_t *marks[STAGE_WAYS][SLOTS]; /* of the last copy that ended ... */
    uint32_t expected[STAGE_WAYS][SLOTS];       /* ... and of the last one that was queued */
    struct stage *next;
} stage;

/* After a copy of the slot was put on the stream. */
CUresult stage_expect(device *d, stage *s, stage_way way, int slot, CUstream stream);

static inline bool stage_has_come(const stage *s, stage_way way, int slot) {
    return atomic_load_explicit(s->marks[way][slot], memory_order_acquire) ==
           s->expected[way][slot];
}

/* An idle one: kept from an earlier call, or new. */
smk_code stage_take(device *d, stage **out, smk_status *status);
void stage_give(device *d, stage *s);

/* What is kept for later calls, in bytes, and giving it back to the system. */
size_t stage_bytes(device *d);
void stage_trim(device *d);

#endif
