/* Reads the arguments of gemm, transpose and probe.
 *
 * A keyword that the operation does not have is taken for a parameter of the variant. Its name is
 * checked later, against the variant, so the error for a misspelt keyword lists the legal ones.
 */
#include "call.h"

const call_form call_forms[SMK_N_OPS] = {
    [SMK_GEMM] = {2, {"a", "b"}},
    [SMK_TRANSPOSE] = {1, {"a"}},
    [SMK_PROBE] = {1, {"x"}},
};

/* alpha and beta must be real: an imaginary part must not be dropped silently. */
static int read_real(PyObject *given, const char *name, double *out) {
    if (!PyComplex_Check(given) && !PyArray_IsScalar(given, ComplexFloating) &&
        (!PyArray_Check(given) || PyArray_NDIM((PyArrayObject *)given) == 0) &&
        !(PyArray_Check(given) && PyArray_ISCOMPLEX((PyArrayObject *)given))) {
        *out = PyFloat_AsDouble(given);
        if (!PyErr_Occurred()) return 0;
        if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
        PyErr_Clear();
    }
    PyErr_Format(PyExc_TypeError, "%s must be a real number, not %.200s", name,
                 Py_TYPE(given)->tp_name);
    return -1;
}

static int read_variant(PyObject *given, const char **out) {
    if (!PyUnicode_Check(given)) {
        PyErr_Format(PyExc_TypeError, "variant must be a string, not %.200s",
                     Py_TYPE(given)->tp_name);
        return -1;
    }
    *out = text_of(given);
    return *out ? 0 : -1;
}

static int read_accuracy(PyObject *given, smk_accuracy *out) {
    for (int i = 0; PyUnicode_Check(given) && i < SMK_N_ACCURACIES; i++) {
        if (PyUnicode_CompareWithASCIIString(given, smk_accuracy_names[i]) == 0) {
            *out = (smk_accuracy)i;
            return 0;
        }
    }
    PyErr_Format(PyUnicode_Check(given) ? PyExc_ValueError : PyExc_TypeError,
                 "accuracy must be 'float32', 'norm', 'tf32' or 'tf32-norm', not %R", given);
    return -1;
}

static int read_memory(PyObject *given, size_t *out) {
    if (given == Py_None) {
        *out = 0;
        return 0;
    }
    PyObject *number = PyNumber_Index(given);
    *out = number ? PyLong_AsSize_t(number) : 0;
    Py_XDECREF(number);
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_OverflowError)) return -1;
    if (*out == 0 || PyErr_Occurred()) {
        PyErr_Format(PyExc_ValueError,
                     "max_memory must be a number of bytes above 0, or None, not %R", given);
        return -1;
    }
    return 0;
}

/* Ordinals or names: [0, 1], ["cuda:0", "cuda:1"]. */
static int read_devices(PyObject *given, call *c) {
    if (given == Py_None) return 0;
    PyObject *list = PyUnicode_Check(given) ? NULL : PySequence_Tuple(given);
    const Py_ssize_t n = list ? PyTuple_GET_SIZE(list) : 0;
    int failed = n < 1 || n > CALL_MAX_DEVICES;
    for (Py_ssize_t i = 0; i < n && !failed; i++) {
        PyObject *item = PyTuple_GET_ITEM(list, i);
        device on = {0};
        if (PyLong_Check(item)) {
            int overflow;
            const long ordinal = PyLong_AsLongAndOverflow(item, &overflow);
            failed = overflow || ordinal < 0 || ordinal > INT32_MAX;
            on.ordinal = failed ? 0 : (int)ordinal;
        } else {
            failed = !PyUnicode_Check(item) || device_read(NULL, item, &on) || on.emulated;
        }
        c->devices[c->n_devices++] = on.ordinal;
    }
    Py_XDECREF(list);
    if (failed || list == NULL) {
        PyErr_Format(PyExc_ValueError,
                     "devices must be 1 to %d GPUs, as [0, 1] or ['cuda:0', 'cuda:1'], not %R",
                     CALL_MAX_DEVICES, given);
        return -1;
    }
    return 0;
}

int call_refuse_keyword(smk_op op, const char *name) {
    PyErr_Format(PyExc_TypeError,
                 "%s() got an unexpected keyword argument '%s', which is no parameter of a variant "
                 "either",
                 smk_op_names[op], name);
    return -1;
}

static int read_param(call *c, const char *name, PyObject *given) {
    if (c->n_params == CALL_MAX_PARAMS)
        return 0; /* already more than any variant has, so one of them is unknown: an error later */
    if (!PyIndex_Check(given) && !smk_op_has_param(c->op, name))
        return call_refuse_keyword(c->op, name);
    PyObject *number = PyIndex_Check(given) ? PyNumber_Index(given) : NULL;
    if (number == NULL) {
        if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Format(PyExc_TypeError, "%s: parameter %s must be an integer, not %.200s",
                         smk_op_names[c->op], name, Py_TYPE(given)->tp_name);
        }
        return -1;
    }
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    c->params[c->n_params] = name;
    c->values[c->n_params++] = overflow > 0 ? INT64_MAX : overflow < 0 ? INT64_MIN : value;
    return 0;
}

static int read_keyword(call *c, const char *name, PyObject *given) {
    const call_form *form = &call_forms[c->op];
    for (int i = 0; i < form->n_inputs; i++) {
        if (strcmp(name, form->inputs[i]) == 0) {
            if (c->inputs[i]) {
                PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%s'",
                             smk_op_names[c->op], name);
                return -1;
            }
            c->inputs[i] = given;
            return 0;
        }
    }
    bool has_out = c->op != SMK_PROBE;
    if (strcmp(name, "variant") == 0) return read_variant(given, &c->variant);
    if (strcmp(name, "device") == 0) {
        c->device = given;
        return 0;
    }
    if (strcmp(name, "stream") == 0) {
        c->stream = given;
        return 0;
    }
    if (has_out && strcmp(name, "out") == 0) {
        c->out = given == Py_None ? NULL : given;
        return 0;
    }
    if (has_out && strcmp(name, "max_memory") == 0) return read_memory(given, &c->max_memory);
    if (has_out && strcmp(name, "progress") == 0) {
        if (given != Py_None && given != Py_False && given != Py_True && !PyCallable_Check(given)) {
            PyErr_Format(PyExc_TypeError,
                         "progress must be a bool or a function of (done, total), not %.200s",
                         Py_TYPE(given)->tp_name);
            return -1;
        }
        c->progress = given == Py_None || given == Py_False ? NULL : given;
        return 0;
    }
    if (c->op == SMK_GEMM && strcmp(name, "devices") == 0) return read_devices(given, c);
    if (c->op == SMK_GEMM && strcmp(name, "alpha") == 0) return read_real(given, name, &c->alpha);
    if (c->op == SMK_GEMM && strcmp(name, "beta") == 0) return read_real(given, name, &c->beta);
    if (c->op == SMK_GEMM && strcmp(name, "accuracy") == 0)
        return read_accuracy(given, &c->accuracy);
    return read_param(c, name, given);
}

int call_read(smk_op op, PyObject *args, PyObject *kwargs, call *out) {
    *out = (call){.op = op, .alpha = 1.0, .device = Py_None, .stream = Py_None};
    const call_form *form = &call_forms[op];
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    if (n > form->n_inputs) {
        PyErr_Format(PyExc_TypeError, "%s() takes %d positional argument%s but %zd were given",
                     smk_op_names[op], form->n_inputs, form->n_inputs > 1 ? "s" : "", n);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        out->inputs[i] = PyTuple_GET_ITEM(args, i);
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (kwargs && PyDict_Next(kwargs, &at, &key, &value)) {
        const char *name = PyUnicode_Check(key) ? text_of(key) : NULL;
        if (name == NULL) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "keywords must be strings");
            return -1;
        }
        if (read_keyword(out, name, value)) return -1;
    }
    for (int i = 0; i < form->n_inputs; i++) {
        if (out->inputs[i] == NULL) {
            PyErr_Format(PyExc_TypeError, "%s() missing required argument '%s'", smk_op_names[op],
                         form->inputs[i]);
            return -1;
        }
    }
    return 0;
}
