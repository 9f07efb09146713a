/* The window of a recording, from and to Python. */
#include "recording.h"

#include <stdlib.h>

static int read_numbers(PyObject *given, const char *name, size_t itemsize, Py_buffer *out) {
    if (given == Py_None) return 0;
    if (PyObject_GetBuffer(given, out, PyBUF_C_CONTIGUOUS)) return -1;
    if ((size_t)out->itemsize == itemsize) return 0;
    PyErr_Format(PyExc_TypeError, "%s of a recording should have %zu bytes each", name, itemsize);
    return -1;
}

static int read_arrays(PyObject *given, recording_request *out) {
    PyObject *list = PySequence_Fast(given, "arrays of a recording should be a list");
    if (list == NULL) return -1;
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(list);
    out->arrays_owner = list;
    out->arrays = PyMem_Calloc((size_t)n + 1, sizeof *out->arrays);
    if (out->arrays == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        smk_recorded_array *array = &out->arrays[i];
        unsigned int element, columns;
        if (!PyArg_ParseTuple(PySequence_Fast_GET_ITEM(list, i), "sII", &array->name, &element,
                              &columns))
            return -1;
        array->element = element;
        array->columns = columns;
    }
    out->recording.arrays = out->arrays;
    out->recording.n_arrays = (size_t)n;
    return 0;
}

int recording_read(PyObject *given, recording_request *out) {
    unsigned long long first, steps;
    Py_ssize_t max_bytes;
    PyObject *blocks, *warps, *arrays;
    *out = (recording_request){.wanted = given != Py_None};
    if (!out->wanted) return 0;
    if (!PyArg_ParseTuple(given, "KKnOOO:recording", &first, &steps, &max_bytes, &blocks, &warps,
                          &arrays) ||
        read_numbers(blocks, "blocks", sizeof(uint64_t), &out->blocks) ||
        read_numbers(warps, "warps", sizeof(uint32_t), &out->warps) || read_arrays(arrays, out))
        return -1;
    smk_recording *r = &out->recording;
    r->first = first;
    r->steps = steps;
    r->max_bytes = (size_t)max_bytes;
    r->blocks = out->blocks.buf;
    r->n_blocks = (size_t)out->blocks.len / sizeof(uint64_t);
    r->warps = out->warps.buf;
    r->n_warps = (size_t)out->warps.len / sizeof(uint32_t);
    return 0;
}

PyObject *recording_bytes(const recording_request *r) {
    if (!r->wanted || r->recording.bytes == NULL) Py_RETURN_NONE;
    return PyBytes_FromStringAndSize((const char *)r->recording.bytes,
                                     (Py_ssize_t)r->recording.size);
}

void recording_clear(recording_request *r) {
    if (r->blocks.obj) PyBuffer_Release(&r->blocks);
    if (r->warps.obj) PyBuffer_Release(&r->warps);
    Py_CLEAR(r->arrays_owner);
    PyMem_Free(r->arrays);
    free(r->recording.bytes);
    *r = (recording_request){0};
}
