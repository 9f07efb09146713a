/* What a thread does next: threads fill and empty the staging slots together. */
#ifndef SMK_PIPELINE_STAGING_RING_H
#define SMK_PIPELINE_STAGING_RING_H

#include "tasks.h"

typedef enum work_kind {
    WORK_ENQUEUE, /* put the chunk's copy on its stream */
    WORK_COPY_IN, /* copy a slice into the slot, then call staging_copied */
    WORK_COPY_OUT /* copy a slice out of the slot, then call staging_copied */
} work_kind;

typedef struct work_item {
    work_kind kind;
    chunk chunk;                     /* WORK_ENQUEUE */
    staging_slot *slot;              /* NULL: a direct copy */
    smk_rectangle slice;             /* `offset` is relative to the slot */
    stage_fence watched[STAGE_WAYS]; /* if there is nothing to do: fences that may change that */
    int n_watched;
} work_item;

/* Takes staging buffers: at least one per direction, more if there is work and memory. */
smk_code staging_rings_take(pipeline_state *p, smk_status *status);
void staging_rings_give(pipeline_state *p);

/* The next work item. Results come first: they free device memory. */
poll_result staging_poll(pipeline_state *p, bool is_worker, work_item *out);

/* The slice is copied. True: it was the chunk's last one; the calling thread must enqueue it. */
bool staging_copied(pipeline_state *p, const work_item *item);

/* Device memory is ready: from now on full slots are enqueued. Returns those that are full already,
 * which the calling thread has to enqueue; `full` has SLOTS_IN elements. */
int staging_rings_open(pipeline_state *p, staging_slot **full);

#endif
