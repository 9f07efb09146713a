/* Checks that all operations share: finds the variant, and checks that the result fits `out`. */
#include "choose.h"

static int refuse_variant(const char *op, smk_op which, const char *variant) {
    PyObject *names = PyUnicode_FromString(which == SMK_PROBE ? "" : "auto");
    for (size_t i = 0; names && i < smk_n_variants; i++) {
        if (smk_variants[i].op == which) {
            bool first = PyUnicode_GET_LENGTH(names) == 0;
            PyObject *more =
                PyUnicode_FromFormat("%U%s%s", names, first ? "" : ", ", smk_variants[i].name);
            Py_SETREF(names, more);
        }
    }
    if (names) {
        PyErr_Format(PyExc_ValueError, "%s has no variant '%s'; there are: %U", op, variant, names);
        Py_DECREF(names);
    }
    return -1;
}

int request_choose_variant(module_state *state, request *r, smk_query query) {
    const char *dtype_name = query.dtype;
    const call *given = r->call;
    query.op = given->op;
    query.accuracy = given->accuracy;
    const char *op = smk_op_names[given->op];
    const char *fallback = given->op == SMK_PROBE ? "stride_read" : "auto";
    const char *variant = given->variant ? given->variant : fallback;

    bool with_values = false;
    bool automatic = given->op != SMK_PROBE && strcmp(variant, "auto") == 0;
    if (automatic && given->n_params > 0) {
        if (!smk_op_has_param(given->op, given->params[0]))
            return call_refuse_keyword(given->op, given->params[0]);
        PyErr_Format(PyExc_ValueError,
                     "%s: parameter '%s' belongs to a variant; name the variant beside it, as in "
                     "variant='tiled'",
                     op, given->params[0]);
        return -1;
    }
    if (!automatic && given->accuracy != SMK_ACCURACY_FLOAT32) {
        PyErr_Format(PyExc_ValueError,
                     "%s: accuracy is for variant 'auto' to choose by; variant '%s' has its own",
                     op, variant);
        return -1;
    }
    if (automatic) {
        if (request_choose(state, r, query, &with_values)) return -1;
    } else if ((r->variant = smk_variant_find(given->op, variant)) == NULL) {
        return refuse_variant(op, given->op, variant);
    }
    for (int i = 0; i < r->variant->n_dtypes; i++)
        if (strcmp(r->variant->dtypes[i].name, dtype_name) == 0) r->dtype = &r->variant->dtypes[i];
    if (r->dtype == NULL) {
        char taken[128] = "";
        for (int i = 0; i < r->variant->n_dtypes; i++) {
            size_t used = strlen(taken);
            PyOS_snprintf(taken + used, sizeof taken - used, "%s%s", i ? ", " : "",
                          r->variant->dtypes[i].name);
        }
        PyErr_Format(PyExc_TypeError, "%s variant '%s' does not take %s; it takes: %s", op,
                     r->variant->name, dtype_name, taken);
        return -1;
    }
    smk_status status = {0};
    if (!with_values && smk_variant_values(r->variant, r->dtype->itemsize, given->params,
                                           given->values, given->n_params, r->values, &status)) {
        raise_status(state, &status);
        return -1;
    }
    const bool is_pipeline = !r->on.emulated && !r->on_device && given->op == SMK_GEMM;
    return !automatic && is_pipeline ? request_predict_seconds(state, r, query) : 0;
}

int request_fits_result(const request *r, PyArrayObject *out, bool takes_type) {
    const char *op = smk_op_names[r->call->op];
    if (!takes_type) {
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

/* Whether `out` has the result's type or, as in numpy.matmul, one that the result casts to by rule
 * "same_kind"; back, too, if the product reads it. */
static bool out_takes_type(const request *r, PyArrayObject *out) {
    PyArray_Descr *type = PyArray_DESCR(out);
    if (PyArray_EquivTypes(type, r->descr)) return true;
    return r->call->op == SMK_GEMM &&
           PyArray_CanCastTypeTo(r->descr, type, NPY_SAME_KIND_CASTING) &&
           (r->call->beta == 0.0 || PyArray_CanCastTypeTo(type, r->descr, NPY_SAME_KIND_CASTING));
}

int request_check_out(const request *r) {
    PyObject *given = r->call->out;
    const char *op = smk_op_names[r->call->op];
    if (given == NULL || r->on_device) return 0; /* request_place_result checks an `out` on a GPU */
    PyArrayObject *own = operand_array(given, op, "out"); /* refuses masked arrays */
    if (own == NULL) return -1;
    Py_DECREF(own);
    if (!PyArray_Check(given)) {
        PyErr_Format(PyExc_TypeError, "%s: out must be a numpy.ndarray, not %.200s", op,
                     Py_TYPE(given)->tp_name);
        return -1;
    }
    PyArrayObject *out = (PyArrayObject *)given;
    return request_fits_result(r, out, out_takes_type(r, out));
}

PyArrayObject *request_hold_out(request *r) {
    PyArrayObject *out = array_hold((PyArrayObject *)r->call->out, &r->holds[r->n_inputs]);
    if (out && request_fits_result(r, out, out_takes_type(r, out)))
        Py_CLEAR(out); /* Python code that ran since request_check_out changed it */
    return out;
}

int request_refuse_dtype(PyArrayObject *array, const char *op, const char *name,
                         const char *remedy) {
    PyErr_Format(PyExc_TypeError, "%s: %s has dtype %S; %s", op, name, PyArray_DESCR(array),
                 remedy);
    return -1;
}

smk_strides request_strides_taken(const request *r) {
    const smk_strides own = smk_strides_of(r->variant);
    return r->is_pipeline && own > SMK_ROWS_OR_COLUMNS ? SMK_ROWS_OR_COLUMNS : own;
}
