/* What a thread of a flow does next: it fills and empties slots together with the others. */
#ifndef SMK_CUDA_FLOW_SLOTS_H
#define SMK_CUDA_FLOW_SLOTS_H

#include "flow_steps.h"

typedef enum flow_deed {
    FLOW_PUT, /* the piece's copy on its stream: between device and slot, or the caller's memory */
    FLOW_COPY_IN, /* a share of the slot's piece, into the slot; then flow_copied ... */
    FLOW_COPY_OUT /* ... or out of it */
} flow_deed;

typedef struct flow_task {
    flow_deed deed;
    flow_piece piece;
    flow_slot *slot;                /* NULL: none is needed */
    smk_rectangle share;            /* `offset` is where it begins in the slot */
    stage_mark watched[STAGE_WAYS]; /* of a thread that has nothing to do: what may change that */
    int n_watched;
} flow_task;

/* Stages for what goes through them, one at least; fewer than there is use for where memory is short. */
smk_code flow_slots_take(flow_state *f, smk_status *status);
void flow_slots_give(flow_state *f);

/* Results first: they free the device's memory. */
flow_answer flow_next(flow_state *f, bool helps, flow_task *out);

/* The share is where it belongs. Whether its piece is now to be put, by whoever asks. */
bool flow_copied(flow_state *f, const flow_task *task);

/* From now on pieces may be put. How many are full already, and so the caller's to put; room for SLOTS_IN. */
int flow_slots_open(flow_state *f, flow_slot **full);

#endif
