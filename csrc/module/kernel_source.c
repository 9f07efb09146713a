/* Turns a user's source into PTX, and finds the kernel's name in the PTX. */
#include "kernel_source.h"

#include "../cuda/gpu.h"

/* PTX begins with .version, possibly after comments; C++ cannot. A byte order mark, which ptxas
 * refuses, is for the parser to name. */
static bool is_ptx(const char *text) {
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    if (strncmp(text, byte_order_mark, 3) == 0) text += 3;
    for (;;) {
        text += strspn(text, " \t\r\n\f\v");
        if (strncmp(text, "//", 2) == 0) {
            text += strcspn(text, "\n");
        } else if (strncmp(text, "/*", 2) == 0) {
            const char *end = strstr(text + 2, "*/");
            if (end == NULL) return false;
            text = end + 2;
        } else {
            return strncmp(text, ".version", 8) == 0;
        }
    }
}

static bool names_architecture(const char *option) {
    static const char *const forms[] = {"-arch", "--gpu-architecture", "--gpu-name"};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (strncmp(option, forms[i], strlen(forms[i])) == 0) return true;
    return false;
}

/* -I options for CUDA's own headers, if the source includes any header. They come after the
 * caller's options, so that the caller's headers are found first. */
static PyObject *include_options(const char *source) {
    if (strstr(source, "include") == NULL) return PyTuple_New(0);
    PyObject *module = PyImport_ImportModule("smemkern._nvrtc");
    PyObject *options = module ? PyObject_CallMethod(module, "include_options", NULL) : NULL;
    PyObject *tuple = options ? PySequence_Tuple(options) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(options);
    return tuple;
}

/* The caller's options and ours, as one tuple. */
static PyObject *all_options(const char *source, PyObject *options) {
    PyObject *own = options ? PySequence_Tuple(options) : PyTuple_New(0);
    PyObject *includes = own ? include_options(source) : NULL;
    PyObject *all = includes ? PySequence_Concat(own, includes) : NULL;
    Py_XDECREF(own);
    Py_XDECREF(includes);
    return all;
}

/* Compiles CUDA C++ to PTX for compute_80, unless the options name an architecture. A mangled name
 * is not a C++ expression, so it is not passed to NVRTC but looked up in the PTX. */
static PyObject *compile(module_state *state, const char *source, const char *name,
                         PyObject *options) {
    const char *expression = name && strncmp(name, "_Z", 2) != 0 ? name : NULL;
    PyObject *list = all_options(source, options);
    if (list == NULL) return NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(list);
    PyObject *ptx = NULL;
    const char **all = PyMem_Calloc((size_t)n + 2, sizeof *all);
    if (all == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    int n_all = 0;
    bool named = false;
    all[n_all++] = "-lineinfo";
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *option = PyTuple_GET_ITEM(list, i);
        if (!PyUnicode_Check(option)) {
            PyErr_Format(PyExc_TypeError, "options must be strings, not %.200s",
                         Py_TYPE(option)->tp_name);
            goto done;
        }
        const char *text = PyUnicode_AsUTF8(option);
        if (text == NULL) goto done;
        named |= names_architecture(text);
        all[n_all++] = text;
    }
    if (!named) all[n_all++] = "-arch=compute_80";
    ptx = image_compile(state, source, "kernel.cu", expression, NULL, 0, all, n_all);
done:
    PyMem_Free(all);
    Py_DECREF(list);
    return ptx;
}

/* The entry's name in the PTX. For a C++ name, nvrtc_compile has written it in the first line. */
static PyObject *entry_name(PyObject *ptx, const char *name) {
    static const char line[] = NVRTC_ENTRY_LINE;
    const char *text = PyBytes_AS_STRING(ptx);
    if (strncmp(text, line, sizeof line - 1) != 0) return PyUnicode_FromString(name);
    const char *begin = text + sizeof line - 1;
    return PyUnicode_FromStringAndSize(begin, (Py_ssize_t)strcspn(begin, "\n"));
}

int kernel_source_read(module_state *state, const char *source, const char *name, PyObject *options,
                       kernel_source *out) {
    bool is_text = is_ptx(source);
    *out = (kernel_source){0};
    if (is_text && options && PyObject_IsTrue(options)) {
        PyErr_SetString(PyExc_ValueError, "options are for CUDA C++; this source is PTX already");
        return -1;
    }
    out->ptx = is_text ? PyBytes_FromString(source) : compile(state, source, name, options);
    if (out->ptx && name)
        out->entry = is_text ? PyUnicode_FromString(name) : entry_name(out->ptx, name);
    if (PyErr_Occurred()) {
        Py_CLEAR(out->ptx);
        Py_CLEAR(out->entry);
        return -1;
    }
    return 0;
}

PyObject *kernel_source_key(PyObject *ptx) {
    PyObject *hashlib = PyImport_ImportModule("hashlib");
    PyObject *hash = hashlib ? PyObject_CallMethod(hashlib, "sha256", "O", ptx) : NULL;
    PyObject *digest = hash ? PyObject_CallMethod(hash, "hexdigest", NULL) : NULL;
    Py_XDECREF(hashlib);
    Py_XDECREF(hash);
    return digest;
}
