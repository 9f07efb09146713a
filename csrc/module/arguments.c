/* Laying out the arguments of a user's kernel.
 *
 * An array becomes a pointer to its memory. A writable array is in and out: the kernel works on a
 * copy that is written back after a run that succeeded; a read-only one is read in place. Arrays
 * that overlap share one buffer, so that a kernel that is given two views of one memory sees one
 * memory.
 */
#include "arguments.h"

struct array_argument {
    PyArrayObject *array;
    char *begin, *end;
    size_t pointer; /* index into pointers */
    int index;      /* of the argument */
    bool writable;
};

/* ---- arrays ---- */

static int add_array(arguments *a, PyArrayObject *array, const emu_parameter *parameter,
                     Py_ssize_t index) {
    if (parameter->size != sizeof(uint64_t) || parameter->kind == 'f') {
        PyErr_Format(PyExc_TypeError,
                     "argument %zd is an array, but the kernel's parameter is no pointer "
                     "(%u bytes of kind '%c')",
                     index, (unsigned)parameter->size, parameter->kind);
        return -1;
    }
    if (!PyArray_ISCONTIGUOUS(array) && !PyArray_ISFORTRAN(array)) {
        PyErr_Format(PyExc_ValueError,
                     "argument %zd is not contiguous, and a kernel sees no strides; pass "
                     "numpy.ascontiguousarray(...)",
                     index);
        return -1;
    }
    PyArray_Descr *descr = PyArray_DESCR(array);
    if (!PyDataType_ISLEGACY(descr) || PyDataType_REFCHK(descr) || PyArray_ISBYTESWAPPED(array)) {
        PyErr_Format(PyExc_TypeError,
                     "argument %zd has dtype %S; a kernel takes plain numbers in native byte order",
                     index, descr);
        return -1;
    }
    char *begin = PyArray_BYTES(array);
    a->arrays[a->n_arrays++] = (struct array_argument){
        .array = (PyArrayObject *)Py_NewRef((PyObject *)array),
        .begin = begin,
        .end = begin + PyArray_NBYTES(array),
        .pointer = a->n_pointers,
        .index = (int)index,
        .writable = PyArray_ISWRITEABLE(array),
    };
    a->pointers[a->n_pointers++] = (smk_pointer){.arg_offset = parameter->offset};
    return 0;
}

static int by_address(const void *left, const void *right) {
    const struct array_argument *l = left, *r = right;
    return (l->begin > r->begin) - (l->begin < r->begin);
}

/* One buffer for each stretch of memory that overlapping arrays cover. */
static int share_buffers(arguments *a) {
    qsort(a->arrays, a->n_arrays, sizeof *a->arrays, by_address);
    for (size_t first = 0, next; first < a->n_arrays; first = next) {
        char *begin = a->arrays[first].begin, *end = a->arrays[first].end;
        bool writable = a->arrays[first].writable;
        for (next = first + 1; next < a->n_arrays && a->arrays[next].begin < end; next++) {
            end = a->arrays[next].end > end ? a->arrays[next].end : end;
            writable |= a->arrays[next].writable;
        }
        size_t bytes = (size_t)(end - begin);
        smk_buffer *buffer = &a->buffers[a->n_buffers];
        *buffer = (smk_buffer){begin, bytes, SMK_IN};
        if (writable && bytes > 0) {
            void *copy = PyMem_RawMalloc(bytes);
            if (copy == NULL) {
                PyErr_NoMemory();
                return -1;
            }
            *buffer = (smk_buffer){memcpy(copy, begin, bytes), bytes, SMK_IN | SMK_OUT};
        }
        for (size_t i = first; i < next; i++) {
            smk_pointer *pointer = &a->pointers[a->arrays[i].pointer];
            uint64_t at = (uint64_t)(a->arrays[i].begin - begin);
            pointer->buffer = (uint32_t)a->n_buffers;
            memcpy(a->block + pointer->arg_offset, &at, sizeof at);
        }
        a->n_buffers++;
    }
    return 0;
}

void arguments_write_back(const arguments *a) {
    for (size_t i = 0; i < a->n_arrays; i++) {
        const struct array_argument *array = &a->arrays[i];
        const smk_pointer *pointer = &a->pointers[array->pointer];
        uint64_t at;
        memcpy(&at, a->block + pointer->arg_offset, sizeof at);
        if (array->writable) {
            memcpy(array->begin, (char *)a->buffers[pointer->buffer].host + at,
                   (size_t)(array->end - array->begin));
        }
    }
}

/* The array that holds the byte, or else the buffer's first one. */
static void locate(const arguments *a, smk_hazard *h) {
    for (size_t i = 0; i < a->n_arrays; i++) {
        const struct array_argument *array = &a->arrays[i];
        const smk_pointer *pointer = &a->pointers[array->pointer];
        if ((int)pointer->buffer != h->buffer) {
            continue;
        }
        int64_t at;
        memcpy(&at, a->block + pointer->arg_offset, sizeof at);
        bool inside = h->offset >= at && h->offset - at < array->end - array->begin;
        if (inside || h->argument < 0) {
            h->argument = array->index;
            h->argument_at = h->offset - at;
        }
        if (inside) {
            return;
        }
    }
}

void arguments_locate(const arguments *a, smk_trace *trace) {
    for (size_t i = 0; i < trace->n_hazards; i++) {
        if (trace->hazards[i].buffer >= 0) {
            locate(a, &trace->hazards[i]);
        }
    }
}

/* ---- scalars ---- */

static int pack_float(PyObject *given, const emu_parameter *parameter, unsigned char *to) {
    double value = PyFloat_AsDouble(given);
    if (value == -1.0 && PyErr_Occurred()) {
        return -1;
    }
    if (parameter->size == sizeof(double)) {
        memcpy(to, &value, sizeof value);
    } else if (parameter->size == sizeof(float)) {
        float narrow = (float)value;
        memcpy(to, &narrow, sizeof narrow);
    } else {
        PyErr_Format(PyExc_TypeError, "a float of %u bytes cannot be passed; pass bytes",
                     (unsigned)parameter->size);
        return -1;
    }
    return 0;
}

/* nvcc calls a signed int .u32 too, so both ranges are taken. */
static int pack_integer(PyObject *given, const emu_parameter *parameter, Py_ssize_t index,
                        unsigned char *to) {
    PyObject *number = PyNumber_Index(given);
    if (number == NULL) {
        return -1;
    }
    unsigned bits = 8 * parameter->size;
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    bool fits =
        overflow == 0 && (bits >= 64 || (value >= -(1LL << (bits - 1)) && value < (1LL << bits)));
    if (overflow > 0 && bits == 64) {
        unsigned long long wide = PyLong_AsUnsignedLongLong(number);
        fits = !PyErr_Occurred();
        PyErr_Clear();
        memcpy(&value, &wide, sizeof value);
    }
    if (fits) {
        memcpy(to, &value, parameter->size); /* little-endian, like PTX */
    } else {
        PyErr_Format(PyExc_OverflowError, "argument %zd = %S does not fit into %u bits", index,
                     number, bits);
    }
    Py_DECREF(number);
    return fits ? 0 : -1;
}

static int pack_bytes(PyObject *given, const emu_parameter *parameter, Py_ssize_t index,
                      unsigned char *to) {
    Py_buffer view;
    if (PyObject_GetBuffer(given, &view, PyBUF_SIMPLE) < 0) {
        return -1;
    }
    bool fits = view.len == (Py_ssize_t)parameter->size;
    if (fits) {
        memcpy(to, view.buf, parameter->size);
    } else {
        PyErr_Format(PyExc_ValueError, "argument %zd has %zd bytes, the kernel's parameter has %u",
                     index, view.len, (unsigned)parameter->size);
    }
    PyBuffer_Release(&view);
    return fits ? 0 : -1;
}

static int pack_scalar(PyObject *given, const emu_parameter *parameter, Py_ssize_t index,
                       unsigned char *to) {
    if (PyBytes_Check(given) || PyArray_IsScalar(given, Void)) {
        return pack_bytes(given, parameter, index, to);
    }
    if (parameter->size != parameter->scalar_size || parameter->size > sizeof(uint64_t)) {
        PyErr_Format(
            PyExc_TypeError,
            "argument %zd is a struct of %u bytes to the kernel; pass bytes or numpy.void, "
            "not %.200s",
            index, (unsigned)parameter->size, Py_TYPE(given)->tp_name);
        return -1;
    }
    bool is_float = PyFloat_Check(given) || PyArray_IsScalar(given, Floating);
    bool is_integer = PyIndex_Check(given);
    if (is_float || is_integer) {
        if (parameter->kind == 'f' || (parameter->kind == 'b' && is_float)) {
            return pack_float(given, parameter, to);
        }
        if (is_integer) {
            return pack_integer(given, parameter, index, to);
        }
    }
    PyErr_Format(PyExc_TypeError,
                 "argument %zd is of type %.200s, but the kernel's parameter is %s of %u bytes",
                 index, Py_TYPE(given)->tp_name,
                 parameter->kind == 'f' ? "a float" : "an integer or a pointer",
                 (unsigned)parameter->size);
    return -1;
}

/* ---- all of them ---- */

int arguments_make(const emu_signature *signature, PyObject *const *given, Py_ssize_t n,
                   arguments *out) {
    *out = (arguments){0};
    if ((size_t)n != signature->n_parameters) {
        PyErr_Format(PyExc_TypeError, "kernel %s takes %zu arguments but %zd were given",
                     signature->entry, signature->n_parameters, n);
        return -1;
    }
    size_t room = (size_t)n + 1;
    out->block = PyMem_RawCalloc(signature->args_bytes + 1, 1);
    out->pointers = PyMem_RawCalloc(room, sizeof *out->pointers);
    out->buffers = PyMem_RawCalloc(room, sizeof *out->buffers);
    out->arrays = PyMem_RawCalloc(room, sizeof *out->arrays);
    if (!out->block || !out->pointers || !out->buffers || !out->arrays) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        const emu_parameter *parameter = &signature->parameters[i];
        int failed = PyArray_Check(given[i])
                         ? add_array(out, (PyArrayObject *)given[i], parameter, i)
                         : pack_scalar(given[i], parameter, i, out->block + parameter->offset);
        if (failed) {
            return -1;
        }
    }
    return share_buffers(out);
}

void arguments_free(arguments *a) {
    for (size_t i = 0; i < a->n_buffers; i++) {
        if (a->buffers[i].access & SMK_OUT) {
            PyMem_RawFree(a->buffers[i].host);
        }
    }
    for (size_t i = 0; i < a->n_arrays; i++) {
        Py_DECREF(a->arrays[i].array);
    }
    PyMem_RawFree(a->block);
    PyMem_RawFree(a->pointers);
    PyMem_RawFree(a->buffers);
    PyMem_RawFree(a->arrays);
}
