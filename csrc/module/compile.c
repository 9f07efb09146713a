/* Compilation for smemkern/_compiler/compile.py: NVRTC, and the cache on disk. */
#include "module.h"

#include <stdlib.h>
#include <string.h>

#include "../cuda/cache.h"
#include "../cuda/gpu.h"

/* The strings of a sequence as an array with room for `more` pointers. *tuple owns them. */
static const char **read_strings(PyObject *given, const char *name, PyObject **tuple,
                                 Py_ssize_t *n) {
    *tuple = PySequence_Tuple(given);
    if (*tuple == NULL) return NULL;
    *n = PyTuple_GET_SIZE(*tuple);
    const char **out = PyMem_Calloc((size_t)*n + 1, sizeof *out);
    if (out == NULL) PyErr_NoMemory();
    for (Py_ssize_t i = 0; out && i < *n; i++) {
        PyObject *item = PyTuple_GET_ITEM(*tuple, i);
        Py_ssize_t bytes = 0;
        if (!PyUnicode_Check(item))
            PyErr_Format(PyExc_TypeError, "%s must be strings, not %.200s", name,
                         Py_TYPE(item)->tp_name);
        else
            out[i] = PyUnicode_AsUTF8AndSize(item, &bytes);
        if (out[i] && strlen(out[i]) != (size_t)bytes) {
            PyErr_Format(PyExc_ValueError, "%s contain a null character", name);
            out[i] = NULL;
        }
        if (out[i] == NULL) {
            PyMem_Free(out);
            return NULL;
        }
    }
    return out;
}

/* nvrtc_compile(source, file_name, entry, names, texts, options) -> bytes */
PyObject *core_nvrtc_compile(PyObject *module, PyObject *args) {
    module_state *state = PyModule_GetState(module);
    const char *source, *file_name, *entry;
    PyObject *given[3], *tuples[3] = {NULL};
    const char **lists[3] = {NULL};
    Py_ssize_t sizes[3] = {0};
    static const char *const named[] = {"names of headers", "headers", "options"};
    if (!PyArg_ParseTuple(args, "sszOOO:nvrtc_compile", &source, &file_name, &entry, &given[0],
                          &given[1], &given[2]))
        return NULL;
    PyObject *ptx = NULL;
    nvrtc_header *headers = NULL;
    for (int i = 0; i < 3; i++) {
        lists[i] = read_strings(given[i], named[i], &tuples[i], &sizes[i]);
        if (lists[i] == NULL) goto done;
    }
    if (sizes[0] != sizes[1]) {
        PyErr_SetString(PyExc_ValueError, "each header needs a name and a text");
        goto done;
    }
    headers = PyMem_Calloc((size_t)sizes[0] + 1, sizeof *headers);
    if (headers == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    for (Py_ssize_t i = 0; i < sizes[0]; i++)
        headers[i] = (nvrtc_header){lists[0][i], lists[1][i]};
    ptx = image_compile(state, source, file_name, entry, headers, (int)sizes[0], lists[2],
                        (int)sizes[2], false);
done:
    PyMem_Free(headers);
    for (int i = 0; i < 3; i++) {
        PyMem_Free(lists[i]);
        Py_XDECREF(tuples[i]);
    }
    return ptx;
}

static int read_key(PyObject *given, uint8_t key[SHA256_BYTES]) {
    if (!PyBytes_Check(given) || PyBytes_GET_SIZE(given) != SHA256_BYTES) {
        PyErr_Format(PyExc_ValueError, "a key must be %d bytes", SHA256_BYTES);
        return -1;
    }
    memcpy(key, PyBytes_AS_STRING(given), SHA256_BYTES);
    return 0;
}

/* cache_load(key) -> bytes or None */
PyObject *core_cache_load(PyObject *Py_UNUSED(module), PyObject *given) {
    uint8_t key[SHA256_BYTES];
    char directory[4096];
    size_t bytes = 0;
    if (read_key(given, key)) return NULL;
    image_cache_directory(directory, sizeof directory);
    char *text = cache_load(directory, key, &bytes);
    if (text == NULL) Py_RETURN_NONE;
    PyObject *result = PyBytes_FromStringAndSize(text, (Py_ssize_t)bytes);
    free(text);
    return result;
}

/* cache_store(key, text) */
PyObject *core_cache_store(PyObject *Py_UNUSED(module), PyObject *args) {
    uint8_t key[SHA256_BYTES];
    char directory[4096];
    const char *text;
    Py_ssize_t bytes;
    PyObject *given;
    if (!PyArg_ParseTuple(args, "Oy#:cache_store", &given, &text, &bytes) || read_key(given, key))
        return NULL;
    image_cache_directory(directory, sizeof directory);
    cache_store(directory, key, text, (size_t)bytes);
    Py_RETURN_NONE;
}
