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

typedef struct stage {
    char *slots[STAGE_WAYS][SLOTS];
    CUevent copied[STAGE_WAYS][SLOTS]; /* the engine's last copy of the slot has ended */
    struct stage *next;
} stage;

/* An idle one: kept from an earlier call, or new. */
smk_code stage_take(device *d, stage **out, smk_status *status);
void stage_give(device *d, stage *s);

/* What is kept for later calls, in bytes, and giving it back to the system. */
size_t stage_bytes(device *d);
void stage_trim(device *d);

#endif
