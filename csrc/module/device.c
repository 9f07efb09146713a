/* Which device a call means, and running a job on it. */
#include "module.h"

#include "../cuda/gpu.h"
#include "../emu/emu.h"

int device_read(const module_state *state, PyObject *given, device *out) {
    (void)state;
    *out = (device){.emulated = true};
    if (given == Py_None) {
        out->emulated = gpu_count(NULL) == 0;
        return 0;
    }
    if (!PyUnicode_Check(given)) {
        PyErr_Format(PyExc_TypeError,
                     "device must be None, 'emu', 'cuda' or 'cuda:N', not an object of type %.200s",
                     Py_TYPE(given)->tp_name);
        return -1;
    }
    const char *name = PyUnicode_AsUTF8(given);
    if (name == NULL) {
        return -1;
    }
    if (strcmp(name, "emu") == 0) {
        return 0;
    }
    out->emulated = false;
    if (strcmp(name, "cuda") == 0) {
        return 0;
    }
    if (strncmp(name, "cuda:", 5) == 0) {
        size_t digits = strspn(name + 5, "0123456789");
        if (digits > 0 && digits < 9 && name[5 + digits] == '\0') {
            out->ordinal = (int)strtol(name + 5, NULL, 10);
            return 0;
        }
    }
    PyErr_Format(PyExc_ValueError, "device must be None, 'emu', 'cuda' or 'cuda:N', not %R", given);
    return -1;
}

int stream_read(PyObject *given, const device *on, void **out) {
    *out = NULL;
    if (given == Py_None) {
        return 0;
    }
    if (on->emulated) {
        PyErr_SetString(PyExc_ValueError, "stream belongs to device 'cuda'; device 'emu' has none");
        return -1;
    }
    if (!PyLong_Check(given)) {
        PyErr_Format(PyExc_TypeError,
                     "stream must be None or the address of a CUDA stream as an int, not %.200s",
                     Py_TYPE(given)->tp_name);
        return -1;
    }
    *out = PyLong_AsVoidPtr(given);
    return PyErr_Occurred() ? -1 : 0;
}

/* Called by a running device, from the thread that runs it, without the GIL. */
static int poll_signals(void *saved) {
    PyThreadState **thread = saved;
    PyEval_RestoreThread(*thread);
    int stop = PyErr_CheckSignals();
    *thread = PyEval_SaveThread();
    return stop;
}

int device_run(const module_state *state, const device *on, smk_job *job) {
    smk_status status = {0};
    PyThreadState *thread = PyEval_SaveThread();
    job->poll = poll_signals;
    job->poll_arg = &thread;
    smk_code code = on->emulated ? emu_run(job, &status) : gpu_run(on->ordinal, job, &status);
    PyEval_RestoreThread(thread);
    if (code != SMK_OK) {
        raise_status(state, &status);
        return -1;
    }
    return 0;
}
