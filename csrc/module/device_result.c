/* The result of a call on GPU arrays: a new array of the inputs' library, or the caller's `out`.
 * Kernels write it in place, or into a packed copy. */
#include "device_copies.h"
#include "request.h"

/* Saturates. A result of that size is refused when its memory is allocated. */
static int64_t saturating_product(int64_t a, int64_t b) {
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* The strides of a new, C-contiguous result. */
static void set_c_order(smk_matrix *c, const smk_batch *batch, int64_t rows, int64_t cols) {
    int64_t stride = saturating_product(rows, cols);
    c->ld = cols > 1 ? cols : 1;
    c->step = 1;
    for (int d = batch->n - 1; d >= 0; d--) {
        c->batch[d] = stride;
        stride = saturating_product(stride, batch->size[d]);
    }
}

PyArrayObject *request_out_on_device(module_state *state, const request *r) {
    const int at = call_forms[r->call->op].n_inputs;
    return device_array_view(state, &r->arrays[at], r->call->out, request_label(r, at));
}

/* For libraries that do not reuse memory in the order of our stream (device_array.h):
 * smemkern._device.arrays.finalize keeps the arrays until the kernels have finished, and makes the
 * library's later work on the result wait for them. */
PyObject *request_finalize(module_state *state, const request *r) {
    const int n = call_forms[r->call->op].n_inputs + 1;
    bool reused_unordered = false;
    for (int i = 0; i < n; i++)
        reused_unordered |= r->arrays[i].reused_unordered;
    if (!reused_unordered) return Py_NewRef(r->written);
    PyObject *used = PyList_New(0), *finalized = NULL;
    for (int i = 0; used && i < n; i++) {
        PyObject *owner = r->arrays[i].owner;
        if (owner && PyList_Append(used, owner)) Py_CLEAR(used);
    }
    PyObject *ordinal = PyLong_FromLong(r->on.ordinal), *stream = PyLong_FromVoidPtr(r->stream);
    if (used && ordinal && stream) {
        finalized = PyObject_CallMethodObjArgs(device_arrays_module(state), state->names.finalize,
                                               r->written, used, ordinal, stream, NULL);
    }
    Py_XDECREF(used);
    Py_XDECREF(ordinal);
    Py_XDECREF(stream);
    return finalized;
}

/* A new array of the library, type and device of `like`. */
static PyObject *make_array(module_state *state, const request *r, PyObject *shape) {
    PyObject *like = r->call->inputs[0], *method, *made = NULL;
    int found = attribute(like, state->names.new_empty, &method); /* PyTorch */
    if (found > 0) {
        made = PyObject_CallOneArg(method, shape);
        Py_DECREF(method);
    } else if (found == 0) {
        PyObject *module = device_arrays_module(state), *ordinal = PyLong_FromLong(r->on.ordinal);
        made = module && ordinal ? PyObject_CallMethodObjArgs(module, state->names.empty, like,
                                                              shape, ordinal, NULL)
                                 : NULL;
        Py_XDECREF(ordinal);
    }
    return made;
}

static int make_result(module_state *state, request *r) {
    const int at = call_forms[r->call->op].n_inputs;
    PyObject *shape = PyArray_IntTupleFromIntp(r->ndim, r->dims);
    r->written = shape ? make_array(state, r, shape) : NULL;
    Py_XDECREF(shape);
    return r->written ? device_array_read(state, r->written, request_label(r, at), r->stream,
                                          &r->arrays[at])
                      : -1;
}

/* A transpose moves bits, so only the element sizes must agree. */
static int check_result(const request *r, PyArrayObject *view) {
    const bool same = r->call->op == SMK_TRANSPOSE
                          ? PyArray_ITEMSIZE(view) == PyDataType_ELSIZE(r->descr)
                          : PyArray_EquivTypes(PyArray_DESCR(view), r->descr);
    return request_fits_result(r, view, same);
}

/* Whether no two elements share memory: in the order of increasing strides, each stride must be at
 * least the extent of the dimensions before it. */
static bool elements_are_distinct(const operand *c, npy_intp itemsize) {
    bool seen[NPY_MAXDIMS + 1] = {false};
    npy_intp reach = itemsize;
    for (int left = c->ndim; left > 0; left--) {
        int next = -1;
        for (int d = 0; d < c->ndim; d++)
            if (!seen[d] && (next < 0 || Py_ABS(c->strides[d]) < Py_ABS(c->strides[next])))
                next = d;
        seen[next] = true;
        if (c->dims[next] > 1 && Py_ABS(c->strides[next]) < reach) return false;
        reach += (c->dims[next] - 1) * Py_ABS(c->strides[next]);
    }
    return true;
}

/* Whether an in-place transpose applies: the result is the input, with the same shape and
 * strides. */
static bool is_in_place(const request *r) {
    const operand *a = &r->inputs[0], *c = &r->result;
    if (r->call->op != SMK_TRANSPOSE || !r->variant->transpose_kernels.in_place ||
        a->ndim != c->ndim ||
        (char *)a->buffer.host + a->matrix.offset != (char *)c->buffer.host + c->matrix.offset) {
        return false;
    }
    for (int d = 0; d < a->ndim; d++)
        if (a->dims[d] != c->dims[d] || a->strides[d] != c->strides[d]) return false;
    return true;
}

/* Whether the result does not overlap the inputs: kernels write it while they read those. */
static bool is_disjoint(const request *r) {
    const smk_buffer *c = &r->result.buffer;
    for (int i = 0; i < r->n_inputs; i++) {
        const smk_buffer *input = &r->inputs[i].buffer;
        const char *begin = c->host, *other = input->host;
        if ((input->access & SMK_ON_DEVICE) && input->bytes && c->bytes &&
            begin < other + input->bytes && other < begin + c->bytes) {
            return false;
        }
    }
    return true;
}

/* Makes the kernels write a packed buffer, which is then copied to the array. With beta != 0 the
 * array is copied to the buffer first. */
static int write_packed(module_state *state, request *r) {
    const bool is_read = r->call->op == SMK_GEMM && r->call->beta != 0.0;
    operand unpacked = r->result;
    operand_pack_on_device(&unpacked, &r->result);
    const int failed =
        (is_read && device_copies_add(state, r, &unpacked, &r->result, r->n_inputs, COPY_BEFORE)) ||
        device_copies_add(state, r, &unpacked, &r->result, r->n_inputs, COPY_AFTER);
    operand_clear(&unpacked);
    return failed ? -1 : 0;
}

/* Refuses a result whose elements share memory. Uses a packed copy where the kernels cannot write
 * in place. */
static int prepare_writes(module_state *state, request *r, operand_fit fit) {
    const operand *c = &r->result;
    if (c->buffer.bytes && !elements_are_distinct(c, PyDataType_ELSIZE(r->descr))) {
        PyErr_Format(PyExc_ValueError, "%s: elements of out share memory",
                     smk_op_names[r->call->op]);
        return -1;
    }
    r->in_place = is_in_place(r);
    return fit == OPERAND_NEEDS_COPY || (!r->in_place && !is_disjoint(r)) ? write_packed(state, r)
                                                                          : 0;
}

/* The view, with the dimensions of length 1 added that the result lacks because an input is a
 * vector. Steals the view. */
static PyArrayObject *as_matrices(PyArrayObject *view, int ndim, operand_shape shape) {
    npy_intp dims[NPY_MAXDIMS + 2], strides[NPY_MAXDIMS + 2];
    const int own = PyArray_NDIM(view), missing = ndim - own;
    if (missing <= 0 || ndim > NPY_MAXDIMS) return view;
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
    operand_fit fit = OPERAND_FITS;
    if (!r->on_device) {
        set_c_order(out, batch, rows, cols);
        return 0;
    }
    if (r->call->out)
        r->written = Py_NewRef(r->call->out);
    else if (make_result(state, r))
        return -1;
    const int at = call_forms[r->call->op].n_inputs;
    const smk_strides taken = r->call->op == SMK_TRANSPOSE ? smk_strides_of(r->variant) : SMK_ROWS;
    view = device_array_view(state, &r->arrays[at], r->written, request_label(r, at));
    int failed = view == NULL || check_result(r, view) ||
                 (view = as_matrices(view, batch->n + 2, shape)) == NULL;
    if (!failed) {
        fit = operand_place_on_device(view, PyArray_DESCR(view), shape, taken, &r->result);
        failed =
            fit == OPERAND_REFUSED && request_refuse_elements(r, "out", view, PyArray_DESCR(view));
    }
    Py_XDECREF(view);
    if (failed || prepare_writes(state, r, fit)) return -1;
    *out = r->result.matrix;
    return 0;
}
