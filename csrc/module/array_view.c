/* Views arrays of other libraries as NumPy arrays, so that operations check shapes, strides and
 * types in one way. */
#include "device_array.h"

/* ---- types ---- */

static PyArray_Descr *convert(PyObject *type) {
    PyArray_Descr *descr = NULL;
    if (type) {
        PyArray_DescrConverter(type, &descr);
        Py_DECREF(type);
    }
    return descr;
}

/* The package ml_dtypes defines bfloat16 for NumPy. Without it the stand-in is a new 2-byte void
 * descriptor, which is_bfloat16 recognizes by its identity. */
static PyArray_Descr *make_bfloat16(void) {
    PyObject *module = PyImport_ImportModule("ml_dtypes");
    PyObject *type = module ? PyObject_GetAttrString(module, "bfloat16") : NULL;
    Py_XDECREF(module);
    if (type == NULL) {
        PyErr_Clear();
        type = PyUnicode_FromString("V2");
    }
    return convert(type);
}

static PyArray_Descr *find_bfloat16(module_state *state) {
    PyArray_Descr *known = atomic_load(&state->bfloat16);
    if (known == NULL) {
        PyArray_Descr *made = make_bfloat16();
        if (made && atomic_compare_exchange_strong(&state->bfloat16, &known, made))
            known = made;
        else /* another thread was first */
            Py_XDECREF(made);
    }
    Py_XINCREF(known);
    return known;
}

bool is_bfloat16(const module_state *state, PyArray_Descr *descr) {
    if (descr == atomic_load(&state->bfloat16)) return true;
    /* Types that libraries add to NumPy are recognized by the name of their scalar type. */
    const char *name = descr->typeobj->tp_name, *dot = strrchr(name, '.');
    return PyTypeNum_ISUSERDEF(descr->type_num) && strcmp(dot ? dot + 1 : name, "bfloat16") == 0;
}

static PyArray_Descr *find_type(module_state *state, const device_array *a, array_label label) {
    const int64_t bits = 8 * a->itemsize;
    if (a->kind == 'f' && (bits == 32 || bits == 64 || bits == 16))
        return PyArray_DescrFromType(bits == 32 ? NPY_FLOAT : bits == 64 ? NPY_DOUBLE : NPY_HALF);
    if (a->kind == 'E') return find_bfloat16(state);
    if (a->kind == 0) {
        device_array_refuse(PyExc_TypeError, label, "has elements that are no whole bytes");
        return NULL;
    }
    return convert(PyUnicode_FromFormat("%c%lld", a->kind, (long long)a->itemsize));
}

/* ---- arrays ---- */

/* Strides of dimensions of length 1 are ignored. An empty array is contiguous. */
bool device_array_is_contiguous(const device_array *a) {
    const int n = a->n_dims;
    int64_t c = a->itemsize, fortran = a->itemsize;
    bool is_c = true, is_fortran = true;
    for (int d = 0; d < n; d++) {
        if (a->shape[d] == 0) return true;
        if (a->shape[d] > 1) {
            is_fortran &= a->strides[d] == fortran;
            fortran *= a->shape[d];
        }
        if (a->shape[n - 1 - d] > 1) {
            is_c &= a->strides[n - 1 - d] == c;
            c *= a->shape[n - 1 - d];
        }
    }
    return is_c || is_fortran;
}

PyArrayObject *device_array_view(module_state *state, const device_array *a, PyObject *given,
                                 array_label label) {
    /* The address of an empty array: for NULL NumPy would allocate memory. */
    enum { NOT_NULL = 64 };
    void *data = (void *)(uintptr_t)(a->address ? a->address : NOT_NULL);
    PyArray_Descr *descr = find_type(state, a, label);
    PyObject *view =
        descr ? PyArray_NewFromDescr(&PyArray_Type, descr, a->n_dims, a->shape, a->strides, data,
                                     a->read_only ? 0 : NPY_ARRAY_WRITEABLE, NULL)
              : NULL;
    if (view && PyArray_SetBaseObject((PyArrayObject *)view, Py_NewRef(given)) < 0) Py_CLEAR(view);
    return (PyArrayObject *)view;
}

PyArrayObject *host_array_view(PyObject *given) {
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *array = numpy ? PyObject_CallMethod(numpy, "from_dlpack", "O", given) : NULL;
    Py_XDECREF(numpy);
    if (array && !PyArray_Check(array)) {
        PyErr_SetString(PyExc_TypeError, "numpy.from_dlpack returned no array");
        Py_CLEAR(array);
    }
    return (PyArrayObject *)array;
}
