/* Arrays of other libraries (CuPy, PyTorch, Numba, JAX), most of them in a GPU's memory. */
#ifndef SMK_DEVICE_ARRAY_H
#define SMK_DEVICE_ARRAY_H

#include "module.h"

/* How messages name the array: "gemm: a", or "argument 3" if op is NULL. */
typedef struct array_label {
    const char *op, *name;
    Py_ssize_t index;
} array_label;

typedef enum array_place {
    ARRAY_UNKNOWN,        /* supports no protocol: a list, a scalar, ... */
    ARRAY_HOST,           /* in host memory, not described further: numpy.from_dlpack reads it */
    ARRAY_HOST_DESCRIBED, /* in host memory, with address, type and shape set */
    ARRAY_DEVICE
} array_place;

/* No GPU; any GPU, for an array without elements. */
enum { ORDINAL_NONE = -1, ORDINAL_ANY = -2 };

/* An array as its protocol describes it. The fields from `address` on are set only for
 * ARRAY_HOST_DESCRIBED and ARRAY_DEVICE. */
typedef struct device_array {
    array_place place;
    int ordinal;     /* of the GPU */
    void *stream;    /* our work must wait for the library's work there; NULL: no wait */
    PyObject *owner; /* keeps the memory alive; NULL: the object itself does */
    uint64_t address;
    char kind;        /* NumPy's letter; 'E': bfloat16; 0: elements are not whole bytes */
    int64_t itemsize; /* bytes */
    bool read_only;
    /* The library may reuse freed memory before our work on it has finished: its order of reuse
     * does not include our stream. */
    bool reused_unordered;
    int n_dims;
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS]; /* strides in bytes */
} device_array;

/* Describes an array by the first protocol that it supports. `stream`: the stream that will use it;
 * NULL: not known yet, so the array's own is taken. Call device_array_clear even on failure. */
int device_array_read(module_state *state, PyObject *given, array_label label, void *stream,
                      device_array *out);
void device_array_clear(device_array *a);

/* 1: *out is a new reference; 0: no such attribute, no exception; -1: an exception. */
int attribute(PyObject *given, PyObject *name, PyObject **out);

/* The module smemkern._device.arrays; borrowed. */
PyObject *device_arrays_module(module_state *state);

/* Raises an exception whose message begins with the label. Returns -1. */
int device_array_refuse(PyObject *exception, array_label label, const char *format, ...);

/* Whether the elements have no gaps, in C or in Fortran order. */
bool device_array_is_contiguous(const device_array *a);

/* A NumPy view with the array's shape, strides and type. The data pointer of an array in GPU memory
 * must never be dereferenced. `given` is the object that `a` describes; the view keeps it. */
PyArrayObject *device_array_view(module_state *state, const device_array *a, PyObject *given,
                                 array_label label);

/* The same for ARRAY_HOST, by numpy.from_dlpack. */
PyArrayObject *host_array_view(PyObject *given);

/* Whether a type is bfloat16: ml_dtypes', another library's, or our stand-in (array_view.c). */
bool is_bfloat16(const module_state *state, PyArray_Descr *descr);

#endif
