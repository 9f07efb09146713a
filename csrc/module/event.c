/* CUDA events as Python capsules, for smemkern._device.arrays: record one on a stream, query it,
 * and make a stream wait for it. */
#include "../cuda/gpu.h"
#include "module.h"

static const char capsule_name[] = "smemkern event";

static void free_capsule(PyObject *capsule) {
    gpu_event_free(PyCapsule_GetPointer(capsule, capsule_name));
}

PyObject *event_record(const module_state *state, PyObject *args) {
    int ordinal;
    PyObject *given;
    void *stream;
    gpu_event *made;
    smk_status status = {0};
    if (!PyArg_ParseTuple(args, "iO:event_record", &ordinal, &given) || stream_read(given, &stream))
        return NULL;
    if (gpu_event_record(ordinal, stream, &made, &status)) return raise_status(state, &status);
    PyObject *capsule = PyCapsule_New(made, capsule_name, free_capsule);
    if (capsule == NULL) gpu_event_free(made);
    return capsule;
}

PyObject *event_query(PyObject *capsule) {
    const gpu_event *event = PyCapsule_GetPointer(capsule, capsule_name);
    return event ? PyBool_FromLong(gpu_event_query(event)) : NULL;
}

PyObject *stream_wait_event(const module_state *state, PyObject *args) {
    PyObject *capsule, *given;
    void *stream;
    smk_status status = {0};
    if (!PyArg_ParseTuple(args, "OO:stream_wait_event", &capsule, &given) ||
        stream_read(given, &stream)) {
        return NULL;
    }
    const gpu_event *event = PyCapsule_GetPointer(capsule, capsule_name);
    if (event == NULL) return NULL;
    if (gpu_stream_wait_event(event, stream ? stream : GPU_DEFAULT_STREAM, &status))
        return raise_status(state, &status);
    Py_RETURN_NONE;
}
