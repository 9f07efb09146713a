/* The window of a recording, from and to Python. */
#ifndef MODULE_RECORDING_H
#define MODULE_RECORDING_H

#include "module.h"

typedef struct recording_request {
    bool wanted;
    smk_recording recording;
    Py_buffer blocks, warps;
    smk_recorded_array *arrays;
    PyObject *arrays_owner; /* of their names */
} recording_request;

/* `given`: None, or (first, steps, max_bytes, blocks, warps, arrays), where blocks (uint64) and
 * warps (uint32) may be None, and arrays is a list of (name, element bytes, columns). Call
 * recording_clear even on failure. */
int recording_read(PyObject *given, recording_request *out);
/* None: nothing was recorded. */
PyObject *recording_bytes(const recording_request *r);
void recording_clear(recording_request *r);

#endif
