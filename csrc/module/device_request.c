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

static array_label label_of(const request *r, int i) {
    const call_form *form = &call_forms[r->asked->op];
    return (array_label){smk_op_names[r->asked->op], i < form->n_inputs ? form->inputs[i] : "out",
                         i};
}

/* `out` is looked at like an input; it comes behind them. */
static PyObject *array_given(const request *r, int i) {
    return i < call_forms[r->asked->op].n_inputs ? r->asked->inputs[i] : r->asked->out;
}

static int check_ordinal(const request *r, int i) {
    const int own = r->arrays[i].ordinal;
    if (own < 0 || r->on.ordinal < 0 || own == r->on.ordinal) {
        return 0;
    }
    PyErr_Format(PyExc_ValueError,
                 "%s: %s is in the memory of cuda:%d and another array in that of cuda:%d; "
                 "a call runs on one device",
                 smk_op_names[r->asked->op], label_of(r, i).name, own, r->on.ordinal);
    return -1;
}

/* Reads all arrays that are not NumPy's. Sets on_device, the ordinal (negative: any) and the stream
 * of those on a GPU. */
static int read_arrays(module_state *state, request *r) {
    const char *there = NULL, *here = NULL;
    r->on.ordinal = ORDINAL_ANY;
    for (int i = 0; i <= call_forms[r->asked->op].n_inputs; i++) {
        PyObject *given = array_given(r, i);
        device_array *array = &r->arrays[i];
        if (given == NULL) {
            continue;
        }
        if (!is_host(given) && device_array_read(state, given, label_of(r, i), r->stream, array)) {
            return -1;
        }
        if (array->place != ARRAY_DEVICE) {
            here = here ? here : label_of(r, i).name;
            continue;
        }
        there = there ? there : label_of(r, i).name;
        if (check_ordinal(r, i)) {
            return -1;
        }
        r->on.ordinal = array->ordinal >= 0 ? array->ordinal : r->on.ordinal;
        r->stream = r->stream ? r->stream : array->stream;
    }
    r->on_device = there != NULL;
    return there && here ? refuse_mixture(smk_op_names[r->asked->op], there, here) : 0;
}

/* The call runs behind what other streams' libraries have queued for its arrays. */
static void order_behind(request *r) {
    r->stream = r->stream ? r->stream : GPU_DEFAULT_STREAM;
    for (int i = 0; i <= call_forms[r->asked->op].n_inputs; i++) {
        void *stream = r->arrays[i].place == ARRAY_DEVICE ? r->arrays[i].stream : NULL;
        if (stream && stream != r->stream) {
            r->after[r->n_after++] = stream;
        }
    }
}

static int choose_host_device(const module_state *state, request *r, bool emulate) {
    if (r->asked->n_devices) {
        if (emulate || r->asked->device != Py_None || r->asked->stream != Py_None) {
            PyErr_SetString(PyExc_ValueError, "devices names the GPUs of a call on host arrays; "
                                              "pass neither device nor stream beside it");
            return -1;
        }
        r->on = (device){.ordinal = r->asked->devices[0]};
        for (int i = 0, sm; i < r->asked->n_devices; i++) { /* also those that get no part */
            if (device_sm(state, &(device){.ordinal = r->asked->devices[i]}, &sm)) {
                return -1;
            }
        }
        return 0;
    }
    if (emulate && r->asked->device == Py_None) {
        r->on = (device){.emulated = true};
    } else if (device_read(state, r->asked->device, &r->on)) {
        return -1;
    }
    if (emulate && !r->on.emulated) {
        PyErr_SetString(PyExc_ValueError,
                        "a trace counts on the emulator: leave device out, or pass 'emu'");
        return -1;
    }
    if (r->on.emulated && r->asked->stream != Py_None) {
        return stream_refuse();
    }
    return 0;
}

int request_find_arrays(module_state *state, request *r, bool emulate) {
    const call *asked = r->asked;
    const char *op = smk_op_names[asked->op];
    device named = {.ordinal = ORDINAL_ANY};
    if (stream_read(asked->stream, &r->stream) || read_arrays(state, r)) {
        return -1;
    }
    if (!r->on_device) {
        return choose_host_device(state, r, emulate);
    }
    if (asked->n_devices) {
        PyErr_Format(PyExc_ValueError,
                     "%s: devices is for arrays in host memory; these are on a GPU, where they are "
                     "computed",
                     op);
        return -1;
    }
    if (asked->op == SMK_PROBE) {
        PyErr_SetString(PyExc_ValueError,
                        "probe: x is in the memory of a GPU; a probe measures, and takes host "
                        "memory: x.get() of CuPy, x.cpu().numpy() of PyTorch");
        return -1;
    }
    if (asked->device != Py_None && device_read(state, asked->device, &named)) {
        return -1;
    }
    if (emulate || named.emulated) {
        PyErr_Format(PyExc_ValueError,
                     "%s: the arrays are in the memory of a GPU, and device 'emu' works on host "
                     "memory; pass NumPy arrays: x.get() of CuPy, x.cpu().numpy() of PyTorch",
                     op);
        return -1;
    }
    if (named.ordinal >= 0 && r->on.ordinal >= 0 && named.ordinal != r->on.ordinal) {
        PyErr_Format(
            PyExc_ValueError,
            "%s: the arrays are in the memory of cuda:%d, but the device is cuda:%d; leave "
            "device out to run where the arrays are",
            op, r->on.ordinal, named.ordinal);
        return -1;
    }
    if (r->on.ordinal < 0) {
        r->on.ordinal = named.ordinal < 0 ? 0 : named.ordinal;
    }
    order_behind(r);
    return 0;
}

/* ---- inputs ---- */

PyArrayObject *request_array(module_state *state, request *r, int i) {
    PyObject *given = r->asked->inputs[i];
    const array_label label = label_of(r, i);
    return r->arrays[i].place >= ARRAY_HOST_DESCRIBED
               ? device_array_view(state, &r->arrays[i], given, label)
               : operand_array(given, label.op, label.name);
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

PyArrayObject *request_out_on_device(module_state *state, const request *r) {
    const int at = call_forms[r->asked->op].n_inputs;
    return device_array_view(state, &r->arrays[at], r->asked->out, label_of(r, at));
}

/* A new array of the library, type and device of `like`. */
static PyObject *make_array(module_state *state, PyObject *like, PyObject *shape) {
    PyObject *method, *made = NULL;
    int found = attribute(like, state->names.new_empty, &method); /* PyTorch's way */
    if (found > 0) {
        made = PyObject_CallOneArg(method, shape);
        Py_DECREF(method);
    } else if (found == 0) {
        PyObject *module = library_helpers(state);
        made = module ? PyObject_CallMethodObjArgs(module, state->names.empty, like, shape, NULL)
                      : NULL;
    }
    return made;
}

static int make_result(module_state *state, request *r) {
    const int at = call_forms[r->asked->op].n_inputs;
    PyObject *shape = PyArray_IntTupleFromIntp(r->ndim, r->dims);
    r->written = shape ? make_array(state, r->asked->inputs[0], shape) : NULL;
    Py_XDECREF(shape);
    return r->written
               ? device_array_read(state, r->written, label_of(r, at), r->stream, &r->arrays[at])
               : -1;
}

/* A transpose moves bits, whatever they mean. */
static int check_result(const request *r, PyArrayObject *view) {
    const bool same = r->asked->op == SMK_TRANSPOSE
                          ? PyArray_ITEMSIZE(view) == PyDataType_ELSIZE(r->descr)
                          : PyArray_EquivTypes(PyArray_DESCR(view), r->descr);
    return request_fits_result(r, view, same);
}

/* By increasing step, each dimension leads past all that those before it reach. */
static bool elements_apart(const operand *c, npy_intp itemsize) {
    bool seen[NPY_MAXDIMS + 1] = {false};
    npy_intp reach = itemsize;
    for (int left = c->ndim; left > 0; left--) {
        int next = -1;
        for (int d = 0; d < c->ndim; d++) {
            if (!seen[d] && (next < 0 || Py_ABS(c->strides[d]) < Py_ABS(c->strides[next]))) {
                next = d;
            }
        }
        seen[next] = true;
        if (c->dims[next] > 1 && Py_ABS(c->strides[next]) < reach) {
            return false;
        }
        reach += (c->dims[next] - 1) * Py_ABS(c->strides[next]);
    }
    return true;
}

/* The result is written where the input is read, each row of it over the row of the same number. */
static bool is_in_place(const request *r) {
    const operand *a = &r->inputs[0], *c = &r->result;
    if (r->asked->op != SMK_TRANSPOSE || !r->row->movers.in_place || a->ndim != c->ndim ||
        (char *)a->buffer.host + a->matrix.offset != (char *)c->buffer.host + c->matrix.offset) {
        return false;
    }
    for (int d = 0; d < a->ndim; d++) {
        if (a->dims[d] != c->dims[d] || a->strides[d] != c->strides[d]) {
            return false;
        }
    }
    return true;
}

/* Kernels write it while they read the inputs, and no element of it twice. */
static int check_apart(request *r) {
    const char *op = smk_op_names[r->asked->op];
    const operand *c = &r->result;
    const char *begin = c->buffer.host, *end = begin + c->buffer.bytes;
    if (c->buffer.bytes && !elements_apart(c, PyDataType_ELSIZE(r->descr))) {
        PyErr_Format(PyExc_ValueError, "%s: elements of out share memory", op);
        return -1;
    }
    r->in_place = is_in_place(r);
    for (int i = 0; !r->in_place && i < r->n_inputs && c->buffer.bytes; i++) {
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

int request_place_result(module_state *state, request *r, operand_shape shape,
                         const smk_batch *batch, int64_t rows, int64_t cols, smk_matrix *out) {
    PyArrayObject *view = NULL;
    bool fits;
    if (!r->on_device) {
        place_fresh(out, batch, rows, cols);
        return 0;
    }
    if (r->asked->out) {
        r->written = Py_NewRef(r->asked->out);
    } else if (make_result(state, r)) {
        return -1;
    }
    const int at = call_forms[r->asked->op].n_inputs;
    const smk_strides taken = r->asked->op == SMK_TRANSPOSE ? smk_strides_of(r->row) : SMK_ROWS;
    view = device_array_view(state, &r->arrays[at], r->written, label_of(r, at));
    int failed =
        view == NULL || check_result(r, view) ||
        (view = as_matrices(view, batch->n + 2, shape)) == NULL ||
        operand_place_on_device(view, PyArray_DESCR(view), shape, taken, &r->result, &fits);
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
