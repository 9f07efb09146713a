/* Packs scalars for kernel parameters. A NumPy scalar has a C type, so its bytes are passed and its
 * kind and size must be the parameter's. A Python number has none, so it is converted to the
 * parameter's type, and its range is checked.
 */
#include "scalar.h"

#include <float.h>

bool parameter_is_struct(const emu_parameter *parameter) {
    return parameter->size != parameter->scalar_size || parameter->size > sizeof(uint64_t);
}

static const char *kind_name(const emu_parameter *parameter) {
    return parameter_is_struct(parameter) ? "a struct"
           : parameter->kind == 'f'       ? "a float"
           : parameter->kind == 'b'       ? "bits (a number or a pointer)"
                                          : "an integer or a pointer";
}

static int refuse(PyObject *given, const emu_parameter *parameter, Py_ssize_t index,
                  const char *remedy) {
    PyErr_Format(PyExc_TypeError,
                 "argument %zd is of type %.200s, but the kernel's parameter is %s of %u bytes; %s",
                 index, Py_TYPE(given)->tp_name, kind_name(parameter), (unsigned)parameter->size,
                 remedy);
    return -1;
}

/* ---- objects with fixed bytes ---- */

static int pack_bytes(PyObject *given, const emu_parameter *parameter, Py_ssize_t index,
                      unsigned char *to) {
    Py_buffer view;
    if (PyObject_GetBuffer(given, &view, PyBUF_SIMPLE) < 0) return -1;
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

/* Whether the parameter accepts a NumPy scalar of that kind. */
static bool kinds_agree(char numpy, const emu_parameter *parameter) {
    if (parameter->kind == 'b' || parameter_is_struct(parameter)) return true;
    bool is_float = numpy == 'f', is_integer = numpy == 'i' || numpy == 'u' || numpy == 'b';
    return parameter->kind == 'f' ? is_float : is_integer;
}

static int pack_numpy_scalar(PyObject *given, const emu_parameter *parameter, Py_ssize_t index,
                             unsigned char *to) {
    PyArray_Descr *descr = PyArray_DescrFromScalar(given);
    if (descr == NULL) return -1;
    bool plain = !PyDataType_REFCHK(descr) && PyArray_ISNBO(descr->byteorder);
    bool fits = plain && PyDataType_ELSIZE(descr) == (npy_intp)parameter->size &&
                kinds_agree(descr->kind, parameter);
    Py_DECREF(descr);
    if (!fits) {
        return refuse(given, parameter, index,
                      "pass a NumPy scalar of its kind and size, or a Python number");
    }
    PyArray_ScalarAsCtype(given, to);
    return 0;
}

/* ---- Python's numbers ---- */

static int pack_float(PyObject *given, const emu_parameter *parameter, Py_ssize_t index,
                      unsigned char *to) {
    double value = PyFloat_AsDouble(given);
    if (value == -1.0 && PyErr_Occurred()) return -1;
    if (parameter->size == sizeof(double)) {
        memcpy(to, &value, sizeof value);
    } else if (parameter->size == sizeof(float)) {
        float narrow = (float)value;
        if (isinf(narrow) && !isinf(value)) {
            PyErr_Format(PyExc_OverflowError,
                         "argument %zd = %S does not fit into a float of 4 "
                         "bytes",
                         index, given);
            return -1;
        }
        memcpy(to, &narrow, sizeof narrow);
    } else {
        return refuse(given, parameter, index, "pass numpy.float16(x) or ml_dtypes.bfloat16(x)");
    }
    return 0;
}

/* nvcc declares signed ints as .u32 too, so both the signed and the unsigned range are accepted. */
static int pack_integer(PyObject *given, const emu_parameter *parameter, Py_ssize_t index,
                        unsigned char *to) {
    PyObject *number = PyNumber_Index(given);
    if (number == NULL) return -1;
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

/* cuFloatComplex, float2, cuda::std::complex: two floats of half the struct's size. */
static int pack_complex(PyObject *given, const emu_parameter *parameter, Py_ssize_t index,
                        unsigned char *to) {
    emu_parameter half = {
        .size = parameter->size / 2, .scalar_size = parameter->size / 2, .kind = 'f'};
    if (!parameter_is_struct(parameter) ||
        (parameter->size != 2 * sizeof(float) && parameter->size != 2 * sizeof(double))) {
        return refuse(given, parameter, index, "a complex number is a struct of 8 or 16 bytes");
    }
    PyObject *real = PyFloat_FromDouble(PyComplex_RealAsDouble(given));
    PyObject *imaginary = PyFloat_FromDouble(PyComplex_ImagAsDouble(given));
    int failed = !real || !imaginary || pack_float(real, &half, index, to) ||
                 pack_float(imaginary, &half, index, to + half.size);
    Py_XDECREF(real);
    Py_XDECREF(imaginary);
    return failed ? -1 : 0;
}

int scalar_pack(PyObject *given, const emu_parameter *parameter, Py_ssize_t index,
                unsigned char *to) {
    if (PyBytes_Check(given) || PyArray_IsScalar(given, Void))
        return pack_bytes(given, parameter, index, to);
    if (PyArray_IsScalar(given, Generic)) return pack_numpy_scalar(given, parameter, index, to);
    if (PyComplex_Check(given)) return pack_complex(given, parameter, index, to);
    bool is_struct = parameter_is_struct(parameter);
    if (given == Py_None && !is_struct && parameter->size == sizeof(uint64_t) &&
        parameter->kind != 'f') {
        memset(to, 0, parameter->size);
        return 0;
    }
    if (is_struct) {
        return refuse(given, parameter, index,
                      "pass a tuple of its members, or bytes, numpy.void or an array of that size");
    }
    if (PyFloat_Check(given) || (PyIndex_Check(given) && parameter->kind == 'f')) {
        return parameter->kind == 'f' || parameter->kind == 'b'
                   ? pack_float(given, parameter, index, to)
                   : refuse(given, parameter, index, "pass an int");
    }
    if (PyIndex_Check(given)) return pack_integer(given, parameter, index, to);
    return refuse(given, parameter, index, "pass a number, an array, or None for a null pointer");
}
