/* Applies the emulator's bank model to arrays of requests, for smemkern.banks. The model is
 * implemented only in emu/cost/banks.c, so traces and this function agree. */
#include "module.h"

#include "../emu/emu.h"

enum { LANES = 32 };

static bool known_width(long width) {
    return width == 1 || width == 2 || width == 4 || width == 8 || width == 16;
}

/* Only loads may merge their lane groups; all other operations cost as much as stores
 * (emu/cost/banks.h). */
static int read_op(const char *op, bool *load) {
    static const char *const known[] = {"load",     "store",    "atomic",
                                        "ldmatrix", "stmatrix", "copy_async"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(op, known[i]) == 0) {
            *load = i == 0;
            return 0;
        }
    }
    PyErr_Format(PyExc_ValueError,
                 "op should be 'load', 'store', 'atomic', 'ldmatrix', 'stmatrix' or 'copy_async', "
                 "not '%s'",
                 op);
    return -1;
}

PyObject *model_shared_requests(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *given[2], *holds[2] = {NULL}, *result[3] = {NULL}, *answer = NULL;
    PyArrayObject *addresses = NULL, *active = NULL;
    uint32_t *out[3];
    long width;
    const char *op;
    bool load;
    if (!PyArg_ParseTuple(args, "O!O!ls:shared_requests", &PyArray_Type, &given[0], &PyArray_Type,
                          &given[1], &width, &op) ||
        read_op(op, &load)) {
        return NULL;
    }
    if (!known_width(width)) {
        return PyErr_Format(PyExc_ValueError, "width should be 1, 2, 4, 8 or 16 bytes, not %ld",
                            width);
    }
    addresses = array_hold((PyArrayObject *)given[0], &holds[0]);
    active = addresses ? array_hold((PyArrayObject *)given[1], &holds[1]) : NULL;
    if (active == NULL) goto done;
    if (PyArray_TYPE(addresses) != NPY_UINT64 || PyArray_TYPE(active) != NPY_UINT32 ||
        PyArray_NDIM(addresses) != 2 || PyArray_NDIM(active) != 1 ||
        PyArray_DIM(addresses, 1) != LANES || PyArray_DIM(addresses, 0) != PyArray_DIM(active, 0) ||
        !PyArray_ISCARRAY_RO(addresses) || !PyArray_ISCARRAY_RO(active)) {
        PyErr_SetString(PyExc_TypeError,
                        "addresses should be contiguous uint64 (n, 32), active uint32 (n,)");
        goto done;
    }
    npy_intp n = PyArray_DIM(active, 0);
    for (int i = 0; i < 3; i++) {
        result[i] = PyArray_SimpleNew(1, &n, NPY_UINT32);
        if (result[i] == NULL) goto done;
        out[i] = PyArray_DATA((PyArrayObject *)result[i]);
    }
    const uint64_t *address = PyArray_DATA(addresses);
    const uint32_t *mask = PyArray_DATA(active);
    Py_BEGIN_ALLOW_THREADS;
    for (npy_intp i = 0; i < n; i++, address += LANES) {
        banks_request(address, mask[i], (uint32_t)width, load, &out[0][i], &out[1][i]);
        out[2][i] = banks_group_lanes(address, mask[i], (uint32_t)width, load);
    }
    Py_END_ALLOW_THREADS;
    answer = PyTuple_Pack(3, result[0], result[1], result[2]);
done:
    for (int i = 0; i < 3; i++)
        Py_XDECREF(result[i]);
    Py_XDECREF(addresses);
    Py_XDECREF(active);
    Py_XDECREF(holds[0]);
    Py_XDECREF(holds[1]);
    return answer;
}
