/* Arrays of other libraries (CuPy, PyTorch, Numba, JAX) that are in a GPU's memory already. */
#ifndef SMK_DEVICE_ARRAY_H
#define SMK_DEVICE_ARRAY_H

#include "module.h"

/* Where an argument's memory is. ORDINAL_NONE: it has none that a GPU alone can reach, so it is a
 * NumPy array, a scalar, ... ORDINAL_ANY: a device array without elements, at home everywhere. */
enum { ORDINAL_NONE = -1, ORDINAL_ANY = -2 };

/* -1 with an exception, or 0. */
int device_array_ordinal(const module_state *state, PyObject *given, Py_ssize_t index,
                         int *ordinal);

/* An array of host memory that speaks DLPack (a PyTorch tensor on the CPU), as a NumPy array on the
 * same memory; *out is NULL if `given` is no such thing. */
int host_array_view(PyObject *given, PyArrayObject **out);

typedef struct device_array {
    uint64_t address;
    PyObject *owner; /* keeps the memory */
    void *after;     /* a stream whose work the memory waits for; NULL: none */
} device_array;

/* The memory itself, to be used on `stream`. */
int device_array_open(PyObject *given, Py_ssize_t index, void *stream, device_array *out);

/* Its shape, strides and type as a NumPy array whose data is the address in the GPU's memory: to be
 * looked at, never to be read. *owner keeps the memory. `name` is the argument's, for messages. */
int device_array_view(PyObject *given, const char *op, const char *name, void *stream,
                      PyArrayObject **out, PyObject **owner);

#endif
