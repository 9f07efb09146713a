/* Converts a NumPy array to memory that a kernel can read; see operand.h. */
#include "operand.h"

PyArrayObject *operand_array(PyObject *given, const char *op, const char *name) {
    /* If numpy.ma has not been imported, no masked array exists, so it is not imported here. */
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
        if (masked) return NULL;
    }
    if (PyErr_Occurred()) return NULL;
    return (PyArrayObject *)PyArray_FromAny(given, NULL, 0, 0, NPY_ARRAY_ENSUREARRAY, NULL);
}

/* The array's dimensions as a batch of matrices. Strides of dimensions of length 1 become 0. */
static void as_matrices(PyArrayObject *array, operand_shape one_dimensional, operand *o) {
    int ndim = PyArray_NDIM(array);
    if (ndim < 2) {
        bool column = one_dimensional == OPERAND_COLUMN;
        o->ndim = 2;
        o->dims[0] = o->dims[1] = 1;
        o->dims[!column] = ndim ? PyArray_DIM(array, 0) : 1;
        o->strides[!column] = ndim ? PyArray_STRIDE(array, 0) : 0;
    } else {
        o->ndim = ndim;
        memcpy(o->dims, PyArray_DIMS(array), (size_t)ndim * sizeof(npy_intp));
        memcpy(o->strides, PyArray_STRIDES(array), (size_t)ndim * sizeof(npy_intp));
    }
    for (int d = 0; d < o->ndim; d++)
        if (o->dims[d] <= 1) o->strides[d] = 0;
}

/* Returns the bytes that the operand spans. *low: where the span begins, relative to element 0.
 * *distinct: the bytes of its distinct elements. */
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

/* Whether the matrix has unit stride along `axis`, and its rows (axis 1) or columns (axis 0) do not
 * overlap. */
static bool has_unit_stride(const operand *o, int axis, npy_intp itemsize) {
    const npy_intp *dims = o->dims + o->ndim - 2, *strides = o->strides + o->ndim - 2;
    return (dims[axis] <= 1 || strides[axis] == itemsize) &&
           (dims[!axis] <= 1 || strides[!axis] / itemsize >= dims[axis]);
}

static smk_strides strides_of(const operand *o, npy_intp itemsize) {
    return has_unit_stride(o, 1, itemsize)   ? SMK_ROWS
           : has_unit_stride(o, 0, itemsize) ? SMK_ROWS_OR_COLUMNS
                                             : SMK_ANY_STRIDES;
}

smk_strides operand_strides(PyArrayObject *array, operand_shape one_dimensional) {
    operand o = {0};
    as_matrices(array, one_dimensional, &o);
    return strides_of(&o, PyArray_ITEMSIZE(array));
}

smk_alignment operand_alignment(PyArrayObject *array, bool on_device) {
    operand o = {0};
    as_matrices(array, OPERAND_ROW, &o);
    const npy_intp itemsize = PyArray_ITEMSIZE(array);
    npy_uintp bits = on_device ? (npy_uintp)PyArray_BYTES(array) : 0;
    /* A single column counts as row-major, as in the timings of "auto". */
    const bool is_column = o.dims[o.ndim - 1] == 1;
    for (int d = 0; d < o.ndim; d++) {
        const bool unit = o.strides[d] == itemsize && !(is_column && d == o.ndim - 2);
        bits |= unit ? 0 : (npy_uintp)o.strides[d];
    }
    return bits % 32 == 0   ? SMK_ALIGN_32
           : bits % 16 == 0 ? SMK_ALIGN_16
           : bits % 4 == 0  ? SMK_ALIGN_4
                            : SMK_ALIGN_1;
}

bool operand_is_k_major(PyArrayObject *array, operand_shape one_dimensional) {
    operand o = {0};
    as_matrices(array, one_dimensional, &o);
    const npy_intp *dims = &o.dims[o.ndim - 2], *strides = &o.strides[o.ndim - 2];
    const int k = one_dimensional == OPERAND_ROW ? 1 : 0;
    if (dims[k] <= 1) return true;
    if (dims[1 - k] <= 1) return strides[k] == PyArray_ITEMSIZE(array);
    return Py_ABS(strides[k]) < Py_ABS(strides[1 - k]);
}

/* Whether the elements and strides are aligned to the element size. */
static bool is_aligned(const operand *o, const char *data, npy_intp itemsize) {
    for (int d = 0; d < o->ndim; d++)
        if (o->strides[d] % itemsize) return false;
    npy_intp low, distinct;
    npy_intp bytes = span(o, itemsize, &low, &distinct);
    return (npy_uintp)(data + low) % (npy_uintp)itemsize == 0 || bytes == 0;
}

/* Whether at least half of the span is elements. Else packing is cheaper than copying the gaps to a
 * GPU. */
static bool is_dense(const operand *o, npy_intp itemsize) {
    npy_intp low, distinct;
    npy_intp bytes = span(o, itemsize, &low, &distinct);
    return bytes / 2 <= distinct;
}

/* Replaces the array by a C-contiguous copy in which broadcast dimensions have length 1. */
static int pack(operand *o, PyArray_Descr *from, PyArray_Descr *wanted) {
    npy_intp dims[NPY_MAXDIMS + 1];
    for (int d = 0; d < o->ndim; d++) {
        bool broadcast = d < o->ndim - 2 && o->strides[d] == 0 && o->dims[d] > 1;
        dims[d] = broadcast ? 1 : o->dims[d];
    }
    Py_INCREF(from);
    PyArrayObject *view = (PyArrayObject *)PyArray_NewFromDescr(
        &PyArray_Type, from, o->ndim, dims, o->strides, PyArray_BYTES(o->array), 0, NULL);
    if (view == NULL) return -1;
    if (PyArray_SetBaseObject(view, (PyObject *)o->array) < 0) { /* steals, even if it fails */
        o->array = NULL;
        Py_DECREF(view);
        return -1;
    }
    Py_INCREF(wanted);
    o->array = (PyArrayObject *)PyArray_FromArray(
        view, wanted, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | NPY_ARRAY_ENSURECOPY);
    Py_DECREF(view);
    if (o->array == NULL) return -1;
    for (int d = 0; d < o->ndim; d++)
        o->strides[d] = dims[d] > 1 ? PyArray_STRIDE(o->array, d) : 0;
    return 0;
}

/* A transpose requests raw bytes (void) of the array's own element size, which need no
 * conversion. */
static PyArray_Descr *type_of(PyArrayObject *array, PyArray_Descr *wanted) {
    return wanted->type_num == NPY_VOID ? wanted : PyArray_DESCR(array);
}

/* Whether the elements have the wanted type and are aligned. */
static bool has_elements(const operand *o, PyArrayObject *array, PyArray_Descr *wanted) {
    return PyArray_EquivTypes(type_of(array, wanted), wanted) &&
           is_aligned(o, PyArray_BYTES(array), PyDataType_ELSIZE(wanted));
}

/* Sets buffer and matrix from the array, which the kernel reads as it is. */
static void place(operand *o, npy_intp itemsize) {
    npy_intp low, distinct;
    npy_intp bytes = span(o, itemsize, &low, &distinct);
    npy_intp rows = o->dims[o->ndim - 2], cols = o->dims[o->ndim - 1];
    o->buffer = (smk_buffer){PyArray_BYTES(o->array) + low, (size_t)bytes, SMK_IN};
    o->matrix.offset = -low;
    o->matrix.step = cols > 1 ? o->strides[o->ndim - 1] / itemsize : 1;
    /* A single row with a stride is a matrix whose columns have one element, so ld is 1. */
    const npy_intp single_row = o->matrix.step == 1 && cols > 1 ? cols : 1;
    o->matrix.ld = rows > 1 ? o->strides[o->ndim - 2] / itemsize : single_row;
    for (int d = 0; d < o->ndim - 2; d++)
        o->matrix.batch[d] = o->strides[d] / itemsize;
}

int operand_place(PyArrayObject *array, PyArray_Descr *wanted, operand_shape one_dimensional,
                  smk_strides taken, operand *out) {
    npy_intp itemsize = PyDataType_ELSIZE(wanted);
    *out = (operand){.array = array};
    Py_INCREF(array);
    as_matrices(array, one_dimensional, out);
    const bool readable = has_elements(out, array, wanted) && strides_of(out, itemsize) <= taken;
    if ((!readable || !is_dense(out, itemsize)) && pack(out, type_of(array, wanted), wanted)) {
        operand_clear(out);
        return -1;
    }
    place(out, itemsize);
    return 0;
}

operand_fit operand_place_on_device(PyArrayObject *array, PyArray_Descr *wanted,
                                    operand_shape one_dimensional, smk_strides taken,
                                    operand *out) {
    const npy_intp itemsize = PyDataType_ELSIZE(wanted);
    *out = (operand){.array = array};
    as_matrices(array, one_dimensional, out);
    if (!has_elements(out, array, wanted)) {
        *out = (operand){0};
        return OPERAND_REFUSED;
    }
    Py_INCREF(array);
    place(out, itemsize);
    /* Plans rely on buffers that begin at multiples of 16 bytes. */
    npy_uintp begin = (npy_uintp)out->buffer.host, before = begin % 16;
    out->buffer = (smk_buffer){(void *)(begin - before), out->buffer.bytes + before, SMK_ON_DEVICE};
    out->matrix.offset += (int64_t)before;
    return strides_of(out, itemsize) <= taken ? OPERAND_FITS : OPERAND_NEEDS_COPY;
}

void operand_pack_on_device(const operand *o, operand *out) {
    const npy_intp itemsize = PyArray_ITEMSIZE(o->array),
                   elements_per_16_bytes = itemsize < 16 ? 16 / itemsize : 1;
    const int rows = o->ndim - 2, columns = o->ndim - 1;
    *out = *o;
    Py_INCREF(out->array);
    out->matrix.offset = 0;
    out->matrix.step = 1;
    out->matrix.ld = (o->dims[columns] + elements_per_16_bytes - 1) / elements_per_16_bytes *
                     elements_per_16_bytes;
    int64_t elements = out->matrix.ld * o->dims[rows];
    for (int d = rows - 1; d >= 0; d--) {
        const bool repeated = o->matrix.batch[d] == 0 && o->dims[d] > 0;
        out->matrix.batch[d] = repeated ? 0 : elements;
        elements *= repeated ? 1 : o->dims[d];
    }
    out->buffer = (smk_buffer){NULL, (size_t)(elements * itemsize), 0};
}

void operand_clear(operand *o) {
    Py_CLEAR(o->array);
}
