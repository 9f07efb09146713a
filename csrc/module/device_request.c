/* The part of a request that knows where arrays are: NumPy's, or all of them on one GPU.
 *
 * Arrays on a GPU (CuPy, PyTorch, Numba, whatever speaks DLPack or __cuda_array_interface__) are read and
 * written in place, on the stream that their library uses now, and the call returns when its kernels
 * are queued there. Nothing is copied: what a kernel cannot read where it is, is refused with the remedy.
 */
#include "../cuda/gpu.h"
#include "device_array.h"
#include "request.h"

/* ---- where they are ---- */

/* What needs no look at its attributes: it is in host memory. */
static bool is_host(PyObject *given) {
    return PyArray_Check(given) || PyList_Check(given) || PyTuple_Check(given) ||
           PyFloat_Check(given) || PyLong_Check(given) || PyArray_IsScalar(given, Generic);
}

static int refuse_mixture(const char *op, const char *there, const char *here) {
    PyErr_Format(PyExc_ValueError,
                 "%s: %s is in the memory of a GPU and %s is not; nothing is copied silently: move "
                 "one of them, as with cupy.asarray(%s), %s.get() or %s.cpu().numpy()",
                 op, there, here, here, there, there);
    return -1;
}

/* The GPU that all arrays of the call are on; ORDINAL_NONE: all are in host memory. */
static int find_ordinal(module_state *state, const call *asked, int *ordinal) {
    const call_form *form = &call_forms[asked->op];
    const char *op = smk_op_names[asked->op], *there = NULL, *here = NULL;
    *ordinal = ORDINAL_NONE;
    for (int i = 0; i <= form->n_inputs; i++) {
        PyObject *given = i < form->n_inputs ? asked->inputs[i] : asked->out;
        const char *name = i < form->n_inputs ? form->inputs[i] : "out";
        int own = ORDINAL_NONE;
        if (given == NULL || (!is_host(given) && device_array_ordinal(state, given, i, &own))) {
            if (given) {
                return -1;
            }
            continue;
        }
        if (own == ORDINAL_NONE) {
            here = here ? here : name;
            continue;
        }
        there = there ? there : name;
        if (own >= 0 && *ordinal >= 0 && own != *ordinal) {
            PyErr_Format(PyExc_ValueError,
                         "%s: %s is in the memory of cuda:%d and another array in that of cuda:%d; "
                         "a call runs on one device",
                         op, name, own, *ordinal);
            return -1;
        }
        *ordinal = own >= 0 || *ordinal == ORDINAL_NONE ? own : *ordinal;
    }
    return there && here ? refuse_mixture(op, there, here) : 0;
}

static PyObject *helper(const char *name) {
    PyObject *module = PyImport_ImportModule("smemkern._device_arrays");
    PyObject *function = module ? PyObject_GetAttrString(module, name) : NULL;
    Py_XDECREF(module);
    return function;
}

static int library_stream(PyObject *array, void **out) {
    PyObject *function = helper("current_stream");
    PyObject *stream = function ? PyObject_CallOneArg(function, array) : NULL;
    *out = stream ? PyLong_AsVoidPtr(stream) : NULL;
    if (*out == NULL && stream && !PyErr_Occurred()) {
        *out = GPU_DEFAULT_STREAM; /* 0 is what libraries call the default stream */
    }
    Py_XDECREF(function);
    Py_XDECREF(stream);
    return PyErr_Occurred() ? -1 : 0;
}

int request_find_arrays(module_state *state, request *r, bool emulate) {
    const call *asked = r->asked;
    int ordinal;
    if (find_ordinal(state, asked, &ordinal)) {
        return -1;
    }
    r->on_device = ordinal != ORDINAL_NONE;
    if (!r->on_device) {
        if (emulate && asked->device == Py_None) {
            r->on.emulated = true;
        } else if (device_read(state, asked->device, &r->on)) {
            return -1;
        }
        if (emulate && !r->on.emulated) {
            PyErr_SetString(PyExc_ValueError,
                            "a trace counts on the emulator: leave device out, or pass 'emu'");
            return -1;
        }
        return stream_read(asked->stream, &r->on, &r->stream);
    }
    if (asked->device != Py_None && device_read(state, asked->device, &r->on)) {
        return -1;
    }
    if (emulate || r->on.emulated) {
        PyErr_Format(PyExc_ValueError,
                     "%s: the arrays are in the memory of a GPU, and device 'emu' works on host "
                     "memory; pass NumPy arrays: x.get() of CuPy, x.cpu().numpy() of PyTorch",
                     smk_op_names[asked->op]);
        return -1;
    }
    if (asked->device != Py_None && ordinal >= 0 && r->on.ordinal != ordinal) {
        PyErr_Format(
            PyExc_ValueError,
            "%s: the arrays are in the memory of cuda:%d, but the device is cuda:%d; leave "
            "device out to run where the arrays are",
            smk_op_names[asked->op], ordinal, r->on.ordinal);
        return -1;
    }
    if (ordinal >= 0) {
        r->on.ordinal = ordinal;
    }
    return asked->stream == Py_None ? library_stream(asked->inputs[0], &r->stream)
                                    : stream_read(asked->stream, &r->on, &r->stream);
}

/* ---- inputs ---- */

PyArrayObject *request_array(request *r, int i) {
    PyObject *given = r->asked->inputs[i];
    const char *op = smk_op_names[r->asked->op], *name = call_forms[r->asked->op].inputs[i];
    PyArrayObject *view;
    if (!r->on_device) {
        return operand_array(given, op, name);
    }
    return device_array_view(given, op, name, r->stream, &view, &r->owners[i]) ? NULL : view;
}

static int refuse_layout(const request *r, const char *name, PyArrayObject *array,
                         PyArray_Descr *wanted) {
    const char *op = smk_op_names[r->asked->op];
    if (wanted->type_num != NPY_VOID && !PyArray_EquivTypes(PyArray_DESCR(array), wanted)) {
        PyErr_Format(PyExc_TypeError,
                     "%s: %s has dtype %S where %S is needed; on a GPU nothing is converted "
                     "silently: use %s.astype(...) or %s.to(...)",
                     op, name, PyArray_DESCR(array), wanted, name, name);
    } else {
        PyErr_Format(PyExc_ValueError,
                     "%s variant '%s': %s has strides that its kernel cannot read; pass "
                     "cupy.ascontiguousarray(%s) or %s.contiguous()",
                     op, r->row->name, name, name, name);
    }
    return -1;
}

int request_place(request *r, int i, PyArrayObject *array, PyArray_Descr *wanted,
                  operand_shape one_dimensional, smk_strides taken) {
    bool fits = true;
    operand *into = &r->inputs[i];
    if (r->on_device ? operand_place_on_device(array, wanted, one_dimensional, taken, into, &fits)
                     : operand_place(array, wanted, one_dimensional, taken, into)) {
        return -1;
    }
    if (!fits) {
        return refuse_layout(r, call_forms[r->asked->op].inputs[i], array, wanted);
    }
    r->n_inputs = i + 1;
    return 0;
}

/* ---- the result ---- */

/* How it lies in a fresh, C-contiguous array. */
static void place_fresh(smk_matrix *c, const smk_batch *batch, int64_t rows, int64_t cols) {
    int64_t stride = rows * cols;
    c->ld = cols > 1 ? cols : 1;
    c->step = 1;
    for (int d = batch->n - 1; d >= 0; d--) {
        c->batch[d] = stride;
        stride *= batch->size[d];
    }
}

static int make_result(request *r) {
    PyObject *function = helper("empty");
    PyObject *shape = PyArray_IntTupleFromIntp(r->ndim, r->dims);
    r->written = function && shape ? PyObject_CallFunctionObjArgs(function, r->asked->inputs[0],
                                                                  shape, r->descr, NULL)
                                   : NULL;
    Py_XDECREF(function);
    Py_XDECREF(shape);
    return r->written ? 0 : -1;
}

/* A transpose moves bits, whatever they mean. */
static int check_result(const request *r, PyArrayObject *view) {
    const bool same = r->asked->op == SMK_TRANSPOSE
                          ? PyArray_ITEMSIZE(view) == PyDataType_ELSIZE(r->descr)
                          : PyArray_EquivTypes(PyArray_DESCR(view), r->descr);
    return request_fits_result(r, view, same);
}

/* Kernels write it while they read the inputs, and no element of it twice. */
static int check_apart(const request *r) {
    const char *op = smk_op_names[r->asked->op];
    const operand *c = &r->result;
    const char *begin = c->buffer.host, *end = begin + c->buffer.bytes;
    for (int d = 0; d < c->ndim; d++) {
        if (c->dims[d] > 1 && c->strides[d] == 0) {
            PyErr_Format(PyExc_ValueError, "%s: elements of out share memory", op);
            return -1;
        }
    }
    for (int i = 0; i < r->n_inputs && c->buffer.bytes; i++) {
        const char *other = r->inputs[i].buffer.host;
        if (r->inputs[i].buffer.bytes && begin < other + r->inputs[i].buffer.bytes && other < end) {
            PyErr_Format(PyExc_ValueError,
                         "%s: out overlaps %s; on a GPU the result is written while %s is read. "
                         "Pass another out, or none",
                         op, call_forms[r->asked->op].inputs[i],
                         call_forms[r->asked->op].inputs[i]);
            return -1;
        }
    }
    return 0;
}

/* The view with the dimensions of length 1 that a vector among the inputs has left out of the result.
 * Steals the view. */
static PyArrayObject *as_matrices(PyArrayObject *view, int ndim, operand_shape shape) {
    npy_intp dims[NPY_MAXDIMS + 2], strides[NPY_MAXDIMS + 2];
    const int own = PyArray_NDIM(view), missing = ndim - own;
    if (missing <= 0 || ndim > NPY_MAXDIMS) {
        return view;
    }
    const int at = shape == OPERAND_COLUMN || missing == 2 ? own : own - 1;
    for (int d = 0; d < ndim; d++) {
        const int from = d < at ? d : d - missing;
        const bool made = d >= at && d < at + missing;
        dims[d] = made ? 1 : PyArray_DIM(view, from);
        strides[d] = made ? 0 : PyArray_STRIDE(view, from);
    }
    Py_INCREF(PyArray_DESCR(view));
    PyArrayObject *result = (PyArrayObject *)PyArray_NewFromDescr(
        &PyArray_Type, PyArray_DESCR(view), ndim, dims, strides, PyArray_BYTES(view),
        NPY_ARRAY_WRITEABLE, NULL);
    Py_DECREF(view);
    return result;
}

int request_place_result(request *r, operand_shape shape, const smk_batch *batch, int64_t rows,
                         int64_t cols, smk_matrix *out) {
    PyArrayObject *view = NULL;
    bool fits;
    if (!r->on_device) {
        place_fresh(out, batch, rows, cols);
        return 0;
    }
    if (r->asked->out) {
        r->written = Py_NewRef(r->asked->out);
    } else if (make_result(r)) {
        return -1;
    }
    int failed =
        device_array_view(r->written, smk_op_names[r->asked->op], "out", r->stream, &view,
                          &r->owners[CALL_MAX_INPUTS]) ||
        check_result(r, view) || (view = as_matrices(view, batch->n + 2, shape)) == NULL ||
        operand_place_on_device(view, PyArray_DESCR(view), shape, false, &r->result, &fits);
    if (!failed && !fits) {
        failed = refuse_layout(r, "out", view, PyArray_DESCR(view));
    }
    Py_XDECREF(view);
    if (failed || check_apart(r)) {
        return -1;
    }
    *out = r->result.matrix;
    return 0;
}
