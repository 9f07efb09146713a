/* Turns a user's source into PTX (in Python: _adapters/calls.py, then _compiler/compile.py). */
#include "kernel_source.h"

int kernel_source_read(PyObject *source, const char *name, PyObject *options, kernel_source *out) {
    *out = (kernel_source){0};
    PyObject *module = PyImport_ImportModule("smemkern._adapters.calls");
    PyObject *read = module ? PyObject_CallMethod(module, "kernel_source", "OzO", source, name,
                                                  options ? options : Py_None)
                            : NULL;
    Py_XDECREF(module);
    if (read == NULL) return -1;
    PyObject *text, *ptx, *entry, *origin;
    int result = -1;
    if (!PyTuple_Check(read)) {
        PyErr_SetString(PyExc_TypeError, "kernel_source() should return a tuple");
    } else if (PyArg_ParseTuple(read, "USOO", &text, &ptx, &entry, &origin)) {
        *out =
            (kernel_source){Py_NewRef(text), Py_NewRef(ptx), Py_NewRef(entry), Py_NewRef(origin)};
        result = 0;
    }
    Py_DECREF(read);
    return result;
}

void kernel_source_free(kernel_source *s) {
    Py_CLEAR(s->text);
    Py_CLEAR(s->ptx);
    Py_CLEAR(s->entry);
    Py_CLEAR(s->origin);
}

PyObject *kernel_source_key(PyObject *ptx) {
    PyObject *hashlib = PyImport_ImportModule("hashlib");
    PyObject *hash = hashlib ? PyObject_CallMethod(hashlib, "sha256", "O", ptx) : NULL;
    PyObject *digest = hash ? PyObject_CallMethod(hash, "hexdigest", NULL) : NULL;
    Py_XDECREF(hashlib);
    Py_XDECREF(hash);
    return digest;
}
