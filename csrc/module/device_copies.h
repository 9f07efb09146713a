/* Copies within GPU memory, for a call on arrays that are there. Inputs that the kernels cannot
 * read in place, and results that they must not write in place, have a packed copy during the
 * call. */
#ifndef SMK_DEVICE_COPIES_H
#define SMK_DEVICE_COPIES_H

#include "request.h"

/* COPY_BEFORE the call's kernels: array to packed. COPY_AFTER: packed to array. */
typedef enum copy_time { COPY_BEFORE, COPY_AFTER } copy_time;

/* Plans a copy between `array` and `packed`, the operand that replaces it in the job's buffer with
 * index `buffer`. That buffer's memory is allocated from the GPU's pool and returned to it in
 * stream order. */
int device_copies_add(module_state *state, request *r, const operand *array, const operand *packed,
                      int buffer, copy_time time);

/* Appends the arrays' own memory to the job's buffers, and links the copies and the job into a
 * chain. Returns the first job of the chain. `buffers` is job->buffers, with room for
 * CALL_MAX_COPIES more. */
smk_job *device_copies_link(request *r, smk_job *job, smk_buffer *buffers);

void device_copies_clear(request *r);

#endif
