/* Arrays of other libraries (CuPy, PyTorch, Numba, JAX), most of them in a GPU's memory. */
#ifndef SMK_DEVICE_ARRAY_H
#define SMK_DEVICE_ARRAY_H

#include "module.h"

/* Of what a message speaks: "gemm: a", or with op NULL "argument 3". */
typedef struct array_label {
    const char *op, *name;
    Py_ssize_t index;
} array_label;

typedef enum array_place {
    ARRAY_UNKNOWN, /* speaks no protocol: a list, a scalar, ... */
    ARRAY_HOST,    /* in host memory, and nothing else is known: NumPy reads it */
    ARRAY_HOST_DESCRIBED,
    ARRAY_DEVICE
} array_place;

enum { ORDINAL_NONE = -1, ORDINAL_ANY = -2 }; /* no GPU; an array without elements, on every GPU */

/* All that there is to know of an array; from `kind` on only of one that is described. */
typedef struct device_array {
    array_place place;
    int ordinal;     /* of the GPU */
    void *stream;    /* what the library has queued there comes before our work; NULL: nothing */
    PyObject *owner; /* keeps the memory, if the object itself does not */
    uint64_t address;
    char kind;        /* of the elements, as NumPy's letters; 'E': bfloat16, 0: no whole bytes */
    int64_t itemsize; /* bytes */
    bool read_only;
    bool loose; /* the library may give the memory away before our work on it has ended */
    int n_dims;
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS]; /* strides in bytes */
} device_array;

/* Reads it, once, whatever protocol it speaks. `stream` is on which it will be used; NULL: that is
 * not known yet, and may become the array's own. device_array_clear is due in any case. */
int device_array_read(module_state *state, PyObject *given, array_label label, void *stream,
                      device_array *out);
void device_array_clear(device_array *a);

/* 1: *out is a new reference; 0: there is no such attribute, and no exception was made for it. */
int attribute(PyObject *given, PyObject *name, PyObject **out);

/* The module smemkern._device_arrays; borrowed. */
PyObject *library_helpers(module_state *state);

/* Raises: the array, as the label names it, and what is wrong with it. -1. */
int device_array_refuse(PyObject *exception, array_label label, const char *format, ...);

/* Without a gap, in C or in Fortran order. */
bool device_array_is_contiguous(const device_array *a);

/* Shape, strides and type as a NumPy array. Of one in a GPU's memory the data is an address there:
 * to be looked at, never to be read. `given` is what was read. */
PyArrayObject *device_array_view(module_state *state, const device_array *a, PyObject *given,
                                 array_label label);

/* The same of host memory that is not described: NumPy asks. */
PyArrayObject *host_array_view(PyObject *given);

/* Whether elements of a type are bfloat16, of whatever library's. */
bool is_bfloat16(const module_state *state, PyArray_Descr *descr);

#endif
