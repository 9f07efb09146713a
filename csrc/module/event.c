/* Moments of streams, for smemkern._device_arrays: (GPU, stream) -> an object that knows when what had been queued
 * there by then has ended, and that other streams can wait for. */
#include "../cuda/gpu.h"
#include "module.h"

static const char capsule_name[] = "smemkern moment";

static void free_capsule(PyObject *capsule) {
    gpu_event_free(PyCapsule_GetPointer(capsule, capsule_name));
}

PyObject *moment_make(const module_state *state, PyObject *args) {
    int ordinal;
    PyObject *given;
    void *stream;
    gpu_event *made;
    smk_status status = {0};
    if (!PyArg_ParseTuple(args, "iO:moment", &ordinal, &given) || stream_read(given, &stream)) {
        return NULL;
    }
    if (gpu_event_record(ordinal, stream, &made, &status)) {
        return raise_status(state, &status);
    }
    PyObject *capsule = PyCapsule_New(made, capsule_name, free_capsule);
    if (capsule == NULL) {
        gpu_event_free(made);
    }
    return capsule;
}

PyObject *moment_has_passed(PyObject *capsule) {
    const gpu_event *moment = PyCapsule_GetPointer(capsule, capsule_name);
    return moment ? PyBool_FromLong(gpu_event_query(moment)) : NULL;
}

PyObject *moment_before(const module_state *state, PyObject *args) {
    PyObject *capsule, *given;
    void *stream;
    smk_status status = {0};
    if (!PyArg_ParseTuple(args, "OO:moment_before", &capsule, &given) ||
        stream_read(given, &stream)) {
        return NULL;
    }
    const gpu_event *moment = PyCapsule_GetPointer(capsule, capsule_name);
    if (moment == NULL) {
        return NULL;
    }
    if (gpu_stream_wait_event(moment, stream ? stream : GPU_DEFAULT_STREAM, &status)) {
        return raise_status(state, &status);
    }
    Py_RETURN_NONE;
}
