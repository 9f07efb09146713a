/* Three protocols say where an array's memory is, and on which stream its library works:
 *
 *     exchange    C functions of the array's type: no Python is called
 *     dlpack      __dlpack_device__() and __dlpack__(stream=...), which orders the stream itself
 *     interface   __cuda_array_interface__, an attribute that is a dict
 *
 * Each leads to the same description; the first that the array speaks is taken. An interface comes last,
 * for it often lacks the stream.
 *
 * A capsule that is not renamed stays its producer's, whose destructor frees it: holding it is all
 * that is needed.
 */
#include "device_array.h"

#include "../cuda/gpu.h"
#include "dlpack.h"

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
    if (text && rest) {
        PyErr_Format(exception, "%U %U", text, rest);
    }
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

PyObject *library_helpers(module_state *state) {
    PyObject *known = atomic_load(&state->helpers);
    if (known == NULL) {
        PyObject *module = PyImport_ImportModule("smemkern._device_arrays");
        if (module && atomic_compare_exchange_strong(&state->helpers, &known, module)) {
            known = module;
        } else { /* another thread was first */
            Py_XDECREF(module);
        }
    }
    return known;
}

/* ---- a tensor of DLPack's ---- */

static int set_rank(device_array *a, int n, array_label label) {
    a->n_dims = n;
    if (n >= 0 && n <= NPY_MAXDIMS) {
        return 0;
    }
    return device_array_refuse(PyExc_ValueError, label,
                               "has %d dimensions; there may be %d at most", n, NPY_MAXDIMS);
}

/* Nothing is believed that leads to memory which cannot be there; and a negative extent would make NumPy
 * fail with a word of its own. */
static int check_shape(const device_array *a, array_label label) {
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
                                       "says that it has more bytes than there are addresses");
        }
    }
    if (!a->address && !empty) {
        return device_array_refuse(PyExc_ValueError, label,
                                   "says that its elements are at address 0; was it freed?");
    }
    return 0;
}

/* Of an empty array as NumPy has it: as though the empty dimensions had length 1. */
static void set_c_order(device_array *a) {
    npy_uintp stride = (npy_uintp)a->itemsize; /* unsigned: nonsense may overflow */
    for (int d = a->n_dims - 1; d >= 0; d--) {
        a->strides[d] = (npy_intp)stride;
        stride *= a->shape[d] > 0 ? (npy_uintp)a->shape[d] : 1;
    }
}

static void set_type(device_array *a, dl_type type) {
    static const char kinds[] = {[DL_INT] = 'i',    [DL_UINT] = 'u',    [DL_FLOAT] = 'f',
                                 [DL_BFLOAT] = 'E', [DL_COMPLEX] = 'c', [DL_BOOL] = 'b'};
    int bits = type.bits * type.lanes;
    bool known = type.code < sizeof kinds && kinds[type.code] && type.lanes == 1;
    const bool whole = bits && bits % 8 == 0;
    a->itemsize = whole ? bits / 8 : 1;
    a->kind = (char)(!whole ? 0 : known ? kinds[type.code] : 'V');
}

static int describe_tensor(const dl_tensor *t, array_label label, device_array *a) {
    const bool device = t->device_type == DL_CUDA || t->device_type == DL_CUDA_MANAGED;
    a->place = device ? ARRAY_DEVICE : ARRAY_HOST_DESCRIBED;
    a->ordinal = device ? t->device_id : ORDINAL_NONE;
    if (set_rank(a, t->n_dims, label)) {
        return -1;
    }
    if (t->n_dims && !t->shape) {
        return device_array_refuse(PyExc_ValueError, label,
                                   "says that it has %d dimensions, and no shape", t->n_dims);
    }
    a->address = (uint64_t)(uintptr_t)t->data + t->byte_offset;
    set_type(a, t->type);
    for (int d = 0; d < a->n_dims; d++) {
        a->shape[d] = (npy_intp)t->shape[d];
        a->strides[d] = /* unsigned: nonsense may overflow */
            t->strides ? (npy_intp)((npy_uintp)t->strides[d] * (npy_uintp)a->itemsize) : 0;
    }
    if (!t->strides) {
        set_c_order(a);
    }
    return check_shape(a, label);
}

static int check_place(int device_type, PyObject *given, array_label label) {
    if (device_type == DL_CUDA || device_type == DL_CUDA_MANAGED || device_type == DL_CPU ||
        device_type == DL_CUDA_HOST) {
        return 0;
    }
    return device_array_refuse(
        PyExc_ValueError, label,
        "(%.200s) is in memory of DLPack's device type %d; host memory (1), also pinned "
        "(3), and CUDA's (2) are taken",
        Py_TYPE(given)->tp_name, device_type);
}

/* ---- exchange ---- */

/* The functions of the type; NULL, perhaps with an exception, if it has none that are known here. */
static const dl_exchange *find_exchange(const module_state *state, PyObject *given) {
    PyObject *capsule;
    if (attribute((PyObject *)Py_TYPE(given), state->names.exchange, &capsule) <= 0) {
        return NULL;
    }
    /* The functions live as long as the process. */
    const dl_exchange *found = PyCapsule_GetPointer(capsule, DL_EXCHANGE_CAPSULE);
    Py_DECREF(capsule);
    while (found && found->major != DL_EXCHANGE_MAJOR) {
        found = found->older;
    }
    return found && found->describe && found->current_stream ? found : NULL;
}

static int is_true(PyObject *answer) {
    int truth = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return truth;
}

/* A tensor of PyTorch's can be a promise: of elements that are negated or conjugated when they are
 * read, or of a gradient. The C functions pass over that; __dlpack__ does not. */
static int is_promise(const module_state *state, PyObject *given, const dl_tensor *t) {
    PyObject *answer;
    int truth = attribute(given, state->names.requires_grad, &answer);
    if (truth <= 0) {
        return truth;
    }
    truth = is_true(answer);
    if (truth == 0) {
        truth = is_true(PyObject_CallMethodNoArgs(given, state->names.is_neg));
    }
    if (truth == 0 && t->type.code == DL_COMPLEX) {
        truth = is_true(PyObject_CallMethodNoArgs(given, state->names.is_conj));
    }
    return truth;
}

/* 0 also if the type has no such functions, or they cannot describe the object: __dlpack__ says
 * why, in words for people. */
static int read_exchange(const module_state *state, PyObject *given, array_label label,
                         device_array *a) {
    const dl_exchange *functions = find_exchange(state, given);
    dl_tensor t;
    if (functions == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    if (functions->describe(given, &t)) {
        PyErr_Clear();
        return 0;
    }
    int promise = is_promise(state, given, &t);
    if (promise) {
        return promise < 0 ? -1 : 0;
    }
    if (check_place(t.device_type, given, label) || describe_tensor(&t, label, a)) {
        return -1;
    }
    if (a->place == ARRAY_DEVICE) {
        if (functions->current_stream(t.device_type, t.device_id, &a->stream)) {
            return -1;
        }
        a->stream = a->stream ? a->stream : GPU_DEFAULT_STREAM;
    }
    return 0;
}

/* ---- dlpack ---- */

/* The device's type and number; type 0 where the object does not speak DLPack. */
static int dlpack_device(const module_state *state, PyObject *given, int *type, int *id) {
    PyObject *method;
    *type = *id = 0;
    int found = attribute(given, state->names.dlpack_device, &method);
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

/* The stream on which the array's library works now. */
static int library_stream(module_state *state, PyObject *given, void **out) {
    PyObject *module = library_helpers(state);
    PyObject *stream =
        module ? PyObject_CallMethodOneArg(module, state->names.current_stream, given) : NULL;
    *out = stream ? PyLong_AsVoidPtr(stream) : NULL;
    if (*out == NULL && !PyErr_Occurred()) {
        *out = GPU_DEFAULT_STREAM; /* 0 is what libraries call the default stream */
    }
    Py_XDECREF(stream);
    return PyErr_Occurred() ? -1 : 0;
}

/* given.__dlpack__(stream=...): a capsule. */
static PyObject *call_dlpack(const module_state *state, PyObject *given, void *stream) {
    PyObject *method = PyObject_GetAttr(given, state->names.dlpack);
    PyObject *number = method ? PyLong_FromVoidPtr(stream) : NULL;
    PyObject *keywords = number ? PyTuple_Pack(1, state->names.stream) : NULL;
    PyObject *capsule = keywords ? PyObject_Vectorcall(method, &number, 0, keywords) : NULL;
    Py_XDECREF(method);
    Py_XDECREF(number);
    Py_XDECREF(keywords);
    return capsule;
}

static int read_dlpack(module_state *state, PyObject *given, array_label label, void *stream,
                       device_array *a) {
    int type, id;
    if (dlpack_device(state, given, &type, &id)) {
        return -1;
    }
    if (type == 0 || check_place(type, given, label)) {
        return type ? -1 : 0;
    }
    if (type == DL_CPU || type == DL_CUDA_HOST) {
        a->place = ARRAY_HOST;
        return 0;
    }
    if (stream == NULL && library_stream(state, given, &stream)) {
        return -1;
    }
    a->stream = stream;
    a->owner = call_dlpack(state, given, stream);
    const dl_tensor *t = a->owner ? PyCapsule_GetPointer(a->owner, "dltensor") : NULL;
    return t ? describe_tensor(t, label, a) : -1;
}

/* ---- interface ---- */

static int refuse_interface(const char *why) {
    PyErr_Format(PyExc_TypeError, "__cuda_array_interface__ %s", why);
    return -1;
}

/* (address, read-only) */
static int read_data(PyObject *data, device_array *a) {
    if (data == NULL || !PyTuple_Check(data) || PyTuple_GET_SIZE(data) < 1) {
        return refuse_interface("must be a dict with data = (address, read-only)");
    }
    a->address = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(data, 0));
    a->read_only = PyTuple_GET_SIZE(data) > 1 && PyObject_IsTrue(PyTuple_GET_ITEM(data, 1)) == 1;
    return PyErr_Occurred() ? -1 : 0;
}

/* "<f4": byte order, kind, bytes. What is not in this machine's order is bytes. */
static int read_typestr(PyObject *typestr, device_array *a) {
    const char *text = typestr && PyUnicode_Check(typestr) ? PyUnicode_AsUTF8(typestr) : NULL;
    a->itemsize = text && strlen(text) > 2 ? strtoll(text + 2, NULL, 10) : 0;
    if (a->itemsize <= 0) {
        return PyErr_Occurred() ? -1 : refuse_interface("has no usable typestr");
    }
    const bool swapped = text[0] == '>' && a->itemsize > 1;
    a->kind = !swapped && strchr("iufcb", text[1]) ? text[1] : 'V';
    return 0;
}

static int read_extents(PyObject *tuple, int n, npy_intp *out) {
    if (tuple == NULL || !PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != n) {
        return refuse_interface("must have shape and strides that are tuples of one length");
    }
    for (int d = 0; d < n; d++) {
        out[d] = (npy_intp)PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, d));
        if (out[d] == -1 && PyErr_Occurred()) {
            return -1;
        }
    }
    return 0;
}

/* The GPU is what the driver knows of the address. */
static int find_ordinal(const module_state *state, device_array *a) {
    smk_status status = {0};
    a->ordinal = ORDINAL_ANY;
    if (a->address && gpu_pointer_device(a->address, &a->ordinal, &status)) {
        raise_status(state, &status);
        return -1;
    }
    return 0;
}

static int read_interface(const module_state *state, PyObject *given, array_label label,
                          device_array *a) {
    const module_names *names = &state->names;
    PyObject *dict;
    int failed = -1, found = attribute(given, names->interface, &dict);
    if (found <= 0) {
        return found;
    }
    a->place = ARRAY_DEVICE;
    if (!PyDict_Check(dict)) {
        refuse_interface("must be a dict with data = (address, read-only)");
        goto done;
    }
    PyObject *shape = PyDict_GetItemWithError(dict, names->shape);
    PyObject *strides = PyDict_GetItemWithError(dict, names->strides);
    PyObject *stream = PyDict_GetItemWithError(dict, names->stream);
    int n = shape && PyTuple_Check(shape) ? (int)PyTuple_GET_SIZE(shape) : -1;
    if (read_data(PyDict_GetItemWithError(dict, names->data), a) ||
        read_typestr(PyDict_GetItemWithError(dict, names->typestr), a) || set_rank(a, n, label) ||
        read_extents(shape, n, a->shape) || check_shape(a, label)) {
        goto done;
    }
    if (strides == NULL || strides == Py_None) {
        set_c_order(a);
    } else if (read_extents(strides, n, a->strides)) {
        goto done;
    }
    if (stream && stream != Py_None) {
        a->stream = PyLong_AsVoidPtr(stream);
        if (PyErr_Occurred()) {
            goto done;
        }
    }
    failed = find_ordinal(state, a);
done:
    Py_DECREF(dict);
    return failed;
}

/* ---- whichever it speaks ---- */

int device_array_read(module_state *state, PyObject *given, array_label label, void *stream,
                      device_array *out) {
    out->place = ARRAY_UNKNOWN;
    out->ordinal = ORDINAL_NONE;
    out->stream = NULL;
    out->owner = NULL;
    out->read_only = false;
    int failed = read_exchange(state, given, label, out);
    if (!failed && out->place == ARRAY_UNKNOWN) {
        failed = read_dlpack(state, given, label, stream, out);
    }
    if (!failed && out->place == ARRAY_UNKNOWN) {
        failed = read_interface(state, given, label, out);
    }
    return failed;
}

void device_array_clear(device_array *a) {
    Py_CLEAR(a->owner);
}
