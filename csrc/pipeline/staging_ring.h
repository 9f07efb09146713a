/* What a thread of a flow does next: it fills and empties slots together with the others. */
#ifndef SMK_PIPELINE_STAGING_RING_H
#define SMK_PIPELINE_STAGING_RING_H

#include "tasks.h"

typedef enum work_kind {
    WORK_ENQUEUE, /* the piece's copy on its stream: between device and slot, or the caller's memory */
    WORK_COPY_IN, /* a share of the slot's piece, into the slot; then staging_copied ... */
    WORK_COPY_OUT /* ... or out of it */
} work_kind;

typedef struct work_item {
    work_kind deed;
    chunk piece;
    staging_slot *slot;              /* NULL: none is needed */
    smk_rectangle share;             /* `offset` is where it begins in the slot */
    stage_fence watched[STAGE_WAYS]; /* of a thread that has nothing to do: what may change that */
    int n_watched;
} work_item;

/* Stages for what goes through them, one at least; fewer than there is use for where memory is short. */
smk_code staging_rings_take(pipeline_state *f, smk_status *status);
void staging_rings_give(pipeline_state *f);

/* Results first: they free the device's memory. */
poll_result staging_poll(pipeline_state *f, bool helps, work_item *out);

/* The share is where it belongs. Whether its piece is now to be put, by whoever asks. */
bool staging_copied(pipeline_state *f, const work_item *task);

/* From now on pieces may be put. How many are full already, and so the caller's to put; room for SLOTS_IN. */
int staging_rings_open(pipeline_state *f, staging_slot **full);

#endif
