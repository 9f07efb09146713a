/* Copies on the GPU, of a call on arrays that are there: what its kernels cannot read where it is, or must not
 * write yet, has a place of its own while the call lasts. */
#ifndef SMK_DEVICE_COPIES_H
#define SMK_DEVICE_COPIES_H

#include "request.h"

typedef enum copy_time { COPY_BEFORE, COPY_BEHIND } copy_time; /* the call's kernels */

/* Plans a copy between an array and `packed`, which stands for it in the buffer of that number. The buffer's memory
 * comes from the pool of the GPU and goes back there, both in the order of the stream. */
int device_copies_add(module_state *state, request *r, const operand *array, const operand *packed,
                      int buffer, copy_time time);

/* The arrays' own memory as buffers of the job, behind those that it has, and all in a chain: the first job of it.
 * `buffers` is the job's, with room for CALL_MAX_COPIES more. */
smk_job *device_copies_link(request *r, smk_job *job, smk_buffer *buffers);

void device_copies_clear(request *r);

#endif
