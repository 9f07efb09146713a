/* From any NumPy array to memory that a kernel can read; operand.h says what comes out. */
#include "operand.h"

PyArrayObject *operand_array(PyObject *given, const char *op, const char *name) {
    /* If nobody has imported numpy.ma there is no masked array, and no reason to import it. */
    PyObject *module_name = PyUnicode_FromString("numpy.ma");
    PyObject *module = module_name ? PyImport_GetModule(module_name) : NULL;
    Py_XDECREF(module_name);
    if (module) {
        PyObject *type = PyObject_GetAttrString(module, "MaskedArray");
        Py_DECREF(module);
        int masked = type ? PyObject_IsInstance(given, type) : -1;
        Py_XDECREF(type);
        if (masked > 0) {
            PyErr_Format(
                PyExc_TypeError,
                "%s: %s is a masked array, whose mask would be lost; pass %s.filled(0), or "
                "%s.data to ignore the mask",
                op, name, name, name);
        }
        if (masked) {
            return NULL;
        }
    }
    if (PyErr_Occurred()) {
        return NULL;
    }
    return (PyArrayObject *)PyArray_FromAny(given, NULL, 0, 0, NPY_ARRAY_ENSUREARRAY, NULL);
}

/* The array's dimensions as a stack of matrices; strides that are never used are made 0. */
static void as_matrices(PyArrayObject *array, operand_shape one_dimensional, operand *o) {
    int ndim = PyArray_NDIM(array);
    if (ndim == 1) {
        bool column = one_dimensional == OPERAND_COLUMN;
        o->ndim = 2;
        o->dims[0] = o->dims[1] = 1;
        o->dims[!column] = PyArray_DIM(array, 0);
        o->strides[!column] = PyArray_STRIDE(array, 0);
    } else {
        o->ndim = ndim;
        memcpy(o->dims, PyArray_DIMS(array), (size_t)ndim * sizeof(npy_intp));
        memcpy(o->strides, PyArray_STRIDES(array), (size_t)ndim * sizeof(npy_intp));
    }
    for (int d = 0; d < o->ndim; d++) {
        if (o->dims[d] <= 1) {
            o->strides[d] = 0;
        }
    }
}

/* The bytes that the operand spans, from *low (relative to element 0) on; and what its distinct
 * elements would take. */
static npy_intp span(const operand *o, npy_intp itemsize, npy_intp *low, npy_intp *distinct) {
    npy_intp high = itemsize;
    *low = 0;
    *distinct = itemsize;
    for (int d = 0; d < o->ndim; d++) {
        if (o->dims[d] == 0) {
            *low = *distinct = 0;
            return 0;
        }
        npy_intp reach = (o->dims[d] - 1) * o->strides[d];
        *(reach < 0 ? low : &high) += reach;
        *distinct *= o->strides[d] ? o->dims[d] : 1;
    }
    return high - *low;
}

/* Unit steps along a row, and rows that do not overlap. */
static bool has_plain_rows(const operand *o, npy_intp itemsize) {
    const npy_intp *dims = o->dims + o->ndim - 2, *strides = o->strides + o->ndim - 2;
    return (dims[1] <= 1 || strides[1] == itemsize) &&
           (dims[0] <= 1 || strides[0] / itemsize >= dims[1]);
}

/* A kernel can read it in place: whole elements, and not so thinly spread that moving the gaps to a
 * GPU would cost more. */
static bool is_readable(const operand *o, const char *data, npy_intp itemsize) {
    for (int d = 0; d < o->ndim; d++) {
        if (o->strides[d] % itemsize) {
            return false;
        }
    }
    npy_intp low, distinct;
    npy_intp bytes = span(o, itemsize, &low, &distinct);
    return ((npy_uintp)(data + low) % (npy_uintp)itemsize == 0 || bytes == 0) &&
           bytes / 2 <= distinct;
}

/* A C-contiguous copy of what the operand shows, broadcast dimensions taken once. */
static int pack(operand *o, PyArray_Descr *from, PyArray_Descr *wanted) {
    npy_intp dims[NPY_MAXDIMS + 1];
    for (int d = 0; d < o->ndim; d++) {
        bool broadcast = d < o->ndim - 2 && o->strides[d] == 0 && o->dims[d] > 1;
        dims[d] = broadcast ? 1 : o->dims[d];
    }
    Py_INCREF(from);
    PyArrayObject *view = (PyArrayObject *)PyArray_NewFromDescr(
        &PyArray_Type, from, o->ndim, dims, o->strides, PyArray_BYTES(o->array), 0, NULL);
    if (view == NULL) {
        return -1;
    }
    if (PyArray_SetBaseObject(view, (PyObject *)o->array) < 0) { /* steals, even if it fails */
        o->array = NULL;
        Py_DECREF(view);
        return -1;
    }
    Py_INCREF(wanted);
    o->array = (PyArrayObject *)PyArray_FromArray(
        view, wanted, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | NPY_ARRAY_ENSURECOPY);
    Py_DECREF(view);
    if (o->array == NULL) {
        return -1;
    }
    for (int d = 0; d < o->ndim; d++) {
        o->strides[d] = dims[d] > 1 ? PyArray_STRIDE(o->array, d) : 0;
    }
    return 0;
}

int operand_place(PyArrayObject *array, PyArray_Descr *wanted, operand_shape one_dimensional,
                  bool any_strides, operand *out) {
    *out = (operand){.array = array};
    Py_INCREF(array);
    as_matrices(array, one_dimensional, out);
    npy_intp itemsize = PyDataType_ELSIZE(wanted);

    /* A transpose asks for raw bytes of the array's own width: those need no conversion. */
    bool raw = wanted->type_num == NPY_VOID;
    PyArray_Descr *from = raw ? wanted : PyArray_DESCR(array);
    bool same = raw || PyArray_EquivTypes(from, wanted);
    if (!same || (!any_strides && !has_plain_rows(out, itemsize)) ||
        !is_readable(out, PyArray_BYTES(array), itemsize)) {
        if (pack(out, from, wanted)) {
            operand_clear(out);
            return -1;
        }
    }

    npy_intp low, distinct;
    npy_intp bytes = span(out, itemsize, &low, &distinct);
    npy_intp rows = out->dims[out->ndim - 2], cols = out->dims[out->ndim - 1];
    out->buffer = (smk_buffer){PyArray_BYTES(out->array) + low, (size_t)bytes, SMK_IN};
    out->matrix.offset = -low;
    out->matrix.ld = rows > 1 ? out->strides[out->ndim - 2] / itemsize : cols > 1 ? cols : 1;
    out->matrix.step = cols > 1 ? out->strides[out->ndim - 1] / itemsize : 1;
    for (int d = 0; d < out->ndim - 2; d++) {
        out->matrix.batch[d] = out->strides[d] / itemsize;
    }
    return 0;
}

void operand_clear(operand *o) {
    Py_CLEAR(o->array);
}
