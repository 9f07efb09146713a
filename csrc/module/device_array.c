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
#include "device_array_parts.h"

#include "../cuda/gpu.h"
#include "dlpack.h"

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

static void set_type(device_array *a, dl_type type) {
    static const char kinds[] = {[DL_INT] = 'i',    [DL_UINT] = 'u',    [DL_FLOAT] = 'f',
                                 [DL_BFLOAT] = 'E', [DL_COMPLEX] = 'c', [DL_BOOL] = 'b'};
    int bits = type.bits * type.lanes;
    bool known = type.code < sizeof kinds && kinds[type.code] && type.lanes == 1;
    const bool whole = bits && bits % 8 == 0;
    a->itemsize = whole ? bits / 8 : 1;
    a->kind = (char)(!whole ? 0 : known ? kinds[type.code] : 'V');
}

/* A stride of `elements`. CuPy divides the bytes of a negative one as though they were unsigned, so that
 * the product is right once it overflows. */
static npy_intp bytes_of(int64_t elements, npy_intp itemsize) {
    npy_intp bytes;
    const bool overflows = __builtin_mul_overflow(elements, itemsize, &bytes);
    return overflows && (elements < 0 || bytes >= 0) ? NPY_MIN_INTP /* which leads nowhere */
                                                     : bytes;
}

static int describe_tensor(const dl_tensor *t, array_label label, device_array *a) {
    const bool device = t->device_type == DL_CUDA || t->device_type == DL_CUDA_MANAGED;
    a->place = device ? ARRAY_DEVICE : ARRAY_HOST_DESCRIBED;
    a->ordinal = device ? t->device_id : ORDINAL_NONE;
    if (device_array_set_rank(a, t->n_dims, label)) {
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
        if (t->strides) {
            a->strides[d] = bytes_of(t->strides[d], a->itemsize);
        }
    }
    if (!t->strides) {
        device_array_set_c_order(a);
    }
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

/* The terms on which the array's library works: its stream of now, which becomes ours where none is known yet,
 * whether it frees memory in the order of that stream, and whether its arrays may be written. The type that was
 * orderly last is known by itself. */
static int read_terms(module_state *state, PyObject *given, device_array *a, void **stream) {
    PyObject *type = (PyObject *)Py_TYPE(given), *known = atomic_load(&state->orderly);
    if (*stream && type == known) {
        return 0;
    }
    PyObject *module = library_helpers(state);
    PyObject *terms = module ? PyObject_CallMethodOneArg(module, state->names.terms, given) : NULL;
    PyObject *number;
    int orderly = 0, writable = 0;
    if (terms && PyArg_ParseTuple(terms, "Opp:terms", &number, &orderly, &writable)) {
        void *own = PyLong_AsVoidPtr(number);
        own = own ? own : GPU_DEFAULT_STREAM; /* 0 is what libraries call the default stream */
        *stream = *stream ? *stream : own;
    }
    Py_XDECREF(terms);
    if (PyErr_Occurred()) {
        return -1;
    }
    a->loose = !orderly;
    a->read_only = !writable;
    if (orderly && writable && known == NULL &&
        atomic_compare_exchange_strong(&state->orderly, &known, type)) {
        Py_INCREF(type);
    }
    return 0;
}

/* given.__dlpack__(stream=..., max_version=...): a capsule. What was written before DLPack 1 takes no max_version. */
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
    if (!PyCapsule_IsValid(capsule, DL_CAPSULE_VERSIONED)) {
        return PyCapsule_GetPointer(capsule, DL_CAPSULE);
    }
    const dl_versioned *v = PyCapsule_GetPointer(capsule, DL_CAPSULE_VERSIONED);
    if (v->major != DL_MAJOR) {
        PyErr_Format(PyExc_BufferError,
                     "__dlpack__ of %.200s returned version %u.%u of DLPack where %d.%d was asked "
                     "for at most",
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
    if (read_terms(state, given, a, &stream)) {
        return -1;
    }
    a->stream = stream;
    a->owner = call_dlpack(state, given, stream);
    const dl_tensor *t = a->owner ? open_capsule(a->owner, given, a) : NULL;
    return t ? describe_tensor(t, label, a) : -1;
}

/* ---- whichever it speaks ---- */

int device_array_read(module_state *state, PyObject *given, array_label label, void *stream,
                      device_array *out) {
    out->place = ARRAY_UNKNOWN;
    out->ordinal = ORDINAL_NONE;
    out->stream = NULL;
    out->owner = NULL;
    out->read_only = false;
    out->loose = false;
    int failed = read_exchange(state, given, label, out);
    if (!failed && out->place == ARRAY_UNKNOWN) {
        failed = read_dlpack(state, given, label, stream, out);
    }
    if (!failed && out->place == ARRAY_UNKNOWN) {
        failed = device_array_read_interface(state, given, label, out);
    }
    return failed;
}

void device_array_clear(device_array *a) {
    Py_CLEAR(a->owner);
}
