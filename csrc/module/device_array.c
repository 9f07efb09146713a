/* Two protocols say where an array's memory is: DLPack, which also orders the producer's queued work
 * before ours on the stream that we name, and __cuda_array_interface__, which names the producer's
 * stream and leaves the waiting to us. An array that speaks both is asked by DLPack.
 *
 * DLPack's structures are declared here, as its header would: they are an ABI
 * (https://dmlc.github.io/dlpack). A capsule that is not renamed stays its producer's, whose destructor
 * frees it: holding it is all that is needed.
 */
#include "device_array.h"

#include "../cuda/gpu.h"

enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_CUDA_MANAGED = 13 };

typedef struct dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t n_dims;
    uint8_t type_code, type_bits;
    uint16_t type_lanes;
    int64_t *shape, *strides; /* strides in elements; NULL: C order */
    uint64_t byte_offset;
} dl_tensor;

/* ---- where it is ---- */

/* 1: *out is a new reference; 0: there is no such attribute. */
static int attribute(PyObject *given, const char *name, PyObject **out) {
    *out = PyObject_GetAttrString(given, name);
    if (*out == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        return 0;
    }
    return *out ? 1 : -1;
}

/* What DLPack calls its device; type 0 where the object does not speak DLPack. */
static int dlpack_device(PyObject *given, int *type, int *id) {
    PyObject *method;
    *type = *id = 0;
    int found = attribute(given, "__dlpack_device__", &method);
    if (found <= 0) {
        return found;
    }
    PyObject *pair = PyObject_CallNoArgs(method);
    Py_DECREF(method);
    if (pair == NULL) {
        return -1;
    }
    int parsed = PyTuple_Check(pair) && PyArg_ParseTuple(pair, "ii", type, id);
    if (!parsed && !PyErr_Occurred()) {
        PyErr_Format(PyExc_TypeError, "__dlpack_device__() of %.200s returned no pair of ints",
                     Py_TYPE(given)->tp_name);
    }
    Py_DECREF(pair);
    return parsed ? 0 : -1;
}

/* The pointer that a __cuda_array_interface__ names. */
static int interface_address(PyObject *interface, uint64_t *out) {
    PyObject *data = PyDict_Check(interface) ? PyDict_GetItemString(interface, "data") : NULL;
    if (data == NULL || !PyTuple_Check(data) || PyTuple_GET_SIZE(data) < 1) {
        PyErr_SetString(PyExc_TypeError,
                        "__cuda_array_interface__ must be a dict with data = (address, read-only)");
        return -1;
    }
    *out = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(data, 0));
    return PyErr_Occurred() ? -1 : 0;
}

static bool is_host_memory(int dlpack_type) {
    return dlpack_type == DL_CPU || dlpack_type == DL_CUDA_HOST;
}

int device_array_ordinal(const module_state *state, PyObject *given, Py_ssize_t index,
                         int *ordinal) {
    int type, id;
    *ordinal = ORDINAL_NONE;
    if (dlpack_device(given, &type, &id)) {
        return -1;
    }
    if (type == DL_CUDA || type == DL_CUDA_MANAGED) {
        *ordinal = id;
        return 0;
    }
    if (type != 0 && !is_host_memory(type)) {
        PyErr_Format(PyExc_ValueError,
                     "argument %zd (%.200s) is in memory of DLPack's device type %d; host memory "
                     "(1), also pinned (3), and CUDA's (2) are taken",
                     index, Py_TYPE(given)->tp_name, type);
        return -1;
    }
    PyObject *interface;
    int found = type != 0 ? 0 : attribute(given, "__cuda_array_interface__", &interface);
    if (found <= 0) {
        return found;
    }
    uint64_t address;
    smk_status status = {0};
    int failed = interface_address(interface, &address);
    Py_DECREF(interface);
    if (failed) {
        return -1;
    }
    if (address == 0) {
        *ordinal = ORDINAL_ANY;
    } else if (gpu_pointer_device(address, ordinal, &status)) {
        raise_status(state, &status);
        return -1;
    }
    return 0;
}

int host_array_view(PyObject *given, PyArrayObject **out) {
    int type, id;
    *out = NULL;
    if (dlpack_device(given, &type, &id)) {
        return -1;
    }
    if (!is_host_memory(type)) {
        return 0;
    }
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *array = numpy ? PyObject_CallMethod(numpy, "from_dlpack", "O", given) : NULL;
    Py_XDECREF(numpy);
    if (array && !PyArray_Check(array)) {
        PyErr_SetString(PyExc_TypeError, "numpy.from_dlpack returned no array");
        Py_CLEAR(array);
    }
    *out = (PyArrayObject *)array;
    return array ? 0 : -1;
}

/* ---- the memory ---- */

/* Whether elements of `unit` lie one behind the other, in C or in Fortran order. Strides of
 * dimensions of length 1 are never used, and an empty array has no order. */
static bool is_contiguous(int n, const int64_t *shape, const int64_t *strides, int64_t unit) {
    int64_t c = unit, fortran = unit;
    bool is_c = true, is_fortran = true;
    for (int d = 0; d < n; d++) {
        if (shape[d] == 0) {
            return true;
        }
        if (shape[d] > 1) {
            is_fortran &= strides[d] == fortran;
            fortran *= shape[d];
        }
        if (shape[n - 1 - d] > 1) {
            is_c &= strides[n - 1 - d] == c;
            c *= shape[n - 1 - d];
        }
    }
    return is_c || is_fortran;
}

static int refuse_strides(Py_ssize_t index) {
    PyErr_Format(PyExc_ValueError,
                 "argument %zd is not contiguous, and a kernel sees no strides; pass "
                 "cupy.ascontiguousarray(...) or tensor.contiguous()",
                 index);
    return -1;
}

/* method(stream=...): a capsule. */
static int call_dlpack(PyObject *method, void *stream, PyObject **out) {
    PyObject *none = PyTuple_New(0);
    PyObject *number = PyLong_FromVoidPtr(stream);
    PyObject *keywords = number ? Py_BuildValue("{sO}", "stream", number) : NULL;
    *out = none && keywords ? PyObject_Call(method, none, keywords) : NULL;
    Py_XDECREF(none);
    Py_XDECREF(number);
    Py_XDECREF(keywords);
    return *out ? 0 : -1;
}

static int open_dlpack(PyObject *method, Py_ssize_t index, void *stream, device_array *out) {
    if (call_dlpack(method, stream, &out->owner)) {
        return -1;
    }
    const dl_tensor *t = PyCapsule_GetPointer(out->owner, "dltensor");
    if (t == NULL) {
        return -1;
    }
    if (t->strides && !is_contiguous(t->n_dims, t->shape, t->strides, 1)) {
        return refuse_strides(index);
    }
    out->address = (uint64_t)(uintptr_t)t->data + t->byte_offset;
    return 0;
}

/* "<f4" -> 4: the number behind kind and byte order. */
static int read_itemsize(PyObject *typestr, int64_t *out) {
    const char *text = typestr && PyUnicode_Check(typestr) ? PyUnicode_AsUTF8(typestr) : NULL;
    *out = text && strlen(text) > 2 ? strtoll(text + 2, NULL, 10) : 0;
    if (*out <= 0 && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_TypeError, "__cuda_array_interface__ has no usable typestr");
    }
    return *out > 0 ? 0 : -1;
}

static int read_extents(PyObject *tuple, int n, int64_t *out) {
    if (tuple == NULL || !PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != n) {
        PyErr_SetString(PyExc_TypeError,
                        "shape and strides of __cuda_array_interface__ must be tuples of one "
                        "length");
        return -1;
    }
    for (int d = 0; d < n; d++) {
        out[d] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, d));
        if (out[d] == -1 && PyErr_Occurred()) {
            return -1;
        }
    }
    return 0;
}

static int open_interface(PyObject *interface, Py_ssize_t index, const void *stream,
                          device_array *out) {
    PyObject *shape = PyDict_GetItemString(interface, "shape");
    PyObject *strides = PyDict_GetItemString(interface, "strides");
    PyObject *producer = PyDict_GetItemString(interface, "stream");
    if (strides && strides != Py_None) {
        int64_t itemsize, extents[NPY_MAXDIMS], steps[NPY_MAXDIMS];
        int n = PyTuple_Check(strides) ? (int)Py_MIN(PyTuple_GET_SIZE(strides), NPY_MAXDIMS) : 0;
        if (read_itemsize(PyDict_GetItemString(interface, "typestr"), &itemsize) ||
            read_extents(shape, n, extents) || read_extents(strides, n, steps)) {
            return -1;
        }
        if (!is_contiguous(n, extents, steps, itemsize)) {
            return refuse_strides(index);
        }
    }
    if (producer && producer != Py_None) {
        out->after = PyLong_AsVoidPtr(producer);
        if (PyErr_Occurred()) {
            return -1;
        }
        if (out->after == stream) {
            out->after = NULL;
        }
    }
    return interface_address(interface, &out->address);
}

int device_array_open(PyObject *given, Py_ssize_t index, void *stream, device_array *out) {
    PyObject *found;
    *out = (device_array){0};
    int has = attribute(given, "__dlpack__", &found);
    int failed = has < 0;
    if (has > 0) {
        failed = open_dlpack(found, index, stream, out);
    } else if (has == 0) {
        has = attribute(given, "__cuda_array_interface__", &found);
        failed = has <= 0 || open_interface(found, index, stream, out);
        out->owner = Py_NewRef(given);
    }
    if (has > 0) {
        Py_DECREF(found);
    }
    if (failed) {
        Py_CLEAR(out->owner);
    }
    return failed ? -1 : 0;
}

/* ---- as a NumPy array that is only looked at ---- */

/* What both protocols say, in NumPy's terms: strides in bytes. */
typedef struct description {
    uint64_t address;
    PyArray_Descr *descr;
    int n;
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    bool has_strides, read_only;
} description;

/* bfloat16 is a type that ml_dtypes brings. Without it its bits can still be moved. */
static PyArray_Descr *describe_bfloat16(void) {
    PyArray_Descr *descr = NULL;
    PyObject *module = PyImport_ImportModule("ml_dtypes");
    PyObject *type = module ? PyObject_GetAttrString(module, "bfloat16") : NULL;
    if (type) {
        PyArray_DescrConverter(type, &descr);
    } else {
        PyErr_Clear();
        PyObject *bits = PyUnicode_FromString("V2");
        if (bits) {
            PyArray_DescrConverter(bits, &descr);
        }
        Py_XDECREF(bits);
    }
    Py_XDECREF(type);
    Py_XDECREF(module);
    return descr;
}

static PyArray_Descr *describe_text(PyObject *text) {
    PyArray_Descr *descr = NULL;
    if (text) {
        PyArray_DescrConverter(text, &descr);
        Py_DECREF(text);
    }
    return descr;
}

static PyArray_Descr *describe_dlpack(const dl_tensor *t) {
    static const char kinds[] = {'i', 'u', 'f', 0, 'f', 'c', 'b'};
    enum { BFLOAT = 4 };
    if (t->type_code == BFLOAT && t->type_bits == 16 && t->type_lanes == 1) {
        return describe_bfloat16();
    }
    if (t->type_code >= sizeof kinds || !kinds[t->type_code] || t->type_lanes != 1 ||
        t->type_bits % 8) {
        PyErr_Format(PyExc_TypeError, "DLPack's type (code %d, %d bits, %d lanes) is not taken",
                     t->type_code, t->type_bits, t->type_lanes);
        return NULL;
    }
    return describe_text(PyUnicode_FromFormat("%c%d", kinds[t->type_code], t->type_bits / 8));
}

static int check_rank(int n, const char *op, const char *name) {
    if (n >= 0 && n <= NPY_MAXDIMS) {
        return 0;
    }
    PyErr_Format(PyExc_ValueError, "%s: %s has %d dimensions; there may be %d at most", op, name, n,
                 NPY_MAXDIMS);
    return -1;
}

static int describe_by_dlpack(PyObject *method, const char *op, const char *name, void *stream,
                              description *out, PyObject **owner) {
    if (call_dlpack(method, stream, owner)) {
        return -1;
    }
    const dl_tensor *t = PyCapsule_GetPointer(*owner, "dltensor");
    if (t == NULL || check_rank(t->n_dims, op, name) || (out->descr = describe_dlpack(t)) == NULL) {
        return -1;
    }
    out->n = t->n_dims;
    out->address = (uint64_t)(uintptr_t)t->data + t->byte_offset;
    out->has_strides = t->strides != NULL;
    for (int d = 0; d < out->n; d++) {
        out->shape[d] = (npy_intp)t->shape[d];
        out->strides[d] = t->strides ? (npy_intp)t->strides[d] * PyDataType_ELSIZE(out->descr) : 0;
    }
    return 0;
}

static int describe_by_interface(PyObject *interface, const char *op, const char *name,
                                 description *out) {
    PyObject *shape = PyDict_Check(interface) ? PyDict_GetItemString(interface, "shape") : NULL;
    if (interface_address(interface, &out->address)) {
        return -1;
    }
    PyObject *strides = PyDict_GetItemString(interface, "strides");
    PyObject *type = PyDict_GetItemString(interface, "typestr");
    PyObject *data = PyDict_GetItemString(interface, "data");
    int64_t extents[NPY_MAXDIMS], steps[NPY_MAXDIMS];
    out->n = shape && PyTuple_Check(shape) ? (int)PyTuple_GET_SIZE(shape) : -1;
    out->has_strides = strides && strides != Py_None;
    if (check_rank(out->n, op, name) || read_extents(shape, out->n, extents) ||
        (out->has_strides && read_extents(strides, out->n, steps)) ||
        (out->descr = describe_text(Py_XNewRef(type))) == NULL) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "__cuda_array_interface__ has no usable typestr");
        }
        return -1;
    }
    out->read_only = PyTuple_GET_SIZE(data) > 1 && PyObject_IsTrue(PyTuple_GET_ITEM(data, 1)) == 1;
    for (int d = 0; d < out->n; d++) {
        out->shape[d] = (npy_intp)extents[d];
        out->strides[d] = out->has_strides ? (npy_intp)steps[d] : 0;
    }
    return 0;
}

/* A negative extent would make NumPy fail with a word of its own. */
static int check_shape(const description *d, const char *op, const char *name) {
    for (int i = 0; i < d->n; i++) {
        if (d->shape[i] < 0) {
            PyErr_Format(PyExc_ValueError, "%s: %s says that its dimension %d has %zd elements", op,
                         name, i, (Py_ssize_t)d->shape[i]);
            return -1;
        }
    }
    return 0;
}

int device_array_view(PyObject *given, const char *op, const char *name, void *stream,
                      PyArrayObject **out, PyObject **owner) {
    description d = {0};
    PyObject *found;
    *out = NULL;
    *owner = NULL;
    int has = attribute(given, "__dlpack__", &found);
    int failed = has < 0;
    if (has > 0) {
        failed = describe_by_dlpack(found, op, name, stream, &d, owner);
    } else if (has == 0) {
        has = attribute(given, "__cuda_array_interface__", &found);
        failed = has <= 0 || describe_by_interface(found, op, name, &d);
        *owner = Py_NewRef(given);
    }
    if (has > 0) {
        Py_DECREF(found);
    }
    if (!failed && !check_shape(&d, op, name)) {
        enum { NOWHERE = 64 }; /* of an empty array: NumPy would allocate for NULL */
        void *data = (void *)(uintptr_t)(d.address ? d.address : NOWHERE);
        Py_INCREF(d.descr);
        *out = (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, d.descr, d.n, d.shape,
                                                     d.has_strides ? d.strides : NULL, data,
                                                     d.read_only ? 0 : NPY_ARRAY_WRITEABLE, NULL);
    }
    Py_XDECREF(d.descr);
    if (*out == NULL) {
        Py_CLEAR(*owner);
        return -1;
    }
    return 0;
}
