/* Imports NumPy's C API; creates and raises the exceptions of the codes in core/status.h. */
#define SMK_MODULE_IMPORTS_NUMPY
#include "module.h"

int state_import_numpy(void) {
    return PyArray_ImportNumPyAPI();
}

static const char *const exception_names[SMK_N_CODES] = {
#define X(code, exception) #exception,
    SMK_CODE_MAP(X)
#undef X
};

static const char *const exception_docs[SMK_N_CODES] = {
    [SMK_ERROR] = "Base of what smemkern raises beside Python's own exceptions.",
    [SMK_NO_DEVICE] = "There is no driver, no GPU, or no GPU of that number.",
    [SMK_DRIVER_TOO_OLD] = "The NVIDIA driver lacks something that is needed.",
    [SMK_KERNEL_IMAGE] =
        "Compiled code that the device cannot load, or PTX that is not well-formed.",
    [SMK_COMPILE] = "CUDA source that does not compile (with the log), or no compiler.",
    [SMK_LAUNCH] = "A kernel that could not be started, or failed while it ran.",
    [SMK_UNSUPPORTED] = "A PTX instruction that the emulator does not know; it is named.",
    [SMK_HAZARD] = "A race or another hazard that was found where none was accepted.",
};

/* The exception of each code: Python's built-in one of that name, or a new subclass of Error. */
int state_make_exceptions(PyObject *module, module_state *state) {
    PyObject *builtins = PyEval_GetBuiltins();
    for (int code = SMK_OK + 1; code < SMK_N_CODES; code++) {
        const char *name = exception_names[code];
        PyObject *known = PyDict_GetItemString(builtins, name);
        if (known) {
            state->exceptions[code] = Py_NewRef(known);
            continue;
        }
        char qualified[80];
        PyOS_snprintf(qualified, sizeof qualified, "smemkern.%s", name);
        state->exceptions[code] = PyErr_NewExceptionWithDoc(
            qualified, exception_docs[code],
            code == SMK_ERROR ? NULL : state->exceptions[SMK_ERROR], NULL);
        if (state->exceptions[code] == NULL ||
            PyModule_AddObjectRef(module, name, state->exceptions[code]) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Replaces control characters, which a terminal would execute: messages quote text of compilers,
 * kernels and callers. */
static PyObject *printable(const char *text) {
    PyObject *whole = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    const Py_ssize_t n = whole ? PyUnicode_GET_LENGTH(whole) : 0;
    Py_UCS4 *copy = whole ? PyUnicode_AsUCS4Copy(whole) : NULL;
    Py_XDECREF(whole);
    for (Py_ssize_t i = 0; copy && i < n; i++) {
        const bool control = copy[i] < ' ' || (copy[i] >= 0x7f && copy[i] < 0xa0);
        if (control && copy[i] != '\n' && copy[i] != '\t') copy[i] = '?';
    }
    PyObject *result = copy ? PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, copy, n) : NULL;
    PyMem_Free(copy);
    return result;
}

/* The message with names of C++ as one writes them. Takes the reference. */
static PyObject *readable(PyObject *message) {
    if (message == NULL) return NULL;
    PyObject *module = PyImport_ImportModule("smemkern._compiler.wording");
    PyObject *result = module ? PyObject_CallMethod(module, "readable", "O", message) : NULL;
    Py_XDECREF(module);
    if (result == NULL) { /* as when the interpreter ends */
        PyErr_Clear();
        return message;
    }
    Py_DECREF(message);
    return result;
}

void *raise_status(const module_state *state, const smk_status *status) {
    return raise_with_log(state, status, NULL);
}

void *raise_with_log(const module_state *state, const smk_status *status, const char *log) {
    if (PyErr_Occurred())
        return NULL; /* raised during the run, by a signal handler or the progress function */
    if (status->code == SMK_INTERRUPTED) { /* without an exception: cancelled by detached.c */
        PyErr_SetString(PyExc_RuntimeError, "the interpreter is ending: the call was stopped");
        return NULL;
    }
    PyObject *type = status->code == SMK_OK ? PyExc_SystemError : state->exceptions[status->code];
    PyObject *message = readable(printable(status->message));
    PyObject *said = message && log && *log ? printable(log) : NULL;
    if (said) {
        Py_SETREF(message, PyUnicode_FromFormat("%U\n%U", message, said));
        Py_DECREF(said);
    }
    if (message) {
        PyErr_SetObject(type, message);
        Py_DECREF(message);
    }
    return NULL;
}
