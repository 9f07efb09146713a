/* Reads __cuda_array_interface__, up to version 3: an attribute that is a dict
 * (https://nvidia.github.io/numba-cuda/user/cuda_array_interface.html). */
#include "device_array_parts.h"

#include "../cuda/gpu.h"

static int refuse_interface(const char *why) {
    PyErr_Format(PyExc_TypeError, "__cuda_array_interface__ %s", why);
    return -1;
}

/* (address, read-only) */
static int read_data(PyObject *data, device_array *a) {
    if (data == NULL || !PyTuple_Check(data) || PyTuple_GET_SIZE(data) < 1)
        return refuse_interface("must be a dict with data = (address, read-only)");
    a->address = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(data, 0));
    a->read_only = PyTuple_GET_SIZE(data) > 1 && PyObject_IsTrue(PyTuple_GET_ITEM(data, 1)) == 1;
    return PyErr_Occurred() ? -1 : 0;
}

/* "<f4": byte order, kind, bytes per element. Elements in the other byte order get kind 'V'. */
static int read_typestr(PyObject *typestr, device_array *a) {
    const char *text = typestr && PyUnicode_Check(typestr) ? PyUnicode_AsUTF8(typestr) : NULL;
    a->itemsize = text && strlen(text) > 2 ? strtoll(text + 2, NULL, 10) : 0;
    if (a->itemsize <= 0 || a->itemsize > INT32_MAX)
        return PyErr_Occurred() ? -1 : refuse_interface("has no usable typestr");
    const bool swapped = text[0] == '>' && a->itemsize > 1;
    a->kind = !swapped && strchr("iufcb", text[1]) ? text[1] : 'V';
    return 0;
}

static int read_extents(PyObject *tuple, int n, npy_intp *out) {
    if (tuple == NULL || !PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != n)
        return refuse_interface("must have shape and strides that are tuples of one length");
    for (int d = 0; d < n; d++) {
        out[d] = (npy_intp)PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, d));
        if (out[d] == -1 && PyErr_Occurred()) return -1;
    }
    return 0;
}

/* Looks up the GPU of the address in the driver. */
static int find_ordinal(const module_state *state, device_array *a) {
    smk_status status = {0};
    a->ordinal = ORDINAL_ANY;
    if (a->address && gpu_pointer_device(a->address, &a->ordinal, &status)) {
        raise_status(state, &status);
        return -1;
    }
    return 0;
}

int device_array_read_interface(const module_state *state, PyObject *given, array_label label,
                                device_array *a) {
    const module_names *names = &state->names;
    PyObject *dict;
    int failed = -1, found = attribute(given, names->interface, &dict);
    if (found <= 0) return found;
    a->place = ARRAY_DEVICE;
    if (!PyDict_Check(dict)) {
        Py_DECREF(dict);
        return refuse_interface("must be a dict with data = (address, read-only)");
    }
    /* New references, since the numbers read below may be objects whose code changes the dict. */
    PyObject *shape = dict_item(dict, names->shape), *strides = dict_item(dict, names->strides);
    PyObject *stream = dict_item(dict, names->stream), *mask = dict_item(dict, names->mask);
    PyObject *data = dict_item(dict, names->data), *typestr = dict_item(dict, names->typestr);
    if (PyErr_Occurred()) goto done;
    if (mask && mask != Py_None) {
        refuse_interface("has a mask, which would be lost");
        goto done;
    }
    int n = shape && PyTuple_Check(shape) ? (int)PyTuple_GET_SIZE(shape) : -1;
    if (read_data(data, a) || read_typestr(typestr, a) || device_array_set_rank(a, n, label) ||
        read_extents(shape, n, a->shape) || device_array_check_shape(a, label)) {
        goto done;
    }
    if (strides == NULL || strides == Py_None)
        device_array_set_c_order(a);
    else if (read_extents(strides, n, a->strides))
        goto done;
    if (stream && stream != Py_None) {
        a->stream = PyLong_AsVoidPtr(stream);
        if (PyErr_Occurred()) goto done;
    }
    failed = device_array_check_strides(a, label) ? -1 : find_ordinal(state, a);
done:
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    Py_XDECREF(stream);
    Py_XDECREF(mask);
    Py_XDECREF(data);
    Py_XDECREF(typestr);
    Py_DECREF(dict);
    return failed;
}
