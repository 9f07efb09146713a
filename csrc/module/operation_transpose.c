/* transpose: checks the array, and sets up the transpose, which moves bits of any type. */
#include "request.h"

static PyArray_Descr *raw_bytes(npy_intp itemsize) {
    PyArray_Descr *descr = PyArray_DescrNewFromType(NPY_VOID);
    if (descr) PyDataType_SET_ELSIZE(descr, itemsize);
    return descr;
}

/* "b8" to "b128"; NULL: another element size, or elements with Python references. */
static const char *bits_name(PyArrayObject *array) {
    static const char *const names[] = {
        [1] = "b8", [2] = "b16", [4] = "b32", [8] = "b64", [16] = "b128"};
    npy_intp itemsize = PyArray_ITEMSIZE(array);
    if (!PyDataType_ISLEGACY(PyArray_DESCR(array)) || PyDataType_REFCHK(PyArray_DESCR(array)) ||
        itemsize < 1 || itemsize > 16) {
        return NULL;
    }
    return names[itemsize];
}

/* Whether to transpose in place on the emulator, in the fresh result, which begins as a copy of the
 * input. For host arrays on a GPU that copy would be extra work compared with reading the input and
 * writing the result. So on a GPU only arrays in its memory are transposed in place. */
static bool is_in_place_on_emulator(const request *r) {
    PyObject *out = r->call->out;
    const bool is_out = out == r->call->inputs[0] && PyArray_CheckExact(out);
    return r->on.emulated && !r->is_pipeline && r->variant->transpose_kernels.in_place && is_out &&
           r->dims[r->ndim - 1] == r->dims[r->ndim - 2];
}

/* Fills the query that selects the variant for "auto". */
static int make_query(module_state *state, const request *r, PyArrayObject *array, smk_query *q) {
    const int ndim = PyArray_NDIM(array);
    q->M = PyArray_DIM(array, ndim - 2);
    q->N = PyArray_DIM(array, ndim - 1);
    q->strides = r->on_device ? operand_strides(array, OPERAND_ROW) : SMK_ROWS;
    if (!r->on_device || r->call->out == NULL) return 0;
    PyArrayObject *out = request_out_on_device(state, r);
    if (out == NULL) return -1;
    const bool in_place = PyArray_BYTES(out) == PyArray_BYTES(array);
    const smk_strides own = in_place ? SMK_ANY_STRIDES : operand_strides(out, OPERAND_ROW);
    q->strides = Py_MAX(q->strides, own);
    Py_DECREF(out);
    return 0;
}

static int check(module_state *state, request *r, PyArrayObject *const *arrays, smk_query *query) {
    PyArrayObject *array = arrays[0];
    const char *bits = bits_name(array);
    if (bits == NULL) {
        return request_refuse_dtype(
            array, "transpose", "a",
            "elements of 1, 2, 4, 8 or 16 bytes without Python references are taken: "
            "convert it with a.astype(...), or use numpy.swapaxes");
    }
    const int ndim = PyArray_NDIM(array);
    if (ndim < 2) {
        PyErr_Format(PyExc_ValueError,
                     "transpose: a has %d dimension%s where at least 2 are needed; make it a "
                     "matrix with a.reshape(1, -1)",
                     ndim, ndim == 1 ? "" : "s");
        return -1;
    }
    r->descr = PyArray_DESCR(array);
    Py_INCREF(r->descr);
    *query = (smk_query){.dtype = bits};
    return make_query(state, r, array, query);
}

static int place(module_state *state, request *r, PyArrayObject *const *arrays) {
    const int ndim = PyArray_NDIM(arrays[0]);
    operand *x = &r->inputs[0];
    smk_transpose *problem = &r->transpose;
    PyArray_Descr *raw = raw_bytes(PyArray_ITEMSIZE(arrays[0]));
    const int failed = raw == NULL || request_place(state, r, 0, arrays[0], raw, OPERAND_ROW,
                                                    request_strides_taken(r));
    Py_XDECREF(raw);
    if (failed) return -1;
    problem->rows = x->dims[ndim - 2];
    problem->cols = x->dims[ndim - 1];
    problem->batch.n = ndim - 2;
    for (int d = 0; d < ndim - 2; d++)
        problem->batch.size[d] = r->dims[d] = x->dims[d];
    r->ndim = ndim;
    r->dims[ndim - 2] = problem->cols;
    r->dims[ndim - 1] = problem->rows;
    return 0;
}

static int place_result(module_state *state, request *r, PyArrayObject *const *arrays) {
    (void)arrays;
    operand *x = &r->inputs[0];
    smk_transpose *problem = &r->transpose;
    if (request_place_result(state, r, OPERAND_ROW, &problem->batch, problem->cols, problem->rows,
                             &problem->y)) {
        return -1;
    }
    problem->x = x->matrix;
    if (is_in_place_on_emulator(r)) {
        r->in_place = true;
        x->buffer = (smk_buffer){0};
        problem->x = problem->y;
    }
    problem->in_place = r->in_place;
    return 0;
}

static smk_code plan(request *r, int multiprocessors, smk_status *status) {
    r->transpose.multiprocessors = multiprocessors;
    return smk_plan_transpose(r->variant, r->dtype, r->values, &r->transpose, &r->plan, status);
}

const operation operation_transpose = {check, place, place_result, plan};
