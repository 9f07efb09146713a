/* Reads an array's memory, and the stream of its library, by one of three protocols:
 *
 *     exchange    C functions of the array's type: runs no Python code
 *     dlpack      __dlpack_device__() and __dlpack__(stream=...), which orders the stream itself
 *     interface   __cuda_array_interface__, an attribute that is a dict
 *
 * All fill the same struct. They are tried in this order, and the first that the array supports is
 * used. __cuda_array_interface__ is last because it often lacks the stream.
 *
 * The capsule of __dlpack__ is not renamed to "used_dltensor". So its own destructor frees the
 * tensor, and a reference to the capsule keeps the memory.
 */
#include "device_array_parts.h"

#include "../cuda/gpu.h"
#include "dlpack.h"

PyObject *device_arrays_module(module_state *state) {
    PyObject *known = atomic_load(&state->device_arrays);
    if (known == NULL) {
        PyObject *module = PyImport_ImportModule("smemkern._device.arrays");
        if (module && atomic_compare_exchange_strong(&state->device_arrays, &known, module))
            known = module;
        else /* another thread was faster */
            Py_XDECREF(module);
    }
    return known;
}

/* ---- DLPack tensors ---- */

static void set_type(device_array *a, dl_type type) {
    static const char kinds[] = {[DL_INT] = 'i',    [DL_UINT] = 'u',    [DL_FLOAT] = 'f',
                                 [DL_BFLOAT] = 'E', [DL_COMPLEX] = 'c', [DL_BOOL] = 'b'};
    int bits = type.bits * type.lanes;
    bool known = type.code < sizeof kinds && kinds[type.code] && type.lanes == 1;
    const bool whole = bits && bits % 8 == 0;
    a->itemsize = whole ? bits / 8 : 1;
    a->kind = (char)(!whole ? 0 : known ? kinds[type.code] : 'V');
}

/* A stride in bytes. CuPy computes a negative stride in elements by an unsigned division, so the
 * overflowing product is the right one. Any other overflow is an invalid stride. */
static npy_intp bytes_of(int64_t elements, npy_intp itemsize) {
    npy_intp bytes;
    const bool overflows = __builtin_mul_overflow(elements, itemsize, &bytes);
    const bool invalid = overflows && (elements < 0 || bytes >= 0);
    return invalid ? NPY_MIN_INTP : bytes; /* refused by device_array_check_strides */
}

static int describe_tensor(const dl_tensor *t, array_label label, device_array *a) {
    const bool device = t->device_type == DL_CUDA || t->device_type == DL_CUDA_MANAGED;
    a->place = device ? ARRAY_DEVICE : ARRAY_HOST_DESCRIBED;
    a->ordinal = device ? t->device_id : ORDINAL_NONE;
    if (device_array_set_rank(a, t->n_dims, label)) return -1;
    if (t->n_dims && !t->shape) {
        return device_array_refuse(PyExc_ValueError, label,
                                   "says that it has %d dimensions, and no shape", t->n_dims);
    }
    a->address = (uint64_t)(uintptr_t)t->data + t->byte_offset;
    set_type(a, t->type);
    for (int d = 0; d < a->n_dims; d++) {
        a->shape[d] = (npy_intp)t->shape[d];
        if (t->strides) a->strides[d] = bytes_of(t->strides[d], a->itemsize);
    }
    if (!t->strides) device_array_set_c_order(a);
    return device_array_check_shape(a, label) || device_array_check_strides(a, label) ? -1 : 0;
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

/* The type's functions; NULL, with or without an exception, if it has none of our version. */
static const dl_exchange *find_exchange(const module_state *state, PyObject *given) {
    PyObject *capsule;
    if (attribute((PyObject *)Py_TYPE(given), state->names.exchange, &capsule) <= 0) return NULL;
    /* The functions stay valid until the process ends. */
    const dl_exchange *found = PyCapsule_GetPointer(capsule, DL_EXCHANGE_CAPSULE);
    Py_DECREF(capsule);
    while (found && found->major != DL_EXCHANGE_MAJOR)
        found = found->older;
    return found && found->describe && found->current_stream ? found : NULL;
}

static int is_true(PyObject *answer) {
    int truth = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return truth;
}

/* Whether a PyTorch tensor requires grad, or is a lazy negation or conjugate. The C functions
 * ignore that; __dlpack__ raises. */
static int is_lazy(const module_state *state, PyObject *given, const dl_tensor *t) {
    PyObject *answer;
    int truth = attribute(given, state->names.requires_grad, &answer);
    if (truth <= 0) return truth;
    truth = is_true(answer);
    if (truth == 0) truth = is_true(PyObject_CallMethodNoArgs(given, state->names.is_neg));
    if (truth == 0 && t->type.code == DL_COMPLEX)
        truth = is_true(PyObject_CallMethodNoArgs(given, state->names.is_conj));
    return truth;
}

/* Also 0 if the type has no such functions, or if they cannot describe the object. Then __dlpack__
 * is tried next, whose exception explains why. */
static int read_exchange(const module_state *state, PyObject *given, array_label label,
                         device_array *a) {
    const dl_exchange *functions = find_exchange(state, given);
    dl_tensor t;
    if (functions == NULL) return PyErr_Occurred() ? -1 : 0;
    if (functions->describe(given, &t)) {
        PyErr_Clear();
        return 0;
    }
    int lazy = is_lazy(state, given, &t);
    if (lazy) return lazy < 0 ? -1 : 0;
    if (check_place(t.device_type, given, label) || describe_tensor(&t, label, a)) return -1;
    if (a->place == ARRAY_DEVICE) {
        if (functions->current_stream(t.device_type, t.device_id, &a->stream)) return -1;
        a->stream = a->stream ? a->stream : GPU_DEFAULT_STREAM;
    }
    return 0;
}

/* ---- dlpack ---- */

/* The device's type and number; type 0 if the object does not support DLPack. */
static int dlpack_device(const module_state *state, PyObject *given, int *type, int *id) {
    PyObject *method;
    *type = *id = 0;
    int found = attribute(given, state->names.dlpack_device, &method);
    if (found <= 0) return found;
    PyObject *pair = PyObject_CallNoArgs(method);
    Py_DECREF(method);
    if (pair == NULL) return -1;
    int parsed = PyTuple_Check(pair) && PyArg_ParseTuple(pair, "ii", type, id);
    if (!parsed && !PyErr_Occurred()) {
        PyErr_Format(PyExc_TypeError, "__dlpack_device__() of %.200s returned no pair of ints",
                     Py_TYPE(given)->tp_name);
    }
    Py_DECREF(pair);
    return parsed ? 0 : -1;
}

/* Asks smemkern._device.arrays about the array's library: its current stream (used if *stream is
 * NULL), whether it reuses freed memory in the order of that stream, and whether its arrays may be
 * written. The first type for which both are true is cached, so that later calls run no Python
 * code. */
static int read_stream_info(module_state *state, PyObject *given, device_array *a, void **stream) {
    PyObject *type = (PyObject *)Py_TYPE(given), *known = atomic_load(&state->stream_ordered);
    if (*stream && type == known) return 0;
    PyObject *module = device_arrays_module(state);
    PyObject *info =
        module ? PyObject_CallMethodOneArg(module, state->names.stream_info, given) : NULL;
    PyObject *number;
    int stream_ordered = 0, writable = 0;
    if (info && PyArg_ParseTuple(info, "Opp:stream_info", &number, &stream_ordered, &writable)) {
        void *own = PyLong_AsVoidPtr(number);
        own = own ? own : GPU_DEFAULT_STREAM; /* libraries write it as 0 */
        *stream = *stream ? *stream : own;
    }
    Py_XDECREF(info);
    if (PyErr_Occurred()) return -1;
    a->reused_unordered = !stream_ordered;
    a->read_only = !writable;
    if (stream_ordered && writable && known == NULL &&
        atomic_compare_exchange_strong(&state->stream_ordered, &known, type)) {
        Py_INCREF(type);
    }
    return 0;
}

/* given.__dlpack__(stream=..., max_version=...): a capsule. Libraries older than DLPack 1 do not
 * take max_version. */
static PyObject *call_dlpack(const module_state *state, PyObject *given, void *stream) {
    PyObject *method = PyObject_GetAttr(given, state->names.dlpack);
    PyObject *values[] = {method ? PyLong_FromVoidPtr(stream) : NULL,
                          Py_BuildValue("(ii)", DL_MAJOR, DL_MINOR)};
    PyObject *names = PyTuple_Pack(2, state->names.stream, state->names.max_version);
    PyObject *older = PyTuple_Pack(1, state->names.stream), *capsule = NULL;
    if (values[0] && values[1] && names && older) {
        capsule = PyObject_Vectorcall(method, values, 0, names);
        if (capsule == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Clear();
            capsule = PyObject_Vectorcall(method, values, 0, older);
        }
    }
    Py_XDECREF(method);
    Py_XDECREF(values[0]);
    Py_XDECREF(values[1]);
    Py_XDECREF(names);
    Py_XDECREF(older);
    return capsule;
}

static const dl_tensor *open_capsule(PyObject *capsule, PyObject *given, device_array *a) {
    if (!PyCapsule_IsValid(capsule, DL_CAPSULE_VERSIONED))
        return PyCapsule_GetPointer(capsule, DL_CAPSULE);
    const dl_versioned *v = PyCapsule_GetPointer(capsule, DL_CAPSULE_VERSIONED);
    if (v->major != DL_MAJOR) {
        PyErr_Format(PyExc_BufferError,
                     "__dlpack__ of %.200s returned version %u.%u of DLPack, but at most %d.%d "
                     "is supported",
                     Py_TYPE(given)->tp_name, (unsigned)v->major, (unsigned)v->minor, DL_MAJOR,
                     DL_MINOR);
        return NULL;
    }
    a->read_only |= (v->flags & DL_READ_ONLY) != 0;
    return &v->tensor;
}

static int read_dlpack(module_state *state, PyObject *given, array_label label, void *stream,
                       device_array *a) {
    int type, id;
    if (dlpack_device(state, given, &type, &id)) return -1;
    if (type == 0 || check_place(type, given, label)) return type ? -1 : 0;
    if (type == DL_CPU || type == DL_CUDA_HOST) {
        a->place = ARRAY_HOST;
        return 0;
    }
    if (read_stream_info(state, given, a, &stream)) return -1;
    a->stream = stream;
    a->owner = call_dlpack(state, given, stream);
    const dl_tensor *t = a->owner ? open_capsule(a->owner, given, a) : NULL;
    return t ? describe_tensor(t, label, a) : -1;
}

/* ---- any protocol ---- */

int device_array_read(module_state *state, PyObject *given, array_label label, void *stream,
                      device_array *out) {
    out->place = ARRAY_UNKNOWN;
    out->ordinal = ORDINAL_NONE;
    out->stream = NULL;
    out->owner = NULL;
    out->read_only = false;
    out->reused_unordered = false;
    int failed = read_exchange(state, given, label, out);
    if (!failed && out->place == ARRAY_UNKNOWN)
        failed = read_dlpack(state, given, label, stream, out);
    if (!failed && out->place == ARRAY_UNKNOWN)
        failed = device_array_read_interface(state, given, label, out);
    return failed;
}

void device_array_clear(device_array *a) {
    Py_CLEAR(a->owner);
}
