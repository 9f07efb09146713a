/* Checks the shape, the strides and the address that another library reports for its array: every
 * element must lie within the address space. */
#include "device_array_parts.h"

static PyObject *label_text(array_label label) {
    return label.op ? PyUnicode_FromFormat("%s: %s", label.op, label.name)
                    : PyUnicode_FromFormat("argument %zd", label.index);
}

int device_array_refuse(PyObject *exception, array_label label, const char *format, ...) {
    PyObject *text = label_text(label), *rest;
    va_list arguments;
    va_start(arguments, format);
    rest = PyUnicode_FromFormatV(format, arguments);
    va_end(arguments);
    if (text && rest) PyErr_Format(exception, "%U %U", text, rest);
    Py_XDECREF(text);
    Py_XDECREF(rest);
    return -1;
}

int attribute(PyObject *given, PyObject *name, PyObject **out) {
#if PY_VERSION_HEX >= 0x030d0000
    return PyObject_GetOptionalAttr(given, name, out);
#else
    return _PyObject_LookupAttr(given, name, out);
#endif
}

int device_array_set_rank(device_array *a, int n, array_label label) {
    a->n_dims = n;
    if (n >= 0 && n <= NPY_MAXDIMS) return 0;
    return device_array_refuse(PyExc_ValueError, label,
                               "has %d dimensions; there may be %d at most", n, NPY_MAXDIMS);
}

/* Refuses extents whose bytes overflow. Refuses negative extents too: NumPy would raise a message
 * that does not name the array. */
int device_array_check_shape(const device_array *a, array_label label) {
    npy_intp bytes = a->itemsize;
    bool empty = false;
    for (int d = 0; d < a->n_dims; d++) {
        empty |= a->shape[d] == 0;
        if (a->shape[d] < 0) {
            return device_array_refuse(PyExc_ValueError, label,
                                       "says that its dimension %d has %zd elements", d,
                                       (Py_ssize_t)a->shape[d]);
        }
    }
    for (int d = 0; d < a->n_dims && !empty; d++) {
        if (__builtin_mul_overflow(bytes, a->shape[d], &bytes)) {
            return device_array_refuse(PyExc_ValueError, label,
                                       "says that it has more bytes than the address space");
        }
    }
    if (!a->address && !empty) {
        return device_array_refuse(PyExc_ValueError, label,
                                   "says that its elements are at address 0; was it freed?");
    }
    return 0;
}

/* In an empty array, empty dimensions count as length 1, as in NumPy. */
void device_array_set_c_order(device_array *a) {
    npy_uintp stride = (npy_uintp)a->itemsize; /* unsigned: an invalid shape may overflow */
    for (int d = a->n_dims - 1; d >= 0; d--) {
        a->strides[d] = (npy_intp)stride;
        stride *= a->shape[d] > 0 ? (npy_uintp)a->shape[d] : 1;
    }
}

/* Refuses strides that lead outside of the address space. */
int device_array_check_strides(const device_array *a, array_label label) {
    npy_intp low = (npy_intp)a->address, high = low, reach;
    bool outside = low < 0, empty = false;
    for (int d = 0; d < a->n_dims; d++) {
        empty |= a->shape[d] == 0;
        /* The stride of a dimension of length 1 is unused, and may have any value. */
        if (a->shape[d] > 1) {
            outside |= __builtin_mul_overflow(a->shape[d] - 1, a->strides[d], &reach);
            npy_intp *end = reach < 0 ? &low : &high;
            outside |= __builtin_add_overflow(*end, reach, end);
        }
    }
    if ((outside || low < 0) && !empty) {
        return device_array_refuse(PyExc_ValueError, label,
                                   "has strides that lead outside of the address space");
    }
    return 0;
}
