/* Checks that the operations share: which row is meant, and whether the result fits `out`. */
#include "choose.h"

static int refuse_variant(const char *op, smk_op which, const char *variant) {
    PyObject *names = PyUnicode_FromString(which == SMK_PROBE ? "" : "auto");
    for (size_t i = 0; names && i < smk_n_rows; i++) {
        if (smk_rows[i].op == which) {
            bool first = PyUnicode_GET_LENGTH(names) == 0;
            PyObject *more =
                PyUnicode_FromFormat("%U%s%s", names, first ? "" : ", ", smk_rows[i].name);
            Py_SETREF(names, more);
        }
    }
    if (names) {
        PyErr_Format(PyExc_ValueError, "%s has no variant '%s'; there are: %U", op, variant, names);
        Py_DECREF(names);
    }
    return -1;
}

int request_choose_row(module_state *state, request *r, smk_query question) {
    const char *dtype_name = question.dtype;
    const call *asked = r->asked;
    question.op = asked->op;
    question.accuracy = asked->accuracy;
    const char *op = smk_op_names[asked->op];
    const char *fallback = asked->op == SMK_PROBE ? "stride_read" : "auto";
    const char *variant = asked->variant ? asked->variant : fallback;

    bool with_values = false;
    bool automatic = asked->op != SMK_PROBE && strcmp(variant, "auto") == 0;
    if (automatic && asked->n_params > 0) {
        PyErr_Format(PyExc_ValueError,
                     "%s: parameter '%s' belongs to a variant; name the variant beside it, as in "
                     "variant='tiled'",
                     op, asked->params[0]);
        return -1;
    }
    if (!automatic && asked->accuracy != SMK_ACCURACY_FLOAT32) {
        PyErr_Format(PyExc_ValueError,
                     "%s: accuracy is for variant 'auto' to choose by; variant '%s' has its own",
                     op, variant);
        return -1;
    }
    if (automatic) {
        if (request_choose(state, r, question, &with_values)) {
            return -1;
        }
    } else if ((r->row = smk_row_find(asked->op, variant)) == NULL) {
        return refuse_variant(op, asked->op, variant);
    }
    for (int i = 0; i < r->row->n_dtypes; i++) {
        if (strcmp(r->row->dtypes[i].name, dtype_name) == 0) {
            r->dtype = &r->row->dtypes[i];
        }
    }
    if (r->dtype == NULL) {
        char taken[128] = "";
        for (int i = 0; i < r->row->n_dtypes; i++) {
            size_t used = strlen(taken);
            PyOS_snprintf(taken + used, sizeof taken - used, "%s%s", i ? ", " : "",
                          r->row->dtypes[i].name);
        }
        PyErr_Format(PyExc_TypeError, "%s variant '%s' does not take %s; it takes: %s", op,
                     r->row->name, dtype_name, taken);
        return -1;
    }
    smk_status status = {0};
    if (!with_values && smk_row_values(r->row, r->dtype->itemsize, asked->params, asked->values,
                                       asked->n_params, r->values, &status)) {
        raise_status(state, &status);
        return -1;
    }
    const bool is_pipeline = !r->on.emulated && !r->on_device && asked->op == SMK_GEMM;
    return !automatic && is_pipeline ? request_expect(state, r, question) : 0;
}

int request_fits_result(const request *r, PyArrayObject *out, bool same_type) {
    const char *op = smk_op_names[r->asked->op];
    if (!same_type) {
        PyErr_Format(PyExc_TypeError, "%s: out has dtype %S, the result has %S", op,
                     PyArray_DESCR(out), r->descr);
        return -1;
    }
    if (PyArray_NDIM(out) != r->ndim ||
        !PyArray_CompareLists(PyArray_DIMS(out), r->dims, r->ndim)) {
        PyObject *has = PyArray_IntTupleFromIntp(PyArray_NDIM(out), PyArray_DIMS(out));
        PyObject *wanted = PyArray_IntTupleFromIntp(r->ndim, r->dims);
        if (has && wanted) {
            PyErr_Format(PyExc_ValueError, "%s: out has shape %R, the result has %R", op, has,
                         wanted);
        }
        Py_XDECREF(has);
        Py_XDECREF(wanted);
        return -1;
    }
    if (!PyArray_ISWRITEABLE(out)) {
        PyErr_Format(PyExc_ValueError, "%s: out is read-only", op);
        return -1;
    }
    return 0;
}

int request_check_out(const request *r) {
    PyObject *given = r->asked->out;
    const char *op = smk_op_names[r->asked->op];
    if (given == NULL || r->on_device) {
        return 0; /* request_place_result looks at one on a device */
    }
    PyArrayObject *own = operand_array(given, op, "out"); /* refuses masked arrays */
    if (own == NULL) {
        return -1;
    }
    Py_DECREF(own);
    if (!PyArray_Check(given)) {
        PyErr_Format(PyExc_TypeError, "%s: out must be a numpy.ndarray, not %.200s", op,
                     Py_TYPE(given)->tp_name);
        return -1;
    }
    PyArrayObject *out = (PyArrayObject *)given;
    return request_fits_result(r, out, PyArray_EquivTypes(PyArray_DESCR(out), r->descr));
}

PyArrayObject *request_hold_out(request *r) {
    PyArrayObject *out = array_hold((PyArrayObject *)r->asked->out, &r->holds[r->n_inputs]);
    if (out && request_fits_result(r, out, PyArray_EquivTypes(PyArray_DESCR(out), r->descr))) {
        Py_CLEAR(out); /* code of the caller has run since it was looked at */
    }
    return out;
}

int request_refuse_dtype(PyArrayObject *array, const char *op, const char *name,
                         const char *remedy) {
    PyErr_Format(PyExc_TypeError, "%s: %s has dtype %S; %s", op, name, PyArray_DESCR(array),
                 remedy);
    return -1;
}

smk_strides request_strides_taken(const request *r) {
    const smk_strides own = smk_strides_of(r->row);
    return r->is_pipeline && own > SMK_ROWS_OR_COLUMNS ? SMK_ROWS_OR_COLUMNS : own;
}
